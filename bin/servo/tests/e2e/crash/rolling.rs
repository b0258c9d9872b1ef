//! R12: an upgrade and the way back, under load. The server is stopped in order and started again as the other of two programs, on
//! the same store. Without a release before this one both are the same program, and it is shown that a stop loses nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use super::campaign::Campaign;
use super::check::{Ledger, check};
use super::kill;
use crate::support::api::Api;
use crate::support::process::{Servo, this_program};
use crate::support::{optional, size};

const CLIENTS: usize = 8;

/// The program of the release before this one, if there is one.
fn previous() -> PathBuf {
    optional("SERVO_TEST_PREVIOUS").map_or_else(this_program, PathBuf::from)
}

/// R12. What the older program records the newer one goes on with, and the other way round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_rolling_between_two_programs_loses_nothing() {
    let (changes, runs) = (size(6, 200), size(60, 4_000));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let programs = [previous(), this_program()];
    let start = |which: usize| Servo::dev_of(&programs[which % 2], folder.path()).expect("the server starts");
    let servo = start(0);
    let place = Campaign::new(&servo, 12, runs);
    let (ledger, unknown) = (Arc::new(Mutex::new(Ledger::default())), Arc::new(AtomicUsize::new(0)));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(kill::run(place.client(number), ledger.clone(), unknown.clone()));
    }
    let next = |servo: Servo, time: usize| {
        assert!(servo.stop().success(), "a clean stop under load");
        start(time + 1)
    };
    let servo = place.replace(servo, changes, Duration::from_millis(300), next).await;
    while let Some(ended) = clients.join_next().await {
        ended.expect("a client");
    }
    let ledger = ledger.lock().await;
    let findings = check(&Api::new(), &servo.url, &ledger).await;
    let acked = ledger.requests.values().filter(|entry| entry.acked.is_some()).count();
    assert!(servo.stop().success(), "a clean stop");
    let unknown = unknown.load(Ordering::Relaxed);
    println!("{changes} changes, {acked} acknowledged starts, {unknown} unknown, {} findings", findings.len());
    assert!(findings.is_empty(), "{findings:#?}");
    assert!(acked >= runs, "the campaign must have worked: {acked} of {runs}");
}
