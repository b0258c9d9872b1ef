//! R1: kill -9 at random moments. Nothing acknowledged is lost, nothing is recorded twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify, watch};

use super::check::{Entry, Ledger, check};
use crate::support::api::{Api, Start, random_plan};
use crate::support::dice::Dice;
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
    let mut dice = Dice::new(seed);
    let mut servo = Servo::dev(folder.path(), &variables).expect("the server starts");
    let (address, _) = watch::channel(servo.url.clone());
    let address = Arc::new(address);
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let next = Arc::new(AtomicUsize::new(0));
    let unknown = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(Notify::new());
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let client = Client {
            address: address.subscribe(),
            ledger: ledger.clone(),
            next: next.clone(),
            unknown: unknown.clone(),
            stop: stop.clone(),
            answered: answered.clone(),
            dice: Dice::new(seed ^ (number as u64 + 1) << 32),
            runs,
        };
        clients.spawn(client.run());
    }
    for _ in 0..kills {
        // Every other kill, roughly, follows an answer at once: whatever was answered and is not on disk by then is lost.
        let pause = Duration::from_micros(dice.below(60_000));
        if dice.below(2) == 0 {
            let _ = tokio::time::timeout(Duration::from_secs(1), answered.notified()).await;
        } else {
            let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
        }
        servo.kill();
        servo = Servo::dev(folder.path(), &variables).expect("the server starts again");
        address.send_replace(servo.url.clone());
    }
    stop.store(true, Ordering::Relaxed);
    while clients.join_next().await.is_some() {}
    let ledger = ledger.lock().await;
    let findings = check(&Api::new(), &servo.url, &ledger).await;
    let acked = ledger.requests.values().filter(|entry| entry.acked.is_some()).count();
    assert!(servo.stop().success(), "a clean stop");
    Report { kills, acked, unknown: unknown.load(Ordering::Relaxed), findings }
}

struct Client {
    address: watch::Receiver<String>,
    ledger: Arc<Mutex<Ledger>>,
    next: Arc<AtomicUsize>,
    unknown: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    answered: Arc<Notify>,
    dice: Dice,
    runs: usize,
}

impl Client {
    /// Starts runs one after the other, each until it is acknowledged. Goes on past `runs` while there are kills to come.
    async fn run(mut self) {
        let api = Api::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.runs && self.stop.load(Ordering::Relaxed) {
                return;
            }
            let request_id = format!("request-{number}");
            let plan = random_plan(&mut self.dice);
            let entry = Entry { plan: plan.clone(), acked: None };
            self.ledger.lock().await.requests.insert(request_id.clone(), entry);
            loop {
                let url = self.address.borrow_and_update().clone();
                match api.start(&url, &request_id, &plan).await {
                    Start::Acked { run_id, .. } => {
                        self.answered.notify_waiters();
                        let mut ledger = self.ledger.lock().await;
                        if let Some(entry) = ledger.requests.get_mut(&request_id) {
                            entry.acked = Some(run_id);
                        }
                        break;
                    }
                    Start::Unknown => {
                        self.unknown.fetch_add(1, Ordering::Relaxed);
                        // The server is down: wait for its next address, unless it is there already.
                        let patience = Duration::from_millis(50);
                        let _ = tokio::time::timeout(patience, self.address.changed()).await;
                    }
                    Start::Refused(status, text) => panic!("refused: {status} {text}"),
                }
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
