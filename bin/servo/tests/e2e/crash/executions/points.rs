//! R3 for executions: the server aborts at the appends of one execution, before the commit and after it. Each time the next
//! server brings the execution to the same end.
#![cfg(feature = "sabotage")]

use std::sync::Arc;

use tokio::sync::watch;

use super::api;
use super::check::check;
use super::ledger::Ledger;
use super::worker::{Op, Program, Worker};
use crate::support::process::Servo;
use crate::support::{PATIENCE, size};

fn program() -> Program {
    let ops = vec![Op::Step(0), Op::Map(2), Op::Wait, Op::Callback, Op::Call];
    Program { name: "all".to_owned(), ops }
}

/// Whether the server died before the execution had ended.
async fn crashes_at(point: &str, nth: u64) -> bool {
    let armed = format!("{point}:{nth}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let servo = Servo::dev(folder.path(), &[]).expect("the server starts");
    let (address, server) = watch::channel(servo.url.clone());
    let (_open, gate) = watch::channel(true);
    let ledger = Arc::new(Ledger::default());
    let handlers = Worker::start(ledger.clone(), server, gate).await;
    api::register(&servo.url, &handlers).await;
    assert!(servo.stop().success());

    let (program, http) = (program(), api::client());
    let mut died = true;
    // An early point is reached by the start itself.
    if let Ok(mut servo) = Servo::dev(folder.path(), &[("SERVO_CRASHPOINT", armed.as_str())]) {
        address.send_replace(servo.url.clone());
        let arn = api::start(&http, &servo.url, &program).await;
        died = loop {
            if servo.has_ended() {
                break true;
            }
            if let Some(arn) = &arn
                && let Some(execution) = api::get(&http, &servo.url, arn, "").await
                && execution["Status"] != "RUNNING"
            {
                break false;
            }
            let mut pause = tokio::time::interval(std::time::Duration::from_millis(10));
            pause.tick().await;
            pause.tick().await;
        };
    }
    let servo = Servo::dev(folder.path(), &[]).expect("the server starts after the crash");
    address.send_replace(servo.url.clone());
    let arn = api::start(&http, &servo.url, &program).await.expect("a healthy server starts it, or knows it");
    let mut findings = check(&servo.url, &arn, &program, &ledger, PATIENCE).await;
    findings.extend(ledger.findings());
    assert!(findings.is_empty(), "{armed}: {findings:#?}");
    died
}

/// From `first` on, until the execution ends before its crash comes. Says how many crashes there were.
async fn lane(point: &str, first: u64) -> usize {
    // In full every append, else some.
    let every = if size(0, 100) == 100 { 1 } else { 4 };
    let (mut nth, mut crashes) = (first, 0);
    while crashes_at(point, nth).await {
        nth += every;
        crashes += 1;
    }
    crashes
}

/// DX-050, DX-093: an execution with something of everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_at_the_appends_of_an_execution_changes_nothing() {
    let crashes = tokio::join!(lane("sqlite.append.before_commit", 1), lane("sqlite.append.after_commit", 3));
    println!("crashes before and after the commit: {crashes:?}");
    assert!(crashes.0 >= 4 && crashes.1 >= 4, "too few to be worth it: {crashes:?}");
}
