//! The control of the campaigns: a small server that is wrong in each way that a campaign is to notice.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::seed::Seeded;
use super::{OWNER, STRANGER, campaign};

fn answer(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

fn has_key(headers: &HeaderMap) -> bool {
    let key = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    [OWNER, STRANGER].iter().any(|name| key == format!("Bearer {name}"))
}

/// One operation that is right, and others that are wrong in one way each.
fn broken() -> Router {
    let refused = || answer(401, &json!({"error": "no key"}));
    let guarded = move |headers: HeaderMap, body: Value| if has_key(&headers) { answer(200, &body) } else { refused() };
    // What an unwrap of a number that is not there comes to.
    let unwraps = move |headers: HeaderMap, body: String| async move {
        let number = serde_json::from_str::<Value>(&body).ok().and_then(|body| body["number"].as_i64());
        match number {
            _ if !has_key(&headers) => refused(),
            Some(number) if number < 1 => answer(500, &json!({"error": "unwrap of None"})),
            Some(number) => answer(200, &json!({"number": number})),
            None => answer(422, &json!({"error": "no number"})),
        }
    };
    // Things are shown to whoever has a key, also to those whose they are not.
    let makes = move |headers: HeaderMap, body: String| async move {
        match serde_json::from_str::<Value>(&body).is_ok_and(|body| body["number"].is_i64()) {
            _ if !has_key(&headers) => refused(),
            true => answer(201, &json!({"id": "thing-1", "number": 1})),
            false => answer(422, &json!({"error": "no number"})),
        }
    };
    let shows = move |Path(id): Path<String>, headers: HeaderMap| async move {
        match id == "thing-1" {
            true => guarded(headers, json!({"id": id, "number": 1})),
            false => answer(404, &json!({"error": "nothing"})),
        }
    };
    Router::new()
        .route("/right", get(async move |headers: HeaderMap| guarded(headers, json!({"number": 1}))))
        .route("/numbers", post(unwraps))
        .route("/untrue", get(async move |headers: HeaderMap| guarded(headers, json!({"number": "one"}))))
        .route("/undescribed", get(async || answer(418, &json!({"error": "tea"}))))
        .route("/open", get(async || answer(200, &json!({"number": 1}))))
        .route("/things", post(makes))
        .route("/things/{id}", get(shows))
}

fn description() -> Value {
    let of = |schema: &Value| json!({"description": "d", "content": {"application/json": {"schema": schema}}});
    let number = json!({"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}});
    let error = of(&json!({"type": "object"}));
    let responses = json!({"200": of(&number), "401": error, "404": error, "405": error, "422": error});
    let read = |id: &str| json!({"get": {"operationId": id, "responses": responses}});
    let id = json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
    let thing = json!({"type": "object", "required": ["id", "number"],
        "properties": {"id": {"type": "string"}, "number": {"type": "integer"}}});
    let mut shown = read("getThing");
    shown["get"]["parameters"] = id;
    shown["get"]["responses"]["200"] = of(&thing);
    let body = json!({"required": true, "content": {"application/json": {"schema": number}}});
    let made = json!({"201": of(&thing), "401": error, "405": error, "422": error});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "broken", "version": "1"},
        "security": [{"key": []}],
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "paths": {
            "/right": read("right"),
            "/numbers": {"post": {"operationId": "numbers", "requestBody": body, "responses": responses}},
            "/untrue": read("untrue"),
            "/undescribed": read("undescribed"),
            "/open": read("open"),
            "/things": {"post": {"operationId": "makeThing", "requestBody": body, "responses": made}},
            "/things/{id}": shown,
        },
    })
}

/// S10: the same campaign and the same judgement turn red on a server that fails, that answers otherwise than it says, that lets anybody
/// in, or that shows one tenant's things to another; and where an operation is never carried out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "a test's own server, which ends with it")]
async fn a_server_that_is_wrong_is_found_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let (listener, api) = super::super::socket();
    listener.set_nonblocking(true).expect("a socket");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    let serving = tokio::spawn(async move { axum::serve(listener, broken()).await });
    let mut described = Seeded { document: description(), bodies: BTreeMap::new() };
    described.example("makeThing", &[], Some(json!({"number": 1})));
    described.example("numbers", &[], Some(json!({"number": 1})));
    let report = campaign(folder.path(), &api, &described, super::REQUESTS).await;
    serving.abort();
    let complaints = report.complaints(1_000_000);
    for expected in [
        "POST /numbers: 500",
        "not_a_server_error: \"POST /numbers\"",
        "response_schema_conformance: \"GET /untrue\"",
        "status_code_conformance: \"GET /undescribed\"",
        "ignored_auth: \"GET /open\"",
        "object_level_authorization: \"GET /things/{id}\"",
        "requests were sent, not 1000000",
        "1 of 7 operations were never carried out: [\"GET /undescribed\"]",
    ] {
        assert!(
            complaints.iter().any(|said| said.contains(expected)),
            "{expected} is not in {complaints:#?}\n{report}"
        );
    }
    assert!(!complaints.iter().any(|said| said.contains("GET /right")), "{complaints:#?}");
}
