//! The few calls of the durable execution API that the suites make.

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::worker::Program;

/// Waits this long before it asks again whether there is another server.
const PATIENCE: Duration = Duration::from_millis(50);

pub(super) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().timeout(Duration::from_secs(60)).no_proxy();
    builder.build().expect("a client without certificates of its own")
}

pub(super) async fn register(url: &str, handlers: &str) {
    let request = client().put(format!("{url}/v1/functions/program"));
    let reach = json!({"reach": {"kind": "push", "url": handlers}});
    let answer = request.json(&reach).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{}", answer.status());
}

/// The ARN, or nothing where nobody knows whether it was started.
pub(super) async fn start(http: &reqwest::Client, url: &str, program: &Program) -> Option<String> {
    let request = http.post(format!("{url}/2015-03-31/functions/program/invocations"));
    let name = program.name.replace('/', "-");
    let headers = [("x-amz-invocation-type", "Event"), ("x-amz-durable-execution-name", &name)];
    let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
    let answer = request.json(program).send().await.ok()?;
    let status = answer.status();
    if status.is_server_error() {
        return None;
    }
    assert_eq!(status, 202, "{:?}", answer.text().await);
    answer.headers().get("x-amz-durable-execution-arn")?.to_str().ok().map(str::to_owned)
}

/// An execution, or (with `/history`) what happened in it.
pub(super) async fn get(http: &reqwest::Client, url: &str, arn: &str, what: &str) -> Option<Value> {
    let arn = utf8_percent_encode(arn, NON_ALPHANUMERIC);
    let query = "IncludeExecutionData=true&MaxItems=1000";
    let answer = http.get(format!("{url}/2025-12-01/durable-executions/{arn}{what}?{query}")).send().await.ok()?;
    answer.json().await.ok()
}

/// Somebody outside: answers until the answer is known to have come.
pub(super) async fn answer_callback(mut server: watch::Receiver<String>, id: String, value: u64) {
    let http = client();
    loop {
        let url = server.borrow_and_update().clone();
        let id = utf8_percent_encode(&id, NON_ALPHANUMERIC);
        let url = format!("{url}/2025-12-01/durable-execution-callbacks/{id}/succeed");
        match http.post(url).body(value.to_string()).send().await {
            // A refusal says that it was answered before.
            Ok(answer) if !answer.status().is_server_error() => return,
            _ => {
                let _ = tokio::time::timeout(PATIENCE, server.changed()).await;
            }
        }
    }
}
