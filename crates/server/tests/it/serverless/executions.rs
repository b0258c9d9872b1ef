//! Invocations are executions of the function that their entrypoint refers to, and are found as such.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{Api, WORKFLOW, definition_of};
use crate::harness::{Options, keys};

const LIST: &str = "/2025-12-01/functions/durable/durable-executions";

async fn listed(api: &Api, key: &str, query: &str) -> Value {
    let answer = api.server.request(Method::GET, &format!("{LIST}?{query}")).bearer_auth(key).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.json().await.unwrap()
}

/// The names of all pages, one execution each.
async fn names(api: &Api, key: &str, query: &str) -> Vec<String> {
    let (mut names, mut marker) = (Vec::new(), String::new());
    loop {
        let page = listed(api, key, &format!("{query}&MaxItems=1&Marker={marker}")).await;
        let items = page["DurableExecutions"].as_array().unwrap();
        names.extend(items.iter().map(|item| item["DurableExecutionName"].as_str().unwrap().to_owned()));
        match page["NextMarker"].as_str() {
            Some(next) => marker = next.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"),
            None => return names,
        }
    }
}

async fn register(api: &Api, address: &str, owner: Value) {
    let mut document = definition_of("acme", address);
    document["owner"] = owner;
    let registered = api.send(Method::POST, "/entrypoints", "acme-developer", Some(&document)).await;
    assert_eq!(registered.status, 201, "{}", registered.text);
    let path = format!("/entrypoints/{}:status", registered.json["id"].as_str().unwrap());
    let activate = json!({"action": "activate"});
    assert_eq!(api.send(Method::POST, &path, "acme-developer", Some(&activate)).await.status, 200);
}

async fn start(api: &Api, address: &str) -> String {
    let request = json!({"entrypoint_id": address, "mode": "sync"});
    let started = api.send(Method::POST, "/invocations", "acme-developer", Some(&request)).await;
    assert_eq!(started.status, 201, "{}", started.text);
    started.json["record"]["id"].as_str().unwrap().to_owned()
}

/// Whichever API started a run of the function, the function's list has it, with the ARN by which it is found.
async fn a_function_lists_what_its_entrypoints_started() {
    let api = Api::with(Options { auth: keys(), ..Options::default() }, &["acme-developer"]).await;
    register(&api, WORKFLOW, json!({"owner_type": "tenant", "id": "acme", "tenant_id": "acme"})).await;
    let first = start(&api, WORKFLOW).await;
    let invoke =
        api.server.request(Method::POST, "/2015-03-31/functions/durable/invocations").bearer_auth("acme-operator");
    let invoked = invoke.header("x-amz-durable-execution-name", "by-lambda").body("{}").send().await.unwrap();
    assert_eq!(invoked.status(), 200);
    let second = start(&api, WORKFLOW).await;
    let all = names(&api, "acme-viewer", "").await;
    // The newest is first; those of one millisecond have an order of their own.
    let sorted = |names: &[&str]| BTreeSet::from_iter(names.iter().map(|name| (*name).to_owned()));
    assert_eq!(BTreeSet::from_iter(all.iter().cloned()), sorted(&[&second, "by-lambda", &first]));
    assert!(first < second || all.ends_with(std::slice::from_ref(&second)));
    let mut oldest = all.clone();
    oldest.reverse();
    assert_eq!(names(&api, "acme-viewer", "ReverseOrder=true").await, oldest);
    assert_eq!(names(&api, "acme-viewer", "Statuses=SUCCEEDED").await, all);
    assert_eq!(names(&api, "acme-viewer", "Statuses=FAILED").await, [""; 0]);
    assert_eq!(names(&api, "acme-viewer", &format!("DurableExecutionName={first}")).await, [first.as_str()]);
    assert_eq!(names(&api, "acme-viewer", "DurableExecutionName=by-lambda").await, ["by-lambda"]);
    // The version that ran is the function's, not the entrypoint's.
    let spec = json!({"reach": {"kind": "inProcess"}, "durable": true, "executionTimeoutSeconds": 60});
    let answer = api.server.send(Method::PUT, "/v1/functions/durable", "acme-developer", Some(&spec)).await;
    assert_eq!(answer.json["version"], 2, "{}", answer.text);
    assert_eq!(names(&api, "acme-viewer", "Qualifier=1").await, all);
    assert_eq!(names(&api, "acme-viewer", "Qualifier=2").await, [""; 0]);
    let page = listed(&api, "acme-viewer", &format!("DurableExecutionName={second}")).await;
    let arn = page["DurableExecutions"][0]["DurableExecutionArn"].as_str().unwrap();
    assert!(arn.contains(":function:durable:1/") && arn.ends_with(&second), "{arn}");
    let path = arn.replace(':', "%3A").replace('/', "%2F").replace('$', "%24");
    let path = format!("/2025-12-01/durable-executions/{path}");
    let found = api.server.request(Method::GET, &path).bearer_auth("acme-viewer").send().await.unwrap();
    assert_eq!(found.status(), 200);
}

/// SR-012: what is one user's is in that user's list alone.
async fn a_function_does_not_list_what_is_private() {
    let api = Api::with(Options { auth: keys(), ..Options::default() }, &["acme-developer"]).await;
    register(&api, WORKFLOW, json!({"owner_type": "user", "id": "acme-developer", "tenant_id": "acme"})).await;
    let run = start(&api, WORKFLOW).await;
    for (key, expected) in
        [("acme-developer", vec![run.as_str()]), ("acme-platform-admin", vec![run.as_str()]), ("acme-admin", vec![])]
    {
        assert_eq!(names(&api, key, "").await, expected, "{key}");
        assert_eq!(names(&api, key, &format!("DurableExecutionName={run}")).await, expected, "{key}");
    }
}

crate::backend::on_every_store! {
    a_function_lists_what_its_entrypoints_started,
    a_function_does_not_list_what_is_private,
}
