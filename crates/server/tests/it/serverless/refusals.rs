//! What the framework and the door refuse has the API's own form; the linter looks at each.

use reqwest::Method;
use serde_json::json;

use super::support::{Api, FUNCTION, PREFIX, definition, refused};
use crate::harness::{Answer, Options, keys};

/// SR-160, SR-323, SR-329, SR-340: bodies that cannot be read, addresses and methods that are not there.
async fn refusals_of_the_framework_have_the_same_form() {
    let api = Api::start().await;
    for text in ["", "{", "nonsense", "{\"a\":}", "{} {}"] {
        let answer = api.server.post_text(&format!("{PREFIX}/invocations"), text).await;
        refused(&answer, 400, "bad_request");
    }
    for text in ["[]", "7", "\"text\"", "null"] {
        let answer = api.server.post_text(&format!("{PREFIX}/invocations"), text).await;
        refused(&answer, 422, "validation");
    }
    let deep = format!("{{\"params\":{}{}}}", "[".repeat(200), "]".repeat(200));
    refused(&api.server.post_text(&format!("{PREFIX}/invocations"), &deep).await, 422, "validation");
    for path in ["/nothing", "", "/entrypoints/a/b", "/invocations/a/b/c"] {
        refused(&api.get(path).await, 404, "not_found");
    }
    for (method, path) in [
        (Method::DELETE, "/invocations"),
        (Method::PATCH, "/entrypoints/ep_1"),
        (Method::PUT, "/types"),
        (Method::GET, "/entrypoints:validate"),
        (Method::GET, "/invocations:bulk"),
    ] {
        refused(&api.send(method, path, "", None).await, 405, "bad_request");
    }
    assert_eq!(api.server.get("/entrypoints").await.status, 404, "SR-323: only below the prefix");
}

async fn a_body_has_a_limit() {
    let mut options = Options::default();
    options.runtime.limits.request_body_bytes_max = 4_096;
    let api = Api::with(options, &[""]).await;
    let answer =
        api.post("/invocations", &json!({"entrypoint_id": FUNCTION, "params": {"do": "x".repeat(5_000)}})).await;
    refused(&answer, 413, "bad_request");
}

/// SR-016, SR-160: who is not known, and who may not.
async fn refusals_at_the_door_have_the_same_form() {
    let api = Api::with(Options { auth: keys(), ..Options::default() }, &[]).await;
    for key in ["", "wrong"] {
        refused(&api.send(Method::GET, "/invocations", key, None).await, 401, "unauthenticated");
    }
    let document = definition(FUNCTION);
    refused(&api.send(Method::POST, "/entrypoints", "acme-viewer", Some(&document)).await, 403, "forbidden");
}

/// SR-159, SR-404, SR-343: a quota, with the time after which to try again.
async fn a_full_tenant_is_told_when_to_come_back() {
    let options =
        Options { platform: |platform| platform.policy.quotas.max_concurrent_executions = 1, ..Options::default() };
    let api = Api::with(options, &[""]).await;
    api.activate(&definition(FUNCTION)).await;
    let id = api.begin(FUNCTION, &json!({"do": "hang"})).await;
    api.until(&id, "running").await;
    for dry_run in [false, true] {
        let answer = api.invoke(&json!({"entrypoint_id": FUNCTION, "dry_run": dry_run}), &[]).await;
        refused(&answer, 429, "quota_exceeded");
    }
}

/// SR-072, SR-074, SR-075, SR-076, SR-156, SR-343: a rate limit, in both modes, with the time after which to try again; dry runs do not count against it (SR-409).
async fn a_rate_limit_is_told() {
    let api = Api::start().await;
    let mut document = definition(FUNCTION);
    document["traits"]["rate_limit"] = json!({
        "strategy": "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~",
        "config": {"max_requests_per_minute": 1},
    });
    api.activate(&document).await;
    for _ in 0..5 {
        assert_eq!(api.invoke(&json!({"entrypoint_id": FUNCTION, "dry_run": true}), &[]).await.status, 200);
    }
    api.begin(FUNCTION, &json!({})).await;
    let sync: Answer = api.invoke(&json!({"entrypoint_id": FUNCTION, "mode": "sync"}), &[]).await;
    refused(&sync, 429, "rate_limited");
    let answer: Answer = api.invoke(&json!({"entrypoint_id": FUNCTION, "mode": "async"}), &[]).await;
    refused(&answer, 429, "rate_limited");
    assert_eq!(answer.json["type"], format!("gts://{}", super::support::err("rate_limited")));
    assert_eq!((&answer.json["status"], answer.json["title"].is_string()), (&json!(429), true));
    assert!(answer.json["detail"].is_string() && answer.json["instance"].is_string());
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(
        api.get("/invocations").await.json["items"].as_array().unwrap().len(),
        1,
        "of a refused start nothing stays"
    );
    assert!(answer.json["retry_after_seconds"].as_u64().is_some_and(|seconds| (1..=60).contains(&seconds)));
    let header: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert_eq!(answer.json["retry_after_seconds"], header);
}

/// SR-161: one error has one id, wherever it is met: `error_type_id` in a record, `code` and `type` in an answer.
async fn an_error_has_the_same_id_in_a_record_and_an_answer() {
    let api = Api::start().await;
    let mut document = definition(FUNCTION);
    document["schema"]["params"]["required"] = json!(["amount"]);
    document["schema"]["returns"] = json!({"type": "object", "required": ["total"]});
    api.activate(&document).await;
    let answer = api.invoke(&json!({"entrypoint_id": FUNCTION, "params": {}}), &[]).await;
    refused(&answer, 422, "validation");
    let id = api.begin(FUNCTION, &json!({"amount": 1})).await;
    api.until(&id, "failed").await;
    let record = api.get(&format!("/invocations/{id}")).await.json;
    assert_eq!(record["error"]["error_type_id"], answer.json["code"], "{record}");
    assert_eq!(answer.json["type"], format!("gts://{}", answer.json["code"].as_str().unwrap()));
    assert!(record["error"].get("type").is_none() && answer.json.get("error_type_id").is_none());
}

crate::backend::on_every_store! {
    an_error_has_the_same_id_in_a_record_and_an_answer,
    refusals_of_the_framework_have_the_same_form,
    a_body_has_a_limit,
    refusals_at_the_door_have_the_same_form,
    a_full_tenant_is_told_when_to_come_back,
    a_rate_limit_is_told,
}
