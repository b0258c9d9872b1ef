//! The few calls that the suites make themselves, where something has to happen between two of them.

use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::support::until;

pub(super) struct Service {
    client: reqwest::Client,
    pub(super) api: String,
    token: Option<String>,
}

impl Service {
    pub(super) fn at(api: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { client, api: api.to_owned(), token: None }
    }

    pub(super) fn with_token(self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self }
    }

    /// Registers a function and returns where its workers ask for work, if they do.
    pub(super) async fn register(&self, function: &str, reach: &Value) -> Option<String> {
        let request = self.client.put(format!("{}/v1/functions/{function}", self.api));
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let response = request.json(&json!({"reach": reach})).send().await.expect("an answer");
        let status = response.status();
        let item: Value = response.json().await.expect("JSON");
        assert!(status.is_success(), "{item}");
        item["workerAddress"].as_str().map(str::to_owned)
    }

    /// Starts an execution without waiting for it, and returns its ARN.
    pub(super) async fn start(&self, function: &str, event: &Value) -> String {
        let url = format!("{}/2015-03-31/functions/{function}/invocations", self.api);
        let request = self.client.post(url).header("x-amz-invocation-type", "Event").json(event);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 202);
        let arn = response.headers().get("x-amz-durable-execution-arn").expect("an ARN");
        arn.to_str().expect("text").to_owned()
    }

    pub(super) async fn answers(&self, path: &str) -> Option<()> {
        let response = self.client.get(format!("{}{path}", self.api)).send().await.ok()?;
        response.status().is_success().then_some(())
    }

    pub(super) async fn post(&self, path: &str, document: &Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.api)).json(document);
        request.send().await.expect("an answer").json().await.expect("JSON")
    }

    pub(super) async fn succeed(&self, callback_id: &str, result: &'static str) {
        let id = utf8_percent_encode(callback_id, NON_ALPHANUMERIC);
        let url = format!("{}/2025-12-01/durable-execution-callbacks/{id}/succeed", self.api);
        let status = self.client.post(url).body(result).send().await.expect("an answer").status();
        assert!(status.is_success(), "{status}");
    }

    async fn get(&self, arn: &str, what: &str) -> Value {
        let arn = utf8_percent_encode(arn, NON_ALPHANUMERIC);
        let url = format!("{}/2025-12-01/durable-executions/{arn}{what}?IncludeExecutionData=true", self.api);
        self.client.get(url).send().await.expect("an answer").json().await.expect("JSON")
    }

    /// Waits for an event of this type. An execution that ends without it is a failure at once.
    pub(super) async fn event(&self, arn: &str, event_type: &str) -> Value {
        until(event_type, async || {
            let execution = self.get(arn, "").await;
            let history = self.get(arn, "/history").await;
            let found = history["Events"].as_array()?.iter().find(|event| event["EventType"] == event_type);
            assert!(found.is_some() || execution["Status"] == "RUNNING", "{execution}");
            found.cloned()
        })
        .await
    }

    /// Waits for a good end and returns the result.
    pub(super) async fn result(&self, arn: &str) -> Value {
        let execution = until("the execution's end", async || {
            let execution = self.get(arn, "").await;
            (execution["Status"] != "RUNNING").then_some(execution)
        })
        .await;
        assert_eq!(execution["Status"], "SUCCEEDED", "{execution}");
        serde_json::from_str(execution["Result"].as_str().expect("a result")).expect("JSON")
    }
}

/// The words that steps left, in order.
pub(super) fn marks(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}
