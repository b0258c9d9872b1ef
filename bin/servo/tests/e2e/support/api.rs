//! The few requests that the suites make, with Jepsen's three answers: it happened, it did not, nobody knows.

mod lint;

use std::time::Duration;

use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(crate) struct Api {
    client: reqwest::Client,
}

/// What a start led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    Acked {
        run_id: String,
        created: bool,
    },
    Refused(u16, String),
    /// The connection broke: it may or may not have happened.
    Unknown,
}

/// Status and text of an answer that has passed the linter. One that broke off on its way is none.
pub(crate) async fn linted(response: reqwest::Response) -> reqwest::Result<(u16, String)> {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let path = response.url().path().to_owned();
    let text = response.text().await?;
    if let Some(fault) = lint::fault(&path, status, &headers, &text) {
        panic!("{path} is answered {status}: {fault}\n{text}");
    }
    Ok((status, text))
}

impl Api {
    pub(crate) fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(20))
            .pool_max_idle_per_host(16)
            .no_proxy()
            .build()
            .expect("a client without certificates of its own");
        Self { client }
    }

    pub(crate) async fn start(&self, url: &str, request_id: &str, plan: &Value) -> Start {
        let sha256 = servo_canon::fingerprint(plan).expect("plans are finite").to_string();
        let body = json!({"plan": plan, "runRequestId": request_id, "planRef": {"sha256": sha256,
            "schemaVersion": plan["schemaVersion"], "planId": plan["planId"], "planVersion": plan["planVersion"]}});
        let Ok(response) = self.client.post(format!("{url}/v1/runs")).json(&body).send().await else {
            return Start::Unknown;
        };
        let Ok((status, text)) = linted(response).await else { return Start::Unknown };
        if status >= 500 {
            return Start::Unknown;
        }
        let document: Value = serde_json::from_str(&text).unwrap_or_default();
        match (document["runId"].as_str(), document["created"].as_bool()) {
            (Some(run_id), Some(created)) => Start::Acked { run_id: run_id.to_owned(), created },
            _ => Start::Refused(status, text),
        }
    }

    pub(crate) async fn get(&self, url: &str, path: &str) -> Option<(u16, Value)> {
        let response = self.client.get(format!("{url}{path}")).send().await.ok()?;
        let (status, text) = linted(response).await.ok()?;
        Some((status, serde_json::from_str(&text).ok()?))
    }

    /// Every event of a run.
    pub(crate) async fn events(&self, url: &str, run_id: &str) -> Option<Vec<Value>> {
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let (status, page) = self.get(url, &format!("/v1/runs/{run_id}/events?after={after}&limit=1000")).await?;
            if status != 200 {
                return None;
            }
            let batch = page["events"].as_array()?.clone();
            let last = batch.last().and_then(|event| event["runSeq"].as_u64());
            events.extend(batch);
            match last {
                Some(seq) if seq < page["lastEventSeq"].as_u64()? => after = seq,
                _ => return Some(events),
            }
        }
    }
}

/// Starts a run of two steps and waits for its end.
pub(crate) async fn finished_run(url: &str, request_id: &str) -> String {
    let plan = json!({"planId": "two", "planVersion": "1", "schemaVersion": "v1",
        "steps": [{"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}]});
    let api = Api::new();
    let Start::Acked { run_id, .. } = api.start(url, request_id, &plan).await else { panic!("not started") };
    super::until("the run's end", async || {
        let (_, snapshot) = api.get(url, &format!("/v1/runs/{run_id}")).await?;
        (snapshot["status"] == "COMPLETED").then_some(())
    })
    .await;
    run_id
}

/// A small random plan: one to four steps in a random order of dependence, some slow, some failing once.
pub(crate) fn random_plan(dice: &mut super::dice::Dice) -> Value {
    let count = 1 + dice.below(4);
    let steps: Vec<Value> = (0..count)
        .map(|number| {
            let depends_on: Vec<String> =
                (0..number).filter(|_| dice.below(2) == 0).map(|on| format!("s{on}")).collect();
            json!({"stepId": format!("s{number}"), "dependsOn": depends_on,
                "with": {"sleepMs": dice.below(3) * dice.below(20), "failAttempts": dice.below(5) / 4},
                "retry": {"maxAttempts": 5, "delayMs": dice.below(2) * 10}})
        })
        .collect();
    json!({"planId": "random", "planVersion": "1", "schemaVersion": "v1", "steps": steps})
}
