//! The runtime contract over HTTP.

use serde_json::{Value, json};
use servo_model::contract::{RuntimeCommand, RuntimeSnapshot, json_schema};

use crate::harness::{Server, one_step};

async fn exec(server: &Server, command: Value) -> crate::harness::Answer {
    server.post("/runtime/commands", &command).await
}

/// RT-014: over HTTP the contract's documents are those of its Rust types, to the letter.
#[tokio::test]
async fn the_contract_speaks_the_same_json_over_http() {
    let server = Server::start().await;
    let queue = json!({"command": "QueueDispatch", "request_id": "r1", "target": "worker-a"});
    let answer = exec(&server, queue.clone()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json, json!({"events": [{"event": "DispatchQueued", "request_id": "r1", "target": "worker-a"}]}));
    assert_eq!(exec(&server, queue).await.json, answer.json, "a repeated request is answered like the first");
    exec(&server, json!({"command": "MarkNotified", "request_id": "r1", "channel": "http"})).await;
    let captured = exec(&server, json!({"command": "CaptureSnapshot"})).await.json;
    assert_eq!(captured["events"], json!([{"event": "SnapshotCaptured"}]));
    let snapshot = server.get("/runtime/snapshot").await;
    let typed: RuntimeSnapshot = serde_json::from_str(&snapshot.text).unwrap();
    assert_eq!(serde_json::to_string(&typed).unwrap(), snapshot.text);
    assert_eq!(typed, server.runtime.snapshot().await.unwrap());
    assert_eq!(captured["snapshot"], snapshot.json);
    assert_eq!(typed.backlog.notified, 1);
    assert_eq!(server.get("/runtime/schema").await.json, json_schema());
}

#[tokio::test]
async fn the_contracts_refusals_are_conflicts() {
    let server = Server::start().await;
    let acquire = json!({"command": "AcquireAuthority", "owner": "other", "lease_id": "l", "leased_until": "2999-01-01T00:00:00Z"});
    let held = exec(&server, acquire).await;
    assert_eq!(held.status, 409);
    held.is_problem("AUTHORITY_HELD");
    let renew =
        json!({"command": "RenewAuthority", "owner": "other", "lease_id": "l", "leased_until": "2999-01-01T00:00:00Z"});
    exec(&server, renew).await.is_problem("AUTHORITY_NOT_HELD");
    let unknown = exec(&server, json!({"command": "MarkDelivered", "request_id": "zzz"})).await;
    assert_eq!(unknown.status, 404);
    unknown.is_problem("DISPATCH_NOT_FOUND");
    exec(&server, json!({"command": "QueueDispatch", "request_id": "r1", "target": "t"})).await;
    let early = exec(&server, json!({"command": "MarkDelivered", "request_id": "r1"})).await;
    early.is_problem("DISPATCH_ILLEGAL_MOVE");
    assert!(early.json["detail"].as_str().unwrap().contains("pending"), "{}", early.text);
}

/// RT-018: bad commands are 422 with the field's name, and change nothing.
#[tokio::test]
async fn bad_commands_name_the_field() {
    let server = Server::start().await;
    let before = server.runtime.engine().store().log_head().await.unwrap();
    for (body, pointer) in [
        ("", ""),
        ("{", ""),
        ("[]", ""),
        ("{}", "/command"),
        (r#"{"command":5}"#, "/command"),
        (r#"{"command":"Reboot"}"#, "/command"),
        (r#"{"command":"captureSnapshot"}"#, "/command"),
        (r#"{"command":"QueueDispatch","request_id":"r"}"#, "/target"),
        (r#"{"command":"QueueDispatch","request_id":7,"target":"t"}"#, "/request_id"),
        (r#"{"command":"QueueDispatch","request_id":"","target":"t"}"#, "/request_id"),
        (r#"{"command":"QueueDispatch","request_id":"r","target":"t","priority":1}"#, "/priority"),
        (r#"{"command":"AcquireAuthority","owner":"o","lease_id":"l","leased_until":"soon"}"#, "/leased_until"),
        (r#"{"command":"RequestReplay","cursor":"7"}"#, "/cursor"),
        (r#"{"command":"CaptureSnapshot","extra":null}"#, "/extra"),
    ] {
        let answer = server.post_text("/runtime/commands", body).await;
        assert_eq!(answer.status, 422, "{body}: {}", answer.text);
        answer.is_problem("SCHEMA_VALIDATION_FAILED");
        answer.names(pointer);
    }
    assert_eq!(server.runtime.engine().store().log_head().await.unwrap(), before);
    assert_eq!(server.get("/runtime/snapshot").await.json["backlog"]["pending"], 0);
}

#[tokio::test]
async fn the_contracts_events_are_read_in_pages() {
    let server = Server::start().await;
    let run = server.start_run(one_step()).await;
    server.finish(&run).await;
    let (mut events, mut after) = (Vec::new(), "cursor-0".to_owned());
    loop {
        let page = server.get(&format!("/runtime/events?after={after}&limit=2")).await.json;
        events.extend(page["events"].as_array().unwrap().clone());
        let next = page["next"].as_str().unwrap().to_owned();
        if next == after {
            break;
        }
        after = next;
    }
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    for name in ["AuthorityAcquired", "DispatchNotified", "worker.assigned", "DispatchDelivered"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    let schema = json_schema();
    assert!(RuntimeCommand::parse(r#"{"command":"CaptureSnapshot"}"#).is_ok() && schema.is_object());
}
