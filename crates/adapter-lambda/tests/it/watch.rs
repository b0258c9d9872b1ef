//! What is noted about workers: silent, and heard again.

use std::time::Duration;

use servo_adapter::HandlerCall;
use servo_adapter_lambda::{Settings, WorkerCommand};
use servo_model::contract::RuntimeEvent;

use crate::broken::ask;
use crate::support::{Fixture, fixture, fixture_with, pull_call, soon, tenant, until};

fn stalled(address: std::net::SocketAddr, reason: &str) -> RuntimeEvent {
    RuntimeEvent::WorkerStalled { worker: format!("default/f at {address}"), reason: reason.to_owned() }
}

fn recovered(address: std::net::SocketAddr, recovery: &str) -> RuntimeEvent {
    RuntimeEvent::WorkerRecovered { worker: format!("default/f at {address}"), recovery: recovery.to_owned() }
}

async fn noted(fixture: &Fixture, expected: &[RuntimeEvent]) {
    until("as many are noted", || fixture.watch.all().len() >= expected.len()).await;
    assert_eq!(fixture.watch.all(), expected);
}

/// RT-016: a worker that does not answer in time is stalled, and recovered once it answers after all.
#[tokio::test]
async fn a_worker_past_its_deadline_is_stalled() {
    let fixture = fixture();
    let address = fixture.open().await;
    let slow = HandlerCall { timeout: Duration::from_millis(100), ..pull_call("r1") };
    let started = fixture.start(slow);
    let worker = soon(ask(address, "")).await;
    assert!(soon(started).await.unwrap().is_err());
    let silent = stalled(address, "did not answer in time, on r1");
    noted(&fixture, std::slice::from_ref(&silent)).await;
    assert_eq!(fixture.respond(address, "r1", "late").await, 400);
    noted(&fixture, &[silent, recovered(address, "answered")]).await;
    drop(worker);
}

/// RT-016: a worker that hung up and has not answered in time is stalled; the one that comes in its place is the recovery.
#[tokio::test]
async fn a_worker_that_hangs_up_is_stalled() {
    let fixture = fixture();
    let address = fixture.open().await;
    let started = fixture.start(HandlerCall { timeout: Duration::from_millis(200), ..pull_call("r1") });
    drop(soon(ask(address, "")).await);
    assert!(soon(started).await.unwrap().is_err());
    let silent = stalled(address, "closed its connection and did not answer in time, on r1");
    noted(&fixture, std::slice::from_ref(&silent)).await;
    let second = fixture.start(pull_call("r2"));
    let (id, _) = soon(fixture.next(address)).await;
    noted(&fixture, &[silent, recovered(address, "asks for work")]).await;
    assert_eq!(fixture.respond(address, &id, "done").await, 202);
    assert!(soon(second).await.unwrap().is_ok());
}

/// RT-016: a process that we keep running is stalled when it ends and recovered when the next one asks.
#[tokio::test]
async fn a_process_that_ends_is_stalled() {
    let settings = Settings { restart_first: Duration::from_millis(1), ..Settings::default() };
    let fixture = fixture_with(settings);
    let dir = tempfile::tempdir().unwrap();
    let (flag, gone) = (dir.path().join("die"), dir.path().join("gone"));
    // The second life stays.
    let text = format!(
        "[ -e {1} ] && exec sleep 600; while [ ! -e {0} ]; do sleep 0.01; done; touch {1}; exit 7",
        flag.display(),
        gone.display()
    );
    let command = WorkerCommand { args: vec!["-c".to_owned(), text], ..WorkerCommand::new("/bin/sh") };
    let address = fixture.handlers.supervise(&tenant(), "f", command).await.unwrap();
    let first = fixture.start(pull_call("r1"));
    assert_eq!(soon(fixture.next(address)).await.0, "r1");
    std::fs::write(&flag, "").unwrap();
    assert!(soon(first).await.unwrap().is_err());
    let silent = stalled(address, "exit status: 7");
    noted(&fixture, std::slice::from_ref(&silent)).await;
    let second = fixture.start(pull_call("r2"));
    assert_eq!(soon(fixture.next(address)).await.0, "r2");
    noted(&fixture, &[silent, recovered(address, "asks for work")]).await;
    assert_eq!(fixture.respond(address, "r2", "done").await, 202);
    assert!(soon(second).await.unwrap().is_ok());
    soon(fixture.handlers.stop()).await;
    assert_eq!(fixture.watch.all().len(), 2, "to stop is not to stall");
}

/// A call that nobody wants any more is no silence of its worker.
#[tokio::test]
async fn a_call_that_was_dropped_is_nobodys_fault() {
    let fixture = fixture();
    let address = fixture.open().await;
    let started = fixture.start(pull_call("r1"));
    let (id, _) = soon(fixture.next(address)).await;
    started.abort();
    assert!(soon(started).await.is_err());
    until("it is forgotten", || fixture.worker().in_flight == 0).await;
    assert_eq!(fixture.respond(address, &id, "late").await, 400);
    assert_eq!(fixture.watch.all(), []);
}
