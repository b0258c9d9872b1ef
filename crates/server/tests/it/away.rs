//! The database is away: every route says so with 503 and when to come back, in the words of its API, and none with a 500, which
//! callers take for a defect.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use servo_store::testkit::faulty::{Fault, Plan};

use crate::harness::{Options, Server, endless, keys, one_step, start};
use crate::roles::{LAMBDA, TABLE};
use crate::serverless::support::{FUNCTION, definition_of};

/// What gets past the door and the checks that need no store.
fn body(method: &str, path: &str) -> Option<Value> {
    let in_serverless = path.starts_with("/api/serverless-runtime");
    Some(match (method, path) {
        ("GET" | "DELETE", _) => return None,
        ("POST", "/v1/runs") => start(one_step()),
        ("POST", "/v1/runs/{id}/signals") => json!({"signalId": "s", "type": "CANCEL"}),
        ("POST", "/v1/runs/{id}/terminate") => json!({"reason": "r"}),
        ("PUT", "/v1/functions/{name}") => json!({"reach": {"kind": "pull"}}),
        ("PUT", _) if !in_serverless => json!({"version": 1}),
        ("POST", "/v1/keys") => json!({"name": "k", "roles": ["viewer"]}),
        ("POST", "/runtime/commands") => json!({"command": "CaptureSnapshot"}),
        ("POST", "/v1/store/verify" | "/v1/store/retention") => return None,
        (_, path)
            if path.ends_with("/entrypoints") || path.ends_with("/entrypoints/{id}") || path.ends_with(":validate") =>
        {
            definition_of("acme", FUNCTION)
        }
        (_, path) if path.ends_with(":status") => json!({"action": "activate"}),
        (_, path) if path.ends_with("/invocations") && in_serverless => {
            json!({"entrypoint_id": FUNCTION, "params": {}})
        }
        (_, path) if path.ends_with(":bulk") => json!({"action": "cancel", "invocation_ids": ["inv_1"]}),
        (_, path) if path.ends_with(":control") => json!({"action": "cancel"}),
        (_, path) if path.ends_with(":signal") => json!({"signal_id": "s", "name": "n"}),
        _ => json!({}),
    })
}

/// Those that need no store for this answer, or have it in memory.
const WITHOUT_A_STORE: [&str; 19] = [
    "POST /v1/runs/import",
    "GET /v1/runs/{id}",
    "POST /v1/channel",
    "GET /v1/whoami",
    "GET /v1/series",
    "GET /runtime/schema",
    "POST /api/serverless-runtime/v1/invocations:bulk",
    "GET /api/serverless-runtime/v1/types",
    "GET /api/serverless-runtime/v1/types/{id}",
    "GET /openapi.json",
    "GET /metrics",
    "GET /",
    "GET /livez",
    "GET /version",
    "GET /2025-12-01/durable-executions/{arn}/state",
    "POST /2025-12-01/durable-executions/{arn}/checkpoint",
    "POST /2025-12-01/durable-execution-callbacks/{id}/succeed",
    "POST /2025-12-01/durable-execution-callbacks/{id}/fail",
    "POST /2025-12-01/durable-execution-callbacks/{id}/heartbeat",
];

#[tokio::test]
async fn every_route_answers_503_while_the_database_is_away() {
    let rows = TABLE.iter().map(|(method, path, ..)| (*method, *path));
    let rows: Vec<_> = rows.chain(LAMBDA.iter().map(|(method, path, ..)| (*method, *path))).collect();
    let mut findings = Vec::new();
    let mut away = 0;
    let mut needless: BTreeSet<&str> = WITHOUT_A_STORE.into_iter().collect();
    for fault in [Fault::Unavailable, Fault::Timeout] {
        let plan = Plan::new();
        let options = Options { auth: keys(), loopback: false, store_plan: Some(plan.clone()), ..Options::default() };
        let server = Server::with(options).await;
        let run = server.start_as("acme-operator", endless()).await;
        let _steered = plan.clone().fail_between(plan.calls() + 1, u64::MAX, fault);
        for (method, path) in &rows {
            let target = path
                .replace("{id}", if path.starts_with("/v1/keys") { "key_1" } else { run.as_str() })
                .replace("{arn}", run.as_str())
                .replace("{name}", "f")
                .replace("{version}", "1")
                .replace("{alias}", "a");
            let verb = Method::from_bytes(method.as_bytes()).unwrap();
            let answer = server.send(verb, &target, "acme-platform-admin", body(method, path).as_ref()).await;
            let status = answer.status.as_u16();
            let says_when = answer.headers.get("retry-after").is_some_and(|value| value == "1");
            let row = format!("{method} {path}");
            match status {
                503 if says_when || *path == "/readyz" => away += 1,
                200..=499 if WITHOUT_A_STORE.contains(&row.as_str()) => drop(needless.remove(row.as_str())),
                _ => findings.push(format!("{fault:?}: {row}: {status} {says_when} {}", answer.text)),
            }
        }
    }
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(needless, BTreeSet::new(), "they do ask the store, and say that it is away");
    assert!(away > rows.len(), "the store was away: {away}");
}
