//! S12 over a crash: the server dies between the durable start of a run and the answer. Whoever asks again under the same
//! `Idempotency-Key` gets that run, its recorded end, and nothing has happened twice.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::process::Servo;
use crate::support::until;

const ADDRESS: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~vendor.app.once.v1~";
const KEY: &str = "order-7";

/// A durable handler in this process, which outlives the server. Its result is the number of the call, so that a result of another call
/// would be seen.
struct Handler {
    url: String,
    calls: Arc<AtomicUsize>,
    gate: watch::Sender<bool>,
}

impl Handler {
    async fn start(open: bool) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (calls, (gate, opened)) = (Arc::new(AtomicUsize::new(0)), watch::channel(open));
        let counted = calls.clone();
        let router = Router::new().fallback(move || {
            let (number, mut opened) = (counted.fetch_add(1, Ordering::SeqCst) + 1, opened.clone());
            async move {
                let _ = opened.wait_for(|open| *open).await;
                json!({"Status": "SUCCEEDED", "Result": json!({"call": number}).to_string()}).to_string()
            }
        });
        #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, calls, gate }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// A client of whichever server there is.
#[derive(Clone)]
struct Caller(reqwest::Client);

impl Caller {
    fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self(reqwest::Client::builder().no_proxy().build().expect("a client without certificates of its own"))
    }

    async fn get(&self, url: &str, path: &str) -> Value {
        let answer = self.0.get(format!("{url}{path}")).send().await.expect("an answer");
        answer.json().await.expect("JSON")
    }

    /// `None` where nobody knows whether it was started.
    async fn start(&self, url: &str, mode: &str, key: &str, amount: u64) -> Option<(u16, Value)> {
        let body = json!({"entrypoint_id": ADDRESS, "mode": mode, "params": {"amount": amount}});
        let request = self.0.post(format!("{url}/api/serverless-runtime/v1/invocations"));
        let answer = request.header("idempotency-key", key).json(&body).send().await.ok()?;
        let status = answer.status().as_u16();
        let answer: Value = answer.json().await.ok()?;
        Some((status, answer))
    }

    async fn runs(&self, url: &str) -> u64 {
        let counts = self.get(url, "/api/serverless-runtime/v1/invocations:counts").await;
        counts["items"].as_array().expect("a list").iter().map(|item| item["count"].as_u64().expect("a number")).sum()
    }

    async fn until_ended(&self, url: &str, id: &str) -> Value {
        until(&format!("{id} to end"), async || {
            let record = self.get(url, &format!("/api/serverless-runtime/v1/invocations/{id}")).await;
            (record["status"] == "succeeded").then_some(record)
        })
        .await
    }
}

/// A folder with an entrypoint over the handler.
async fn prepare(folder: &Path, handler: &Handler) {
    let servo = Servo::dev(folder, &[]).expect("the server starts");
    let caller = Caller::new();
    let function = json!({"reach": {"kind": "push", "url": handler.url}, "durable": true});
    let put = caller.0.put(format!("{}/v1/functions/once", servo.url)).json(&function);
    assert!(put.send().await.expect("an answer").status().is_success());
    let definition = json!({
        "entrypoint_id": ADDRESS, "version": "1.0.0", "title": "Once",
        "owner": {"owner_type": "tenant", "id": "default", "tenant_id": "default"},
        "schema": {"params": {"type": "object"}, "returns": {"type": "object"}, "errors": []},
        "traits": {
            "invocation": {"supported": ["sync", "async"], "default": "async"},
            "limits": {"timeout_seconds": 60}, "retry": {"max_attempts": 3},
            "workflow": {"compensation": {}, "checkpointing": {"strategy": "automatic"}, "max_suspension_days": 1},
        },
        "implementation": {
            "adapter": "gts.x.core.serverless.adapter.lambda.v1~", "kind": "adapter_ref",
            "adapter_ref": {"definition_id": "once"},
        },
    });
    let entrypoints = format!("{}/api/serverless-runtime/v1/entrypoints", servo.url);
    let made = caller.0.post(&entrypoints).json(&definition).send().await.expect("an answer");
    let made: Value = made.json().await.expect("JSON");
    let id = made["id"].as_str().unwrap_or_else(|| panic!("{made}"));
    let activate = caller.0.post(format!("{entrypoints}/{id}:status")).json(&json!({"action": "activate"}));
    assert!(activate.send().await.expect("an answer").status().is_success());
    assert!(servo.stop().success());
}

/// What a healthy server says to the same request, and again, and to another one. Gives the status of the first answer.
async fn repeats(url: &str, mode: &str, case: &str) -> u16 {
    let caller = Caller::new();
    let start =
        async |key: &str, amount: u64| caller.start(url, mode, key, amount).await.expect("a healthy server answers");
    let (found, first) = start(KEY, 1).await;
    assert!(matches!(found, 200 | 201), "{case}: {found} {first}");
    let id = first["record"]["id"].as_str().unwrap_or_else(|| panic!("{case}: {first}"));
    let ended = caller.until_ended(url, id).await;
    if mode == "sync" {
        assert_eq!(first["record"], ended, "{case}");
    }
    for _ in 0..2 {
        let (status, again) = start(KEY, 1).await;
        assert_eq!((status, &again["record"]), (200, &ended), "{case}: the stored answer");
    }
    let (status, other) = start(KEY, 2).await;
    assert_eq!(status, 422, "{case}: other params under the same key: {other}");
    assert_eq!(caller.runs(url).await, 1, "{case}");
    let events = caller.get(url, &format!("/v1/runs/{id}/events?limit=200")).await;
    let of = |kind: &str| {
        let events = events["events"].as_array().expect("a list").iter();
        events.filter(|event| event["eventType"] == kind).count()
    };
    assert_eq!((of("ExecutionStarted"), of("ExecutionEnded")), (1, 1), "{case}: recorded once: {events}");
    found
}

/// The control: it is the key that makes them one.
async fn another_key_is_another_run(url: &str) {
    let caller = Caller::new();
    let (status, other) = caller.start(url, "sync", "another", 1).await.expect("a healthy server answers");
    assert_eq!((status, caller.runs(url).await), (201, 2), "{other}");
}

/// S12: kill -9 while somebody waits for the answer, and the run is recorded: its handler has been called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_between_a_start_and_its_answer_starts_nothing_twice() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let handler = Handler::start(false).await;
    prepare(folder.path(), &handler).await;
    let servo = Servo::dev(folder.path(), &[]).expect("the server starts");
    let (caller, url) = (Caller::new(), servo.url.clone());
    let mut waiting = tokio::task::JoinSet::new();
    waiting.spawn(async move { caller.start(&url, "sync", KEY, 1).await });
    until("the handler's call", async || (handler.calls() == 1).then_some(())).await;
    servo.kill();
    assert_eq!(waiting.join_next().await.expect("one").expect("it ends"), None, "nobody was answered");
    handler.gate.send_replace(true);
    let servo = Servo::dev(folder.path(), &[]).expect("the server starts again");
    assert_eq!(repeats(&servo.url, "sync", "kill -9").await, 200, "it was recorded before");
    assert_eq!(handler.calls(), 2, "the call that died with the server is made again, and no other");
    another_key_is_another_run(&servo.url).await;
    assert!(servo.stop().success());
}

/// The same at the appends of the run, before they are durable and after.
#[cfg(feature = "sabotage")]
mod points {
    use std::path::Path;

    use super::{Caller, Handler, KEY, another_key_is_another_run, prepare, repeats};
    use crate::crash::points::died;
    use crate::support::process::Servo;

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).expect("a folder");
        for entry in std::fs::read_dir(from).expect("a folder") {
            let entry = entry.expect("an entry");
            let target = to.join(entry.file_name());
            if entry.file_type().expect("a type").is_dir() {
                copy(&entry.path(), &target);
            } else {
                std::fs::copy(entry.path(), target).expect("a copy");
            }
        }
    }

    /// What came of a start under an armed server.
    enum Fate {
        /// The server died before the start.
        Early,
        /// Nobody was answered; the status of the same request afterwards.
        Unanswered(u16),
        Answered,
    }

    async fn start_at(prepared: &Path, handler: &Handler, point: &str, nth: u64, mode: &str) -> Fate {
        let (folder, armed) = (tempfile::tempdir().expect("a temporary folder"), format!("{point}:{nth}"));
        copy(prepared, folder.path());
        let Ok(servo) = Servo::dev(folder.path(), &[("SERVO_CRASHPOINT", &armed)]) else { return Fate::Early };
        let before = handler.calls();
        if Caller::new().start(&servo.url, mode, KEY, 1).await.is_some() {
            return Fate::Answered;
        }
        died(servo, point).await;
        let servo = Servo::dev(folder.path(), &[]).expect("the server starts after the crash");
        let case = format!("{armed} {mode}");
        let status = repeats(&servo.url, mode, &case).await;
        let calls = handler.calls() - before;
        // What is durable is not done again; a result that is not, its handler gives once more.
        let most = if point.ends_with("after_commit") { 1 } else { 2 };
        assert!((1..=most).contains(&calls), "{case}: {calls} calls");
        another_key_is_another_run(&servo.url).await;
        assert!(servo.stop().success());
        Fate::Unanswered(status)
    }

    /// One append after the other, until an answer comes. Says how many died unanswered before and after the start was durable.
    async fn lane(prepared: &Path, handler: &Handler, point: &str, mode: &str) -> (usize, usize) {
        let (mut nth, mut lost, mut kept) = (1, 0, 0);
        loop {
            match start_at(prepared, handler, point, nth, mode).await {
                Fate::Early => {}
                Fate::Unanswered(201) => lost += 1,
                Fate::Unanswered(_) => kept += 1,
                Fate::Answered => return (lost, kept),
            }
            nth += 1;
            assert!(nth < 40, "{point} {mode}: the start is never answered");
        }
    }

    /// S12
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn crash_at_the_appends_of_a_start_makes_one_run() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let handler = Handler::start(true).await;
        prepare(folder.path(), &handler).await;
        for (point, mode) in [
            ("sqlite.append.after_commit", "sync"),
            ("sqlite.append.after_commit", "async"),
            ("sqlite.append.before_commit", "sync"),
        ] {
            let (mut lost, mut kept) = (0, 0);
            // What a server appends by itself when it starts moves the others by one now and then.
            for _ in 0..6 {
                let crashes = lane(folder.path(), &handler, point, mode).await;
                (lost, kept) = (lost + crashes.0, kept + crashes.1);
                if kept > 0 {
                    break;
                }
            }
            println!("{point} {mode}: {lost} crashes before the start was durable, {kept} between that and the answer");
            assert!(kept > 0, "{point} {mode}: no crash was between the start and its answer");
        }
    }
}
