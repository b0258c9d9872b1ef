//! Events on a real NATS server, which is killed under the real binary and comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use async_nats::jetstream;
use futures_util::StreamExt as _;
use serde_json::Value;

use crate::support::api::{Api, finished_run};
use crate::support::nats::NatsServer;
use crate::support::process::Servo;
use crate::support::{PATIENCE, until};

fn configuration(folder: &Path, nats_url: &str) -> PathBuf {
    let file = folder.join("servo.toml");
    let text = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[store]\nkind = \"sqlite\"\npath = {:?}\n[engines]\nmock = true\n\
         [bus]\nnats_url = \"{nats_url}\"\n[runtime]\npoll_ms = 50\n[runtime.outbox]\nbackoff_max_ms = 200\n",
        folder.join("data")
    );
    std::fs::write(&file, text).expect("a file");
    file
}

/// Reads the stream from its beginning until `wanted` different events of runs were seen: (run, sequence, event id).
async fn consume(url: &str, wanted: usize) -> Vec<(String, u64, String)> {
    let client = async_nats::connect(url).await.expect("the server is there");
    let context = jetstream::new(client);
    // The relay makes the stream with its first publication.
    let stream = until("the stream", async || context.get_stream("SERVO_EVENTS").await.ok()).await;
    let config = jetstream::consumer::pull::OrderedConfig::default();
    let consumer = stream.create_consumer(config).await.expect("a consumer");
    let mut messages = consumer.messages().await.expect("messages");
    let (mut seen, mut ids) = (Vec::new(), BTreeSet::new());
    while ids.len() < wanted {
        let next = tokio::time::timeout(PATIENCE, messages.next()).await;
        let message = next.expect("in time").expect("the stream goes on").expect("a message");
        let event: Value = serde_json::from_slice(&message.payload).expect("JSON");
        let text = |field: &str| event[field].as_str().expect("text").to_owned();
        let (run, id) = (text("runId"), text("eventId"));
        // The names of the system's own events have a dot inside.
        let ending = format!(".{}", text("eventType"));
        assert!(message.subject.as_str().ends_with(&ending), "{} for {ending}", message.subject);
        // A publication whose acknowledgement was lost may come again, under the same id.
        if run != "_system" && ids.insert(id.clone()) {
            seen.push((run, event["runSeq"].as_u64().expect("a number"), id));
        }
    }
    seen
}

/// What the API says of these runs, as the stream should have it: each run's events in their order.
async fn logged(url: &str, runs: &[String]) -> BTreeMap<String, Vec<(u64, String)>> {
    let mut logged = BTreeMap::new();
    for run in runs {
        let events = Api::new().events(url, run).await.expect("its events");
        let of_run = events.iter().map(|event| {
            (event["runSeq"].as_u64().expect("a number"), event["eventId"].as_str().expect("text").to_owned())
        });
        logged.insert(run.clone(), of_run.collect());
    }
    logged
}

fn by_run(seen: Vec<(String, u64, String)>) -> BTreeMap<String, Vec<(u64, String)>> {
    let mut runs: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for (run, seq, id) in seen {
        runs.entry(run).or_default().push((seq, id));
    }
    runs
}

/// ES-080, ES-083, ES-084: every event of every run arrives in its order, an outage of the bus blocks no run, and what
/// happened meanwhile arrives afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_reach_the_bus_in_order_also_after_its_outage() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut nats = NatsServer::start();
    let server = Servo::server(&configuration(folder.path(), &nats.url()), &[]).expect("it starts");
    let mut runs = Vec::new();
    for number in 0..3 {
        runs.push(finished_run(&server.url, &format!("before-{number}")).await);
    }
    let wanted = logged(&server.url, &runs).await;
    let count = |runs: &BTreeMap<String, Vec<(u64, String)>>| runs.values().map(Vec::len).sum();
    assert_eq!(by_run(consume(&nats.url(), count(&wanted)).await), wanted);

    nats.kill();
    for number in 0..3 {
        runs.push(finished_run(&server.url, &format!("during-{number}")).await);
    }
    let api = Api::new();
    until("the alert", async || {
        let (_, alerts) = api.get(&server.url, "/v1/alerts").await?;
        alerts.to_string().contains("EVENT_BUS_UNAVAILABLE").then_some(())
    })
    .await;
    nats.start_again();
    let wanted = logged(&server.url, &runs).await;
    assert_eq!(by_run(consume(&nats.url(), count(&wanted)).await), wanted);
    let (_, dead) = api.get(&server.url, "/v1/dead-letters").await.expect("an answer");
    assert_eq!(dead["items"].as_array().map(Vec::len), Some(0), "an outage is no reason to give an event up: {dead}");
    assert!(server.stop().success());
}

/// A server whose bus is not there starts and works, and delivers once the bus is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_without_its_bus_and_finds_it_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut nats = NatsServer::start();
    nats.kill();
    let server = Servo::server(&configuration(folder.path(), &nats.url()), &[]).expect("it starts");
    let runs = [finished_run(&server.url, "early").await];
    nats.start_again();
    let wanted = logged(&server.url, &runs).await;
    let events = wanted.values().map(Vec::len).sum();
    assert_eq!(by_run(consume(&nats.url(), events).await), wanted);
    assert!(server.stop().success());
}
