//! Who may do what: every route, every role.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Options, ROLES, Server, endless, keys};

/// The lowest role per route (`None` is open to all), and what the audit log calls a change that it makes.
pub(crate) const TABLE: [(&str, &str, Option<&str>, Option<&str>); 58] = [
    ("POST", "/v1/runs", Some("operator"), Some("run.start")),
    ("GET", "/v1/runs", Some("viewer"), None),
    ("POST", "/v1/runs/import", Some("admin"), Some("run.import")),
    ("GET", "/v1/runs/{id}", Some("viewer"), None),
    ("DELETE", "/v1/runs/{id}", Some("admin"), Some("run.delete")),
    ("GET", "/v1/runs/{id}/events", Some("viewer"), None),
    ("POST", "/v1/runs/{id}/signals", Some("operator"), Some("run.signal")),
    ("GET", "/v1/runs/{id}/export", Some("operator"), None),
    ("POST", "/v1/runs/{id}/terminate", Some("operator"), Some("run.terminate")),
    ("GET", "/v1/runs/{id}/logs", Some("operator"), None),
    ("POST", "/v1/channel", Some("operator"), None),
    ("GET", "/v1/functions", Some("viewer"), None),
    ("GET", "/v1/functions/{name}", Some("viewer"), None),
    ("GET", "/v1/functions/{name}/versions/{version}", Some("viewer"), None),
    ("PUT", "/v1/functions/{name}", Some("developer"), Some("function.publish")),
    ("PUT", "/v1/functions/{name}/aliases/{alias}", Some("developer"), Some("function.alias")),
    ("DELETE", "/v1/functions/{name}/aliases/{alias}", Some("developer"), Some("function.alias.remove")),
    ("DELETE", "/v1/functions/{name}", Some("developer"), Some("function.remove")),
    ("GET", "/v1/whoami", Some("viewer"), None),
    ("POST", "/v1/keys", Some("admin"), Some("key.create")),
    ("GET", "/v1/keys", Some("admin"), None),
    ("DELETE", "/v1/keys/{id}", Some("admin"), Some("key.revoke")),
    ("GET", "/v1/audit", Some("admin"), None),
    ("GET", "/v1/alerts", Some("viewer"), None),
    ("GET", "/v1/series", Some("viewer"), None),
    ("GET", "/v1/dead-letters", Some("platform-admin"), None),
    ("POST", "/v1/dead-letters/redrive", Some("platform-admin"), Some("dead-letter.redrive")),
    ("GET", "/v1/store/info", Some("platform-admin"), None),
    ("GET", "/v1/store/backup", Some("platform-admin"), Some("store.backup")),
    ("POST", "/v1/store/verify", Some("platform-admin"), Some("store.verify")),
    ("POST", "/v1/store/retention", Some("platform-admin"), Some("store.retention")),
    ("POST", "/runtime/commands", Some("platform-admin"), Some("runtime.command")),
    ("GET", "/runtime/snapshot", Some("viewer"), None),
    ("GET", "/runtime/events", Some("platform-admin"), None),
    ("GET", "/runtime/schema", Some("platform-admin"), None),
    ("POST", "/api/serverless-runtime/v1/entrypoints", Some("developer"), Some("entrypoint.register")),
    ("GET", "/api/serverless-runtime/v1/entrypoints", Some("viewer"), None),
    ("POST", "/api/serverless-runtime/v1/entrypoints:validate", Some("developer"), None),
    ("GET", "/api/serverless-runtime/v1/entrypoints/{id}", Some("viewer"), None),
    ("PUT", "/api/serverless-runtime/v1/entrypoints/{id}", Some("developer"), Some("entrypoint.update")),
    ("DELETE", "/api/serverless-runtime/v1/entrypoints/{id}", Some("developer"), Some("entrypoint.delete")),
    ("POST", "/api/serverless-runtime/v1/entrypoints/{id}:status", Some("developer"), Some("entrypoint.activate")),
    ("POST", "/api/serverless-runtime/v1/invocations", Some("operator"), Some("invocation.start")),
    ("GET", "/api/serverless-runtime/v1/invocations", Some("viewer"), None),
    ("GET", "/api/serverless-runtime/v1/invocations:counts", Some("viewer"), None),
    ("POST", "/api/serverless-runtime/v1/invocations:bulk", Some("operator"), Some("invocation.bulk")),
    ("GET", "/api/serverless-runtime/v1/invocations/{id}", Some("viewer"), None),
    ("POST", "/api/serverless-runtime/v1/invocations/{id}:control", Some("operator"), Some("invocation.cancel")),
    ("POST", "/api/serverless-runtime/v1/invocations/{id}:signal", Some("operator"), Some("invocation.signal")),
    ("GET", "/api/serverless-runtime/v1/invocations/{id}/timeline", Some("viewer"), None),
    ("GET", "/api/serverless-runtime/v1/types", Some("viewer"), None),
    ("GET", "/api/serverless-runtime/v1/types/{id}", Some("viewer"), None),
    ("GET", "/openapi.json", None, None),
    ("GET", "/metrics", Some("viewer"), None),
    ("GET", "/", None, None),
    ("GET", "/livez", None, None),
    ("GET", "/readyz", None, None),
    ("GET", "/version", None, None),
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
            assert!(TABLE.iter().any(|(_, path, ..)| *path == route), "{route} is not in the table");
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

/// Where a role stands among the others.
pub(crate) fn level(name: &str) -> usize {
    ROLES.iter().position(|(_, role)| *role == name).unwrap()
}

/// SR-525, SR-526, SR-528, SR-538, S2: every route, every role, and nobody.
#[tokio::test]
async fn every_route_asks_for_its_role() {
    let server = Server::with(Options { auth: keys(), loopback: false, ..Options::default() }).await;
    for (method, path, needed, _) in TABLE {
        let run = server.start_as("acme-operator", endless()).await;
        let (verb, target) = (
            Method::from_bytes(method.as_bytes()).unwrap(),
            path.replace("{id}", if path.starts_with("/v1/keys") { "key_1" } else { run.as_str() })
                .replace("{name}", "f")
                .replace("{alias}", "a"),
        );
        let ask = async |key: &str| {
            let body = body(method, path, key);
            server.send(verb.clone(), &target, key, body.as_ref()).await
        };
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
