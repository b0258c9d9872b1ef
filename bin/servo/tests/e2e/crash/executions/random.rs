//! R1, R13 and R15 for executions: kill -9 at random moments. What a handler was told stays so, no outcome is recorded twice,
//! nothing of a replaced invocation is recorded, and every wait ends. `moments` has the controls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use super::api;
use super::check::check;
use super::ledger::Ledger;
use super::worker::{Program, Worker};
use crate::support::dice::Dice;
use crate::support::process::Servo;
use crate::support::{PATIENCE, size};

const CLIENTS: usize = 12;

struct Report {
    executions: usize,
    invocations: u32,
    refused: usize,
    findings: Vec<String>,
}

/// The programs that were acknowledged, by their ARNs.
type Begun = Arc<Mutex<BTreeMap<String, Program>>>;

/// Clients run executions while the server is killed and started again; then it heals and everything is checked.
async fn campaign(seed: u64, kills: usize, least: usize) -> Report {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut servo = Servo::dev(folder.path(), &[]).expect("the server starts");
    let (address, server) = watch::channel(servo.url.clone());
    let ledger = Arc::new(Ledger::default());
    let (_open, gate) = watch::channel(true);
    let handlers = Worker::start(ledger.clone(), server.clone(), gate).await;
    api::register(&servo.url, &handlers).await;
    let (begun, stop, next) = (Begun::default(), Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let dice = Dice::new(seed ^ (number as u64 + 1) << 32);
        let (server, begun, stop) = (server.clone(), begun.clone(), stop.clone());
        clients.spawn(Client { server, begun, stop, next: next.clone(), least, dice }.run());
    }
    let mut dice = Dice::new(seed);
    for _ in 0..kills {
        let moment = Duration::from_micros(dice.below(200_000));
        let _ = tokio::time::timeout(moment, std::future::pending::<()>()).await;
        servo.kill();
        servo = Servo::dev(folder.path(), &[]).expect("the server starts again");
        address.send_replace(servo.url.clone());
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.expect("a client");
    }
    let begun = begun.lock().await;
    let mut findings = Vec::new();
    for (arn, program) in begun.iter() {
        if api::start(&api::client(), &servo.url, program).await.as_ref() != Some(arn) {
            findings.push(format!("{}: acknowledged before, but started again", program.name));
        }
        findings.extend(check(&servo.url, arn, program, &ledger, PATIENCE).await);
    }
    findings.extend(ledger.findings());
    let (invocations, refused) = ledger.counts();
    assert!(servo.stop().success(), "a clean stop");
    Report { executions: begun.len(), invocations, refused, findings }
}

struct Client {
    server: watch::Receiver<String>,
    begun: Begun,
    stop: Arc<AtomicBool>,
    next: Arc<AtomicUsize>,
    least: usize,
    dice: Dice,
}

impl Client {
    /// One execution after the other, each until it has ended or the kills are over.
    async fn run(mut self) {
        let http = api::client();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.least && self.stop.load(Ordering::Relaxed) {
                return;
            }
            let program = Program::random(format!("e{number}"), &mut self.dice);
            let arn = loop {
                let url = self.server.borrow_and_update().clone();
                match api::start(&http, &url, &program).await {
                    Some(arn) => break arn,
                    None => self.patient().await,
                }
            };
            self.begun.lock().await.insert(arn.clone(), program);
            while !self.stop.load(Ordering::Relaxed) {
                let url = self.server.borrow().clone();
                let execution = api::get(&http, &url, &arn, "").await;
                if execution.is_some_and(|execution| execution["Status"] != "RUNNING") {
                    break;
                }
                self.patient().await;
            }
        }
    }

    async fn patient(&mut self) {
        let _ = tokio::time::timeout(Duration::from_millis(30), self.server.changed()).await;
    }
}

/// R1, R13, R15 on SQLite. Prints the sizes: none in N kills means less than 3/N with 95 % confidence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_kill_leaves_executions_whole() {
    let (kills, least) = (size(15, 5_000), size(30, 10_000));
    let report = campaign(1, kills, least).await;
    println!(
        "{kills} kills, {} executions, {} invocations, {} calls of replaced ones refused, {} findings (rate below {:.4})",
        report.executions,
        report.invocations,
        report.refused,
        report.findings.len(),
        3.0 / kills as f64
    );
    assert!(report.findings.is_empty(), "seed 1: {:#?}", report.findings);
    assert!(report.executions >= least, "the campaign must have worked: {} of {least}", report.executions);
    assert!(report.invocations as usize > report.executions, "no kill met an invocation: the campaign proved nothing");
}
