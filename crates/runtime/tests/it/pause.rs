//! Pause, drain, resume, cancel.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_machine::{LateResults, Refusal, SignalKind};
use servo_model::alert::{AlertCode, Severity};
use servo_model::snapshot::Substatus;
use servo_model::{RunStatus, StepStatus};
use servo_runtime::Error;
use servo_sim::faults::{Fate, Scripted};
use servo_sim::recorder::RecordingAdapter;
use servo_store::WorkStore;

use crate::world::World;

fn recorded(seed: u64, set: impl FnOnce(&mut servo_sim::Cluster)) -> (World, RecordingAdapter) {
    let adapter = RecordingAdapter::default();
    let world = World::with(seed, |cluster| {
        cluster.adapters = vec![Arc::new(adapter.clone())];
        set(cluster);
    });
    (world, adapter)
}

/// How often a step was executed.
fn executed(adapter: &RecordingAdapter, step: &str) -> usize {
    adapter.executions().iter().filter(|execution| execution.step_id.as_str() == step).count()
}

/// ES-100
#[test]
fn a_pause_is_at_once_and_interrupts_nothing() {
    let (world, adapter) = recorded(1, |_| {});
    let node = world.leader();
    let run_id = world.run(
        &node,
        json!([
            {"stepId": "a", "with": {"sleepMs": 5_000}}, {"stepId": "b", "with": {"sleepMs": 8_000}},
            {"stepId": "c", "dependsOn": ["a"]}, {"stepId": "d", "dependsOn": ["b"]},
        ]),
    );
    world.wait(&node, &run_id, |snapshot| snapshot.steps[..2].iter().all(|step| step.started_at.is_some()));
    let outcome = world.signal(&node, &run_id, "p", SignalKind::Pause).unwrap();
    // In the store when the signal is answered.
    assert_eq!(outcome.view.status, RunStatus::Paused);
    assert_eq!(world.rows()[0].status, RunStatus::Paused);
    assert_eq!(outcome.view.substatus, Some(Substatus::Draining));
    let waiting =
        |count: u32, tasks: &str| Some(format!("Workflow paused. Waiting for {count} in-flight {tasks} to complete."));
    assert_eq!(outcome.view.message, waiting(2, "tasks"));
    let snapshot = world.wait(&node, &run_id, |snapshot| snapshot.steps[0].status == StepStatus::Success);
    assert_eq!((snapshot.substatus, snapshot.message), (Some(Substatus::Draining), waiting(1, "task")));
    let snapshot = world.wait(&node, &run_id, |snapshot| snapshot.substatus.is_none());
    assert_eq!((snapshot.status, snapshot.message), (RunStatus::Paused, None));
    world.pass(Duration::from_secs(60));
    assert_eq!((executed(&adapter, "c"), executed(&adapter, "d")), (0, 0));
    assert!(world.alert(AlertCode::PauseDrainTimeout).is_none());
}

/// ES-100: steps that were ready and not handed out yet are taken back.
#[test]
fn a_pause_stops_what_waits_for_a_slot() {
    let (world, adapter) = recorded(2, |cluster| cluster.config.dispatch.in_flight_max = 1);
    let node = world.leader();
    let steps: Vec<_> = (0..5).map(|n| json!({"stepId": format!("s{n}"), "with": {"sleepMs": 3_000}})).collect();
    let run_id = world.run(&node, json!(steps));
    world.pass_ms(1_000);
    world.signal(&node, &run_id, "p", SignalKind::Pause).unwrap();
    world.pass(Duration::from_secs(30));
    assert_eq!(adapter.executions().len(), 1);
    assert_eq!(world.runtime_snapshot().backlog.pending, 0);
    world.signal(&node, &run_id, "r", SignalKind::Resume).unwrap();
    world.wait_status(&node, &run_id, RunStatus::Completed);
    assert_eq!(adapter.executions().len(), 5);
}

/// ES-101
#[test]
fn the_drain_times_out_with_an_alert_and_the_run_can_be_resumed() {
    let (world, adapter) = recorded(3, |_| {});
    let node = world.leader();
    let run_id = world.run(
        &node,
        json!([{"stepId": "a", "with": {"sleepMs": 900_000}}, {"stepId": "b"}, {"stepId": "c", "dependsOn": ["b"]}]),
    );
    world.wait(&node, &run_id, |snapshot| snapshot.steps.iter().any(|step| step.status == StepStatus::Success));
    world.signal(&node, &run_id, "p", SignalKind::Pause).unwrap();
    let paused = world.now();
    world.wait(&node, &run_id, |snapshot| snapshot.substatus.is_none());
    // Five minutes, by default.
    let waited = world.now().since(paused);
    assert!(waited >= Duration::from_secs(300) && waited < Duration::from_secs(302), "{waited:?}");
    assert_eq!(world.count(&run_id, "DrainTimedOut"), 1);
    world.wait_until("the alert is raised", || world.alert(AlertCode::PauseDrainTimeout).is_some());
    let alert = world.alert(AlertCode::PauseDrainTimeout).unwrap();
    assert_eq!((alert.severity, alert.run_id.as_ref(), alert.count), (Severity::P2, Some(&run_id), 1));
    assert_eq!(alert.message, "1 steps were still in flight at the drain timeout");
    world.signal(&node, &run_id, "r", SignalKind::Resume).unwrap();
    world.pass(Duration::from_secs(5));
    assert_eq!(world.snapshot(&node, &run_id).status, RunStatus::Running);
    assert_eq!((executed(&adapter, "a"), executed(&adapter, "c")), (1, 1));
}

/// ES-101: the timeout is configuration, and holds when the node that was to watch it is gone.
#[test]
fn the_drain_timeout_survives_its_node() {
    let world = World::with(4, |cluster| cluster.config.policy.drain_timeout_ms = 20_000);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 900_000}}]));
    world.wait_in_flight(&node, &run_id);
    world.signal(&node, &run_id, "p", SignalKind::Pause).unwrap();
    let paused = world.now();
    world.cluster.kill(&node);
    let next = world.leader();
    world.wait(&next, &run_id, |snapshot| snapshot.substatus.is_none());
    let waited = world.now().since(paused);
    assert!(waited >= Duration::from_secs(20) && waited < Duration::from_secs(22), "{waited:?}");
    world.wait_until("the alert is raised", || world.alert(AlertCode::PauseDrainTimeout).is_some());
}

/// ES-102: option A, the default.
#[test]
fn a_late_result_is_accepted() {
    let (world, adapter) = recorded(5, |cluster| cluster.config.policy.drain_timeout_ms = 2_000);
    let node = world.leader();
    let run_id =
        world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 10_000}}, {"stepId": "b", "dependsOn": ["a"]}]));
    world.wait_in_flight(&node, &run_id);
    world.signal(&node, &run_id, "p", SignalKind::Pause).unwrap();
    let snapshot = world.wait(&node, &run_id, |snapshot| snapshot.steps[0].status == StepStatus::Success);
    assert_eq!(snapshot.status, RunStatus::Paused);
    assert_eq!((world.count(&run_id, "DrainTimedOut"), world.count(&run_id, "TaskOrphaned")), (1, 0));
    world.signal(&node, &run_id, "r", SignalKind::Resume).unwrap();
    world.wait_status(&node, &run_id, RunStatus::Completed);
    assert_eq!((executed(&adapter, "a"), executed(&adapter, "b")), (1, 1));
}

/// ES-102: option B.
#[test]
fn a_late_result_is_refused_and_recorded_for_audit() {
    let (world, adapter) = recorded(6, |cluster| {
        cluster.config.policy.drain_timeout_ms = 2_000;
        cluster.config.policy.late_results = LateResults::Reject;
    });
    let node = world.leader();
    let run_id =
        world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 10_000}}, {"stepId": "b", "dependsOn": ["a"]}]));
    world.wait_in_flight(&node, &run_id);
    world.signal(&node, &run_id, "p", SignalKind::Pause).unwrap();
    world.wait_until("the task is orphaned", || world.count(&run_id, "TaskOrphaned") == 1);
    let snapshot = world.snapshot(&node, &run_id);
    assert_eq!((snapshot.status, snapshot.steps[0].status), (RunStatus::Paused, StepStatus::Running));
    assert_eq!(world.count(&run_id, "StepCompleted"), 0);
    world.signal(&node, &run_id, "r", SignalKind::Resume).unwrap();
    let snapshot = world.wait_status(&node, &run_id, RunStatus::Completed);
    assert_eq!(snapshot.steps[0].error.as_ref().unwrap().code, "ORPHANED_TASK");
    assert_eq!(snapshot.steps[1].logical_attempt_id, 2);
    assert_eq!((executed(&adapter, "a"), executed(&adapter, "b")), (2, 1));
}

/// ES-103
#[test]
fn a_resume_does_what_remains_and_nothing_again() {
    let (world, adapter) = recorded(7, |_| {});
    let node = world.leader();
    let run_id = world.run(
        &node,
        json!([
            {"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"], "with": {"sleepMs": 2_000}},
            {"stepId": "c", "dependsOn": ["b"], "with": {"sleepMs": 2_000}},
            {"stepId": "d", "dependsOn": ["c"], "with": {"sleepMs": 2_000}},
        ]),
    );
    for number in 0..4 {
        world.pass_ms(700);
        world.signal(&node, &run_id, &format!("p{number}"), SignalKind::Pause).unwrap();
        world.pass_ms(900);
        world.signal(&node, &run_id, &format!("r{number}"), SignalKind::Resume).unwrap();
    }
    world.wait_status(&node, &run_id, RunStatus::Completed);
    for step in ["a", "b", "c", "d"] {
        assert_eq!(executed(&adapter, step), 1, "{step}");
    }
}

/// ES-103: resumed while it still drains, a step in flight is not started a second time.
#[test]
fn a_resume_while_draining_starts_nothing_twice() {
    let (world, adapter) = recorded(8, |_| {});
    let node = world.leader();
    let run_id =
        world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 5_000}}, {"stepId": "b", "dependsOn": ["a"]}]));
    world.wait_in_flight(&node, &run_id);
    for number in 0..5 {
        world.signal(&node, &run_id, &format!("p{number}"), SignalKind::Pause).unwrap();
        assert_eq!(world.snapshot(&node, &run_id).substatus, Some(Substatus::Draining));
        world.signal(&node, &run_id, &format!("r{number}"), SignalKind::Resume).unwrap();
    }
    world.wait_status(&node, &run_id, RunStatus::Completed);
    assert_eq!((executed(&adapter, "a"), executed(&adapter, "b")), (1, 1));
    assert!(world.alert(AlertCode::PauseDrainTimeout).is_none());
}

/// ES-104
#[test]
fn a_cancel_ends_a_running_and_a_paused_run() {
    for pause in [false, true] {
        let world = World::new(9);
        let node = world.leader();
        let run_id =
            world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 5_000}}, {"stepId": "b", "dependsOn": ["a"]}]));
        world.wait_in_flight(&node, &run_id);
        if pause {
            world.signal(&node, &run_id, "p", SignalKind::Pause).unwrap();
        }
        let outcome = world.signal(&node, &run_id, "c", SignalKind::Cancel).unwrap();
        assert_eq!(outcome.view.status, RunStatus::Cancelled);
        let types = world.types(&run_id);
        world.pass(Duration::from_secs(20));
        // The late end of the step is refused, and so is everything else.
        assert_eq!(world.types(&run_id), types);
        let error = world.signal(&node, &run_id, "r", SignalKind::Resume).unwrap_err();
        assert!(matches!(error, Error::Refused(Refusal::Closed(RunStatus::Cancelled))), "{error}");
        let backlog = world.runtime_snapshot().backlog;
        assert_eq!((backlog.pending, backlog.notified, backlog.failed), (0, 0, 1));
        world.verify();
    }
}

/// A signal that is refused while an attempt is due must not take the attempt's timer with it.
#[test]
fn a_rejected_signal_leaves_the_timer() {
    let world = World::new(10);
    let node = world.leader();
    let step = json!({"stepId": "a", "with": {"failAttempts": 1}, "retry": {"maxAttempts": 2, "delayMs": 5_000}});
    let run_id = world.run(&node, json!([step]));
    world.wait(&node, &run_id, |snapshot| snapshot.steps.len() == 2);
    // Nobody fires timers any more when the attempt becomes due.
    world.cluster.kill(&node);
    world.pass(Duration::from_secs(10));
    let outcome = world.signal(&node, &run_id, "r", SignalKind::Resume).unwrap();
    assert!(outcome.refusal.is_some());
    let (memory, id) = (world.cluster.memory.clone(), run_id.clone());
    assert!(world.block_on(async move { memory.get_timer(&id).await }).unwrap().is_some());
    let next = world.leader();
    world.wait_status(&next, &run_id, RunStatus::Completed);
}

/// A dispatch that its run did not want when it was to be handed out is taken back; unless the run was resumed meanwhile,
/// on another node: then it is a new dispatch under the same id, and wanted.
#[test]
fn a_late_withdrawal_does_not_take_a_new_dispatch() {
    let faults = Arc::new(Scripted::default());
    let world = World::with(11, |cluster| {
        cluster.faults = faults.clone();
        cluster.config.dispatch.in_flight_max = 1;
        // So that no renewal comes between.
        cluster.config.authority.lease_ms = 600_000;
    });
    let leader = world.leader();
    let other = world.node();
    let run_id = world.run(&leader, json!([{"stepId": "a", "with": {"sleepMs": 3_000}}, {"stepId": "b"}]));
    world.wait_in_flight(&leader, &run_id);
    // `b` waits for the slot, with its dispatch in the scheduler's hand, and the run is paused under it.
    world.pass_ms(500);
    world.signal(&other, &run_id, "p", SignalKind::Pause).unwrap();
    faults.slow("get_dispatch", 500);
    world.wait_until("a is done", || world.count(&run_id, "StepCompleted") == 1);
    // Now the start of `b` is refused, and its withdrawal is on its way for a while.
    world.pass_ms(100);
    faults.next("append", 1, Fate { before_ms: 2_000, ..Fate::default() });
    world.pass_ms(1_000);
    world.signal(&other, &run_id, "r", SignalKind::Resume).unwrap();
    assert_eq!(world.runtime_snapshot().backlog.pending, 1);
    world.wait_status(&leader, &run_id, RunStatus::Completed);
}
