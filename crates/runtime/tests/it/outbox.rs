//! The relay: the log reaches the bus at least once, in order, and a bus that is down or refuses is in nobody's way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_model::RunStatus;
use servo_model::alert::{AlertCode, Severity};
use servo_runtime::loops::relay;
use servo_sim::recorder::RecordingBus;
use servo_store::{Position, RelayStore};

use crate::world::World;

fn world(seed: u64, down: u64, refuse: u64) -> (World, Arc<RecordingBus>) {
    let bus = Arc::new(RecordingBus::new(seed, down, refuse));
    let shared = bus.clone();
    let world = World::with(seed, move |cluster| {
        cluster.config.outbox.attempts_max = 4;
        cluster.bus = shared;
    });
    (world, bus)
}

fn steps() -> serde_json::Value {
    json!([{"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}])
}

/// Every event of every run that the log holds was delivered.
fn assert_all_delivered(world: &World, bus: &RecordingBus) {
    let delivered: BTreeSet<_> = bus.delivered().into_iter().map(|delivery| delivery.event_id).collect();
    let missing: Vec<_> = world.log().into_iter().filter(|event| !delivered.contains(&event.event_id)).collect();
    let missing: Vec<_> = missing.iter().filter(|event| !event.run_id.is_system()).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

fn assert_ordered(bus: &RecordingBus) {
    let mut last = std::collections::BTreeMap::new();
    let mut seen = BTreeSet::new();
    for delivery in bus.delivered().into_iter().filter(|delivery| seen.insert(delivery.event_id)) {
        let before = last.insert(delivery.run_id.clone(), delivery.run_seq).unwrap_or(0);
        assert!(delivery.run_seq > before, "{delivery:?} after {before}");
    }
}

/// ES-080, ES-083: while the bus is down for an hour no run waits and the cursor stands still; after it, nothing is missing
/// and each run's order is kept.
#[test]
fn an_hour_without_the_bus_blocks_nobody_and_loses_nothing() {
    let (world, bus) = world(1, 1_000, 0);
    let node = world.leader();
    let runs: Vec<_> = (0..5).map(|_| world.run(&node, steps())).collect();
    for run in &runs {
        world.wait_status(&node, run, RunStatus::Completed);
    }
    world.pass(Duration::from_secs(3_600));
    assert!(bus.delivered().is_empty());
    assert_eq!(world.cursor(relay::CURSOR), Position::START);
    assert_eq!(world.alert(AlertCode::EventBusUnavailable).unwrap().severity, Severity::P2);
    let memory = world.cluster.memory.clone();
    assert_eq!(world.block_on(async move { memory.outbox_len().await }).unwrap(), 0, "a dead bus buries nothing");
    bus.heal();
    world.wait_until("the log is published", || world.has_followed(relay::CURSOR));
    assert_all_delivered(&world, &bus);
    assert_ordered(&bus);
    world.wait_until("the alert is withdrawn", || world.alert(AlertCode::EventBusUnavailable).is_none());
}

/// ES-082: refused events are tried again with growing pauses, become dead letters with a P1 alert, and can be redriven.
#[test]
fn a_refused_event_becomes_a_dead_letter_and_is_redriven() {
    let (world, bus) = world(2, 0, 1_000);
    let node = world.leader();
    let run = world.run(&node, steps());
    world.wait_status(&node, &run, RunStatus::Completed);
    let dead = || {
        let memory = world.cluster.memory.clone();
        world.block_on(async move { memory.dead_letters(Position::START, 1_000).await }).unwrap()
    };
    let events = world.stored(&run).len();
    world.wait_until("all are buried", || dead().iter().filter(|letter| letter.run_id == run).count() == events);
    assert!(dead().iter().all(|letter| letter.attempts == 4), "{:#?}", dead());
    let alert = world.alert(AlertCode::EventBusDeliveryFailed).unwrap();
    assert_eq!(alert.severity, Severity::P1);
    let (refusals, _) = bus.faults();
    assert!(refusals >= 4 * events as u64, "{refusals}");
    bus.heal();
    world.pass(Duration::from_secs(600));
    assert!(bus.delivered().iter().all(|delivery| delivery.run_id != run), "a dead letter waits for an operator");
    let memory = world.cluster.memory.clone();
    assert!(world.block_on(async move { memory.redrive(None).await }).unwrap() >= events as u64);
    world.wait_until("redriven", || dead().is_empty());
    world.wait_until("published", || bus.delivered().iter().filter(|d| d.run_id == run).count() == events);
    assert_all_delivered(&world, &bus);
}

/// ES-082: the pauses between tries grow and are not equal: a thousand refused events do not come back together.
#[test]
fn retries_are_spread() {
    let (world, _bus) = world(3, 0, 1_000);
    let node = world.leader();
    for _ in 0..10 {
        world.run(&node, steps());
    }
    let memory = world.cluster.memory.clone();
    let due = || {
        let memory = memory.clone();
        let now = world.now();
        let rows = world.block_on(async move {
            // Everything that will ever be due: the store's clock decides, so look far ahead of it.
            memory.outbox_due(10_000).await
        });
        (now, rows.unwrap())
    };
    let mut times = BTreeSet::new();
    for _ in 0..200 {
        world.pass_ms(20);
        times.extend(due().1.into_iter().map(|row| row.next_at));
    }
    assert!(times.len() > 20, "tries fall on {} moments", times.len());
}

/// ES-081, R31: a relay killed at any point leaves nothing out; what it repeats has the same event id.
#[test]
fn a_killed_relay_leaves_nothing_out() {
    let (world, bus) = world(4, 200, 0);
    let mut node = world.leader();
    let mut runs = Vec::new();
    for round in 0..100 {
        runs.push(world.run(&node, steps()));
        world.pass_ms(round % 7);
        world.cluster.kill(&node);
        node = world.node();
        world.pass_ms(round % 3);
    }
    bus.heal();
    for run in &runs {
        world.wait_status(&node, run, RunStatus::Completed);
    }
    world.wait_until("the log is published", || world.has_followed(relay::CURSOR));
    assert_all_delivered(&world, &bus);
    assert_ordered(&bus);
    let distinct: BTreeSet<_> = bus.delivered().into_iter().map(|d| (d.run_id, d.run_seq, d.event_id)).collect();
    let places: BTreeSet<_> = distinct.iter().map(|(run, seq, _)| (run.clone(), *seq)).collect();
    assert_eq!(places.len(), distinct.len(), "a place in a run has one event id");
}
