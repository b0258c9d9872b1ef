//! The description: it has every route and no other, it is the committed one, and its references lead somewhere.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use servo_model::snapshot::BlockedBy;
use servo_model::{StepId, Timestamp};

use crate::harness::Server;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/openapi.json");
const PREFIX: &str = "/api/serverless-runtime/v1";

fn document() -> &'static Value {
    servo_server::openapi::document()
}

/// The routes of a source file as `GET /path`.
fn routes(prefix: &str, source: &str, found: &mut BTreeSet<String>) {
    for rest in source.split(".route(").skip(1) {
        let path = rest.split('"').nth(1).unwrap();
        for method in ["get", "post", "put", "delete"] {
            let called = format!("{method}(");
            let is_there =
                rest.match_indices(&called).any(|(at, _)| !rest[..at].ends_with(|c: char| c.is_alphanumeric()));
            if is_there {
                found.insert(format!("{} {prefix}{path}", method.to_uppercase()));
            }
        }
    }
}

#[test]
fn the_document_has_every_route_and_no_other() {
    let mut served = BTreeSet::new();
    routes("", include_str!("../../src/routes.rs"), &mut served);
    routes(PREFIX, include_str!("../../src/routes/serverless.rs"), &mut served);
    // The router knows actions as `POST {id}`.
    for (path, actions) in [("entrypoints", &["status"][..]), ("invocations", &["control", "signal"][..])] {
        assert!(served.remove(&format!("POST {PREFIX}/{path}/{{id}}")));
        served.extend(actions.iter().map(|action| format!("POST {PREFIX}/{path}/{{id}}:{action}")));
    }
    let mut told = BTreeSet::new();
    for (path, methods) in document()["paths"].as_object().unwrap() {
        told.extend(methods.as_object().unwrap().keys().map(|method| format!("{} {path}", method.to_uppercase())));
    }
    assert!(served.len() > 40, "{served:?}");
    assert_eq!(told, served);
}

/// SR-446: what is cached ends by its age; there is nothing to purge it by.
#[test]
fn no_route_purges_what_is_cached() {
    let text = |value: &Value| value.to_string().to_lowercase();
    for (path, methods) in document()["paths"].as_object().unwrap() {
        assert!(!["cache", "purge", "invalidate"].iter().any(|word| path.to_lowercase().contains(word)), "{path}");
        for (method, operation) in methods.as_object().unwrap() {
            assert!(!text(&operation["operationId"]).contains("purge"), "{method} {path}");
            let deletes = method == "delete" && path.contains("/invocations");
            assert!(!deletes, "{method} {path}: no record is removed by hand");
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn visit(value: &Value, seen: &mut usize) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    if let (true, Some(reference)) = (name == "$ref", value.as_str()) {
                        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads away"));
                        assert!(document().pointer(pointer).is_some(), "{reference}");
                        *seen += 1;
                    }
                    visit(value, seen);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| visit(item, seen)),
            _ => {}
        }
    }
    let mut seen = 0;
    visit(document(), &mut seen);
    assert!(seen > 100, "{seen}");
}

/// What few answers have is still described: why a run waits, with everything that may be said of it.
#[test]
fn a_cause_of_waiting_has_all_its_members() {
    let whole = BlockedBy {
        cause: "handler".to_owned(),
        step_id: Some(StepId::parse("fetch").unwrap()),
        name: Some("charge".to_owned()),
        reason: Some("it failed".to_owned()),
        since: Some(Timestamp::from_millis(0)),
        earliest_at: Some(Timestamp::from_millis(0)),
    };
    let told: BTreeSet<_> = serde_json::to_value(whole).unwrap().as_object().unwrap().keys().cloned().collect();
    let schemas = &document()["components"]["schemas"];
    for name in ["RunSnapshot", "StartedRun"] {
        let members = schemas[name]["properties"]["blockedBy"]["items"]["properties"].as_object().unwrap();
        assert_eq!(members.keys().cloned().collect::<BTreeSet<_>>(), told, "{name}");
    }
}

/// A key that has ended before it is made is refused, and the description says so.
#[tokio::test]
async fn the_life_of_a_key_is_described() {
    let life = &document()["components"]["schemas"]["CreateKeyRequest"]["properties"]["expiresInSeconds"];
    let server = Server::start().await;
    let (least, most) = (life["minimum"].as_u64().unwrap(), life["maximum"].as_u64().unwrap());
    for (seconds, status) in [(least - 1, 422), (least, 201), (most, 201), (most + 1, 422)] {
        let body = json!({"name": format!("k{seconds}"), "roles": ["viewer"], "expiresInSeconds": seconds});
        assert_eq!(server.post("/v1/keys", &body).await.status, status, "{seconds}");
    }
}

/// The committed file is what programs are generated from. `SERVO_WRITE_SPEC=1` writes it.
#[test]
fn the_committed_document_is_this_one() {
    let text = serde_json::to_string_pretty(document()).unwrap() + "\n";
    if std::env::var_os("SERVO_WRITE_SPEC").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    let committed = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(committed == text, "spec/openapi.json is not what the code says; run this test with SERVO_WRITE_SPEC=1");
}

#[tokio::test]
async fn the_document_is_served() {
    let server = Server::start().await;
    let answer = server.get("/openapi.json").await;
    assert_eq!((answer.status.as_u16(), &answer.json), (200, document()));
}
