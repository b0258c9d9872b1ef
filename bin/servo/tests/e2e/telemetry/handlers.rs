//! Handlers that say what they were told about the trace. `outer` calls `inner` and waits for a second, `breaks` fails.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::post;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[derive(Debug, Clone)]
pub(super) struct Handlers {
    pub(super) url: String,
    api: String,
    secret: &'static str,
    /// The function, and the `traceparent` that it got.
    told: Arc<Mutex<Vec<(String, String)>>>,
}

impl Handlers {
    pub(super) async fn serve(api: &str, secret: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let handlers = Self { url, api: api.to_owned(), secret, told: Arc::default() };
        let router = Router::new()
            .route("/2015-03-31/functions/{function}/invocations", post(invoke))
            .with_state(handlers.clone());
        #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        handlers
    }

    /// What each invocation of a function was told, in order.
    pub(super) fn told(&self, function: &str) -> Vec<String> {
        let told = self.told.lock().expect("nobody panics with it");
        told.iter().filter(|(name, _)| name == function).map(|(_, trace)| trace.clone()).collect()
    }
}

async fn invoke(
    State(handlers): State<Handlers>,
    Path(function): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> String {
    let trace = headers.get("traceparent").and_then(|trace| trace.to_str().ok()).unwrap_or_default().to_owned();
    handlers.told.lock().expect("nobody panics with it").push((function.clone(), trace));
    let envelope: Value = serde_json::from_slice(&body).unwrap_or_default();
    let secret = handlers.secret;
    let answer = match function.as_str() {
        "breaks" => json!({"Status": "FAILED",
            "Error": {"ErrorType": "Broken", "ErrorMessage": secret, "ErrorData": secret, "StackTrace": [secret]}}),
        "inner" => json!({"Status": "SUCCEEDED", "Result": json!(secret).to_string()}),
        _ => outer(&handlers, &envelope).await,
    };
    answer.to_string()
}

async fn outer(handlers: &Handlers, envelope: &Value) -> Value {
    let operations = envelope["InitialExecutionState"]["Operations"].as_array().cloned().unwrap_or_default();
    let of = |kind: &str| operations.iter().find(|operation| operation["Type"] == kind);
    match (of("CHAINED_INVOKE"), of("WAIT")) {
        (Some(invoke), Some(wait)) if invoke["Status"] == "SUCCEEDED" && wait["Status"] == "SUCCEEDED" => {
            json!({"Status": "SUCCEEDED", "Result": invoke["ChainedInvokeDetails"]["Result"]})
        }
        (None, _) => {
            checkpoint(handlers, envelope).await;
            json!({"Status": "PENDING"})
        }
        _ => json!({"Status": "PENDING"}),
    }
}

async fn checkpoint(handlers: &Handlers, envelope: &Value) {
    let payload = json!({"key": handlers.secret}).to_string();
    let updates = json!([
        {"Id": "1", "Type": "CHAINED_INVOKE", "Action": "START", "Name": "inner", "Payload": payload,
            "ChainedInvokeOptions": {"FunctionName": "inner"}},
        {"Id": "2", "Type": "WAIT", "Action": "START", "Name": "a second", "WaitOptions": {"WaitSeconds": 1}},
    ]);
    let request = json!({"CheckpointToken": envelope["CheckpointToken"], "Updates": updates});
    let arn = utf8_percent_encode(envelope["DurableExecutionArn"].as_str().unwrap_or_default(), NON_ALPHANUMERIC);
    let url = format!("{}/2025-12-01/durable-executions/{arn}/checkpoint", handlers.api);
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let answer = client.post(url).json(&request).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap_or_default());
}
