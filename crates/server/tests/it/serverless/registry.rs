//! The registry: what can be done with an entrypoint, and what cannot.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition, paths, refused};

/// SR-197, SR-324, SR-325, SR-344, SR-345, SR-349, SR-351, SR-352, SR-363: a created resource, bare, with its place and both its names.
async fn a_registration_is_a_draft_with_a_place() {
    let api = Api::start().await;
    let answer = api.post("/entrypoints", &definition(FUNCTION)).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let id = answer.json["id"].as_str().unwrap();
    assert!(id.starts_with("ep_"), "{id}");
    assert_eq!(answer.headers["location"], format!("{PREFIX}/entrypoints/{id}"));
    assert_eq!((&answer.json["status"], &answer.json["entrypoint_id"]), (&json!("draft"), &json!(FUNCTION)));
    let created = answer.json["created_at"].as_str().unwrap();
    assert!(created.len() == 24 && created.ends_with('Z') && &created[19..20] == ".", "{created}");
    let read = api.get(&format!("/entrypoints/{id}")).await;
    assert_eq!((read.status.as_u16(), &read.json), (200, &answer.json));
    refused(&api.get(&format!("/entrypoints/{FUNCTION}")).await, 404, "not_found");
}

/// SR-211, SR-212, SR-213, SR-214, SR-215, SR-216, SR-345, SR-353, SR-354, SR-356, SR-358, SR-359, SR-360, SR-361, SR-362: every
/// action in every status over HTTP, what a delete does in each, and who can be called, edited and found.
async fn the_life_of_an_entrypoint() {
    let api = Api::start().await;
    // (actions that lead there, what each action then gives; absent ones are 409), and what DELETE gives.
    type Row = (&'static [&'static str], &'static str, &'static [(&'static str, &'static str)], u16);
    let rows: [Row; 5] = [
        (&[], "draft", &[("activate", "active")], 204),
        (&["activate"], "active", &[("deprecate", "deprecated"), ("disable", "disabled")], 409),
        (&["activate", "deprecate"], "deprecated", &[("disable", "disabled"), ("archive", "archived")], 204),
        (&["activate", "disable"], "disabled", &[("enable", "active"), ("archive", "archived")], 204),
        (&["activate", "disable", "archive"], "archived", &[], 409),
    ];
    let mut version = 0;
    for (way, status, allowed, delete) in rows {
        for action in ["activate", "deprecate", "disable", "enable", "archive", "DELETE", "PUT"] {
            version += 1;
            let document = definition(&FUNCTION.replace("echo.v1", &format!("echo.v{version}")));
            let id = api.register(&document).await;
            for step in way {
                assert_eq!(api.act(&id, step).await.status, 200);
            }
            let before = api.get(&format!("/entrypoints/{id}")).await;
            assert_eq!(before.json["status"], status);
            let path = format!("/entrypoints/{id}");
            match action {
                "DELETE" => {
                    let answer = api.send(Method::DELETE, &path, "", None).await;
                    assert_eq!(answer.status.as_u16(), delete, "DELETE {status}: {}", answer.text);
                    let after = api.get(&path).await;
                    match (status, delete) {
                        ("draft", _) => refused(&after, 404, "not_found"),
                        (_, 204) => assert_eq!(after.json["status"], "archived"),
                        _ => assert_eq!(after.json, before.json),
                    }
                }
                "PUT" => {
                    let mut changed = document.clone();
                    changed["title"] = json!("Other");
                    let answer = api.send(Method::PUT, &path, "", Some(&changed)).await;
                    if status == "draft" {
                        assert_eq!((answer.status.as_u16(), &answer.json["title"]), (200, &json!("Other")));
                        changed["title"] = json!(7);
                        refused(&api.send(Method::PUT, &path, "", Some(&changed)).await, 422, "validation");
                        assert_eq!(api.get(&path).await.json["title"], "Other", "what is wrong changes nothing");
                    } else {
                        refused(&answer, 409, "conflict");
                    }
                    let address = document["entrypoint_id"].as_str().unwrap();
                    let called = api.invoke(&json!({"entrypoint_id": address}), &[]).await;
                    if matches!(status, "active" | "deprecated") {
                        assert_eq!(called.status, 201, "{status}: {}", called.text);
                    } else {
                        refused(&called, 409, "not_active");
                    }
                    let listed = async |more: &str| {
                        let found = api.get(&format!("/entrypoints?entrypoint_id_prefix={address}{more}")).await;
                        found.json["items"].as_array().unwrap().len()
                    };
                    assert_eq!(listed("").await, usize::from(status != "archived"), "{status}");
                    assert_eq!(listed(&format!("&status={status}")).await, 1);
                }
                action => {
                    let answer = api.act(&id, action).await;
                    match allowed.iter().find(|(known, _)| *known == action) {
                        Some((_, to)) => {
                            assert_eq!((answer.status.as_u16(), &answer.json["status"]), (200, &json!(to)));
                        }
                        None => {
                            refused(&answer, 409, "conflict");
                            assert_eq!(api.get(&path).await.json, before.json, "{action} in {status}");
                        }
                    }
                }
            }
        }
    }
}

/// SR-166, SR-169, SR-171, SR-346, SR-347, SR-365: the same faults, all of them, and nothing is kept either way.
async fn a_definition_is_validated_the_same_way_everywhere() {
    let api = Api::start().await;
    let mut wrong = definition(FUNCTION);
    wrong["traits"]["limits"]["timeout_seconds"] = json!(0);
    wrong["traits"]["invocation"]["default"] = json!("never");
    wrong["title"] = json!(7);
    wrong["tags"] = json!(["\0"]);
    let (posted, checked) = (api.post("/entrypoints", &wrong).await, api.post("/entrypoints:validate", &wrong).await);
    for answer in [&posted, &checked] {
        refused(answer, 422, "validation");
        for path in ["$.traits.limits.timeout_seconds", "$.traits.invocation.default", "$.title", "$.tags[0]"] {
            assert!(paths(answer).contains(&path), "{path}: {}", answer.text);
        }
    }
    assert_eq!(posted.json["issues"], checked.json["issues"]);
    let valid = api.post("/entrypoints:validate", &definition(FUNCTION)).await;
    assert_eq!(valid.status, 200, "{}", valid.text);
    assert_eq!(valid.json.get("id"), None);
    assert_eq!(valid.json["traits"]["limits"]["max_concurrent"], 100, "defaults are filled in");
    assert_eq!(valid.json.get("issues"), None);
    assert_eq!(api.get("/entrypoints").await.json["items"], json!([]));
    let id = api.register(&definition(FUNCTION)).await;
    let before = api.get(&format!("/entrypoints/{id}")).await.json;
    refused(&api.send(Method::PUT, &format!("/entrypoints/{id}"), "", Some(&wrong)).await, 422, "validation");
    assert_eq!(api.get(&format!("/entrypoints/{id}")).await.json, before);
}

/// SR-350, SR-357: what is not there, and what is no action.
async fn unknown_ids_and_actions() {
    let api = Api::start().await;
    let document = definition(FUNCTION);
    for (method, path, body) in [
        (Method::GET, "/entrypoints/ep_missing", None),
        (Method::PUT, "/entrypoints/ep_missing", Some(&document)),
        (Method::DELETE, "/entrypoints/ep_missing", None),
        (Method::POST, "/entrypoints/ep_missing:status", Some(&json!({"action": "activate"}))),
        (Method::POST, "/entrypoints/ep_missing:explode", Some(&json!({}))),
    ] {
        refused(&api.send(method, path, "", body).await, 404, "not_found");
    }
    refused(&api.server.post_text(&format!("{PREFIX}/entrypoints/ep_1"), "").await, 405, "bad_request");
    let id = api.register(&document).await;
    for body in [json!({}), json!({"action": "explode"}), json!({"action": 7})] {
        let answer = api.post(&format!("/entrypoints/{id}:status"), &body).await;
        refused(&answer, 422, "validation");
        assert_eq!(paths(&answer), ["$.action"], "{}", answer.text);
    }
}

/// SR-355, SR-364: a version is a registration of its own, an address is registered once, and a deleted draft frees it.
async fn an_address_is_registered_once() {
    let api = Api::start().await;
    let first = api.activate(&definition(FUNCTION)).await;
    refused(&api.post("/entrypoints", &definition(FUNCTION)).await, 409, "conflict");
    let draft = api.register(&definition(&FUNCTION.replace("echo.v1", "echo.v2"))).await;
    assert_ne!(first, draft);
    assert_eq!(api.send(Method::DELETE, &format!("/entrypoints/{draft}"), "", None).await.status, 204);
    api.register(&definition(&FUNCTION.replace("echo.v1", "echo.v2"))).await;
}

/// SR-004, SR-348, SR-366, SR-513, SR-524: one list for both kinds, and what it can be restricted to.
async fn entrypoints_are_listed() {
    let api = Api::start().await;
    api.activate(&definition(FUNCTION)).await;
    let mut tagged = definition(&FUNCTION.replace("echo.v1", "echo.v2"));
    tagged["tags"] = json!(["other", "test"]);
    api.register(&tagged).await;
    api.activate(&definition(WORKFLOW)).await;
    let prefix = FUNCTION.trim_end_matches("v1~");
    let status = "%24filter=status%20eq%20%27active%27";
    for (query, count) in [
        (String::new(), 3),
        (format!("?entrypoint_id_prefix={prefix}"), 2),
        (format!("?entrypoint_id_prefix={prefix}*"), 2),
        ("?entrypoint_id_prefix=gts.nobody.".to_owned(), 0),
        (format!("?%24filter=entrypoint_id%20eq%20%27{FUNCTION}%27"), 1),
        (format!("?{status}"), 2),
        ("?status=draft".to_owned(), 1),
        ("?owner_type=tenant".to_owned(), 3),
        ("?owner_type=system".to_owned(), 0),
        ("?runtime=gts.x.core.serverless.adapter.lambda.v1~".to_owned(), 3),
        ("?runtime=gts.x.core.serverless.adapter.none.v1~".to_owned(), 0),
        ("?tags=test".to_owned(), 3),
        ("?tags=test,other".to_owned(), 1),
        ("?tags=test,other,third".to_owned(), 0),
        ("?tenant_id=default".to_owned(), 3),
        ("?tenant_id=somebody".to_owned(), 0),
    ] {
        let answer = api.get(&format!("/entrypoints{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text);
        assert_eq!(answer.json["items"].as_array().map(Vec::len), Some(count), "{query}: {}", answer.text);
        assert_eq!(answer.json["page_info"]["has_more"], json!(false));
    }
    // SR-216: an archived one is shown to who asks for such.
    let archived = api.activate(&definition(&FUNCTION.replace("echo.v1", "echo.v3"))).await;
    for action in ["disable", "archive"] {
        assert_eq!(api.act(&archived, action).await.status, 200);
    }
    for (filter, count) in [
        ("status ne 'active'", 1),
        ("status eq 'draft' or title eq 'Echo'", 3),
        ("status eq 'archived'", 1),
        ("status in ('archived','draft')", 2),
    ] {
        let answer = api.get(&format!("/entrypoints?%24filter={}", filter.replace(' ', "%20"))).await;
        assert_eq!(answer.json["items"].as_array().map(Vec::len), Some(count), "{filter}: {}", answer.text);
    }
    let ordered = api.get("/entrypoints?%24orderby=entrypoint_id%20desc").await.json;
    let addresses: Vec<&Value> =
        ordered["items"].as_array().unwrap().iter().map(|item| &item["entrypoint_id"]).collect();
    assert_eq!(addresses[0], WORKFLOW);
}

crate::backend::on_every_store! {
    a_registration_is_a_draft_with_a_place,
    the_life_of_an_entrypoint,
    a_definition_is_validated_the_same_way_everywhere,
    unknown_ids_and_actions,
    an_address_is_registered_once,
    entrypoints_are_listed,
}

/// A function or alias that an entrypoint needs is not removed under it; once the entrypoint is disabled, it is.
#[tokio::test]
async fn what_an_entrypoint_needs_is_not_removed() {
    let api = Api::start().await;
    let put = json!({"version": 1});
    assert_eq!(api.server.send(Method::PUT, "/v1/functions/durable/aliases/live", "", Some(&put)).await.status, 200);
    let mut flow = definition(WORKFLOW);
    flow["implementation"]["adapter_ref"]["definition_id"] = "durable:live".into();
    let (echo, flow) = (api.activate(&definition(FUNCTION)).await, api.activate(&flow).await);
    let remove = async |path: &str| api.server.send(Method::DELETE, &format!("/v1/functions/{path}"), "", None).await;
    for (path, address) in [("plain", FUNCTION), ("durable", WORKFLOW), ("durable/aliases/live", WORKFLOW)] {
        let answer = remove(path).await;
        answer.is_problem("FUNCTION_IN_USE");
        assert_eq!(answer.status, 409, "{path}");
        assert!(answer.text.contains(address), "{path}: {}", answer.text);
    }
    assert_eq!(api.act(&echo, "deprecate").await.status, 200);
    assert_eq!(remove("plain").await.status, 409, "it can still be called");
    for id in [&echo, &flow] {
        assert_eq!(api.act(id, "disable").await.status, 200);
    }
    for path in ["plain", "durable/aliases/live", "durable"] {
        assert_eq!(remove(path).await.status, 204, "{path}");
    }
}
