//! R14: two servers, one authority, and pauses longer than the lease. No write of a paused scheduler is taken once the
//! authority has passed on.

use std::time::Duration;

use serde_json::{Value, json};

use super::check::{Entry, Ledger, check};
use crate::support::api::{Api, Start};
use crate::support::dice::Dice;
use crate::support::postgres::{LEASE_MS, configuration};
use crate::support::process::Servo;
use crate::support::{full, until, variable};

/// Owners of the authority and the workers that were handed work, in the order of the log.
async fn history(api: &Api, url: &str) -> Vec<Value> {
    let mut events = Vec::new();
    let mut after = "cursor-0".to_owned();
    loop {
        let (_, page) = api.get(url, &format!("/runtime/events?after={after}&limit=1000")).await.expect("events");
        events.extend(page["events"].as_array().cloned().unwrap_or_default());
        let next = page["next"].as_str().expect("a cursor").to_owned();
        if next == after {
            return events;
        }
        after = next;
    }
}

/// Every hand-over was made by the owner of that moment.
fn interleavings(events: &[Value]) -> Vec<String> {
    let mut owner = String::new();
    let mut findings = Vec::new();
    for event in events {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str() {
            Some("AuthorityAcquired") => owner = text("owner"),
            Some("AuthorityRenewed") if text("owner") != owner => {
                findings.push(format!("{} renewed the authority of {owner}", text("owner")));
            }
            Some("worker.assigned") if text("worker") != owner => {
                findings.push(format!("{} handed out work under the authority of {owner}", text("worker")));
            }
            _ => {}
        }
    }
    findings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_pause_of_the_holder_never_lets_a_stale_scheduler_write() {
    let pauses = if full() { 1_000 } else { 10 };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let admin = variable("SERVO_TEST_POSTGRES_URL");
    let config = configuration(folder.path(), &admin, &format!("servo_pause_{}", std::process::id()));
    let servers = [Servo::server(&config, &[]), Servo::server(&config, &[])].map(|s| s.expect("it starts"));
    let (api, mut dice, mut ledger) = (Api::new(), Dice::new(14), Ledger::default());
    let steps =
        json!([{"stepId": "a", "with": {"sleepMs": 30}}, {"stepId": "b", "dependsOn": ["a"], "with": {"sleepMs": 30}}]);
    let plan = json!({"planId": "pause", "planVersion": "1", "schemaVersion": "v1", "steps": steps});
    let mut takeovers = 0;
    for round in 0..pauses {
        let stopped = usize::try_from(dice.below(2)).unwrap_or(0);
        let awake = &servers[1 - stopped];
        let before = owner(&api, &awake.url).await;
        servers[stopped].signal("STOP");
        let request_id = format!("request-{round}");
        let acked = until("a start on the server that is awake", async || {
            match api.start(&awake.url, &request_id, &plan).await {
                Start::Acked { run_id, .. } => Some(run_id),
                Start::Unknown => None,
                Start::Refused(status, text) => panic!("{status} {text}"),
            }
        })
        .await;
        ledger.requests.insert(request_id, Entry { plan: plan.clone(), acked: Some(acked.clone()) });
        // The run ends only on a server that holds the authority: the one that is awake.
        until("the run's end", async || {
            let (_, snapshot) = api.get(&awake.url, &format!("/v1/runs/{acked}")).await?;
            (snapshot["status"] == "COMPLETED").then_some(())
        })
        .await;
        takeovers += usize::from(owner(&api, &awake.url).await != before);
        servers[stopped].signal("CONT");
        let pause = Duration::from_millis(dice.below(LEASE_MS));
        let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
    }
    let findings = check(&api, &servers[0].url, &ledger).await;
    assert!(findings.is_empty(), "{findings:#?}");
    let events = history(&api, &servers[0].url).await;
    let findings = interleavings(&events);
    assert!(findings.is_empty(), "{findings:#?}");
    println!("{pauses} pauses, {takeovers} take-overs");
    assert!(takeovers > 0, "the holder was never paused: the campaign proved nothing");
    for server in servers {
        server.stop();
    }
}

async fn owner(api: &Api, url: &str) -> String {
    until("an owner", async || {
        let (_, snapshot) = api.get(url, "/runtime/snapshot").await?;
        let authority = &snapshot["authority"];
        (authority["stale"] == false).then(|| authority["owner"].as_str().map(str::to_owned)).flatten()
    })
    .await
}

/// The control of `interleavings`: a history with a stale hand-over is noticed.
#[test]
fn crash_pause_control_notices_a_stale_hand_over() {
    let history = [
        json!({"event": "AuthorityAcquired", "owner": "a"}),
        json!({"event": "worker.assigned", "worker": "a"}),
        json!({"event": "AuthorityAcquired", "owner": "b"}),
        json!({"event": "worker.assigned", "worker": "a"}),
    ];
    assert_eq!(interleavings(&history[..3]), Vec::<String>::new());
    assert_eq!(interleavings(&history).len(), 1);
}
