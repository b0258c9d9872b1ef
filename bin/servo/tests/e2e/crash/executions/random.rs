//! R1, R13 and R15 for executions: kill -9 at random moments. What a handler was told stays so, no outcome is recorded twice,
//! nothing of a replaced invocation is recorded, and every wait ends. `moments` has the controls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use super::api;
use super::check::check;
use super::ledger::Ledger;
use super::worker::{Program, Worker};
use crate::crash::campaign::{Campaign, Client};
use crate::support::process::Servo;
use crate::support::{PATIENCE, size};

const CLIENTS: usize = 12;
/// Between two looks of a client.
const PAUSE: Duration = Duration::from_millis(30);

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
    let start = || Servo::dev(folder.path(), &[]).expect("the server starts");
    let servo = start();
    let place = Campaign::new(&servo, seed, least);
    let ledger = Arc::new(Ledger::default());
    let (_open, gate) = watch::channel(true);
    let handlers = Worker::start(ledger.clone(), place.server(), gate).await;
    api::register(&servo.url, &handlers).await;
    let begun = Begun::default();
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(run(place.client(number), begun.clone()));
    }
    let servo = place.kill(servo, kills, Duration::from_millis(200), start).await;
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

/// One execution after the other, each until it has ended or the kills are over.
async fn run(mut client: Client, begun: Begun) {
    let http = api::client();
    while let Some(number) = client.next() {
        let program = Program::random(format!("e{number}"), &mut client.dice);
        let arn = loop {
            let url = client.url();
            match api::start(&http, &url, &program).await {
                Some(arn) => break arn,
                None => client.patient(PAUSE).await,
            }
        };
        client.answered();
        begun.lock().await.insert(arn.clone(), program);
        while !client.is_over() {
            let url = client.url();
            let execution = api::get(&http, &url, &arn, "").await;
            if execution.is_some_and(|execution| execution["Status"] != "RUNNING") {
                break;
            }
            client.patient(PAUSE).await;
        }
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
