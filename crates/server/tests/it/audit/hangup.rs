//! Whoever hangs up changes nothing about what the log says: an action that has begun is finished and told as it ended, and one
//! whose body has not come whole is not done.

use std::sync::Arc;
use std::time::Duration;

use servo_model::TenantId;
use servo_store::testkit::faulty::Plan;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::roles::LAMBDA;

/// Within which anything happens that is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);

/// The call of the store with which each kind of change is done, or which is made on the way to it.
const CALLS: [(&str, &str); 27] = [
    ("run.start", "append"),
    ("run.import", "import_run"),
    ("run.signal", "append"),
    ("run.terminate", "append"),
    ("run.delete", "delete_run"),
    ("function.publish", "put_function"),
    ("function.alias", "put_alias"),
    ("function.alias.remove", "remove_alias"),
    ("function.remove", "remove_function"),
    ("key.create", "put_key"),
    ("key.revoke", "revoke_key"),
    ("dead-letter.redrive", "redrive"),
    ("store.verify", "integrity"),
    ("store.retention", "retire"),
    ("runtime.command", "append"),
    ("entrypoint.register", "put_entrypoint"),
    ("entrypoint.update", "update_entrypoint"),
    ("entrypoint.delete", "remove_entrypoint"),
    ("entrypoint.activate", "update_entrypoint"),
    ("invocation.start", "append"),
    ("invocation.bulk", "list_runs"),
    ("invocation.cancel", "append"),
    ("invocation.signal", "append"),
    ("execution.start", "append"),
    ("execution.stop", "append"),
    ("callback.succeed", "append"),
    ("callback.fail", "append"),
];

struct World {
    server: Server,
    plan: Plan,
    handlers: Arc<Obedient>,
}

impl World {
    async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let (plan, handlers) = (Plan::new(), Arc::new(Obedient::default()));
        let mut options = Options {
            auth: keys(),
            loopback: false,
            handlers: handlers.clone(),
            store_plan: Some(plan.clone()),
            ..Options::default()
        };
        change(&mut options);
        Self { server: Server::with(options).await, plan, handlers }
    }

    /// Every kind of change: its name, method and path, and the lowest role that may make it.
    fn changes() -> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static str)> {
        let own = TABLE.into_iter().filter_map(|(method, path, role, action)| Some((action?, method, path, role?)));
        let lambda = LAMBDA.into_iter().map(|(method, path, role, action)| (action, method, path, role));
        own.chain(lambda).filter(|(action, ..)| {
            // What changes nothing, or is in the run's own log, and what the store in memory does not do.
            !action.ends_with(".read")
                && !["execution.checkpoint", "callback.heartbeat", "store.backup"].contains(action)
        })
    }

    /// What makes such a change succeed.
    async fn request(&self, method: &str, path: &str) -> (String, Option<String>) {
        if !path.starts_with("/20") {
            let (target, body) = body(&self.server, method, path).await;
            return (target, body.map(|body| body.as_str().map_or_else(|| body.to_string(), str::to_owned)));
        }
        let spec = json!({"reach": {"kind": "inProcess"}, "durable": true});
        let answer = self.server.send(Method::PUT, "/v1/functions/waits", "acme-developer", Some(&spec)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let invoke = "/2015-03-31/functions/waits/invocations";
        if path.ends_with("/invocations") {
            return (invoke.to_owned(), Some(r#"{"do":"hang"}"#.to_owned()));
        }
        let (arn, callback) = self.waiting(invoke).await;
        let target = path.replace("{arn}", &escaped(&arn)).replace("{id}", &escaped(&callback));
        (target, path.ends_with("/succeed").then(|| "\"yes\"".to_owned()))
    }

    /// An execution that hangs, and a callback that it waits for.
    async fn waiting(&self, invoke: &str) -> (String, String) {
        let request = self.server.request(Method::POST, invoke).bearer_auth("acme-operator");
        let begun = request.header("x-amz-invocation-type", "Event").body(r#"{"do":"hang"}"#).send().await.unwrap();
        assert_eq!(begun.status(), 202);
        let arn = begun.headers()["x-amz-durable-execution-arn"].to_str().unwrap().to_owned();
        let envelope = wait_for("the handler to be called", async || {
            self.handlers.hanging().into_iter().find(|envelope| envelope["DurableExecutionArn"] == arn.as_str())
        })
        .await;
        let update = json!({"Id": "1", "Type": "CALLBACK", "Action": "START", "Name": "approval",
            "CallbackOptions": {"TimeoutSeconds": 3_600}});
        let body = json!({"CheckpointToken": envelope["CheckpointToken"], "Updates": [update]});
        let path = format!("/2025-12-01/durable-executions/{}/checkpoint", escaped(&arn));
        let answer = self.server.request(Method::POST, &path).bearer_auth("acme-operator").json(&body).send().await;
        let answer: Value = answer.unwrap().json().await.unwrap();
        let operations = answer["NewExecutionState"]["Operations"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let id = operations.iter().find_map(|operation| operation["CallbackDetails"]["CallbackId"].as_str());
        (arn, id.unwrap_or_else(|| panic!("no callback in {answer}")).to_owned())
    }

    async fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.server.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }
}

fn escaped(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) { c.to_string() } else { format!("%{:02X}", u32::from(c)) }
    };
    text.chars().map(plain).collect()
}

/// A request as it goes over the wire.
fn raw(call: (&str, &str), key: &str, correlation: &str, body: Option<&str>) -> String {
    let length = body.map(|body| format!("content-length: {}\r\n", body.len())).unwrap_or_default();
    format!(
        "{} {} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\nx-correlation-id: {correlation}\r\n\
         content-type: application/json\r\n{length}\r\n{}",
        call.0,
        call.1,
        body.unwrap_or_default()
    )
}

/// Hangs up, and waits until the server has seen it.
async fn hang_up(mut stream: TcpStream) {
    // Where the answer is there already, the connection may be closed.
    let _ = stream.shutdown().await;
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the server keeps a connection whose caller has gone");
}

/// What the log says about each change whose caller hangs up once it is done, and before the handler knows: the changes that are
/// not told as what they are.
async fn untold(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    for (index, (action, method, path, role)) in World::changes().enumerate() {
        let call = CALLS.into_iter().find(|(name, _)| *name == action);
        let (_, call) = call.unwrap_or_else(|| panic!("{action} has no row: which call does it?"));
        let (target, body) = world.request(method, path).await;
        let correlation = format!("gone-{index}");
        let held = world.plan.hold(call);
        let request = raw((method, &target), &format!("acme-{role}"), &correlation, body.as_deref());
        let stream = world.send(request.as_bytes()).await;
        let reached = tokio::time::timeout(PATIENCE, held.reached()).await;
        assert!(reached.is_ok(), "{action} does not call {call}");
        hang_up(stream).await;
        held.release();
        let found = entry(&world.server, &correlation).await;
        let (outcome, reason) = (found.outcome, found.reason.as_deref());
        if (outcome, found.action.as_str(), reason) != (AuditOutcome::Allowed, action, Some("CALLER_GONE")) {
            wrong.push(format!("{action}: {found:?}"));
        }
        if path.contains('{') || path.ends_with("/keys") || path.ends_with("/runs") || path.ends_with("s/import") {
            assert!(outcome != AuditOutcome::Allowed || !found.object_id.is_empty(), "{action}: {found:?}");
        }
        if action == "key.create" {
            let made = world.server.runtime.engine().store().list_keys(&Scope::System, None, 100).await.unwrap();
            let named = made.iter().any(|key| key.id.as_str() == found.object_id);
            assert!(named, "the entry names the key that was made: {found:?}, {made:?}");
        }
    }
    wrong
}

/// SR-531, SR-532: hanging up is no way to act unseen, or to have what was done told as failed.
#[tokio::test]
async fn what_was_done_is_told_whoever_hangs_up() {
    let world = World::with(|_| {}).await;
    let wrong = untold(&world).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(CALLS.iter().all(|(action, _)| World::changes().any(|(known, ..)| known == *action)), "a row of no change");
}

/// The control: a handler that ends with its connection leaves entries that are not true.
#[cfg(feature = "sabotage")]
#[tokio::test]
async fn a_handler_that_ends_with_its_connection_is_found_out() {
    let world = World::with(|options| options.runtime.sabotage = Some("hang-up-drops".to_owned())).await;
    let wrong = untold(&world).await;
    assert!(wrong.len() > CALLS.len() / 2, "{}", wrong.join("\n"));
}

/// A start whose caller hangs up while it is recorded is there, and says so, however it was asked for.
#[tokio::test]
async fn a_synchronous_start_that_was_being_recorded_is_told() {
    let world = World::with(|_| {}).await;
    let (path, start) = serverless(&world.server, "POST", &format!("{SERVERLESS}/invocations")).await;
    let mut start = start.unwrap();
    start["mode"] = json!("sync");
    let held = world.plan.hold("append");
    let stream = world.send(raw(("POST", &path), "acme-operator", "gone", Some(&start.to_string())).as_bytes()).await;
    held.reached().await;
    hang_up(stream).await;
    held.release();
    let found = entry(&world.server, "gone").await;
    assert_eq!((found.action.as_str(), found.outcome), ("invocation.start", AuditOutcome::Allowed));
    let runs = world.server.send(Method::GET, &path, "acme-viewer", None).await;
    assert_eq!(runs.json["items"][0]["invocation_id"], found.object_id.as_str(), "{}", runs.text);
}

/// What was sent of a body is not taken for all of it: nothing is done, and the entry says so.
#[tokio::test]
async fn half_a_body_does_nothing() {
    let world = World::with(|_| {}).await;
    let mut tried = 0;
    for (index, (action, method, path, role)) in World::changes().enumerate() {
        let (target, body) = world.request(method, path).await;
        // Those without a body could be told to wait for one.
        let body = body.unwrap_or_else(|| "{}".to_owned());
        let reads_none = ["run.delete", "function.remove", "function.alias.remove", "key.revoke", "entrypoint.delete"]
            .contains(&action)
            || action.starts_with("store.");
        if reads_none {
            continue;
        }
        let key = format!("acme-{role}");
        let whole = raw((method, &target), &key, "x", Some(&body));
        let cut = &whole.as_bytes()[..whole.len() - 1];
        let chunked = whole.replace(&format!("content-length: {}", body.len()), "transfer-encoding: chunked");
        let (head, _) = chunked.split_once("\r\n\r\n").unwrap();
        // Nothing of a body that is to come in pieces; and a piece, without the end.
        let pieces = [format!("{head}\r\n\r\n"), format!("{head}\r\n\r\n{:x}\r\n{body}\r\n", body.len())];
        let requests = [cut, pieces[0].as_bytes(), pieces[1].as_bytes()];
        for (number, request) in requests.into_iter().enumerate() {
            let correlation = format!("cut-{index}-{number}");
            let request = String::from_utf8(request.to_vec()).unwrap();
            let request = request.replace("x-correlation-id: x", &format!("x-correlation-id: {correlation}"));
            let events = world.plan.record().len();
            let stream = world.send(request.as_bytes()).await;
            // Its body is being read as soon as its key was looked at; earlier there is nobody to say anything about.
            hang_up(stream).await;
            let calls = world.plan.record().split_off(events);
            let done = CALLS.into_iter().find(|(name, _)| *name == action).unwrap().1;
            // Other work of the server makes these calls, too.
            assert!(
                ["append", "list_runs"].contains(&done) || !calls.contains(&done),
                "{action} was done with half a body: {calls:?}"
            );
            let found = all(&world.server).await.into_iter().find(|entry| entry.correlation_id == correlation);
            let allowed = found.is_some_and(|entry| entry.outcome == AuditOutcome::Allowed);
            assert!(!allowed, "{action} was done with half a body");
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried}");
    // After a last one that is whole, no entry is on its way any more.
    let body = json!({"name": "last", "roles": ["viewer"]});
    assert_eq!(send(&world.server, ("POST", "/v1/keys"), "acme-admin", "last", Some(&body)).await.status, 201);
    world.server.shutdown.trigger();
    wait_for("entries of those who were cut short", async || {
        let cut: Vec<_> = all(&world.server).await;
        let cut: Vec<_> = cut.into_iter().filter(|entry| entry.correlation_id.starts_with("cut-")).collect();
        for found in &cut {
            assert_eq!(
                (found.outcome, found.reason.as_deref()),
                (AuditOutcome::Failed, Some("CALLER_GONE")),
                "{found:?}"
            );
        }
        (cut.iter().map(|entry| entry.count).sum::<u64>() > 40).then_some(())
    })
    .await;
}

/// A server that ends lets what has begun end first.
#[tokio::test]
async fn a_shutdown_waits_for_what_goes_on_without_its_caller() {
    let world = World::with(|options| options.runtime.shutdown_grace_ms = 600_000).await;
    let body = json!({"name": "k", "roles": ["viewer"]}).to_string();
    let held = world.plan.hold("put_key");
    let stream = world.send(raw(("POST", "/v1/keys"), "acme-admin", "gone", Some(&body)).as_bytes()).await;
    held.reached().await;
    hang_up(stream).await;
    world.server.shutdown.trigger();
    held.release();
    let found = entry(&world.server, "gone").await;
    assert_eq!((found.outcome, found.reason.as_deref()), (AuditOutcome::Allowed, Some("CALLER_GONE")));
}

/// What does not end within the grace period is told as something of which nobody knows, by the name of its object.
#[tokio::test]
async fn what_a_shutdown_cuts_is_told() {
    for hangs_up in [true, false] {
        let world = World::with(|_| {}).await;
        let body = json!({"name": "k", "roles": ["viewer"]}).to_string();
        let held = world.plan.hold("put_key");
        let stream = world.send(raw(("POST", "/v1/keys"), "acme-admin", "cut", Some(&body)).as_bytes()).await;
        held.reached().await;
        let stream = if hangs_up {
            hang_up(stream).await;
            None
        } else {
            Some(stream)
        };
        world.server.shutdown.trigger();
        let found = entry(&world.server, "cut").await;
        assert_eq!((found.outcome, found.reason.as_deref()), (AuditOutcome::Failed, Some("SHUTTING_DOWN")));
        let made = world.server.runtime.engine().store().list_keys(&Scope::System, None, 100).await.unwrap();
        assert!(made.iter().any(|key| key.id.as_str() == found.object_id), "{found:?}");
        drop((stream, held));
    }
}

/// Who hangs up again and again fills its own tenant's share, and gets no more done until something ends.
#[tokio::test]
async fn a_tenant_leaves_only_so_many_behind() {
    let world = World::with(|options| options.server.requests_max = 8).await;
    let acme = TenantId::parse("acme").unwrap();
    let body = json!({"name": "k", "roles": ["viewer"]}).to_string();
    let mut holds = Vec::new();
    for number in 0..2 {
        let held = world.plan.hold("put_key");
        let request = raw(("POST", "/v1/keys"), "acme-admin", &format!("left-{number}"), Some(&body));
        let stream = world.send(request.as_bytes()).await;
        held.reached().await;
        hang_up(stream).await;
        holds.push(held);
    }
    let key = json!({"name": "k", "roles": ["viewer"]});
    let refused = world.server.send(Method::POST, "/v1/keys", "acme-admin", Some(&key)).await;
    refused.is_problem("OVERLOADED");
    assert_eq!(world.server.send(Method::GET, "/v1/keys", "acme-admin", None).await.status, 200, "{acme} reads");
    assert_eq!(world.server.send(Method::POST, "/v1/keys", "globex-admin", Some(&key)).await.status, 201);
    for (number, held) in holds.into_iter().enumerate() {
        held.release();
        assert_eq!(entry(&world.server, &format!("left-{number}")).await.outcome, AuditOutcome::Allowed);
    }
    wait_for("room", async || {
        let answer = world.server.send(Method::POST, "/v1/keys", "acme-admin", Some(&key)).await;
        (answer.status == 201).then_some(())
    })
    .await;
}
