//! Entrypoints and invocations: what goes over the wire, and how refusals of that API are read.

use std::time::Duration;

use serde_json::{Value, json};
use servo_client::{BulkRequest, Client, EntrypointQuery, Error, InvocationQuery, ListQuery};
use servo_entrypoint::{EntrypointStatusAction, InvocationControlAction, InvocationRequest, InvocationSignal};

use crate::server::{Reply, Server};

fn client(server: &Server) -> Client {
    Client::new(&server.url, None).unwrap()
}

fn record(id: &str) -> Value {
    json!({
        "id": id, "invocation_id": id, "entrypoint_id": "gts.a.b.c.v1~", "entrypoint_version": "1.0.0", "tenant_id": "t",
        "status": "queued", "mode": "async", "params": null, "result": null, "error": null, "payloads_hidden": true,
        "timestamps": {"created_at": "2026-01-20T10:30:15.123Z", "started_at": null, "suspended_at": null, "finished_at": null},
        "observability": {"correlation_id": "c", "trace_id": null, "span_id": null, "metrics": {"memory_limit_mb": 0}},
    })
}

fn entrypoint() -> Value {
    json!({
        "id": "ep_1", "entrypoint_id": "gts.a.b.c.v1~", "version": "1.0.0", "tenant_id": "t", "status": "active", "title": "T",
        "owner": {"owner_type": "tenant", "id": "t", "tenant_id": "t"}, "schema": {"params": null, "returns": null, "errors": []},
        "traits": {"invocation": {"supported": ["sync"], "default": "sync"}, "limits": {}, "retry": {"max_attempts": 1}},
        "implementation": {"adapter": "gts.a.b.d.v1~", "kind": "adapter_ref", "adapter_ref": {"definition_id": "f"}},
    })
}

fn page(item: &Value) -> String {
    json!({"items": [item], "page_info": {"next_cursor": "n", "prev_cursor": null, "has_more": true}}).to_string()
}

#[tokio::test]
async fn entrypoints_are_registered_listed_and_moved() {
    let one = entrypoint().to_string();
    let server = Server::start(vec![
        Reply::json(201, &one),
        Reply::json(200, &one),
        Reply::json(200, &page(&entrypoint())),
        Reply::json(200, &one),
        Reply::json(200, &one),
        Reply::json(200, &one),
        Reply::whole(204, "text/plain", ""),
    ]);
    let client = client(&server);
    assert_eq!(client.register_entrypoint(&json!({"a": 1})).await.unwrap().id.as_deref(), Some("ep_1"));
    client.validate_entrypoint(&json!({"a": 1})).await.unwrap();
    let query = EntrypointQuery {
        prefix: Some("gts.a.*".to_owned()),
        page: ListQuery { filter: Some("status eq 'active'".to_owned()), limit: Some(5), ..ListQuery::default() },
        ..EntrypointQuery::default()
    };
    assert!(client.list_entrypoints(&query).await.unwrap().page_info.has_more);
    client.entrypoint("ep_1").await.unwrap();
    client.update_entrypoint("ep_1", &json!({"a": 2})).await.unwrap();
    client.set_entrypoint_status("ep_1", EntrypointStatusAction::Activate).await.unwrap();
    client.delete_entrypoint("ep_1").await.unwrap();
    let requests = server.finish();
    let prefix = "/api/serverless-runtime/v1/entrypoints";
    for (request, (head, body)) in requests.iter().zip([
        (format!("POST {prefix} "), r#"{"a":1}"#),
        (format!("POST {prefix}:validate "), r#"{"a":1}"#),
        (format!("GET {prefix}?%24filter=status+eq+%27active%27&limit=5&entrypoint_id_prefix=gts.a.* "), ""),
        (format!("GET {prefix}/ep_1 "), ""),
        (format!("PUT {prefix}/ep_1 "), r#"{"a":2}"#),
        (format!("POST {prefix}/ep_1:status "), r#"{"action":"activate"}"#),
        (format!("DELETE {prefix}/ep_1 "), ""),
    ]) {
        assert!(request.starts_with(&head) && request.ends_with(body), "{head}: {request}");
    }
}

#[tokio::test]
async fn invocations_are_started_and_controlled() {
    let one = record("inv_1").to_string();
    let result = json!({"record": record("inv_1"), "dry_run": false, "cached": true}).to_string();
    let outcomes = page(&json!({"invocation_id": "inv_1", "error": null}));
    let server = Server::start(vec![
        Reply::json(201, &result),
        Reply::json(200, &page(&record("inv_1"))),
        Reply::json(200, r#"{"items":[{"status":"failed","count":3}]}"#),
        Reply::json(200, &one),
        Reply::json(200, &one),
        Reply::json(200, &one),
        Reply::json(200, &outcomes),
    ]);
    let client = client(&server);
    let request = InvocationRequest {
        entrypoint_id: "gts.a.b.c.v1~".to_owned(),
        mode: None,
        params: json!({"x": 1}),
        dry_run: false,
        idempotency_key: Some("k-1".to_owned()),
    };
    assert!(client.start_invocation(&request).await.unwrap().cached);
    let query = InvocationQuery { status: Some("failed".to_owned()), ..InvocationQuery::default() };
    assert_eq!(client.list_invocations(&query).await.unwrap().items[0].invocation_id, "inv_1");
    assert_eq!(client.count_invocations(None).await.unwrap().items[0].count, 3);
    client.invocation("inv_1").await.unwrap();
    let action = InvocationControlAction::RetryStep { step_id: "a".to_owned() };
    client.control_invocation("inv_1", &action).await.unwrap();
    let signal = InvocationSignal { signal_id: "s".to_owned(), name: "n".to_owned(), payload: json!(7) };
    client.signal_invocation("inv_1", &signal).await.unwrap();
    let bulk = BulkRequest {
        action: InvocationControlAction::Retry,
        filter: "status eq 'failed'".to_owned(),
        max_items: Some(5),
        per_second: None,
        dry_run: true,
        cursor: None,
    };
    assert_eq!(client.bulk_control(&bulk).await.unwrap().items.len(), 1);
    let requests = server.finish();
    assert!(requests[0].contains("idempotency-key: k-1\r\n"), "{}", requests[0]);
    assert!(
        requests[0].ends_with(r#"{"entrypoint_id":"gts.a.b.c.v1~","params":{"x":1},"dry_run":false}"#),
        "{}",
        requests[0]
    );
    assert!(requests[4].ends_with(r#"{"action":"retry_step","step_id":"a"}"#), "{}", requests[4]);
    assert!(requests[5].starts_with("POST /api/serverless-runtime/v1/invocations/inv_1:signal "), "{}", requests[5]);
    let body: Value = serde_json::from_str(requests[6].rsplit("\r\n").next().unwrap()).unwrap();
    assert_eq!((&body["action"], &body["max_items"], &body["dry_run"]), (&json!("retry"), &json!(5), &json!(true)));
}

/// The two APIs say no in two forms, and both are read.
#[tokio::test]
async fn a_refusal_keeps_its_words() {
    let problem = json!({
        "type": "gts://gts.e.v1~", "title": "Validation Error", "status": 422, "detail": "two faults", "instance": "/x",
        "code": "gts.e.v1~", "trace_id": "t-1", "retry_after_seconds": 3, "issues": [],
        "errors": [{"path": "$.a", "message": "is wrong"}],
    });
    let server = Server::start(vec![Reply::json(422, &problem.to_string())]);
    let Error::Api { problem, .. } = client(&server).register_entrypoint(&json!({})).await.unwrap_err() else {
        panic!("another error");
    };
    assert_eq!((problem.code.as_str(), problem.request_id.as_deref()), ("gts.e.v1~", Some("t-1")));
    assert_eq!((problem.errors[0].pointer.as_str(), problem.errors[0].detail.as_str()), ("$.a", "is wrong"));
    assert_eq!(problem.retry_after, Some(3));
    server.finish();
}

#[tokio::test]
async fn a_timeline_is_followed_although_the_connection_breaks() {
    let event = |number: u32, kind: &str| {
        let data = json!({"at": "2026-01-20T10:30:15.123Z", "event_type": kind, "status": "running"});
        format!("id: {number}\nevent: {kind}\ndata: {data}\n\n")
    };
    let end = "event: end\ndata: {\"status\":\"succeeded\"}\n\n";
    let server = Server::start(vec![
        Reply::Close(Reply::stream(&event(1, "started"))),
        Reply::Close(String::new()),
        Reply::Hold(Reply::stream(&format!("{}{}{end}", event(1, "started"), event(2, "succeeded")))),
    ]);
    let mut follower = client(&server).follow_timeline("inv_1").with_backoff(Duration::ZERO);
    let mut seen = Vec::new();
    while let Some(event) = follower.next().await.unwrap() {
        seen.push(event.event_type.as_str());
    }
    assert_eq!(seen, ["started", "succeeded"]);
    let requests = server.finish();
    assert!(!requests[0].contains("last-event-id") && requests[2].contains("last-event-id: 1\r\n"), "{requests:?}");
}
