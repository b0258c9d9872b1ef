//! The relay on a real NATS server, which is stopped and started again under it.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod login;
mod server;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use servo_bus_nats::{Config, NatsBus};
use servo_runtime::{Bus, BusMessage};

use server::NatsServer;
use world::World;

/// Long enough for a loaded machine; reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}

/// Until the bus has found the server.
async fn until_connected(bus: &NatsBus) {
    while bus.publish(&[]).await.is_empty() && !bus.is_connected() {
        tokio::task::yield_now().await;
    }
}

/// The relay creates the stream with its first publication, which may come after the runs that it publishes have ended.
async fn stream_when_there(context: &async_nats::jetstream::Context) -> async_nats::jetstream::stream::Stream {
    loop {
        match context.get_stream("SERVO_EVENTS").await {
            Ok(stream) => return stream,
            // The server answers each question, so this asks no faster than it can say "not yet".
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Everything on the stream, until every wanted event has been seen: (run, sequence) to event id, in arrival order.
async fn consume(server: &NatsServer, wanted: usize) -> Vec<(String, u64, String)> {
    let client = within("connect", async_nats::connect(server.url())).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let stream = within("stream", stream_when_there(&context)).await;
    let consumer =
        stream.create_consumer(async_nats::jetstream::consumer::pull::OrderedConfig::default()).await.unwrap();
    let mut messages = consumer.messages().await.unwrap();
    let mut seen = Vec::new();
    let mut distinct = std::collections::BTreeSet::new();
    while distinct.len() < wanted {
        let message = within("message", messages.next()).await.unwrap().unwrap();
        let document: Value = serde_json::from_slice(&message.payload).unwrap();
        let run = document["runId"].as_str().unwrap().to_owned();
        let event_id = document["eventId"].as_str().unwrap().to_owned();
        if run == "_system" {
            continue;
        }
        distinct.insert(event_id.clone());
        seen.push((run, document["runSeq"].as_u64().unwrap(), event_id));
    }
    seen
}

fn assert_ordered_per_run(seen: &[(String, u64, String)]) {
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for (run, seq, _) in seen {
        let previous = last.insert(run, *seq).unwrap_or(0);
        assert!(*seq > previous, "run {run}: {seq} after {previous}");
    }
}

/// ES-080, ES-083, ES-084: the bus is real, its outage blocks no run, nothing is lost and each run's order is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_bus_loses_nothing_and_blocks_nobody() {
    let mut server = NatsServer::start();
    let bus = NatsBus::connect(Config::new(&server.url())).await.unwrap();
    let world = World::start(std::sync::Arc::new(bus)).await;
    for _ in 0..5 {
        within("run", world.run_to_end()).await;
    }
    let before = world.events().await;
    let seen = consume(&server, before.len()).await;
    assert_ordered_per_run(&seen);

    server.kill();
    for _ in 0..5 {
        within("run during the outage", world.run_to_end()).await;
    }
    server.start_again();
    let all = world.events().await;
    assert!(all.len() > before.len());
    let mut seen = consume(&server, all.len()).await;
    // A publication whose acknowledgement was lost may come twice, with the same event id.
    let mut ids = std::collections::BTreeSet::new();
    seen.retain(|(_, _, id)| ids.insert(id.clone()));
    assert_ordered_per_run(&seen);
    let mut delivered: Vec<_> = seen.iter().map(|(run, seq, _)| (run.clone(), *seq)).collect();
    delivered.sort();
    assert_eq!(delivered, all);
    world.stop().await;
}

/// A message that the server will never take is refused, and the next one passes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_too_large_is_refused_alone() {
    let server = NatsServer::start();
    let bus = NatsBus::connect(Config::new(&server.url())).await.unwrap();
    within("connection", until_connected(&bus)).await;
    let message = |size: usize| BusMessage {
        event_id: servo_model::EventId::from_u128(size as u128),
        tenant: servo_model::TenantId::default_tenant(),
        run_id: servo_model::RunId::parse("r").unwrap(),
        run_seq: 1,
        event_type: "RunQueued".to_owned(),
        document: "x".repeat(size),
    };
    let results = within("publish", bus.publish(&[message(10)])).await;
    assert!(results[0].is_ok(), "{results:?}");
    let results = within("publish", bus.publish(&[message(2_000_000)])).await;
    assert!(matches!(results[0], Err(servo_runtime::BusError::Refused(_))), "{results:?}");
    let results = within("publish", bus.publish(&[message(11)])).await;
    assert!(results[0].is_ok(), "{results:?}");
}
