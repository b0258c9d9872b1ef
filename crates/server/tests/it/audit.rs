//! The audit log: every change and every refusal, with who, what and why, and nothing that is secret.

use std::io::Write;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use servo_adapter::{HandlerCall, HandlerFailure, Handlers, Reply};
use servo_model::{AuditEntry, AuditOutcome};
use servo_store::Scope;
use servo_store::audit::AuditQuery;

use crate::harness::{Answer, Options, Server, endless, keys, one_step, start, wait_for};
use crate::roles::{TABLE, level};
use crate::serverless::support::{Obedient, definition_of};

mod hangup;

async fn server() -> Server {
    let handlers = Arc::new(Obedient::default());
    Server::with(Options { auth: keys(), loopback: false, handlers, ..Options::default() }).await
}

async fn all(server: &Server) -> Vec<AuditEntry> {
    let query = AuditQuery { limit: 1_000, ..AuditQuery::default() };
    server.runtime.engine().store().read_audit(&Scope::System, &query).await.unwrap()
}

pub(crate) async fn entry(server: &Server, correlation: &str) -> AuditEntry {
    wait_for(&format!("the entry of {correlation}"), async || {
        let mut found = all(server).await;
        found.retain(|entry| entry.correlation_id == correlation);
        assert!(found.len() <= 1, "once: {found:?}");
        found.pop()
    })
    .await
}

async fn send(server: &Server, call: (&str, &str), key: &str, correlation: &str, body: Option<&Value>) -> Answer {
    let method = Method::from_bytes(call.0.as_bytes()).unwrap();
    let mut request = server.request(method, call.1).bearer_auth(key).header("x-correlation-id", correlation);
    if let Some(body) = body {
        request = request.json(body);
    }
    Answer::of(request).await
}

const SERVERLESS: &str = "/api/serverless-runtime/v1";

/// The same for entrypoints and their invocations.
async fn serverless(server: &Server, method: &str, path: &str) -> (String, Option<Value>) {
    let send = async |method: Method, path: &str, body: &Value| {
        let answer = server.send(method, path, "acme-admin", Some(body)).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
        answer.json
    };
    for (name, durable) in [("plain", false), ("durable", true)] {
        let spec = json!({"reach": {"kind": "pull"}, "durable": durable});
        send(Method::PUT, &format!("/v1/functions/{name}"), &spec).await;
    }
    let workflow = path.ends_with(":signal");
    let kind = if workflow { "workflow" } else { "function" };
    // One for each kind of change.
    let own = path.trim_start_matches(SERVERLESS).replace(|c: char| !c.is_ascii_lowercase(), "_");
    let name = format!("{}{own}", method.to_lowercase());
    let address = format!("gts.x.core.serverless.entrypoint.v1~x.core.serverless.{kind}.v1~vendor.app.{name}.v1~");
    let definition = definition_of("acme", &address);
    let rest = path.trim_start_matches(SERVERLESS);
    if (method, rest) == ("POST", "/entrypoints") {
        return (path.to_owned(), Some(definition));
    }
    let registered = send(Method::POST, &format!("{SERVERLESS}/entrypoints"), &definition).await;
    let id = registered["id"].as_str().unwrap();
    let target = path.replace("{id}", id);
    match (method, rest) {
        ("PUT", _) => return (target, Some(definition)),
        ("DELETE", _) => return (target, None),
        (_, "/entrypoints/{id}:status") => return (target, Some(json!({"action": "activate"}))),
        _ => {}
    }
    send(Method::POST, &format!("{SERVERLESS}/entrypoints/{id}:status"), &json!({"action": "activate"})).await;
    let start = json!({"entrypoint_id": address, "params": {"do": "hang"}});
    if rest == "/invocations" {
        return (path.to_owned(), Some(start));
    }
    let started = send(Method::POST, &format!("{SERVERLESS}/invocations"), &start).await;
    let target = path.replace("{id}", started["record"]["invocation_id"].as_str().unwrap());
    let body = match rest {
        "/invocations:bulk" => json!({"action": "cancel", "filter": "status eq 'queued'"}),
        "/invocations/{id}:signal" => json!({"signal_id": "s", "name": "go", "payload": 1}),
        _ => json!({"action": "cancel"}),
    };
    (target, Some(body))
}

/// What makes each kind of change succeed.
async fn body(server: &Server, method: &str, path: &str) -> (String, Option<Value>) {
    if path.starts_with(SERVERLESS) {
        return serverless(server, method, path).await;
    }
    let mut target = path.replace("{name}", "f").replace("{alias}", "a");
    if path.starts_with("/v1/runs/{id}") {
        target = target.replace("{id}", server.start_as("acme-operator", endless()).await.as_str());
    }
    let body = match (method, path) {
        ("POST", "/v1/runs") => Some(start(one_step())),
        ("POST", "/v1/runs/import") => {
            let run = server.start_as("acme-operator", endless()).await;
            let file = server.send(Method::GET, &format!("/v1/runs/{run}/export"), "acme-admin", None).await;
            let gone = server.send(Method::DELETE, &format!("/v1/runs/{run}"), "acme-admin", None).await;
            assert_eq!(gone.status, 204);
            return (target, Some(json!(file.text)));
        }
        ("POST", "/v1/runs/{id}/signals") => Some(json!({"signalId": "s", "type": "PAUSE"})),
        ("POST", "/v1/runs/{id}/terminate") => Some(json!({"reason": "enough"})),
        ("PUT", "/v1/functions/{name}") => Some(json!({"reach": {"kind": "pull"}})),
        ("PUT", "/v1/functions/{name}/aliases/{alias}") => Some(json!({"version": 1})),
        ("POST", "/v1/keys") => Some(json!({"name": "k", "roles": ["viewer"]})),
        ("DELETE", "/v1/keys/{id}") => {
            let made = json!({"name": "gone", "roles": ["viewer"]});
            let made = server.send(Method::POST, "/v1/keys", "acme-admin", Some(&made)).await;
            target = target.replace("{id}", made.json["id"].as_str().unwrap());
            None
        }
        ("POST", "/runtime/commands") => Some(json!({"command": "CaptureSnapshot"})),
        ("POST", "/v1/dead-letters/redrive") => Some(json!({})),
        _ => None,
    };
    (target, body)
}

/// SR-531, SR-532: one entry per change of every kind, with tenant, actor and correlation id.
#[tokio::test]
async fn every_change_leaves_an_entry() {
    let server = server().await;
    let mut changes = 0;
    for (index, (method, path, needed, action)) in TABLE.into_iter().enumerate() {
        let Some((needed, action)) = needed.zip(action) else { continue };
        let (target, body) = body(&server, method, path).await;
        let (key, correlation) = (format!("acme-{needed}"), format!("change-{index}"));
        let answer = match body {
            // A file is sent as it is.
            Some(Value::String(file)) => {
                let request = server.request(Method::POST, &target).bearer_auth(&key).body(file);
                Answer::of(request.header("x-correlation-id", &correlation)).await
            }
            body => send(&server, (method, &target), &key, &correlation, body.as_ref()).await,
        };
        // The store in memory has no backup; that was tried, too.
        let backup = path == "/v1/store/backup";
        assert_eq!(answer.status.is_success(), !backup, "{method} {path}: {}", answer.text);
        let found = entry(&server, &correlation).await;
        let expected = if backup { AuditOutcome::Failed } else { AuditOutcome::Allowed };
        assert_eq!((found.action.as_str(), found.outcome), (action, expected), "{method} {path}");
        assert_eq!((found.tenant_id.as_str(), found.actor.as_str(), found.count), ("acme", key.as_str(), 1));
        assert_eq!(found.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>(), [needed]);
        assert_eq!(found.source.as_deref(), Some("127.0.0.1"));
        assert_eq!(found.reason.as_deref(), backup.then_some("UNSUPPORTED"));
        if path.contains('{') || path.ends_with("/keys") || path.ends_with("/runs") || path.ends_with("/import") {
            assert!(!found.object_id.is_empty() && !found.object_kind.is_empty(), "{method} {path}: {found:?}");
        }
        changes += 1;
    }
    assert!(changes >= 15, "{changes}");
    assert!(all(&server).await.iter().all(|entry| entry.action != "undeclared"));
}

/// What changes the registry, keys or the store is on record before the answer is.
#[tokio::test]
async fn what_is_rare_is_recorded_before_it_is_answered() {
    let server = server().await;
    let spec = json!({"reach": {"kind": "pull"}});
    for number in 0..20 {
        let correlation = format!("early-{number}");
        let path = format!("/v1/functions/f{number}");
        assert_eq!(send(&server, ("PUT", &path), "acme-developer", &correlation, Some(&spec)).await.status, 200);
        assert!(all(&server).await.iter().any(|entry| entry.correlation_id == correlation), "not yet");
    }
}

/// SR-525, SR-526, SR-528: whoever lacks a right is refused, and that is on record.
#[tokio::test]
async fn every_refusal_leaves_an_entry() {
    let server = server().await;
    let mut refusals = 0;
    for (index, (method, path, needed, _)) in TABLE.into_iter().enumerate() {
        let Some(needed) = needed.filter(|needed| level(needed) > 0) else { continue };
        let target = path.replace("{id}", if path.starts_with("/v1/keys") { "key_1" } else { "inv_1" });
        let target = target.replace("{name}", "f").replace("{alias}", "a");
        let below = crate::harness::ROLES[level(needed) - 1].1;
        let (key, correlation) = (format!("globex-{below}"), format!("refusal-{index}"));
        // A signal is judged with its run, so there must be one.
        if path == "/v1/runs/{id}/signals" {
            continue;
        }
        let answer = send(&server, (method, &target), &key, &correlation, None).await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text);
        let found = entry(&server, &correlation).await;
        assert_eq!((found.outcome, found.reason.as_deref()), (AuditOutcome::Denied, Some("FORBIDDEN")));
        assert_eq!((found.tenant_id.as_str(), found.actor.as_str()), ("globex", key.as_str()));
        assert!(!matches!(found.action.as_str(), "read" | "undeclared"), "{method} {path}: {}", found.action);
        if path.contains("{id}") {
            let id = if path.starts_with("/v1/keys") { "key_1" } else { "inv_1" };
            assert_eq!(found.object_id, id, "{method} {path}");
        }
        refusals += 1;
    }
    assert!(refusals >= 20, "{refusals}");
}

/// SR-531: refusals are found by their object, however its address was spelt.
#[tokio::test]
async fn an_object_has_one_name() {
    let server = server().await;
    let paths = ["/invocations/inv_1:control", "/invocations/inv_1:signal", "/invocations/inv%5F1%3Acontrol"];
    for (index, path) in paths.into_iter().enumerate() {
        let correlation = format!("spelt-{index}");
        let target = format!("{SERVERLESS}{path}");
        assert_eq!(send(&server, ("POST", &target), "acme-viewer", &correlation, None).await.status, 403);
        entry(&server, &correlation).await;
    }
    let found = server.send(Method::GET, "/v1/audit?object=inv_1&outcome=denied", "acme-admin", None).await;
    assert_eq!(found.json["items"].as_array().unwrap().len(), paths.len(), "{}", found.text);
}

/// SR-531: what is done with a tenant's key is in that tenant's log, whoever did it; what is refused to a stranger is not.
#[tokio::test]
async fn a_tenant_sees_what_others_did_with_its_keys() {
    let server = server().await;
    let key = json!({"name": "k", "roles": ["viewer"], "tenantId": "acme"});
    let made = send(&server, ("POST", "/v1/keys"), "globex-platform-admin", "made", Some(&key)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("/v1/keys/{}", made.json["id"].as_str().unwrap());
    assert_eq!(send(&server, ("DELETE", &path), "globex-admin", "refused", None).await.status, 404);
    assert_eq!(send(&server, ("POST", "/v1/keys"), "globex-admin", "denied", Some(&key)).await.status, 403);
    assert_eq!(send(&server, ("DELETE", &path), "globex-platform-admin", "revoked", None).await.status, 200);
    for (correlation, tenant) in [("made", "acme"), ("refused", "globex"), ("denied", "globex"), ("revoked", "acme")] {
        let found = entry(&server, correlation).await;
        assert_eq!(found.tenant_id.as_str(), tenant, "{correlation}");
        assert!(found.actor.starts_with("globex-"), "{correlation}: {}", found.actor);
    }
    let seen = server.send(Method::GET, "/v1/audit?action=key.revoke", "acme-admin", None).await;
    assert_eq!(seen.json["items"][0]["actor"], "globex-platform-admin", "{}", seen.text);
}

/// S16: requests without credentials are counted, one by one or together, and fill nothing.
#[tokio::test]
async fn strangers_are_counted() {
    let server = server().await;
    let requests = 300;
    for number in 0..requests {
        let key = if number % 2 == 0 { "" } else { "svo_guess" };
        server.send(Method::POST, "/v1/runs", key, Some(&json!({}))).await.is_problem("UNAUTHENTICATED");
    }
    server.shutdown.trigger();
    let entries = wait_for("the counts to be written", async || {
        let entries = all(&server).await;
        (entries.iter().map(|entry| entry.count).sum::<u64>() == requests).then_some(entries)
    })
    .await;
    assert!(entries.len() <= 30, "{}", entries.len());
    for entry in entries {
        assert_eq!(
            (entry.outcome, entry.tenant_id.as_str(), entry.actor.as_str()),
            (AuditOutcome::Denied, "_system", "")
        );
        assert_eq!((entry.action.as_str(), entry.reason.as_deref()), ("run.start", Some("UNAUTHENTICATED")));
        assert_eq!(entry.source.as_deref(), Some("127.0.0.1"), "{entry:?}");
    }
}

/// Whoever makes harmless mistakes first, and one more after, hides nothing behind them.
#[tokio::test]
async fn mistakes_hide_no_denial() {
    let server = server().await;
    // So many that they are too many for two minutes, too.
    for number in 0..125 {
        let wrong =
            send(&server, ("POST", "/v1/runs"), "acme-operator", &format!("wrong-{number}"), Some(&json!({}))).await;
        assert_eq!(wrong.status, 422, "{}", wrong.text);
    }
    let calls = [("POST", "/v1/keys"), ("GET", "/v1/audit"), ("PUT", "/v1/functions/f"), ("GET", "/v1/store/info")];
    for (index, call) in calls.into_iter().enumerate() {
        assert_eq!(
            send(&server, call, "acme-operator", &format!("denied-{index}"), Some(&json!({}))).await.status,
            403
        );
    }
    send(&server, ("POST", "/v1/runs"), "acme-operator", "wrong-last", Some(&json!({}))).await;
    for index in 0..calls.len() {
        let found = entry(&server, &format!("denied-{index}")).await;
        assert_eq!((found.outcome, found.count), (AuditOutcome::Denied, 1));
    }
    server.shutdown.trigger();
    let failed = wait_for("the mistakes to be counted", async || {
        let failed: Vec<_> =
            all(&server).await.into_iter().filter(|entry| entry.outcome == AuditOutcome::Failed).collect();
        (failed.iter().map(|entry| entry.count).sum::<u64>() == 126).then_some(failed)
    })
    .await;
    assert!(failed.iter().any(|entry| entry.count > 1), "one stands for several, and says how many");
}

/// An answer that repeats an earlier one changes nothing, and is not another change.
#[tokio::test]
async fn a_repeated_request_is_one_change() {
    let server = server().await;
    let mut body = start(endless());
    body["runRequestId"] = json!("same");
    assert_eq!(send(&server, ("POST", "/v1/runs"), "acme-operator", "first", Some(&body)).await.status, 201);
    assert_eq!(send(&server, ("POST", "/v1/runs"), "acme-operator", "second", Some(&body)).await.status, 200);
    let key = json!({"name": "k", "roles": ["viewer"]});
    let last = send(&server, ("POST", "/v1/keys"), "acme-admin", "last", Some(&key));
    assert_eq!(last.await.status, 201);
    entry(&server, "first").await;
    entry(&server, "last").await;
    assert!(all(&server).await.iter().all(|entry| entry.correlation_id != "second"));
}

/// Calls of a handler that never answers.
struct Hang;

#[async_trait]
impl Handlers for Hang {
    async fn call(&self, _call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        std::future::pending().await
    }
}

/// Hanging up in time is no way to act unseen.
#[tokio::test]
async fn a_caller_who_goes_away_leaves_an_entry() {
    let server = Server::with(Options { auth: keys(), handlers: Arc::new(Hang), ..Options::default() }).await;
    let spec = json!({"reach": {"kind": "inProcess"}});
    server.send(Method::PUT, "/v1/functions/f", "acme-developer", Some(&spec)).await;
    let request = server.request(Method::POST, "/2015-03-31/functions/f/invocations").bearer_auth("acme-operator");
    let request = request.header("x-correlation-id", "gone").body("{}").send();
    let mut request = Box::pin(request);
    let run = tokio::select! {
        answer = &mut request => panic!("{answer:?}"),
        run = wait_for("the run", async || {
            let runs = server.send(Method::GET, "/v1/runs", "acme-viewer", None).await;
            runs.json["items"][0]["runId"].as_str().map(str::to_owned)
        }) => run,
    };
    drop(request);
    let found = entry(&server, "gone").await;
    assert_eq!((found.action.as_str(), found.outcome), ("execution.start", AuditOutcome::Allowed), "the run is there");
    assert_eq!((found.reason.as_deref(), found.object_id), (Some("CALLER_GONE"), run));
}

/// The same for an entrypoint, whose run is there long before its caller has an answer.
#[tokio::test]
async fn a_synchronous_start_whose_caller_goes_away_is_one_that_was_made() {
    let server = server().await;
    let (path, start) = serverless(&server, "POST", &format!("{SERVERLESS}/invocations")).await;
    let mut start = start.unwrap();
    start["mode"] = json!("sync");
    let request = server.request(Method::POST, &path).bearer_auth("acme-operator").json(&start);
    let mut request = Box::pin(request.header("x-correlation-id", "gone").send());
    let run = tokio::select! {
        answer = &mut request => panic!("{answer:?}"),
        run = wait_for("the run", async || {
            let runs = server.send(Method::GET, &path, "acme-viewer", None).await;
            runs.json["items"][0]["invocation_id"].as_str().map(str::to_owned)
        }) => run,
    };
    drop(request);
    let found = entry(&server, "gone").await;
    assert_eq!((found.action.as_str(), found.outcome), ("invocation.start", AuditOutcome::Allowed));
    assert_eq!((found.reason.as_deref(), found.object_id), (Some("CALLER_GONE"), run));
}

/// SR-531, SR-532: what those who run the platform do to a tenant's entrypoint stands in that tenant's log.
#[tokio::test]
async fn what_the_platform_does_is_told_to_whom_it_concerns() {
    let server = server().await;
    let spec = json!({"reach": {"kind": "pull"}, "durable": false});
    server.send(Method::PUT, "/v1/functions/plain", "globex-developer", Some(&spec)).await;
    let document = definition_of("globex", crate::serverless::support::FUNCTION);
    let made =
        server.send(Method::POST, &format!("{SERVERLESS}/entrypoints"), "globex-developer", Some(&document)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("{SERVERLESS}/entrypoints/{}", made.json["id"].as_str().unwrap());
    let status = format!("{path}:status");
    let activate = json!({"action": "activate"});
    let platform = "acme-platform-admin";
    let rows = [("PUT", &path, Some(&document)), ("POST", &status, Some(&activate))];
    for (method, path, body) in rows {
        let answer = send(&server, (method, path), platform, &format!("platform-{method}"), body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let disable = json!({"action": "disable"});
    assert_eq!(send(&server, ("POST", &status), "globex-developer", "own", Some(&disable)).await.status, 200);
    assert_eq!(send(&server, ("DELETE", &path), platform, "platform-DELETE", None).await.status, 204);
    for correlation in ["platform-PUT", "platform-POST", "platform-DELETE", "own"] {
        let found = entry(&server, correlation).await;
        assert_eq!(found.tenant_id.as_str(), "globex", "{correlation}");
        assert_eq!(found.actor == platform, correlation != "own", "{correlation}: {}", found.actor);
    }
}

#[tokio::test]
async fn the_log_is_read_by_filter_and_page() {
    let server = server().await;
    let spec = json!({"reach": {"kind": "pull"}});
    for (tenant, name) in [("acme", "a"), ("acme", "b"), ("acme", "c"), ("globex", "d")] {
        let key = format!("{tenant}-developer");
        server.send(Method::PUT, &format!("/v1/functions/{name}"), &key, Some(&spec)).await;
    }
    server.send(Method::POST, "/v1/runs", "acme-viewer", Some(&json!({}))).await.is_problem("FORBIDDEN");
    wait_for("the refusal", async || (all(&server).await.len() == 5).then_some(())).await;
    let read = async |key: &str, query: &str| {
        let answer = server.send(Method::GET, &format!("/v1/audit?{query}"), key, None).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text);
        let items = answer.json["items"].as_array().unwrap().clone();
        (items, answer.json["nextCursor"].as_str().map(str::to_owned))
    };
    let count = async |key: &str, query: &str| read(key, query).await.0.len();
    assert_eq!(count("acme-admin", "").await, 4, "a tenant's own");
    assert_eq!(count("globex-admin", "").await, 1);
    assert_eq!(count("acme-platform-admin", "").await, 5);
    assert_eq!(count("acme-platform-admin", "tenantId=globex").await, 1);
    assert_eq!(count("acme-admin", "outcome=denied").await, 1);
    assert_eq!(count("acme-admin", "actor=acme-developer").await, 3);
    assert_eq!(count("acme-admin", "action=run.start").await, 1);
    assert_eq!(count("acme-admin", "object=b%3A1").await, 1);
    assert_eq!(count("acme-admin", "from=2100-01-01T00:00:00Z").await, 0);
    assert_eq!(count("acme-admin", "to=2100-01-01T00:00:00Z&from=2020-01-01T00:00:00Z").await, 4);
    let (first, cursor) = read("acme-admin", "limit=3&outcome=allowed").await;
    assert!(first.len() == 3 && cursor.is_none());
    let (first, cursor) = read("acme-admin", "limit=2&outcome=allowed").await;
    let cursor = cursor.unwrap();
    let (rest, end) = read("acme-admin", &format!("limit=2&outcome=allowed&cursor={cursor}")).await;
    assert!((first.len(), rest.len(), end.is_none()) == (2, 1, true));
    // A place in one list is none in another.
    for (key, query) in [
        ("acme-admin", "limit=2"),
        ("acme-admin", "outcome=denied"),
        ("globex-admin", "outcome=allowed"),
        ("acme-platform-admin", "outcome=allowed"),
    ] {
        let answer = server.send(Method::GET, &format!("/v1/audit?{query}&cursor={cursor}"), key, None).await;
        answer.is_problem("INVALID_CURSOR");
    }
    for query in ["outcome=maybe", "from=soon", "actor=", "colour=red", "limit=0"] {
        let answer = server.send(Method::GET, &format!("/v1/audit?{query}"), "acme-admin", None).await;
        answer.is_problem("INVALID_PARAMETER");
    }
    server.send(Method::GET, "/v1/audit?tenantId=globex", "acme-admin", None).await.is_problem("FORBIDDEN");
    server.send(Method::GET, "/v1/audit", "acme-developer", None).await.is_problem("FORBIDDEN");
}

/// Everything that is logged, at every level.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// S15, as far as keys go: secrets are in the one answer that made them, and nowhere else.
#[tokio::test]
async fn no_secret_shows_anywhere() {
    let captured = Captured::default();
    let writer = captured.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
    subscriber.try_init().unwrap();
    let server = server().await;
    let mut shown = String::new();
    let mut secrets = vec!["canary-payload-7f3a".to_owned(), "acme-admin-wrong-key".to_owned()];
    for kind in ["api", "access"] {
        let body = json!({"name": kind, "roles": ["developer"], "kind": kind});
        let answer = server.send(Method::POST, "/v1/keys", "acme-admin", Some(&body)).await;
        secrets.push(answer.json["secret"].as_str().unwrap().to_owned());
    }
    let secret = secrets[2].clone();
    let start = json!({"planId": "canary-payload-7f3a"});
    for (method, path, key) in [
        (Method::POST, "/v1/runs", secret.as_str()),
        (Method::GET, "/v1/store/info", &secret),
        (Method::POST, "/v1/keys", &secret),
        (Method::POST, "/v1/runs", "acme-admin-wrong-key"),
        (Method::GET, "/nowhere", &secret),
        (Method::PUT, "/v1/functions/f", &secret),
    ] {
        shown.push_str(&server.send(method, path, key, Some(&start)).await.text);
    }
    wait_for("the entries", async || (all(&server).await.len() >= 5).then_some(())).await;
    for path in ["/v1/keys", "/v1/audit?limit=1000", "/v1/audit?outcome=denied"] {
        shown.push_str(&server.send(Method::GET, path, "acme-platform-admin", None).await.text);
    }
    shown.push_str(&format!("{:?}", all(&server).await));
    let keys = server.runtime.engine().store().list_keys(&Scope::System, None, 100).await.unwrap();
    shown.push_str(&format!("{keys:?}"));
    let logged = String::from_utf8_lossy(&captured.0.lock().unwrap()).into_owned();
    assert!(logged.contains("answered"), "the log was captured: {}", logged.len());
    assert!(shown.contains("key.create") && shown.contains("acme-admin"), "there is something to search");
    for secret in secrets {
        assert!(!shown.contains(&secret), "an answer or an entry shows a secret");
        assert!(!logged.contains(&secret), "the log shows a secret");
    }
}
