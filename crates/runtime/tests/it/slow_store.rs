//! ES-090: the write latency budget. A start that the store does not confirm in time is recorded later; a result that it
//! does not confirm in time fails the step.

use std::sync::Arc;

use serde_json::json;
use servo_model::alert::AlertCode;
use servo_model::{RunStatus, StepStatus};
use servo_sim::faults::{Fate, Scripted};

use crate::world::World;

fn world(seed: u64) -> (World, Arc<Scripted>) {
    let faults = Arc::new(Scripted::default());
    let shared = faults.clone();
    let world = World::with(seed, move |cluster| {
        cluster.config.state_store.write_latency_budget_ms = 3_000;
        // The lease outlives the slow writes of these tests.
        cluster.config.authority.lease_ms = 120_000;
        cluster.faults = shared;
    });
    (world, faults)
}

fn slow(before_ms: u64) -> Fate {
    Fate { before_ms, ..Fate::default() }
}

/// ES-090: the settings are the contract's, with its defaults.
#[test]
fn the_budget_is_configuration() {
    let config = servo_runtime::RuntimeConfig::default().state_store;
    assert_eq!(config.write_latency_budget_ms, 3_000);
    assert_eq!(config.fail_open_for_event_class, ["StepStarted"]);
    assert_eq!(config.never_fail_open, ["StepCompleted", "StepFailed"]);
    let json = serde_json::to_value(&config).unwrap();
    assert_eq!(json["writeLatencyBudgetMs"], 3_000);
}

/// ES-090: over budget a `StepStarted` does not hold up the step; it is put before the step's next append, with the time at
/// which it happened.
#[test]
fn a_late_start_is_recorded_before_the_result() {
    let (world, faults) = world(1);
    let node = world.leader();
    let run = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]));
    // The append of the start is the next one.
    faults.next("append", 1, slow(30_000));
    world.wait_until("the alert", || world.alert(AlertCode::WriteBudgetExceeded).is_some());
    faults.heal();
    let snapshot = world.wait_status(&node, &run, RunStatus::Completed);
    let events = world.events(&run);
    let types: Vec<_> = events.iter().map(|event| event.body.event_type()).collect();
    assert_eq!(types[types.len() - 3..], ["StepStarted", "StepCompleted", "RunCompleted"], "{types:?}");
    assert_eq!(world.count(&run, "StepStarted"), 1);
    let started = &events[events.len() - 3];
    assert!(started.occurred_at.unwrap() < started.emitted_at, "{started:#?}");
    assert_eq!(snapshot.steps[0].started_at, started.occurred_at);
}

/// ES-090: a result that the store does not confirm in time fails the step; the plan's retry policy goes on from there.
#[test]
fn an_unconfirmed_result_fails_the_step() {
    let (world, faults) = world(2);
    let node = world.leader();
    let steps = json!([{"stepId": "a", "with": {"sleepMs": 1_000}, "retry": {"maxAttempts": 2}}]);
    let run = world.run(&node, steps);
    world.wait_in_flight(&node, &run);
    // The result's append does not arrive within the budget, and is given up with it.
    faults.next("append", 1, slow(600_000));
    world.wait_until("the alert", || world.alert(AlertCode::WriteBudgetExceeded).is_some());
    faults.heal();
    let snapshot = world.wait_status(&node, &run, RunStatus::Completed);
    assert_eq!(snapshot.steps[0].status, StepStatus::Failed, "{snapshot:#?}");
    assert_eq!(snapshot.steps[0].error.as_ref().unwrap().code, "WRITE_BUDGET_EXCEEDED");
    assert_eq!(snapshot.steps[1].status, StepStatus::Success);
    world.verify();
}

/// ES-090: a result that did land, only too late for its answer, stands; an attempt has one result.
#[test]
fn a_result_that_landed_stands() {
    let (world, faults) = world(3);
    let node = world.leader();
    let run = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 1_000}}]));
    world.wait_in_flight(&node, &run);
    faults.next("append", 1, Fate { after_ms: 30_000, ..Fate::default() });
    let snapshot = world.wait_status(&node, &run, RunStatus::Completed);
    world.pass_ms(60_000);
    assert_eq!(snapshot.steps.len(), 1);
    assert_eq!(world.count(&run, "StepCompleted") + world.count(&run, "StepFailed"), 1);
    world.verify();
}
