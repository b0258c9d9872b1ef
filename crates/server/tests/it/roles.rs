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
    ("POST", "/v1/runs/{id}/terminate", Some("admin"), Some("run.terminate")),
    ("GET", "/v1/runs/{id}/logs", Some("operator"), None),
    ("POST", "/v1/channel", Some("operator"), None),
    ("GET", "/v1/functions", Some("viewer"), None),
    ("GET", "/v1/functions/{name}", Some("viewer"), None),
    ("GET", "/v1/functions/{name}/versions/{version}", Some("viewer"), None),
    ("PUT", "/v1/functions/{name}", Some("developer"), Some("function.publish")),
    ("PUT", "/v1/functions/{name}/aliases/{alias}", Some("developer"), Some("function.alias")),
    ("DELETE", "/v1/functions/{name}/aliases/{alias}", Some("developer"), Some("function.alias.remove")),
    ("DELETE", "/v1/functions/{name}", Some("admin"), Some("function.remove")),
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
    ("DELETE", "/api/serverless-runtime/v1/entrypoints/{id}", Some("admin"), Some("entrypoint.delete")),
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

/// The same for Lambda's API, which refuses in words of its own. A checkpoint and a read of state also need the token of the
/// invocation, which is looked at after the role.
pub(crate) const LAMBDA: [(&str, &str, &str, &str); 17] = [
    ("POST", "/2015-03-31/functions/{name}/invocations", "operator", "execution.start"),
    ("GET", "/2015-03-31/functions", "viewer", "function.read"),
    ("GET", "/2015-03-31/functions/", "viewer", "function.read"),
    ("GET", "/2015-03-31/functions/{name}", "viewer", "function.read"),
    ("GET", "/2015-03-31/functions/{name}/configuration", "viewer", "function.read"),
    ("GET", "/2015-03-31/functions/{name}/versions", "viewer", "function.read"),
    ("GET", "/2015-03-31/functions/{name}/aliases", "viewer", "function.read"),
    ("GET", "/2015-03-31/functions/{name}/aliases/{alias}", "viewer", "function.read"),
    ("GET", "/2025-12-01/durable-executions/{arn}", "viewer", "execution.read"),
    ("POST", "/2025-12-01/durable-executions/{arn}/checkpoint", "operator", "execution.checkpoint"),
    ("GET", "/2025-12-01/durable-executions/{arn}/state", "operator", "execution.read"),
    ("GET", "/2025-12-01/durable-executions/{arn}/history", "viewer", "execution.read"),
    ("POST", "/2025-12-01/durable-executions/{arn}/stop", "operator", "execution.stop"),
    ("GET", "/2025-12-01/functions/{name}/durable-executions", "viewer", "execution.read"),
    ("POST", "/2025-12-01/durable-execution-callbacks/{id}/succeed", "operator", "callback.succeed"),
    ("POST", "/2025-12-01/durable-execution-callbacks/{id}/fail", "operator", "callback.fail"),
    ("POST", "/2025-12-01/durable-execution-callbacks/{id}/heartbeat", "operator", "callback.heartbeat"),
];

const PREFIX: &str = "/api/serverless-runtime/v1";

/// The same refusal in the words of the API that it belongs to.
fn code(path: &str, code: &str) -> String {
    if !path.starts_with(PREFIX) {
        return code.to_owned();
    }
    format!("gts.x.core.serverless.err.v1~x.core.serverless.err.{}.v1~", code.to_lowercase())
}

/// Methods and paths of each `.route("path", get(…).post(…))`.
fn routes(prefix: &str, source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for rest in source.split(".route(").skip(1) {
        let (path, rest) = rest.split_once('"').and_then(|(_, rest)| rest.split_once('"')).unwrap();
        let end = [".layer(", ";"].iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        for verb in ["get", "post", "put", "patch", "delete"] {
            let call = format!("{verb}(");
            let mut at = rest[..end].match_indices(&call).map(|(at, _)| &rest[..at]);
            if at.any(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')) {
                found.push((verb.to_uppercase(), format!("{prefix}{path}")));
            }
        }
    }
    found
}

/// A route that nobody has put into a table fails here.
#[test]
fn the_tables_have_every_route() {
    let mut found = routes("", include_str!("../../src/routes.rs"));
    found.extend(routes(PREFIX, include_str!("../../src/routes/serverless.rs")));
    let lambda = routes("", include_str!("../../src/routes/lambda.rs"));
    assert_eq!(lambda.len(), LAMBDA.len(), "{lambda:?}");
    found.extend(lambda);
    let rows = TABLE.map(|(method, path, ..)| (method, path)).into_iter();
    let rows: Vec<_> = rows.chain(LAMBDA.map(|(method, path, ..)| (method, path))).collect();
    // A `POST` to `{id}` of the serverless runtime API is one of the actions `{id}:name`.
    let is_action = |path: &str, row: &str| row.strip_prefix(path).is_some_and(|rest| rest.starts_with(':'));
    let is_same = |path: &str, row: &str| row == path || path.ends_with("{id}") && is_action(path, row);
    for (method, path) in &found {
        let has = |row: &(&str, &str)| row.0 == method && is_same(path, row.1);
        assert!(rows.iter().any(has), "{method} {path} is in no table");
    }
    for (method, path) in rows {
        let has = |route: &(String, String)| route.0 == method && is_same(&route.1, path);
        assert!(found.iter().any(has), "{method} {path} is no route");
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

/// What the table says and a server does not do: every route, every role, and nobody.
async fn against_the_table(server: &Server) -> Vec<String> {
    let mut findings = Vec::new();
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
        let is_refused = |answer: &Answer, status: u16, name: &str| {
            answer.status == status && answer.json["code"] == code(path, name).as_str()
        };
        for key in ["", "wrong", "ACME-VIEWER"] {
            let answer = ask(key).await;
            let as_told =
                if needed.is_some() { is_refused(&answer, 401, "UNAUTHENTICATED") } else { answer.status == 200 };
            if !as_told {
                findings.push(format!("{method} {path} with `{key}`: {} {}", answer.status, answer.text));
            }
        }
        for (_, role) in ROLES {
            let answer = ask(&format!("acme-{role}")).await;
            let as_told = match needed.filter(|needed| level(role) < level(needed)) {
                None => !matches!(answer.status.as_u16(), 401 | 403),
                Some(needed) => {
                    let told = answer.json["detail"].as_str().unwrap_or_default();
                    is_refused(&answer, 403, "FORBIDDEN") && told.contains(needed)
                }
            };
            if !as_told {
                findings.push(format!("{method} {path} as {role}: {} {}", answer.status, answer.text));
            }
        }
    }
    findings
}

/// SR-525, SR-526, SR-528, S2
#[tokio::test]
async fn every_route_asks_for_its_role() {
    let server = Server::with(Options { auth: keys(), loopback: false, ..Options::default() }).await;
    let findings = against_the_table(&server).await;
    assert!(findings.is_empty(), "{findings:#?}");
}

/// The same for Lambda's API, and the refusals that its table foresees, as correlation id and action.
async fn against_the_table_of_lambda(server: &Server) -> (Vec<String>, Vec<(String, &'static str)>) {
    let (mut findings, mut denied) = (Vec::new(), Vec::new());
    for (index, (method, path, needed, action)) in LAMBDA.into_iter().enumerate() {
        let verb = Method::from_bytes(method.as_bytes()).unwrap();
        let target = path.replace("{name}", "none").replace("{arn}", "arn").replace("{id}", "QUFBQQ%3D%3D");
        let ask = async |key: &str, correlation: &str| {
            let request = server.request(verb.clone(), &target).header("x-correlation-id", correlation);
            let request = if key.is_empty() { request } else { request.bearer_auth(key) };
            let answer = request.send().await.unwrap();
            let name = answer.headers().get("x-amzn-errortype").map(|name| name.to_str().unwrap().to_owned());
            (answer.status().as_u16(), name.unwrap_or_default(), answer.text().await.unwrap())
        };
        for key in ["", "wrong", "ACME-VIEWER"] {
            let (status, name, text) = ask(key, "nobody").await;
            let told =
                if key.is_empty() { "MissingAuthenticationTokenException" } else { "UnrecognizedClientException" };
            if (status, name.as_str()) != (403, told) {
                findings.push(format!("{method} {path} with `{key}`: {status} {text}"));
            }
        }
        for (_, role) in ROLES {
            let correlation = format!("{role}-{index}");
            let (status, name, text) = ask(&format!("acme-{role}"), &correlation).await;
            let as_told = if level(role) >= level(needed) {
                !matches!(status, 401 | 403)
            } else {
                denied.push((correlation, action));
                (status, name.as_str()) == (403, "AccessDeniedException") && text.contains(needed)
            };
            if !as_told {
                findings.push(format!("{method} {path} as {role}: {status} {text}"));
            }
        }
    }
    (findings, denied)
}

/// SR-525, SR-526, S2: and each refusal is on record.
#[tokio::test]
async fn every_route_of_lambda_asks_for_its_role() {
    let server = Server::with(Options { auth: keys(), loopback: false, ..Options::default() }).await;
    let (findings, denied) = against_the_table_of_lambda(&server).await;
    assert!(findings.is_empty(), "{findings:#?}");
    assert_eq!(denied.len(), 7, "a viewer, where it takes an operator");
    for (correlation, action) in denied {
        let found = crate::audit::entry(&server, &correlation).await;
        assert_eq!((found.outcome, found.action.as_str()), (servo_model::AuditOutcome::Denied, action));
        assert_eq!(found.actor, "acme-viewer");
    }
}

/// S2: the control. On a server that lets every role through, both tables are red for each route that asks for more than the least role,
/// and for no other. What the serverless runtime asks for itself, behind the route, it still asks for.
#[cfg(feature = "sabotage")]
#[tokio::test]
async fn a_server_without_roles_is_noticed() {
    let options = Options { auth: keys(), loopback: false, ..Options::default() };
    let server = Server::with(options.broken("any-role")).await;
    let has = |findings: &[String], method: &str, path: &str| {
        findings.iter().any(|finding| finding.starts_with(&format!("{method} {path} as viewer: ")))
    };
    let findings = against_the_table(&server).await;
    let is_noticed = |(method, path, needed, _): &(&str, &str, Option<&str>, _)| {
        has(&findings, method, path) == needed.is_some_and(|needed| level(needed) > 0)
    };
    // Which signals an operator may send is asked for each kind, behind the route.
    let asks_itself = |path: &str| path.starts_with(PREFIX) || path == "/v1/runs/{id}/signals";
    let unnoticed: Vec<_> = TABLE.into_iter().filter(|row| !is_noticed(row) && !asks_itself(row.1)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    let (findings, _) = against_the_table_of_lambda(&server).await;
    for (method, path, needed, _) in LAMBDA {
        assert_eq!(has(&findings, method, path), level(needed) > 0, "{method} {path}: {findings:#?}");
    }
}

/// What one of these is answered with, if the caller's role does not allow it.
async fn is_refused(server: &Server, role: &str, call: (Method, &str), body: Option<&Value>) -> bool {
    let answer = server.send(call.0, call.1, &format!("acme-{role}"), body).await;
    assert_ne!(answer.status, 401, "{}", answer.text);
    answer.status == 403
}

/// SV-244 to SV-247: each permission has somebody who may and somebody who may not, and `whoami` tells each of them the same as the
/// handlers do.
#[tokio::test]
async fn handlers_allow_what_whoami_tells() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let run = server.start_as("acme-operator", endless()).await;
    let control = |action: &str| json!({"action": action, "step_id": "a"});
    let bulk = |action: &str| json!({"action": action, "filter": "status eq 'failed'"});
    let signal = |kind: &str, step: bool| {
        let mut signal = json!({"signalId": format!("s-{kind}"), "type": kind});
        if step {
            signal["stepId"] = json!("a");
        }
        signal
    };
    let of_run = |rest: &str| format!("/v1/runs/{run}{rest}");
    let of_rest = |rest: &str| format!("{PREFIX}{rest}");
    let invocation = of_rest("/invocations/inv_1:control");
    let calls: Vec<(&str, Method, String, Option<Value>)> = vec![
        ("definitions:read", Method::GET, "/v1/functions".to_owned(), None),
        ("definitions:deploy", Method::PUT, "/v1/functions/f".to_owned(), Some(json!({}))),
        ("definitions:deploy", Method::POST, of_rest("/entrypoints"), Some(json!({}))),
        ("definitions:deploy", Method::DELETE, "/v1/functions/f/aliases/a".to_owned(), None),
        ("definitions:delete", Method::DELETE, "/v1/functions/none".to_owned(), None),
        ("definitions:delete", Method::DELETE, of_rest("/entrypoints/ep_1"), None),
        ("runs:read", Method::GET, of_run(""), None),
        ("payloads:read", Method::GET, of_run("/export"), None),
        ("runs:trigger", Method::POST, of_rest("/invocations"), Some(json!({}))),
        ("runs:trigger", Method::POST, invocation.clone(), Some(json!({"action": "replay"}))),
        ("runs:cancel", Method::POST, invocation.clone(), Some(json!({"action": "cancel"}))),
        ("runs:cancel", Method::POST, of_rest("/invocations:bulk"), Some(bulk("cancel"))),
        ("runs:control", Method::POST, invocation.clone(), Some(json!({"action": "suspend"}))),
        ("runs:control", Method::POST, invocation.clone(), Some(json!({"action": "resume"}))),
        ("runs:control", Method::POST, invocation.clone(), Some(control("skip_step"))),
        ("runs:control", Method::POST, of_run("/signals"), Some(signal("APPROVE", false))),
        ("runs:control", Method::POST, of_run("/signals"), Some(signal("RESUME", false))),
        ("runs:control", Method::POST, of_run("/signals"), Some(signal("SKIP_STEP", true))),
        ("runs:retry", Method::POST, invocation.clone(), Some(json!({"action": "retry"}))),
        ("runs:retry", Method::POST, invocation, Some(control("retry_step"))),
        ("runs:retry", Method::POST, of_rest("/invocations:bulk"), Some(bulk("retry"))),
        ("runs:retry", Method::POST, of_run("/signals"), Some(signal("RETRY_STEP", true))),
        ("runs:retry", Method::POST, of_run("/signals"), Some(signal("RETRY_RUN", false))),
        ("runs:manage", Method::POST, "/v1/runs/import".to_owned(), Some(json!({}))),
        ("runs:manage", Method::POST, "/v1/runs/inv_1/terminate".to_owned(), Some(json!({"reason": "r"}))),
        ("keys:manage", Method::GET, "/v1/keys".to_owned(), None),
        ("audit:read", Method::GET, "/v1/audit".to_owned(), None),
        ("platform", Method::GET, "/v1/store/info".to_owned(), None),
    ];
    for (_, role) in ROLES {
        let told = server.send(Method::GET, "/v1/whoami", &format!("acme-{role}"), None).await.json;
        let told: Vec<&str> =
            told["permissions"].as_array().unwrap().iter().map(|permission| permission.as_str().unwrap()).collect();
        for (permission, method, path, body) in &calls {
            let refused = is_refused(&server, role, (method.clone(), path), body.as_ref()).await;
            assert_eq!(!refused, told.contains(permission), "{role}: {permission} by {method} {path} {body:?}");
        }
        for permission in told {
            assert!(calls.iter().any(|(name, ..)| *name == permission), "{permission} is tried by no call");
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

/// A development server has no credentials, so it must not be reachable through a browser's other pages, nor through a proxy.
#[tokio::test]
async fn a_development_server_answers_only_this_machine() {
    let server = Server::start().await;
    let ask = |name: &'static str, value: &str| server.request(Method::GET, "/v1/runs").header(name, value.to_owned());
    for (name, value) in
        [("host", "evil.example:8700"), ("origin", "https://evil.example"), ("origin", "http://localhost:3000")]
    {
        Answer::of(ask(name, value)).await.is_problem("FORBIDDEN");
    }
    for name in ["forwarded", "X-Forwarded-For", "x-forwarded-host", "X-Real-IP", "via", "cf-connecting-ip"] {
        let answer = Answer::of(ask(name, "127.0.0.1")).await;
        answer.is_problem("FORBIDDEN");
        assert!(answer.json["detail"].as_str().unwrap().contains("auth.keys"), "it says what to do: {}", answer.text);
        let metrics = server.request(Method::GET, "/metrics").header(name, "127.0.0.1");
        assert_eq!(metrics.send().await.unwrap().status(), 403, "{name}");
    }
    for (name, value) in [("host", "localhost:8700"), ("origin", &server.url("")), ("sec-fetch-site", "same-origin")] {
        assert_eq!(Answer::of(ask(name, value)).await.status, 200, "{name}: {value}");
    }
}
