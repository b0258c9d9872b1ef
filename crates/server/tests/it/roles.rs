//! Who may do what: every route, every role.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Options, ROLES, Server, endless, keys};

/// The lowest role per route; `None` is open to all.
const TABLE: [(&str, &str, Option<&str>); 50] = [
    ("POST", "/v1/runs", Some("operator")),
    ("GET", "/v1/runs", Some("viewer")),
    ("POST", "/v1/runs/import", Some("admin")),
    ("GET", "/v1/runs/{id}", Some("viewer")),
    ("DELETE", "/v1/runs/{id}", Some("admin")),
    ("GET", "/v1/runs/{id}/events", Some("viewer")),
    ("POST", "/v1/runs/{id}/signals", Some("operator")),
    ("GET", "/v1/runs/{id}/export", Some("viewer")),
    ("POST", "/v1/runs/{id}/terminate", Some("operator")),
    ("GET", "/v1/runs/{id}/logs", Some("operator")),
    ("GET", "/v1/functions", Some("viewer")),
    ("GET", "/v1/functions/{name}", Some("viewer")),
    ("PUT", "/v1/functions/{name}", Some("developer")),
    ("PUT", "/v1/functions/{name}/aliases/{alias}", Some("developer")),
    ("DELETE", "/v1/functions/{name}/aliases/{alias}", Some("developer")),
    ("DELETE", "/v1/functions/{name}", Some("developer")),
    ("GET", "/v1/alerts", Some("viewer")),
    ("GET", "/v1/dead-letters", Some("platform-admin")),
    ("POST", "/v1/dead-letters/redrive", Some("platform-admin")),
    ("GET", "/v1/store/info", Some("platform-admin")),
    ("GET", "/v1/store/backup", Some("platform-admin")),
    ("POST", "/v1/store/verify", Some("platform-admin")),
    ("POST", "/v1/store/retention", Some("platform-admin")),
    ("POST", "/runtime/commands", Some("platform-admin")),
    ("GET", "/runtime/snapshot", Some("viewer")),
    ("GET", "/runtime/events", Some("platform-admin")),
    ("GET", "/runtime/schema", Some("platform-admin")),
    ("POST", "/api/serverless-runtime/v1/entrypoints", Some("developer")),
    ("GET", "/api/serverless-runtime/v1/entrypoints", Some("viewer")),
    ("POST", "/api/serverless-runtime/v1/entrypoints:validate", Some("developer")),
    ("GET", "/api/serverless-runtime/v1/entrypoints/{id}", Some("viewer")),
    ("PUT", "/api/serverless-runtime/v1/entrypoints/{id}", Some("developer")),
    ("DELETE", "/api/serverless-runtime/v1/entrypoints/{id}", Some("developer")),
    ("POST", "/api/serverless-runtime/v1/entrypoints/{id}:status", Some("developer")),
    ("POST", "/api/serverless-runtime/v1/invocations", Some("operator")),
    ("GET", "/api/serverless-runtime/v1/invocations", Some("viewer")),
    ("GET", "/api/serverless-runtime/v1/invocations:counts", Some("viewer")),
    ("POST", "/api/serverless-runtime/v1/invocations:bulk", Some("operator")),
    ("GET", "/api/serverless-runtime/v1/invocations/{id}", Some("viewer")),
    ("POST", "/api/serverless-runtime/v1/invocations/{id}:control", Some("operator")),
    ("POST", "/api/serverless-runtime/v1/invocations/{id}:signal", Some("operator")),
    ("GET", "/api/serverless-runtime/v1/invocations/{id}/timeline", Some("viewer")),
    ("GET", "/api/serverless-runtime/v1/types", Some("viewer")),
    ("GET", "/api/serverless-runtime/v1/types/{id}", Some("viewer")),
    ("GET", "/openapi.json", None),
    ("GET", "/metrics", Some("viewer")),
    ("GET", "/", None),
    ("GET", "/livez", None),
    ("GET", "/readyz", None),
    ("GET", "/version", None),
];

const PREFIX: &str = "/api/serverless-runtime/v1";

/// The same refusal in the words of the API that it belongs to.
fn code(path: &str, code: &str) -> String {
    if !path.starts_with(PREFIX) {
        return code.to_owned();
    }
    format!("gts.x.core.serverless.err.v1~x.core.serverless.err.{}.v1~", code.to_lowercase())
}

/// A route that nobody has put into the table fails here.
#[test]
fn the_table_has_every_route() {
    for (prefix, source) in
        [("", include_str!("../../src/routes.rs")), (PREFIX, include_str!("../../src/routes/serverless.rs"))]
    {
        let routes: Vec<&str> = source.split(".route(").skip(1).filter_map(|rest| rest.split('"').nth(1)).collect();
        assert!(routes.len() > 8);
        for route in routes {
            let route = format!("{prefix}{route}");
            assert!(TABLE.iter().any(|(_, path, _)| *path == route), "{route} is not in the table");
        }
    }
}

/// Something that gets past the door, with no more effect than needed.
fn body(method: &str, path: &str, role: &str) -> Option<Value> {
    match (method, path) {
        ("POST", "/v1/runs/{id}/signals") => Some(json!({"signalId": format!("s-{role}"), "type": "RESUME"})),
        ("POST", "/runtime/commands") => Some(json!({"command": "CaptureSnapshot"})),
        ("POST", "/v1/store/verify" | "/v1/store/retention") => None,
        ("PUT", "/v1/functions/{name}") => Some(json!({"reach": {"kind": "pull"}})),
        ("PUT", "/v1/functions/{name}/aliases/{alias}") => Some(json!({"version": 1})),
        ("POST", _) => Some(json!({})),
        _ => None,
    }
}

#[tokio::test]
async fn every_route_asks_for_its_role() {
    let server = Server::with(Options { auth: keys(), loopback: false, ..Options::default() }).await;
    for (method, path, needed) in TABLE {
        let run = server.start_as("acme-operator", endless()).await;
        let (verb, target) = (
            Method::from_bytes(method.as_bytes()).unwrap(),
            path.replace("{id}", run.as_str()).replace("{name}", "f").replace("{alias}", "a"),
        );
        let ask = async |key: &str| {
            let body = body(method, path, key);
            server.send(verb.clone(), &target, key, body.as_ref()).await
        };
        let level = |name: &str| ROLES.iter().position(|(_, role)| *role == name).unwrap();
        for key in ["", "wrong", "ACME-VIEWER"] {
            let answer = ask(key).await;
            let expected = if needed.is_some() { 401 } else { 200 };
            assert_eq!(answer.status, expected, "{method} {path} with `{key}`: {}", answer.text);
            if needed.is_some() {
                answer.is_problem(&code(path, "UNAUTHENTICATED"));
            }
        }
        for (_, role) in ROLES {
            let answer = ask(&format!("acme-{role}")).await;
            let allowed = needed.is_none_or(|needed| level(role) >= level(needed));
            if allowed {
                assert!(!matches!(answer.status.as_u16(), 401 | 403), "{method} {path} as {role}: {}", answer.text);
            } else {
                assert_eq!(answer.status, 403, "{method} {path} as {role}: {}", answer.text);
                answer.is_problem(&code(path, "FORBIDDEN"));
                assert!(answer.json["detail"].as_str().unwrap().contains(needed.unwrap()), "{}", answer.text);
            }
        }
    }
}

/// Who one is comes from the key alone.
#[tokio::test]
async fn headers_do_not_make_a_principal() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let ask = |name: &'static str, value: &'static str| {
        let request = server.request(Method::GET, "/v1/store/info").bearer_auth("acme-viewer");
        request.header(name, value)
    };
    for (name, value) in [
        ("x-roles", "platform-admin"),
        ("x-tenant", "globex"),
        ("x-forwarded-user", "root"),
        ("authorization", "Bearer acme-platform-admin"),
    ] {
        let status = Answer::of(ask(name, value)).await.status;
        assert!(matches!(status.as_u16(), 401 | 403), "{name}: {status}");
    }
}

/// A development server has no credentials, so it must not be reachable through a browser's other pages.
#[tokio::test]
async fn a_development_server_answers_only_this_machine() {
    let server = Server::start().await;
    let ask = |name: &'static str, value: &str| server.request(Method::GET, "/v1/runs").header(name, value.to_owned());
    for (name, value) in [("host", "evil.example:8700"), ("origin", "https://evil.example"), ("origin", "null")] {
        Answer::of(ask(name, value)).await.is_problem("FORBIDDEN");
    }
    for (name, value) in
        [("host", "localhost:8700"), ("origin", "http://localhost:3000"), ("origin", "http://127.0.0.1:1")]
    {
        assert_eq!(Answer::of(ask(name, value)).await.status, 200, "{name}: {value}");
    }
}
