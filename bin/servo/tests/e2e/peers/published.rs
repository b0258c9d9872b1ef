//! The published usage example of the Rust SDK, unchanged, as a worker that the binary calls.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::{Json, Router};
use serde_json::{Value, json};
use servo_sdk::{DurableExecutionInvocationInput, Options, ServoClient, handle};

use super::service::Service;
use crate::support::process::Servo;

// Formatting would change what is to stay unchanged.
#[rustfmt::skip]
#[expect(unused_imports, unused_variables, reason = "the example is taken as it was published")]
#[path = "../../../../../crates/sdk-macros/tests/it/usage_example.rs"]
mod usage_example;

/// Serves the example for as long as the test runs, and says where.
async fn serve(api: &str) -> String {
    let client = Arc::new(ServoClient::new(api, None).expect("a client"));
    let invoked = move |payload: String| {
        let client = client.clone();
        async move {
            let input: DurableExecutionInvocationInput = serde_json::from_str(&payload).expect("an invocation");
            let answer = handle(usage_example::on_json, input, client, Options::default()).await;
            answer.map(Json).map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(invoked)).await });
    url
}

/// DX-001: the published example runs on the server. Its wait ends the first invocation, and the second one ends the order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_usage_example_runs_on_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(&folder.path().join("data"), &[]).expect("it starts");
    let service = Service::at(&servo.url);
    let url = serve(&servo.url).await;
    service.register("process_order", &json!({"kind": "push", "url": url})).await;
    let arn = service.start("process_order", &json!({"order_id": "o-1", "amount": 12.5})).await;
    assert_eq!(service.event(&arn, "WaitStarted").await["Name"], "payment_confirmation");
    let placed: Value = json!({
        "status": "completed", "order_id": "o-1", "transaction_id": "txn_123", "tracking_number": "TRK123456",
    });
    assert_eq!(service.result(&arn).await, placed);
    assert!(servo.stop().success());
}
