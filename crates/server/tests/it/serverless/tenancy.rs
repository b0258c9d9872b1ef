//! Two tenants, and what a viewer may not read.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{Api, FUNCTION, PREFIX, definition_of, refused};
use crate::harness::{Options, keys};

/// Longer than what ids and digests are likely to hold.
const CARD: &str = "4111222233334444";

fn card() -> u64 {
    CARD.parse().unwrap()
}

struct Two {
    api: Api,
    entrypoint: String,
    invocation: String,
}

/// An entrypoint and an ended invocation of acme, beside globex.
async fn two() -> Two {
    let api = Api::with(Options { auth: keys(), ..Options::default() }, &["acme-developer", "globex-developer"]).await;
    let registered =
        api.send(Method::POST, "/entrypoints", "acme-developer", Some(&definition_of("acme", FUNCTION))).await;
    assert_eq!(registered.status, 201, "{}", registered.text);
    let entrypoint = registered.json["id"].as_str().unwrap().to_owned();
    let activate = json!({"action": "activate"});
    let path = format!("/entrypoints/{entrypoint}:status");
    assert_eq!(api.send(Method::POST, &path, "acme-developer", Some(&activate)).await.status, 200);
    let request = json!({"entrypoint_id": FUNCTION, "mode": "sync", "params": {"amount": card()}});
    let started = api.send(Method::POST, "/invocations", "acme-operator", Some(&request)).await;
    assert_eq!(started.status, 201, "{}", started.text);
    let invocation = started.json["record"]["id"].as_str().unwrap().to_owned();
    Two { api, entrypoint, invocation }
}

/// SR-013, SR-016, SR-368: what is another tenant's does not exist, whatever is asked.
async fn a_foreign_tenant_finds_nothing() {
    let Two { api, entrypoint, invocation } = two().await;
    let document = definition_of("globex", FUNCTION);
    let rows: [(Method, String, Option<Value>); 9] = [
        (Method::GET, format!("/entrypoints/{entrypoint}"), None),
        (Method::PUT, format!("/entrypoints/{entrypoint}"), Some(document.clone())),
        (Method::DELETE, format!("/entrypoints/{entrypoint}"), None),
        (Method::POST, format!("/entrypoints/{entrypoint}:status"), Some(json!({"action": "disable"}))),
        (Method::POST, "/invocations".to_owned(), Some(json!({"entrypoint_id": FUNCTION}))),
        (Method::GET, format!("/invocations/{invocation}"), None),
        (Method::POST, format!("/invocations/{invocation}:control"), Some(json!({"action": "replay"}))),
        (Method::POST, format!("/invocations/{invocation}:signal"), Some(json!({"signal_id": "s", "name": "n"}))),
        (Method::GET, format!("/invocations/{invocation}/timeline"), None),
    ];
    for (method, path, body) in rows {
        let answer = api.send(method.clone(), &path, "globex-admin", body.as_ref()).await;
        refused(&answer, 404, "not_found");
        let own = api.send(method, &path, "acme-admin", body.as_ref()).await;
        assert_ne!(own.status, 404, "{path}: {}", own.text);
    }
    for path in ["/entrypoints", "/invocations", "/invocations?tenant_id=acme", "/entrypoints?tenant_id=acme"] {
        assert_eq!(api.send(Method::GET, path, "globex-admin", None).await.json["items"], json!([]), "{path}");
    }
    // The address is free in another tenant, and theirs is another entrypoint.
    let theirs = api.send(Method::POST, "/entrypoints", "globex-developer", Some(&document)).await;
    assert_eq!(theirs.status, 201, "{}", theirs.text);
    assert_ne!(theirs.json["id"], json!(entrypoint));
}

/// SR-017, SR-344: what the platform registers for another tenant is where the answer says, to be read, changed and removed; to that
/// tenant's neighbours it is not there.
async fn the_platform_finds_what_it_registered() {
    let api = Api::with(Options { auth: keys(), ..Options::default() }, &["globex-developer"]).await;
    let mut document = definition_of("globex", FUNCTION);
    let made = api.send(Method::POST, "/entrypoints", "acme-platform-admin", Some(&document)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let place = made.headers["location"].to_str().unwrap().strip_prefix(PREFIX).unwrap().to_owned();
    document["title"] = "Changed".into();
    let status = format!("{place}:status");
    let rows: [(Method, &str, Option<Value>, u16); 6] = [
        (Method::GET, &place, None, 200),
        (Method::PUT, &place, Some(document), 200),
        (Method::POST, &status, Some(json!({"action": "activate"})), 200),
        (Method::POST, &status, Some(json!({"action": "disable"})), 200),
        (Method::DELETE, &place, None, 204),
        (Method::GET, &place, None, 200),
    ];
    for (method, path, body, expected) in rows {
        refused(&api.send(method.clone(), path, "acme-admin", body.as_ref()).await, 404, "not_found");
        let answer = api.send(method, path, "acme-platform-admin", body.as_ref()).await;
        assert_eq!(answer.status, expected, "{}", answer.text);
    }
    let seen = api.send(Method::GET, &place, "globex-viewer", None).await.json;
    assert_eq!((&seen["title"], &seen["status"]), (&json!("Changed"), &json!("archived")));
}

/// A cursor of one tenant opens nothing in another.
async fn a_cursor_belongs_to_its_tenant() {
    let Two { api, .. } = two().await;
    let request = json!({"entrypoint_id": FUNCTION, "mode": "sync"});
    assert_eq!(api.send(Method::POST, "/invocations", "acme-operator", Some(&request)).await.status, 201);
    let page = api.send(Method::GET, "/invocations?limit=1", "acme-viewer", None).await.json;
    let path = format!("/invocations?limit=1&cursor={}", page["page_info"]["next_cursor"].as_str().unwrap());
    assert_eq!(api.send(Method::GET, &path, "acme-viewer", None).await.status, 200);
    refused(&api.send(Method::GET, &path, "globex-viewer", None).await, 400, "bad_request");
}

/// SR-315: a tenant that is full is full alone.
async fn tenants_have_quotas_of_their_own() {
    let platform = |platform: &mut servo_runtime::serverless::Platform| {
        platform.policy.quotas.max_concurrent_executions = 1;
    };
    let options = Options { auth: keys(), platform, ..Options::default() };
    let api = Api::with(options, &["acme-developer", "globex-developer"]).await;
    for tenant in ["acme", "globex"] {
        let key = format!("{tenant}-developer");
        let registered = api.send(Method::POST, "/entrypoints", &key, Some(&definition_of(tenant, FUNCTION))).await;
        let path = format!("/entrypoints/{}:status", registered.json["id"].as_str().unwrap());
        assert_eq!(api.send(Method::POST, &path, &key, Some(&json!({"action": "activate"}))).await.status, 200);
        let hang = json!({"entrypoint_id": FUNCTION, "params": {"do": "hang"}});
        let started = api.send(Method::POST, "/invocations", &key, Some(&hang)).await;
        assert_eq!(started.status, 201, "{tenant}: {}", started.text);
        refused(&api.send(Method::POST, "/invocations", &key, Some(&hang)).await, 429, "quota_exceeded");
    }
}

/// SR-425: who may not start may not try either.
async fn a_viewer_tries_nothing() {
    let Two { api, .. } = two().await;
    let dry = json!({"entrypoint_id": "gts.no.such.thing.v1~", "dry_run": true});
    refused(&api.send(Method::POST, "/invocations", "acme-viewer", Some(&dry)).await, 403, "forbidden");
    refused(&api.send(Method::POST, "/invocations", "nobody", Some(&dry)).await, 401, "unauthenticated");
}

/// Viewers see how runs stand, not what they carry.
async fn payloads_are_hidden_from_viewers() {
    let Two { api, invocation, .. } = two().await;
    for path in [format!("/invocations/{invocation}"), "/invocations".to_owned()] {
        let hidden = api.send(Method::GET, &path, "acme-viewer", None).await;
        assert!(!hidden.text.contains(CARD) && hidden.text.contains("\"payloads_hidden\":true"), "{}", hidden.text);
        let open = api.send(Method::GET, &path, "acme-operator", None).await;
        assert!(open.text.contains(CARD) && !open.text.contains("payloads_hidden"), "{}", open.text);
    }
}

/// The other ways to the same run hide the same: events as a page and as a stream, the file, and the Lambda API.
async fn payloads_are_hidden_on_every_way_to_them() {
    let Two { api, invocation, .. } = two().await;
    let read = async |path: &str, key: &str, accept: &str| {
        let request = api.server.request(Method::GET, path).bearer_auth(key).header("accept", accept);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    // The run's id stands for the ARN.
    let arn = &invocation;
    let rows = [
        (format!("/v1/runs/{invocation}/events"), "application/json", 200),
        (format!("/v1/runs/{invocation}/events"), "text/event-stream", 200),
        (format!("/v1/runs/{invocation}/export"), "application/json", 403),
        (format!("/2025-12-01/durable-executions/{arn}"), "application/json", 200),
        (format!("/2025-12-01/durable-executions/{arn}?IncludeExecutionData=true"), "application/json", 200),
        (format!("/2025-12-01/durable-executions/{arn}/history"), "application/json", 200),
        (format!("/2025-12-01/durable-executions/{arn}/history?ReverseOrder=true"), "application/json", 200),
        (format!("/2025-12-01/durable-executions/{arn}/state?CheckpointToken=x"), "application/json", 403),
    ];
    for (path, accept, status) in rows {
        let hidden = read(&path, "acme-viewer", accept).await;
        assert_eq!(hidden.0, status, "{path}: {}", hidden.1);
        assert!(!hidden.1.contains(CARD), "{path}: {}", hidden.1);
        let open = read(&path, "acme-operator", accept).await;
        assert!(open.1.contains(CARD) || path.contains("/state"), "{path}: {}", open.1);
    }
}

/// What the steps of a plan get is a payload, and how they hang together is not.
async fn a_plan_is_shown_without_the_inputs_of_its_steps() {
    let server = crate::harness::Server::with(Options { auth: keys(), ..Options::default() }).await;
    let steps = json!([{"stepId": "a", "with": {"card": card()}}, {"stepId": "b", "dependsOn": ["a"]}]);
    let run = server.start_as("acme-operator", steps).await;
    let path = format!("/v1/runs/{run}/events");
    let hidden = server.send(Method::GET, &path, "acme-viewer", None).await;
    assert!(!hidden.text.contains(CARD), "{}", hidden.text);
    let steps = json!([{"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}]);
    assert_eq!(hidden.json["events"][0]["plan"]["steps"], steps);
    let open = server.send(Method::GET, &path, "acme-operator", None).await;
    assert_eq!(open.json["events"][0]["plan"]["steps"][0]["with"]["card"], card());
}

crate::backend::on_every_store! {
    a_foreign_tenant_finds_nothing,
    the_platform_finds_what_it_registered,
    a_cursor_belongs_to_its_tenant,
    tenants_have_quotas_of_their_own,
    a_viewer_tries_nothing,
    payloads_are_hidden_from_viewers,
    payloads_are_hidden_on_every_way_to_them,
    a_plan_is_shown_without_the_inputs_of_its_steps,
}
