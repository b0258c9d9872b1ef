//! Liveness, readiness, metrics, and the faults that only show there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::Method;
use serde_json::json;
use servo_model::Timestamp;
use servo_runtime::{Clock, SystemClock};
use servo_store::{Append, AuthorityChange};

use crate::harness::{Options, Server, keys, one_step, start};

/// RT-012: `/readyz` says what the contract says, with its reasons.
#[tokio::test]
async fn readiness_comes_from_the_contract() {
    let server = Server::start().await;
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status.as_u16(), &ready.json), (200, &json!({"ready": true, "reasons": []})));
    let store = server.runtime.engine().store();
    let row = store.authority().await.unwrap().unwrap();
    let resign = AuthorityChange::Resign { owner: row.owner, epoch: row.epoch };
    store.append(Append { authority: Some(resign), ..Append::default() }).await.unwrap();
    let blocked = server.get("/readyz").await;
    let snapshot = server.get("/runtime/snapshot").await.json;
    assert_eq!(blocked.status, 503);
    assert_eq!(blocked.json, snapshot["readiness"]);
    assert!(blocked.json["reasons"][0].as_str().unwrap().contains("resigned"), "{}", blocked.text);
    assert_eq!(server.get("/livez").await.text, "ok\n");
}

#[tokio::test]
async fn a_store_that_is_gone_makes_the_server_unready_and_says_no_more() {
    let server = Server::start().await;
    server.runtime.engine().store().close().await.unwrap();
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json, json!({"ready": false, "reasons": ["the store does not answer"]}));
    assert_eq!(server.get("/livez").await.status, 200);
    for path in
        ["/v1/runs", "/v1/runs/inv_x", "/v1/runs/inv_x/events", "/runtime/snapshot", "/v1/alerts", "/v1/store/info"]
    {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 503, "{path}");
        answer.is_problem("SHUTTING_DOWN");
    }
    server.post("/v1/runs", &start(one_step())).await.is_problem("SHUTTING_DOWN");
    assert_eq!(server.get("/metrics").await.status, 200, "metrics go on without the store");
}

#[tokio::test]
async fn a_stopping_server_is_not_ready() {
    let server = Server::start().await;
    server.runtime.engine().shutdown().trigger();
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json["reasons"], json!(["the server is stopping"]));
    server.post("/v1/runs", &start(one_step())).await.is_problem("SHUTTING_DOWN");
}

/// A clock that panics when a handler waits on it.
struct Tripwire(AtomicBool);

impl Clock for Tripwire {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // Only readiness waits so long.
        assert!(duration != Duration::from_secs(3) || !self.0.load(Ordering::SeqCst), "secret detail in src/lib.rs:7");
        SystemClock.sleep(duration)
    }
}

#[tokio::test]
async fn a_panic_is_a_fault_without_details() {
    let clock = Arc::new(Tripwire(AtomicBool::new(false)));
    let server = Server::with(Options { clock: clock.clone(), ..Options::default() }).await;
    assert_eq!(server.get("/readyz").await.status, 200);
    clock.0.store(true, Ordering::SeqCst);
    let answer = server.get("/readyz").await;
    assert_eq!(answer.status, 500);
    answer.is_problem("INTERNAL");
    assert!(!answer.text.contains("secret"), "{}", answer.text);
    clock.0.store(false, Ordering::SeqCst);
    assert_eq!(server.get("/readyz").await.status, 200, "the server goes on");
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let server = Server::start().await;
    let run = server.start_run(one_step()).await;
    server.finish(&run).await;
    server.get("/v1/nothing").await;
    let answer = server.get("/metrics").await;
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    // Metrics are the process's, and other tests may run in it: what counts is that they are there.
    for line in [
        "servo_dispatches{state=\"delivered\"} ",
        "servo_ready ",
        "servo_authority_held ",
        "servo_store_size_bytes ",
        "servo_outbox_retries ",
        "servo_attempts_total{outcome=\"success\"} ",
        "servo_http_requests_total{method=\"POST\",route=\"/v1/runs\",status=\"201\"} ",
        "servo_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"} ",
        "servo_http_request_duration_seconds_bucket{route=\"/v1/runs\",le=\"0.001\"} ",
        "# TYPE servo_http_request_duration_seconds histogram",
    ] {
        assert!(answer.text.contains(line), "no `{line}` in\n{}", answer.text);
    }
    assert!(!answer.text.contains(run.as_str()), "labels name no runs");
}

#[tokio::test]
async fn metrics_need_a_key_where_others_can_ask() {
    let server = Server::with(Options { auth: keys(), loopback: true, ..Options::default() }).await;
    assert_eq!(server.get("/metrics").await.status, 200);
    let server = Server::with(Options { auth: keys(), loopback: false, ..Options::default() }).await;
    assert_eq!(server.get("/metrics").await.status, 401);
    assert_eq!(server.send(Method::GET, "/metrics", "acme-viewer", None).await.status, 200);
}

#[tokio::test]
async fn the_front_page_and_the_version_say_who_this_is() {
    let server = Server::start().await;
    let version = server.get("/version").await.json;
    assert_eq!(version, json!({"name": "servo", "version": env!("CARGO_PKG_VERSION")}));
    let front = server.get("/").await;
    assert!(front.text.contains("/openapi.json") && front.text.contains("/metrics"));
}
