//! R8: the database itself dies, again and again, under load. Nothing acknowledged is lost, nothing is recorded twice.

#[cfg(feature = "sabotage")]
mod points;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use super::check::{Entry, Ledger, check};
use crate::support::api::{Api, Start, random_plan};
use crate::support::cluster::Cluster;
use crate::support::dice::Dice;
use crate::support::postgres::configuration;
use crate::support::process::Servo;
use crate::support::size;

struct Report {
    requests: usize,
    findings: Vec<String>,
}

/// Clients start runs while the database is killed and started again; then it heals and is checked.
async fn campaign(restarts: usize, sabotage: Option<&str>) -> Report {
    let variables: Vec<(&str, &str)> = sabotage.map(|name| ("SERVO_SABOTAGE", name)).into_iter().collect();
    let cluster = Cluster::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = configuration(folder.path(), &cluster.url(), "servo_restarts");
    let servo = Servo::server(&config, &variables).expect("it starts");
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..4u64 {
        let (url, ledger, stop) = (servo.url.clone(), ledger.clone(), stop.clone());
        clients.spawn(async move {
            let (api, mut dice, mut count) = (Api::new(), Dice::new(number), 0);
            while !stop.load(Ordering::Relaxed) {
                count += 1;
                let request_id = format!("request-{number}-{count}");
                let plan = random_plan(&mut dice);
                let entry = Entry { plan: plan.clone(), acked: None };
                ledger.lock().await.requests.insert(request_id.clone(), entry);
                // An unknown outcome is tried again under the same id, as a careful client does.
                while let Start::Unknown = {
                    let outcome = api.start(&url, &request_id, &plan).await;
                    if let Start::Acked { run_id, .. } = &outcome
                        && let Some(entry) = ledger.lock().await.requests.get_mut(&request_id)
                    {
                        entry.acked = Some(run_id.clone());
                    }
                    assert!(!matches!(outcome, Start::Refused(..)), "{outcome:?}");
                    outcome
                } {}
            }
        });
    }
    let mut dice = Dice::new(8);
    for _ in 0..restarts {
        let pause = Duration::from_millis(100 + dice.below(400));
        let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
        tokio::task::block_in_place(|| cluster.ctl("restart", "immediate"));
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.expect("a client");
    }
    let ledger = ledger.lock().await;
    let findings = check(&Api::new(), &servo.url, &ledger).await;
    servo.stop();
    Report { requests: ledger.requests.len(), findings }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_of_the_database_loses_nothing_and_doubles_nothing() {
    let restarts = size(6, 500);
    let Report { requests, findings } = campaign(restarts, None).await;
    println!("{restarts} restarts, {requests} requests, {} findings", findings.len());
    assert!(findings.is_empty(), "{findings:#?}");
    assert!(requests > restarts, "the campaign must have worked");
}

/// The control: commits that are answered before they are on disk are lost with the database, and the checker must say so.
#[cfg(feature = "sabotage")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_of_the_database_control_finds_answers_before_the_disk() {
    for _ in 0..3 {
        let Report { requests, findings } = campaign(6, Some("asynchronous-commit")).await;
        let lost = findings.iter().filter(|finding| finding.contains("started again")).count();
        println!("{lost} of {requests} requests were lost");
        if lost > 0 {
            return;
        }
    }
    panic!("commits that are not on disk went unnoticed");
}
