//! Events for readers without the right to payloads.

use serde_json::{Value, json};
use servo_model::event::EventBody;

const SECRET: &str = "4111-1111";

/// Every body that carries data, with the secret in each place for it.
fn bodies() -> Vec<(&'static str, Value)> {
    let error = json!({"ErrorType": "Boom", "ErrorMessage": "no", "ErrorData": SECRET, "StackTrace": [SECRET]});
    vec![
        (
            "ExecutionStarted",
            json!({"function": "f", "version": "1", "name": "n", "durable": true, "input": SECRET, "clientContext": SECRET,
                "timeoutSeconds": 1, "invocationTimeoutSeconds": 1}),
        ),
        (
            "HandlerReturned",
            json!({"invocation": 1, "requestId": "r", "invokedAt": "2026-01-01T00:00:00.000Z", "status": "FAILED",
                "error": error}),
        ),
        (
            "OperationUpdated",
            json!({"operationId": "a", "occurrence": 1, "type": "STEP", "action": "SUCCEED", "payload": SECRET,
                "error": error, "checkpoint": {"number": 1}}),
        ),
        (
            "OperationResolved",
            json!({"operationId": "a", "occurrence": 1, "status": "SUCCEEDED", "payload": SECRET, "error": error}),
        ),
        ("ExecutionEnded", json!({"status": "SUCCEEDED", "result": SECRET, "error": error, "document": SECRET})),
        ("MessageReceived", json!({"logicalAttemptId": 1, "signalId": "s", "name": "m", "payload": SECRET})),
        ("CompensationEnded", json!({"logicalAttemptId": 1, "error": error})),
        ("OfALaterVersion", json!({"anything": {"at": [SECRET]}})),
    ]
}

#[test]
fn payloads_are_left_out_and_the_rest_stays() {
    for (event_type, document) in bodies() {
        let body = EventBody::decode(event_type, &document.to_string()).unwrap();
        assert!(body.encode().contains(SECRET), "{event_type}");
        let shared = body.clone();
        let bare = body.without_payloads();
        assert!(shared.encode().contains(SECRET), "{event_type}: who shares a body keeps it whole");
        assert_eq!(bare.event_type(), event_type);
        let shown = bare.encode();
        assert!(!shown.contains(SECRET), "{event_type}: {shown}");
        let shown: Value = serde_json::from_str(&shown).unwrap();
        if document.get("error").is_some() {
            assert_eq!(shown["error"], json!({"ErrorType": "Boom", "ErrorMessage": "no"}), "{event_type}");
        }
        for kept in ["operationId", "name", "status", "signalId", "function"] {
            assert_eq!(shown.get(kept), document.get(kept), "{event_type}");
        }
    }
}
