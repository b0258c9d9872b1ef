//! The relay: from the log to the bus, at least once, in order per run, and never in the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use servo_model::alert::{AlertCode, Severity};
use servo_model::contract::RuntimeEvent;
use servo_model::{EventId, RunId, RunStatus, Timestamp};
use servo_runtime::{Bus, BusError, BusMessage, Clock};
use servo_sim::faults::RandomFaults;
use servo_sim::recorder::{Delivery, RecordingBus};
use servo_sim::{Node, SimClock};
use servo_store::relay::DeadLetter;
use servo_store::{Position, RelayStore};

use crate::world::World;

fn with_bus(seed: u64, bus: &Arc<RecordingBus>) -> World {
    World::with(seed, |cluster| cluster.bus = bus.clone())
}

fn three_steps(world: &World, node: &Node) -> RunId {
    world.run(node, json!([{"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}, {"stepId": "c", "dependsOn": ["b"]}]))
}

/// What must hold of deliveries: nothing missing, and repetitions only of the same event.
fn assert_complete(world: &World, delivered: &[Delivery]) {
    let ids: BTreeSet<EventId> = delivered.iter().map(|delivery| delivery.event_id).collect();
    let by_place: BTreeMap<(&RunId, u64), EventId> =
        delivered.iter().map(|d| ((&d.run_id, d.run_seq), d.event_id)).collect();
    assert_eq!(ids.len(), by_place.len(), "one event under two ids, or two events under one place");
    for event in world.log().iter().filter(|event| !event.run_id.is_system()) {
        assert!(ids.contains(&event.event_id), "{} {} is missing", event.run_id, event.run_seq);
    }
}

/// First deliveries of each run, in order.
fn assert_ordered(delivered: &[Delivery]) {
    let mut seen = BTreeSet::new();
    let mut last: BTreeMap<&RunId, u64> = BTreeMap::new();
    for delivery in delivered.iter().filter(|delivery| seen.insert(delivery.event_id)) {
        let before = last.insert(&delivery.run_id, delivery.run_seq).unwrap_or(0);
        assert!(before < delivery.run_seq, "{} after {before}", delivery.run_seq);
    }
}

/// ES-080
#[test]
fn a_bus_that_is_down_holds_up_no_run() {
    let bus = Arc::new(RecordingBus::new(1, 1_000, 0));
    let world = with_bus(1, &bus);
    let node = world.leader();
    let asked = world.now();
    let runs: Vec<_> = (0..10).map(|_| three_steps(&world, &node)).collect();
    for run_id in &runs {
        world.wait_status(&node, run_id, RunStatus::Completed);
    }
    assert!(world.now().since(asked) < Duration::from_secs(2));
    // An hour of it: nothing is delivered, nothing is buried, the place is kept.
    world.pass(Duration::from_secs(3_600));
    assert_eq!(world.cursor("relay"), Position::START);
    let memory = world.cluster.memory.clone();
    assert_eq!(world.block_on(async move { memory.outbox_len().await }).unwrap(), 0);
    let alert = world.alert(AlertCode::EventBusUnavailable).unwrap();
    assert_eq!((alert.subject.as_str(), alert.count), ("recording", 1));
    let blocked =
        |event: &RuntimeEvent| matches!(event, RuntimeEvent::RunBlockedOnSystem { owner, .. } if owner == "recording");
    assert!(world.contract_events().iter().any(blocked));
    bus.heal();
    world.wait_until("everything is delivered", || world.has_followed("relay"));
    assert_complete(&world, &bus.delivered());
    assert_ordered(&bus.delivered());
    world.wait_until("the alert is withdrawn", || world.alert(AlertCode::EventBusUnavailable).is_none());
}

/// ES-080: the alert of a process that is gone is withdrawn by the next.
#[test]
fn an_old_alert_is_withdrawn() {
    let bus = Arc::new(RecordingBus::new(2, 1_000, 0));
    let world = with_bus(2, &bus);
    let node = world.leader();
    world.wait_until("the alert is raised", || world.alert(AlertCode::EventBusUnavailable).is_some());
    world.cluster.kill(&node);
    bus.heal();
    let _next = world.leader();
    world.wait_until("the alert is withdrawn", || world.alert(AlertCode::EventBusUnavailable).is_none());
}

/// ES-083
#[test]
fn messages_carry_what_a_consumer_needs_and_come_in_order() {
    let bus = Arc::new(Strict::default());
    let world = World::with(3, |cluster| cluster.bus = bus.clone());
    let node = world.leader();
    let runs: Vec<_> = (0..5).map(|_| three_steps(&world, &node)).collect();
    for run_id in &runs {
        world.wait_status(&node, run_id, RunStatus::Completed);
    }
    world.wait_until("everything is delivered", || world.has_followed("relay"));
    let messages = bus.taken.lock().unwrap();
    for run_id in &runs {
        let of_run: Vec<_> = messages.iter().filter(|message| message.run_id == *run_id).collect();
        let stored = world.stored(run_id);
        assert_eq!(of_run.len(), stored.len());
        for (message, event) in of_run.iter().zip(&stored) {
            assert_eq!((message.event_id, message.run_seq), (event.event_id, event.run_seq));
            assert_eq!((message.event_type.as_str(), &message.tenant), (event.event_type.as_ref(), &event.tenant));
            let document: Value = serde_json::from_str(&message.document).unwrap();
            assert_eq!(document["runId"], run_id.as_str());
            assert_eq!(document["runSeq"], event.run_seq);
            assert_eq!(document["eventId"], event.event_id.to_string());
        }
    }
}

/// A bus that takes everything and keeps it.
#[derive(Default)]
struct Strict {
    taken: Mutex<Vec<BusMessage>>,
}

#[async_trait]
impl Bus for Strict {
    fn name(&self) -> &'static str {
        "strict"
    }

    async fn publish(&self, messages: &[BusMessage]) -> Vec<Result<(), BusError>> {
        self.taken.lock().unwrap().extend_from_slice(messages);
        vec![Ok(()); messages.len()]
    }
}

/// A bus that refuses one event type and notes when it was asked.
struct Picky {
    refuses: Mutex<Option<&'static str>>,
    asked: Mutex<BTreeMap<EventId, Vec<Timestamp>>>,
    delivered: Mutex<Vec<Delivery>>,
    clock: Mutex<Option<SimClock>>,
}

impl Picky {
    fn refusing(event_type: &'static str) -> Arc<Self> {
        let refuses = Mutex::new(Some(event_type));
        Arc::new(Self { refuses, asked: Mutex::default(), delivered: Mutex::default(), clock: Mutex::default() })
    }
}

#[async_trait]
impl Bus for Picky {
    fn name(&self) -> &'static str {
        "picky"
    }

    async fn publish(&self, messages: &[BusMessage]) -> Vec<Result<(), BusError>> {
        let refuses = *self.refuses.lock().unwrap();
        let mut results = Vec::new();
        for message in messages {
            if refuses == Some(message.event_type.as_str()) {
                let now = self.clock.lock().unwrap().as_ref().unwrap().now();
                self.asked.lock().unwrap().entry(message.event_id).or_default().push(now);
                results.push(Err(BusError::Refused("too large".to_owned())));
                continue;
            }
            let (event_id, run_id, run_seq) = (message.event_id, message.run_id.clone(), message.run_seq);
            self.delivered.lock().unwrap().push(Delivery { event_id, run_id, run_seq });
            results.push(Ok(()));
        }
        results
    }
}

fn picky(seed: u64, event_type: &'static str) -> (World, Arc<Picky>) {
    let bus = Picky::refusing(event_type);
    let world = World::with(seed, |cluster| {
        cluster.bus = bus.clone();
        cluster.config.poll_ms = 50;
    });
    *bus.clock.lock().unwrap() = Some(world.cluster.sim.clock().clone());
    (world, bus)
}

fn dead_letters(world: &World) -> Vec<DeadLetter> {
    let memory = world.cluster.memory.clone();
    world.block_on(async move { memory.dead_letters(Position::START, 1_000).await }).unwrap()
}

/// ES-082
#[test]
fn a_refused_event_is_tried_with_growing_pauses_then_buried_and_redriven() {
    let (world, bus) = picky(4, "StepCompleted");
    let node = world.leader();
    let runs: Vec<_> = (0..12).map(|_| world.run(&node, json!([{"stepId": "a"}]))).collect();
    for run_id in &runs {
        world.wait_status(&node, run_id, RunStatus::Completed);
    }
    world.wait_until("all are buried", || dead_letters(&world).len() == runs.len());
    let config = &world.cluster.config.outbox;
    // Everything else went through while these were tried.
    world.wait_until("the rest is delivered", || world.has_followed("relay"));
    let delivered = bus.delivered.lock().unwrap().len();
    assert!(delivered > runs.len() * 4);

    let asked = bus.asked.lock().unwrap().clone();
    let mut pauses: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for times in asked.values() {
        assert_eq!(times.len(), config.attempts_max as usize);
        for (number, pair) in times.windows(2).enumerate() {
            let pause = u64::try_from(pair[1].since(pair[0]).as_millis()).unwrap();
            pauses.entry(number).or_default().push(pause);
        }
    }
    for (number, seen) in &pauses {
        // Between half the smallest pause and a limit that doubles; the relay looks every 50 ms.
        let limit = (config.backoff_min_ms << (number + 1)).min(config.backoff_max_ms) + 200;
        assert!(seen.iter().all(|pause| *pause >= config.backoff_min_ms / 2 && *pause <= limit), "{number}: {seen:?}");
        assert!(seen.iter().collect::<BTreeSet<_>>().len() > 3, "no jitter: {seen:?}");
    }
    let average = |number: usize| pauses[&number].iter().sum::<u64>() / pauses[&number].len() as u64;
    assert!(average(5) > 4 * average(1), "{} then {}", average(1), average(5));

    let alert = world.alert(AlertCode::EventBusDeliveryFailed).unwrap();
    assert_eq!(alert.severity, Severity::P1);
    assert!(alert.message.contains("was refused 8 times"), "{}", alert.message);
    let letter = dead_letters(&world)[0].clone();
    assert_eq!((letter.attempts, letter.last_error.as_str()), (8, "too large"));

    // The operator has repaired the bus: one letter, then all.
    *bus.refuses.lock().unwrap() = None;
    let memory = world.cluster.memory.clone();
    assert_eq!(world.block_on(async move { memory.redrive(Some(letter.position)).await }).unwrap(), 1);
    world.wait_until("one is delivered", || dead_letters(&world).len() == runs.len() - 1);
    let memory = world.cluster.memory.clone();
    assert_eq!(world.block_on(async move { memory.redrive(None).await }).unwrap(), runs.len() as u64 - 1);
    let memory = world.cluster.memory.clone();
    world.wait_until("all are delivered", || {
        let memory = memory.clone();
        world.block_on(async move { memory.outbox_len().await }).unwrap() == 0
    });
    assert_complete(&world, &bus.delivered.lock().unwrap());
}

/// ES-082: redriven into a bus that still refuses, it counts again from the beginning and is buried again.
#[test]
fn a_redriven_event_can_be_buried_again() {
    let (world, bus) = picky(5, "RunCompleted");
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a"}]));
    world.wait_status(&node, &run_id, RunStatus::Completed);
    world.wait_until("it is buried", || dead_letters(&world).len() == 1);
    let memory = world.cluster.memory.clone();
    world.block_on(async move { memory.redrive(None).await }).unwrap();
    assert!(dead_letters(&world).is_empty());
    world.wait_until("it is buried again", || dead_letters(&world).len() == 1);
    assert_eq!(bus.asked.lock().unwrap().values().next().unwrap().len(), 16);
    assert_eq!(world.alert(AlertCode::EventBusDeliveryFailed).unwrap().count, 2);
}

/// ES-081, R31: killed a hundred times at random points, under outages and refusals.
#[test]
fn a_killed_relay_loses_nothing() {
    let bus = Arc::new(RecordingBus::new(6, 100, 10));
    let faults = Arc::new(RandomFaults::new(6, 10, 10));
    let world = World::with(6, |cluster| {
        cluster.bus = bus.clone();
        cluster.faults = faults.clone();
        cluster.config.outbox.batch = 7;
        cluster.config.outbox.attempts_max = 1_000_000;
        cluster.config.outbox.backoff_max_ms = 500;
        // Killed so often, it must not wait for the lease each time.
        cluster.config.authority.lease_ms = 400;
    });
    for kill in 0..100 {
        let node = world.node();
        for _ in 0..3 {
            // Not every start is answered; what was recorded must be delivered in any case.
            let _ =
                world.start(&node, crate::world::plan(json!([{"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}])));
        }
        world.pass_ms(world.cluster.sim.draw(1_500) + u64::from(kill % 7 == 0) * 2_000);
        world.cluster.kill(&node);
    }
    faults.heal();
    bus.heal();
    let _last = world.leader();
    let memory = world.cluster.memory.clone();
    world.wait_until("everything is delivered", || {
        let memory = memory.clone();
        world.has_followed("relay") && world.block_on(async move { memory.outbox_len().await }).unwrap() == 0
    });
    let delivered = bus.delivered();
    assert_complete(&world, &delivered);
    let of_runs: Vec<_> = delivered.iter().filter(|delivery| !delivery.run_id.is_system()).cloned().collect();
    let ids: BTreeSet<_> = of_runs.iter().map(|delivery| delivery.event_id).collect();
    assert!(ids.len() > 1_000, "only {} events", ids.len());
    assert!(of_runs.len() > ids.len(), "nothing was ever repeated: the kills hit nothing");
    let refused = bus.refused();
    let in_order: Vec<_> = of_runs.into_iter().filter(|delivery| !refused.contains(&delivery.run_id)).collect();
    assert_ordered(&in_order);
}
