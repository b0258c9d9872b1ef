//! Entrypoints and runs as people type them: short names, names that are nearly right, ids that are written in part.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{Api, FUNCTION, WORKFLOW, definition, definition_of, refused};
use crate::harness::{Options, keys};

fn echo(version: u32) -> Value {
    definition(&FUNCTION.replace(".v1~vendor.app.echo.v1~", &format!(".v1~vendor.app.echo.v{version}~")))
}

async fn start(api: &Api, name: &str) -> Value {
    let answer = api.invoke(&json!({"entrypoint_id": name, "params": {}}), &[]).await;
    assert_eq!(answer.status, 201, "{name}: {}", answer.text);
    answer.json
}

fn ran(started: &Value) -> &str {
    started["record"]["entrypoint_id"].as_str().unwrap().rsplit('~').nth(1).unwrap()
}

/// The highest version that is active at the time of the call, counted as versions are; the record says which, and what stands beside
/// it is said.
#[tokio::test]
async fn a_short_name_means_the_highest_active_version() {
    let api = Api::start().await;
    let one = api.activate(&echo(1)).await;
    let started = start(&api, "vendor.app.echo").await;
    assert_eq!((ran(&started), started.get("warnings")), ("vendor.app.echo.v1", None));
    let ten = api.register(&echo(10)).await;
    let started = start(&api, "vendor.app.echo").await;
    assert_eq!(ran(&started), "vendor.app.echo.v1", "a draft is not called");
    assert!(started["warnings"][0].as_str().unwrap().contains("v10 is `draft`"), "{started}");
    let two = api.activate(&echo(2)).await;
    assert_eq!(ran(&start(&api, "vendor.app.echo").await), "vendor.app.echo.v2");
    assert_eq!(api.act(&ten, "activate").await.status, 200);
    let started = start(&api, "vendor.app.echo").await;
    assert_eq!((ran(&started), started.get("warnings")), ("vendor.app.echo.v10", None));
    // A version that is named is the one that runs.
    assert_eq!(ran(&start(&api, "vendor.app.echo.v2").await), "vendor.app.echo.v2");
    assert_eq!(api.act(&one, "deprecate").await.status, 200);
    for name in ["vendor.app.echo.v1", FUNCTION] {
        let started = start(&api, name).await;
        assert_eq!(ran(&started), "vendor.app.echo.v1");
        let warning = started["warnings"][0].as_str().unwrap();
        assert!(warning.contains("`vendor.app.echo.v1` is deprecated; `vendor.app.echo.v10` is active"), "{warning}");
    }
    // Only deprecated ones are left: the highest of them, with a warning.
    for id in [&two, &ten] {
        assert_eq!(api.act(id, "deprecate").await.status, 200);
    }
    let started = start(&api, "vendor.app.echo").await;
    assert_eq!(ran(&started), "vendor.app.echo.v10");
    assert!(started["warnings"][0].as_str().unwrap().contains("no version of it is active"), "{started}");
    for id in [&one, &two, &ten] {
        assert_eq!(api.act(id, "disable").await.status, 200);
    }
    let answer = api.invoke(&json!({"entrypoint_id": "vendor.app.echo", "params": {}}), &[]).await;
    refused(&answer, 409, "not_active");
    assert!(answer.text.contains("v2 is `disabled`"), "{}", answer.text);
}

/// Both kinds are looked at; where both have the name, the caller says which.
#[tokio::test]
async fn a_kind_is_found_unless_both_have_the_name() {
    let api = Api::start().await;
    api.activate(&definition(WORKFLOW)).await;
    assert_eq!(ran(&start(&api, "vendor.app.flow").await), "vendor.app.flow.v1");
    let function = FUNCTION.replace("vendor.app.echo", "vendor.app.flow");
    let id = api.register(&definition(&function)).await;
    assert_eq!(ran(&start(&api, "vendor.app.flow").await), "vendor.app.flow.v1", "a draft is no other meaning");
    assert_eq!(api.act(&id, "activate").await.status, 200);
    for name in ["vendor.app.flow", "vendor.app.flow.v1"] {
        let answer = api.invoke(&json!({"entrypoint_id": name, "params": {}}), &[]).await;
        refused(&answer, 400, "bad_request");
        assert!(answer.text.contains(WORKFLOW) && answer.text.contains(&function), "{}", answer.text);
    }
    for address in [WORKFLOW, function.as_str()] {
        let of_kind = address.trim_end_matches("v1~").trim_end_matches('.');
        let started = start(&api, of_kind).await;
        assert_eq!(started["record"]["entrypoint_id"], address);
    }
}

/// What is nearly right is proposed, from what the caller sees and from nothing else.
#[tokio::test]
async fn a_misspelt_name_is_told_what_is_near() {
    let keys = ["acme-developer", "globex-developer"];
    let api = Api::with(Options { auth: self::keys(), ..Options::default() }, &keys).await;
    for (tenant, name) in [("acme", "vendor.app.invoice"), ("globex", "vendor.app.invoices")] {
        let key = format!("{tenant}-developer");
        let document = definition_of(tenant, &FUNCTION.replace("vendor.app.echo", name));
        let answer = api.send(Method::POST, "/entrypoints", &key, Some(&document)).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
    }
    let typed = |name: &str| json!({"entrypoint_id": name, "params": {}});
    for name in ["vendor.app.invoicee", "vendor.app.invioce", "invoice"] {
        let answer = api.send(Method::POST, "/invocations", "acme-operator", Some(&typed(name))).await;
        refused(&answer, 404, "not_found");
        assert_eq!(answer.json["suggestions"], json!(["vendor.app.invoice"]), "{name}: {}", answer.text);
        assert!(answer.json["detail"].as_str().unwrap().ends_with("did you mean `vendor.app.invoice`?"));
    }
    // The right name of the wrong kind.
    let wrong = WORKFLOW.replace("vendor.app.flow", "vendor.app.invoice");
    let answer = api.send(Method::POST, "/invocations", "acme-operator", Some(&typed(&wrong))).await;
    assert_eq!(answer.json["suggestions"], json!(["vendor.app.invoice.v1"]), "{}", answer.text);
    let answer = api.send(Method::POST, "/invocations", "acme-operator", Some(&typed("other.thing"))).await;
    refused(&answer, 404, "not_found");
    assert_eq!(answer.json.get("suggestions"), None);
}

/// Lists, counts and filters take the same names and find every version; a name that nothing has is refused, never an empty list.
#[tokio::test]
async fn conditions_take_short_names() {
    let api = Api::start().await;
    api.activate(&echo(1)).await;
    start(&api, "vendor.app.echo").await;
    api.activate(&echo(2)).await;
    start(&api, "vendor.app.echo").await;
    api.activate(&definition(WORKFLOW)).await;
    start(&api, "vendor.app.flow").await;
    let items = async |query: &str| {
        let answer = api.get(&format!("/invocations?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text);
        answer.json["items"].as_array().unwrap().len()
    };
    assert_eq!(items("entrypoint_id=vendor.app.echo").await, 2);
    assert_eq!(items("entrypoint_id=vendor.app.echo.v2").await, 1);
    assert_eq!(items("entrypoint_id=vendor.app.flow").await, 1);
    assert_eq!(items("$filter=entrypoint_id eq 'vendor.app.echo'").await, 2);
    assert_eq!(items("$filter=entrypoint_id ne 'vendor.app.echo'").await, 1);
    assert_eq!(items("$filter=entrypoint_id in ('vendor.app.echo', 'vendor.app.flow')").await, 3);
    let counts = api.get("/invocations:counts?entrypoint_id=vendor.app.echo").await;
    let total: u64 = counts.json["items"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(total, 2, "{}", counts.text);
    for path in ["/invocations?entrypoint_id=", "/invocations:counts?entrypoint_id="] {
        let answer = api.get(&format!("{path}vendor.app.ecko")).await;
        refused(&answer, 404, "not_found");
        assert_eq!(answer.json["suggestions"], json!(["vendor.app.echo"]), "{}", answer.text);
    }
    refused(&api.get("/invocations?$filter=entrypoint_id eq 'nobody'").await, 404, "not_found");
}

/// A registration is read and changed by its short name, too; where several could be meant, none is taken.
#[tokio::test]
async fn a_registration_has_its_short_name() {
    let api = Api::start().await;
    let one = api.activate(&echo(1)).await;
    let of = async |name: &str| api.get(&format!("/entrypoints/{name}")).await.json["id"].clone();
    assert_eq!(of("vendor.app.echo").await, json!(one));
    let two = api.register(&echo(2)).await;
    assert_eq!(of("vendor.app.echo").await, json!(one), "what a call means");
    assert_eq!(of("vendor.app.echo.v2").await, json!(two));
    let activated = api.act("vendor.app.echo", "activate").await;
    assert_eq!((activated.status.as_u16(), &activated.json["id"]), (200, &json!(two)), "the only draft");
    for version in [3, 4] {
        api.register(&echo(version)).await;
    }
    let answer = api.act("vendor.app.echo", "activate").await;
    refused(&answer, 400, "bad_request");
    assert!(
        answer.text.contains("vendor.app.echo.v3") && answer.text.contains("vendor.app.echo.v4"),
        "{}",
        answer.text
    );
    let deprecated = api.act("vendor.app.echo", "deprecate").await;
    assert_eq!((deprecated.status.as_u16(), &deprecated.json["id"]), (200, &json!(two)), "the highest active one");
    let answer = api.post("/entrypoints", &echo(4)).await;
    refused(&answer, 409, "conflict");
    assert!(answer.text.contains("vendor.app.echo.v5"), "{}", answer.text);
    refused(&api.act("vendor.app.nobody", "activate").await, 404, "not_found");
    // Ids in part.
    assert_eq!(of(&one[one.len() - 8..]).await, json!(one));
    refused(&api.get("/entrypoints/ep_0").await, 404, "not_found");
    refused(&api.get(&format!("/entrypoints/{}", &one[..8])).await, 400, "bad_request");
}

/// Runs are found by the first letters of their ids and by the last, in the caller's tenant only.
#[tokio::test]
async fn runs_are_found_by_letters_of_their_ids() {
    let keys = ["acme-developer", "globex-developer"];
    let api = Api::with(Options { auth: self::keys(), ..Options::default() }, &keys).await;
    let mut ids = Vec::new();
    for tenant in ["acme", "acme", "globex"] {
        let document = definition_of(tenant, &FUNCTION.replace("echo", &format!("echo{}", ids.len())));
        let key = format!("{tenant}-developer");
        let id = api.send(Method::POST, "/entrypoints", &key, Some(&document)).await.json["id"].clone();
        let path = format!("/entrypoints/{}:status", id.as_str().unwrap());
        api.send(Method::POST, &path, &key, Some(&json!({"action": "activate"}))).await;
        let call = json!({"entrypoint_id": document["entrypoint_id"], "params": {}});
        let started = api.send(Method::POST, "/invocations", &key, Some(&call)).await;
        ids.push(started.json["record"]["id"].as_str().unwrap_or_else(|| panic!("{}", started.text)).to_owned());
    }
    let find = async |letters: &str, key: &str| -> Vec<String> {
        let answer = api.server.send(Method::GET, &format!("/v1/runs?id={letters}"), key, None).await;
        assert_eq!(answer.status, 200, "{letters}: {}", answer.text);
        let items = answer.json["items"].as_array().unwrap().iter();
        items.map(|item| item["runId"].as_str().unwrap().to_owned()).collect()
    };
    let end = |id: &str| id[id.len() - 6..].to_owned();
    assert_eq!(find(&end(&ids[0]), "acme-viewer").await, [ids[0].clone()]);
    assert_eq!(find(&ids[0][..30], "acme-viewer").await, [ids[0].clone()]);
    assert_eq!(find(&ids[0][4..30], "acme-viewer").await, [ids[0].clone()], "without the `inv_`");
    assert_eq!(find(&ids[0], "acme-viewer").await, [ids[0].clone()]);
    assert_eq!(find(&ids[0][..8], "acme-viewer").await, [ids[1].clone(), ids[0].clone()], "both, newest first");
    assert!(find(&end(&ids[2]), "acme-viewer").await.is_empty(), "another tenant's is not there");
    assert!(find("ffffff", "acme-viewer").await.is_empty());
    for letters in ["c54", "inv_c54", "%20%20%20%20"] {
        let answer = api.server.send(Method::GET, &format!("/v1/runs?id={letters}"), "acme-viewer", None).await;
        answer.is_problem("INVALID_PARAMETER");
    }
}

/// A signal that nothing waits for is kept, and its sender is told so.
#[tokio::test]
async fn a_signal_that_nothing_waits_for_is_said_to_be_kept() {
    let api = Api::start().await;
    api.activate(&definition(WORKFLOW)).await;
    let id = api.begin("vendor.app.flow", &json!({"do": "hang"})).await;
    let signal = json!({"signal_id": "s-1", "name": "aproval", "payload": {}});
    let answer = api.post(&format!("/invocations/{id}:signal"), &signal).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!((&answer.json["id"], &answer.json["signal"]["kept"]), (&json!(id), &json!(true)), "{}", answer.text);
    assert!(answer.json["signal"]["note"].as_str().unwrap().starts_with("kept"), "{}", answer.text);
}
