//! R1: kill -9 at random moments. Nothing acknowledged is lost, nothing is recorded twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use super::campaign::{Campaign, Client};
use super::check::{Entry, Ledger, check};
use crate::support::api::{Api, Start, random_plan};
use crate::support::process::Servo;
use crate::support::size;

const CLIENTS: usize = 8;

struct Report {
    kills: usize,
    acked: usize,
    unknown: usize,
    findings: Vec<String>,
}

/// Clients start runs while the server is killed and started again; then it heals and is checked.
async fn campaign(seed: u64, kills: usize, runs: usize, sabotage: Option<&str>) -> Report {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let variables: Vec<(&str, &str)> = sabotage.map(|name| ("SERVO_SABOTAGE", name)).into_iter().collect();
    let start = || Servo::dev(folder.path(), &variables).expect("the server starts");
    let servo = start();
    let place = Campaign::new(&servo, seed, runs);
    let (ledger, unknown) = (Arc::new(Mutex::new(Ledger::default())), Arc::new(AtomicUsize::new(0)));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(run(place.client(number), ledger.clone(), unknown.clone()));
    }
    let servo = place.kill(servo, kills, Duration::from_millis(60), start).await;
    while clients.join_next().await.is_some() {}
    let ledger = ledger.lock().await;
    let findings = check(&Api::new(), &servo.url, &ledger).await;
    let acked = ledger.requests.values().filter(|entry| entry.acked.is_some()).count();
    assert!(servo.stop().success(), "a clean stop");
    Report { kills, acked, unknown: unknown.load(Ordering::Relaxed), findings }
}

/// Starts runs one after the other, each until it is acknowledged.
pub(super) async fn run(mut client: Client, ledger: Arc<Mutex<Ledger>>, unknown: Arc<AtomicUsize>) {
    let api = Api::new();
    while let Some(number) = client.next() {
        let request_id = format!("request-{number}");
        let plan = random_plan(&mut client.dice);
        let entry = Entry { plan: plan.clone(), acked: None };
        ledger.lock().await.requests.insert(request_id.clone(), entry);
        loop {
            let url = client.url();
            match api.start(&url, &request_id, &plan).await {
                Start::Acked { run_id, .. } => {
                    client.answered();
                    let mut ledger = ledger.lock().await;
                    if let Some(entry) = ledger.requests.get_mut(&request_id) {
                        entry.acked = Some(run_id);
                    }
                    break;
                }
                Start::Unknown => {
                    unknown.fetch_add(1, Ordering::Relaxed);
                    client.patient(Duration::from_millis(50)).await;
                }
                Start::Refused(status, text) => panic!("refused: {status} {text}"),
            }
        }
    }
}

/// R1 on SQLite. Prints the sizes: none in N kills means less than 3/N with 95 % confidence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_kill_loses_nothing_and_doubles_nothing() {
    let (kills, runs) = (size(60, 10_000), size(200, 20_000));
    let report = campaign(1, kills, runs, None).await;
    println!(
        "{} kills, {} acknowledged starts, {} unknown, {} findings (rate below {:.4} per kill at 95 %)",
        report.kills,
        report.acked,
        report.unknown,
        report.findings.len(),
        3.0 / report.kills as f64
    );
    assert!(report.findings.is_empty(), "seed 1: {:#?}", report.findings);
    assert!(report.acked >= runs, "the campaign must have worked: {} of {runs}", report.acked);
    assert!(report.unknown > 0, "no kill met a request: the campaign proved nothing");
}

/// The control: a store that answers before it commits loses acknowledged starts, and the checker must say so.
#[cfg(feature = "sabotage")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_kill_control_finds_answers_before_the_commit() {
    for seed in 0..3 {
        let report = campaign(seed, 40, 50, Some("ack-before-commit")).await;
        if !report.findings.is_empty() {
            return;
        }
    }
    panic!("a store that answers before it commits went unnoticed");
}
