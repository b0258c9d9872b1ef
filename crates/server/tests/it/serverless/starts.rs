//! Starting: modes, dry runs, keys, caching, and what is refused.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition, paths, refused};
use crate::harness::Answer;

async fn api() -> Api {
    let api = Api::start().await;
    api.activate(&definition(FUNCTION)).await;
    api
}

fn body(params: &Value) -> Value {
    json!({"entrypoint_id": FUNCTION, "params": params})
}

/// SR-008, SR-243, SR-342, SR-367, SR-369, SR-371, SR-379, SR-380: an async start answers with a place, where the outcome is found.
async fn an_async_start_is_found_at_its_place() {
    let api = api().await;
    let answer = api.invoke(&body(&json!({"amount": 7})), &[("x-correlation-id", "corr-1")]).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_eq!((&answer.json["dry_run"], &answer.json["cached"]), (&json!(false), &json!(false)));
    let record = &answer.json["record"];
    let id = record["invocation_id"].as_str().unwrap();
    assert_eq!((&record["id"], &record["mode"]), (&json!(id), &json!("async")));
    assert!(record["timestamps"]["created_at"].is_string());
    assert_eq!(record["observability"]["correlation_id"], "corr-1");
    assert_eq!(answer.headers["location"], format!("{PREFIX}/invocations/{id}"));
    let ended = api.until(id, "succeeded").await;
    assert_eq!((&ended["result"], &ended["id"]), (&json!({"amount": 7}), &json!(id)));
}

/// SR-007, SR-380, SR-381: a sync start waits; a run that fails is an answer.
async fn a_sync_start_waits_for_the_end() {
    let api = api().await;
    for (what, status) in [("work", "succeeded"), ("fail", "failed")] {
        let request = json!({"entrypoint_id": FUNCTION, "mode": "sync", "params": {"do": what}});
        let answer = api.invoke(&request, &[]).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json["record"]["status"]),
            (201, &json!(status)),
            "{}",
            answer.text
        );
        assert_eq!(answer.json["record"]["error"].is_object(), status == "failed");
    }
}

/// SR-371, SR-372, SR-373, SR-374, SR-375, SR-379, SR-382, SR-363, SR-401, SR-403, SR-405, SR-422: the checks
/// in their order, for real and dry.
async fn what_cannot_start_is_refused_in_order() {
    let api = api().await;
    let draft = FUNCTION.replace("echo.v1", "echo.v2");
    let id = api.register(&definition(&draft)).await;
    let rows = [
        (json!({}), 422, "validation"),
        (json!({"entrypoint_id": 7}), 422, "validation"),
        (json!({"entrypoint_id": FUNCTION, "mode": "later"}), 422, "validation"),
        (json!({"entrypoint_id": FUNCTION, "dryrun": true}), 422, "validation"),
        (json!({"entrypoint_id": "gts.no.such.thing.v1~", "params": []}), 404, "not_found"),
        (json!({"entrypoint_id": id}), 404, "not_found"),
        (json!({"entrypoint_id": draft, "params": {"amount": "much"}}), 409, "not_active"),
        (json!({"entrypoint_id": FUNCTION, "params": {"amount": "much", "do": 1}}), 422, "validation"),
        (json!({"entrypoint_id": FUNCTION, "params": []}), 422, "validation"),
    ];
    for (mut request, status, name) in rows {
        for dry_run in [false, true] {
            request["dry_run"] = json!(dry_run);
            refused(&api.invoke(&request, &[]).await, status, name);
        }
    }
    let two = api.invoke(&body(&json!({"amount": "much", "do": 1})), &[]).await;
    let mut named = paths(&two);
    named.sort_unstable();
    assert_eq!(named, ["$.params.amount", "$.params.do"], "SR-424: {}", two.text);
    let mut only = definition(WORKFLOW);
    only["traits"]["invocation"] = json!({"supported": ["async"], "default": "async"});
    api.activate(&only).await;
    let answer = api.invoke(&json!({"entrypoint_id": WORKFLOW, "mode": "sync"}), &[]).await;
    refused(&answer, 422, "validation");
    assert_eq!(paths(&answer), ["$.mode"]);
    assert_eq!(api.calls(), 0, "SR-023: no code ran");
}

/// SR-373, SR-374, SR-402: which statuses can be called, for real and dry.
async fn only_active_and_deprecated_entrypoints_start() {
    let api = Api::start().await;
    let id = api.register(&definition(FUNCTION)).await;
    let dry = json!({"entrypoint_id": FUNCTION, "dry_run": true});
    refused(&api.invoke(&body(&json!({})), &[]).await, 409, "not_active");
    refused(&api.invoke(&dry, &[]).await, 409, "not_active");
    for (action, callable) in [
        ("activate", true),
        ("deprecate", true),
        ("disable", false),
        ("enable", true),
        ("disable", false),
        ("archive", false),
    ] {
        assert_eq!(api.act(&id, action).await.status, 200);
        let answer = api.invoke(&body(&json!({})), &[]).await;
        assert_eq!(answer.status.as_u16(), if callable { 201 } else { 409 }, "after {action}: {}", answer.text);
        let answer = api.invoke(&dry, &[]).await;
        if callable {
            assert_eq!(answer.status, 200, "after {action}: {}", answer.text);
        } else {
            refused(&answer, 409, "not_active");
        }
    }
}

/// SR-400, SR-406, SR-407, SR-412, SR-414, SR-415, SR-416, SR-417, SR-418, SR-419, SR-420, SR-421, SR-423: a dry run
/// makes a record up, and nothing else.
async fn a_dry_run_leaves_nothing_behind() {
    let api = api().await;
    let request = json!({"entrypoint_id": FUNCTION, "mode": "sync", "params": {"amount": 1}, "dry_run": true});
    // SR-412: a dry run does not look at the key.
    for key in [String::new(), "k".repeat(10_000)] {
        let dry = json!({"entrypoint_id": FUNCTION, "params": {}, "dry_run": true});
        assert_eq!(api.invoke(&dry, &[("idempotency-key", &key)]).await.status, 200);
        let real = json!({"entrypoint_id": FUNCTION, "params": {}});
        assert_eq!(api.invoke(&real, &[("idempotency-key", &key)]).await.status, 400);
    }
    let key = [("idempotency-key", "k")];
    let answer = api.invoke(&request, &key).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!((&answer.json["dry_run"], &answer.json["cached"]), (&json!(true), &json!(false)));
    assert!(!answer.headers.contains_key("location"));
    let record = &answer.json["record"];
    let id = record["invocation_id"].as_str().unwrap();
    assert!(id.starts_with("dryrun_"), "{id}");
    assert_eq!(
        (&record["status"], &record["params"], &record["entrypoint_version"]),
        (&json!("queued"), &json!({"amount": 1}), &json!("1.0.0"))
    );
    assert_eq!((&record["entrypoint_id"], &record["mode"]), (&json!(FUNCTION), &json!("sync")));
    assert_eq!(record["tenant_id"], "default");
    let metrics = record["observability"]["metrics"].as_object().unwrap();
    for (name, value) in metrics {
        assert_eq!(*value, if name == "memory_limit_mb" { json!(128) } else { Value::Null }, "{name}");
    }
    for name in ["result", "error"] {
        assert_eq!(record[name], Value::Null);
    }
    for name in ["started_at", "suspended_at", "finished_at"] {
        assert_eq!(record["timestamps"][name], Value::Null);
    }
    let seen = &record["observability"];
    assert_eq!(
        (&seen["trace_id"], &seen["span_id"], seen["correlation_id"].is_string()),
        (&Value::Null, &Value::Null, true)
    );
    refused(&api.get(&format!("/invocations/{id}")).await, 404, "not_found");
    assert_eq!(api.get("/invocations").await.json["items"], json!([]));
    assert_eq!(api.calls(), 0);
    // The key was not looked at: a real start under it runs.
    assert_eq!(api.invoke(&body(&json!({"amount": 2})), &key).await.status, 201);
}

/// SR-376, SR-378, SR-380, SR-383: a key starts one run; other params under it are refused.
async fn a_key_starts_one_run() {
    let api = api().await;
    let key = [("idempotency-key", "order-7")];
    let first = api.invoke(&body(&json!({"amount": 1})), &key).await;
    assert_eq!(first.status, 201, "{}", first.text);
    let again = api.invoke(&body(&json!({"amount": 1})), &key).await;
    assert_eq!((again.status.as_u16(), &again.json["cached"]), (200, &json!(false)), "{}", again.text);
    assert_eq!(again.json["record"]["id"], first.json["record"]["id"]);
    assert!(!again.headers.contains_key("location"));
    refused(&api.invoke(&body(&json!({"amount": 2})), &key).await, 422, "validation");
    // A refused start does not take the key.
    let other = [("idempotency-key", "order-8")];
    refused(&api.invoke(&body(&json!({"amount": "much"})), &other).await, 422, "validation");
    assert_eq!(api.invoke(&body(&json!({"amount": 2})), &other).await.status, 201);
    // Without a key nothing is the same.
    for _ in 0..2 {
        assert_eq!(api.invoke(&body(&json!({"amount": 1})), &[]).await.status, 201);
    }
    assert_eq!(api.get("/invocations").await.json["items"].as_array().unwrap().len(), 4);
}

/// SR-426, SR-434, SR-435, SR-438, SR-439, SR-440, SR-441, SR-449, SR-505: a cached result is the earlier record, and only with
/// all three conditions.
async fn a_success_is_served_again_where_caching_is_active() {
    let api = Api::start().await;
    let mut version = 0;
    for (idempotent, age, key, what, cached) in [
        (true, 60, true, "work", true),
        (false, 60, true, "work", false),
        (true, 0, true, "work", false),
        (true, 60, false, "work", false),
        (true, 60, true, "fail", false),
    ] {
        version += 1;
        let address = FUNCTION.replace("echo.v1", &format!("echo.v{version}"));
        let mut document = definition(&address);
        document["traits"]["is_idempotent"] = json!(idempotent);
        document["traits"]["caching"] = json!({"max_age_seconds": age});
        api.activate(&document).await;
        let request = json!({"entrypoint_id": address, "mode": "sync", "params": {"do": what}});
        let headers: &[(&str, &str)] = if key { &[("idempotency-key", "k")] } else { &[] };
        let first = api.invoke(&request, headers).await;
        let calls = api.calls();
        let records = async || api.get("/invocations?limit=200").await.json["items"].as_array().unwrap().len();
        let before = records().await;
        let again = api.invoke(&request, headers).await;
        assert_eq!(records().await - before, usize::from(!key), "row {version}");
        assert_eq!((&first.json["dry_run"], &first.json["cached"]), (&json!(false), &json!(false)), "row {version}");
        assert_eq!(again.json["cached"], json!(cached), "row {version}: {}", again.text);
        assert_eq!(again.status.as_u16(), if key { 200 } else { 201 }, "row {version}");
        if key {
            assert_eq!(again.json["record"], first.json["record"], "row {version}");
            assert_eq!(api.calls(), calls, "row {version}");
        }
    }
}

async fn a_wrong_key_is_a_bad_request() {
    let api = api().await;
    let long = "k".repeat(257);
    for headers in [
        vec![("idempotency-key", "")],
        vec![("idempotency-key", long.as_str())],
        vec![("idempotency-key", "a"), ("idempotency-key", "b")],
        vec![("idempotency-key", "\u{e9}")],
    ] {
        refused(&api.invoke(&body(&json!({})), &headers).await, 400, "bad_request");
    }
    assert_eq!(api.invoke(&body(&json!({})), &[("idempotency-key", &long[..256])]).await.status, 201);
}

/// A number that JSON can say and nobody here could keep is refused by its place; the largest that fits arrives as it is.
async fn no_number_loses_digits_on_its_way() {
    let api = api().await;
    let start = async |amount: &str| {
        let text = format!(r#"{{"entrypoint_id": "{FUNCTION}", "mode": "sync", "params": {{"amount": {amount}}}}}"#);
        let request = api.server.request(Method::POST, &format!("{PREFIX}/invocations"));
        Answer::of(request.body(text)).await
    };
    // The second is more than a float can hold.
    for amount in ["18446744073709551617", &"9".repeat(400)] {
        let answer = start(amount).await;
        refused(&answer, 422, "validation");
        assert_eq!(paths(&answer), ["$.params.amount"], "{}", answer.text);
        assert!(answer.text.contains("would lose digits"), "{}", answer.text);
    }
    assert_eq!(api.calls(), 0);
    let answer = start("18446744073709551615").await;
    assert_eq!(answer.json["record"]["result"], json!({"amount": u64::MAX}), "{}", answer.text);
}

crate::backend::on_every_store! {
    an_async_start_is_found_at_its_place,
    a_sync_start_waits_for_the_end,
    what_cannot_start_is_refused_in_order,
    only_active_and_deprecated_entrypoints_start,
    a_dry_run_leaves_nothing_behind,
    a_key_starts_one_run,
    a_success_is_served_again_where_caching_is_active,
    a_wrong_key_is_a_bad_request,
    no_number_loses_digits_on_its_way,
}
