//! Control actions, signals and bulk actions.

use serde_json::{Value, json};

use super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition, paths, refused};

async fn api() -> Api {
    let api = Api::start().await;
    api.activate(&definition(FUNCTION)).await;
    api.activate(&definition(WORKFLOW)).await;
    api
}

/// SR-370, SR-386, SR-387, SR-388, SR-389, SR-390, SR-391, SR-392, SR-393, SR-394, SR-397: what each action gives in
/// the statuses that a run can be brought into here.
async fn every_action_in_every_status() {
    let api = api().await;
    // Of a function and of a workflow: allowed actions with the status after them.
    type Row = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);
    let rows: [Row; 4] = [
        ("hang", "running", "", &["cancel"], &["cancel", "suspend"]),
        ("work", "succeeded", "", &["replay"], &["replay"]),
        ("fail", "failed", "", &["retry", "replay"], &["retry", "replay"]),
        ("hang", "canceled", "cancel", &[], &[]),
    ];
    for (what, status, before, function, workflow) in rows {
        for (address, allowed) in [(FUNCTION, function), (WORKFLOW, workflow)] {
            for action in ["cancel", "suspend", "resume", "retry", "replay"] {
                let id = api.begin(address, &json!({"do": what})).await;
                if !before.is_empty() {
                    api.until(&id, "running").await;
                    assert_eq!(api.control(&id, before).await.status, 200);
                }
                let seen = api.until(&id, status).await;
                let answer = api.control(&id, action).await;
                let row = format!("{action} of a {status} {address}: {}", answer.text);
                if !allowed.contains(&action) {
                    assert_eq!(answer.status, 409, "{row}");
                    assert_eq!(api.get(&format!("/invocations/{id}")).await.json, seen, "{row}");
                    continue;
                }
                assert_eq!(answer.status.as_u16(), if action == "replay" { 201 } else { 200 }, "{row}");
                let after = answer.json["id"].as_str().unwrap();
                assert_eq!(after != id, action == "replay", "{row}");
                match action {
                    "replay" => {
                        assert_eq!(answer.headers["location"], format!("{PREFIX}/invocations/{after}"));
                        assert_eq!(
                            (&answer.json["params"], &answer.json["status"]),
                            (&seen["params"], &json!("queued")),
                            "{row}"
                        );
                        assert_eq!(api.get(&format!("/invocations/{id}")).await.json, seen, "SR-392: {row}");
                    }
                    "cancel" => {
                        api.until(&id, "canceled").await;
                    }
                    "suspend" => {
                        api.until(&id, "suspended").await;
                        assert_eq!(api.control(&id, "cancel").await.status, 200, "SR-396: {row}");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// SR-385, SR-395 and bodies of signals: what is no action, and what is not there.
async fn unknown_actions_and_invocations() {
    let api = api().await;
    let id = api.begin(FUNCTION, &json!({"do": "hang"})).await;
    for (body, named) in [
        (json!({}), "$.action"),
        (json!({"action": "pause"}), "$.action"),
        (json!({"action": null}), "$.action"),
        (json!({"action": "retry_step"}), "$.step_id"),
        (json!({"action": "skip_step", "step_id": 7}), "$.step_id"),
    ] {
        let answer = api.post(&format!("/invocations/{id}:control"), &body).await;
        refused(&answer, 422, "validation");
        assert_eq!(paths(&answer), [named], "{body}");
    }
    for (body, named) in [
        (json!({}), vec!["$.signal_id", "$.name"]),
        (json!({"signal_id": "s", "name": ""}), vec!["$.name"]),
        (json!({"signal_id": 1, "name": "n"}), vec!["$.signal_id"]),
    ] {
        let answer = api.post(&format!("/invocations/{id}:signal"), &body).await;
        refused(&answer, 422, "validation");
        assert_eq!(paths(&answer), named, "{body}");
    }
    for id in ["inv_missing", "no such thing", "dryrun_1"] {
        refused(&api.control(id, "cancel").await, 404, "not_found");
        let signal = json!({"signal_id": "s", "name": "n"});
        refused(&api.post(&format!("/invocations/{id}:signal"), &signal).await, 404, "not_found");
    }
    refused(&api.post(&format!("/invocations/{id}:explode"), &json!({})).await, 404, "not_found");
    refused(&api.server.post_text(&format!("{PREFIX}/invocations/{id}:explode"), "{").await, 404, "not_found");
    refused(&api.server.post_text(&format!("{PREFIX}/invocations/{id}"), "").await, 405, "bad_request");
}

/// A run of a plan is not an invocation.
async fn runs_of_plans_are_not_invocations() {
    let api = api().await;
    let run = api.server.start_run(crate::harness::endless()).await;
    refused(&api.get(&format!("/invocations/{run}")).await, 404, "not_found");
    refused(&api.control(run.as_str(), "cancel").await, 404, "not_found");
    assert_eq!(api.get("/invocations").await.json["items"], json!([]));
}

async fn one_action_on_many() {
    let api = api().await;
    for _ in 0..3 {
        let id = api.begin(FUNCTION, &json!({"do": "hang"})).await;
        api.until(&id, "running").await;
    }
    let done = api.begin(FUNCTION, &json!({})).await;
    api.until(&done, "succeeded").await;
    let counts = |answer: &Value| -> Vec<(String, u64)> {
        let mut all: Vec<_> = answer["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (item["status"].as_str().unwrap().to_owned(), item["count"].as_u64().unwrap()))
            .filter(|(_, count)| *count > 0)
            .collect();
        all.sort();
        all
    };
    let all = [("running".to_owned(), 3), ("succeeded".to_owned(), 1)];
    assert_eq!(counts(&api.get("/invocations:counts").await.json), all);
    assert_eq!(counts(&api.get(&format!("/invocations:counts?entrypoint_id={FUNCTION}")).await.json), all);
    assert_eq!(counts(&api.get(&format!("/invocations:counts?entrypoint_id={WORKFLOW}")).await.json), []);
    let mut request = json!({"action": "cancel", "filter": "status eq 'running'", "max_items": 2, "dry_run": true});
    let dry = api.post("/invocations:bulk", &request).await;
    assert_eq!((dry.status.as_u16(), dry.json["items"].as_array().map(Vec::len)), (200, Some(2)), "{}", dry.text);
    assert_eq!(dry.json["page_info"]["has_more"], json!(true));
    assert_eq!(counts(&api.get("/invocations:counts").await.json), all);
    request["cursor"] = dry.json["page_info"]["next_cursor"].clone();
    let rest = api.post("/invocations:bulk", &request).await.json;
    assert_eq!((rest["items"].as_array().map(Vec::len), &rest["page_info"]["has_more"]), (Some(1), &json!(false)));
    assert!(!dry.json["items"].as_array().unwrap().contains(&rest["items"][0]));
    request["cursor"] = Value::Null;
    request["dry_run"] = json!(false);
    let real = api.post("/invocations:bulk", &request).await;
    for outcome in real.json["items"].as_array().unwrap() {
        assert_eq!((&outcome["error"], &outcome["id"]), (&Value::Null, &outcome["invocation_id"]));
        api.until(outcome["id"].as_str().unwrap(), "canceled").await;
    }
    // One that refuses does not stop the others.
    let both = json!({"action": "cancel", "filter": "status in ('running','succeeded')"});
    let outcomes = api.post("/invocations:bulk", &both).await.json;
    let refusals = outcomes["items"].as_array().unwrap().iter().filter(|item| item["error"].is_object()).count();
    assert_eq!((outcomes["items"].as_array().unwrap().len(), refusals), (2, 1), "{outcomes}");
    for (body, named) in [
        (json!({"filter": "status eq 'running'"}), "$.action"),
        (json!({"action": "cancel"}), "$.filter"),
        (json!({"action": "cancel", "filter": "colour eq 'red'"}), "$.filter"),
        (json!({"action": "cancel", "filter": "status eq 'running'", "max_items": 0}), "$.max_items"),
        (json!({"action": "cancel", "filter": "status eq 'running'", "max_items": 1001}), "$.max_items"),
        (json!({"action": "cancel", "filter": "status eq 'running'", "per_second": 0}), "$.per_second"),
        (
            json!({"action": "cancel", "filter": "status eq 'running'", "max_items": 1000, "per_second": 1}),
            "$.per_second",
        ),
        (json!({"action": "cancel", "filter": "status eq 'running'", "dry_run": "yes"}), "$.dry_run"),
        (json!({"action": "cancel", "filter": "status eq 'running'", "max_item": 1}), "$.max_item"),
    ] {
        let answer = api.post("/invocations:bulk", &body).await;
        refused(&answer, 422, "validation");
        assert_eq!(paths(&answer), [named], "{body}");
    }
}

crate::backend::on_every_store! {
    every_action_in_every_status,
    unknown_actions_and_invocations,
    runs_of_plans_are_not_invocations,
    one_action_on_many,
}
