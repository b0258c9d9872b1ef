//! A handler as anybody could write one without an SDK: it asks for a callback, and ends with what the callback brings.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// Serves it for as long as the test runs, and says where.
pub(crate) async fn serve(api: &str) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let router = Router::new().fallback(invoke).with_state(api.to_owned());
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn invoke(State(api): State<String>, body: Bytes) -> String {
    let envelope: Value = serde_json::from_slice(&body).unwrap_or_default();
    let operations = envelope["InitialExecutionState"]["Operations"].as_array().cloned().unwrap_or_default();
    let callback = operations.iter().find(|operation| operation["Type"] == "CALLBACK");
    let answer = match callback {
        Some(found) if found["Status"] == "SUCCEEDED" => {
            json!({"Status": "SUCCEEDED", "Result": found["CallbackDetails"]["Result"]})
        }
        Some(found) if found["Status"] != "STARTED" => {
            json!({"Status": "FAILED", "Error": {"ErrorType": "Refused", "ErrorMessage": "the callback failed"}})
        }
        Some(_) => json!({"Status": "PENDING"}),
        None => {
            ask(&api, &envelope).await;
            json!({"Status": "PENDING"})
        }
    };
    answer.to_string()
}

async fn ask(api: &str, envelope: &Value) {
    let arn = envelope["DurableExecutionArn"].as_str().unwrap_or_default();
    let update = json!({"Id": "1", "Type": "CALLBACK", "Action": "START", "Name": "approval",
        "CallbackOptions": {"TimeoutSeconds": 3_600}});
    let request = json!({"CheckpointToken": envelope["CheckpointToken"], "Updates": [update]});
    let arn = utf8_percent_encode(arn, NON_ALPHANUMERIC);
    let url = format!("{api}/2025-12-01/durable-executions/{arn}/checkpoint");
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let answer = client.post(url).json(&request).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap_or_default());
}
