//! The write latency budget: what a store that is slow or silent does to a step.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_model::alert::AlertCode;
use servo_model::{Event, RunId, RunStatus, StepStatus};
use servo_sim::faults::{Fault, Scripted};
use servo_sim::recorder::RecordingAdapter;
use servo_sim::{Cluster, Node};

use crate::world::World;

struct Slow {
    world: World,
    node: Node,
    faults: Arc<Scripted>,
    adapter: RecordingAdapter,
}

fn slow(seed: u64, set: impl FnOnce(&mut Cluster)) -> Slow {
    let (faults, adapter) = (Arc::new(Scripted::default()), RecordingAdapter::default());
    let world = World::with(seed, |cluster| {
        cluster.faults = faults.clone();
        cluster.adapters = vec![Arc::new(adapter.clone())];
        // Longer than any silence here, so that the authority is not the subject.
        cluster.config.authority.lease_ms = 120_000;
        set(cluster);
    });
    let node = world.leader();
    Slow { world, node, faults, adapter }
}

impl Slow {
    /// Starts a run whose first step is about to be handed out, and makes appends fail from there on.
    fn run_into_silence(&self, steps: serde_json::Value) -> RunId {
        let run_id = self.world.run(&self.node, steps);
        self.faults.fail("append", Fault::Unavailable);
        run_id
    }

    fn event(&self, run_id: &RunId, event_type: &str) -> Event {
        let mut found = self.world.events(run_id).into_iter().filter(|event| event.body.event_type() == event_type);
        let event = found.next().expect("the event is in the log");
        assert!(found.next().is_none(), "{event_type} stands twice");
        event
    }
}

/// ES-090
#[test]
fn a_start_over_budget_does_not_hold_up_the_step_and_is_recorded_late() {
    let slow = slow(1, |_| {});
    let (world, node) = (&slow.world, &slow.node);
    let began = world.now();
    let run_id = slow.run_into_silence(json!([{"stepId": "a", "with": {"sleepMs": 4_000}}]));
    // Three seconds of patience, then the step runs without its start being recorded.
    world.pass_ms(2_900);
    assert_eq!(slow.adapter.executions().len(), 0);
    world.pass_ms(400);
    assert_eq!(slow.adapter.executions().len(), 1);
    assert_eq!(world.count(&run_id, "StepStarted"), 0);
    slow.faults.heal();
    world.wait_status(node, &run_id, RunStatus::Completed);
    let (started, completed) = (slow.event(&run_id, "StepStarted"), slow.event(&run_id, "StepCompleted"));
    // With its own time, before the end, in the end's append.
    assert!(started.occurred_at.unwrap() <= began.plus(Duration::from_millis(100)));
    assert!(completed.occurred_at.unwrap() >= began.plus(Duration::from_secs(7)));
    assert_eq!((started.run_seq + 1, started.emitted_at), (completed.run_seq, completed.emitted_at));
    assert_eq!(slow.adapter.executions().len(), 1);
    let step = &world.snapshot(node, &run_id).steps[0];
    assert_eq!((step.started_at, step.status), (started.occurred_at, StepStatus::Success));
    world.verify();
}

/// ES-090: the alert is raised once the store takes it.
#[test]
fn an_operator_is_told() {
    let slow = slow(2, |_| {});
    let run_id = slow.run_into_silence(json!([{"stepId": "a", "with": {"sleepMs": 1_000}}]));
    slow.world.pass(Duration::from_secs(4));
    let alert = slow.world.alert(AlertCode::WriteBudgetExceeded).unwrap();
    assert_eq!(alert.message, "a StepStarted took longer than the write latency budget");
    slow.faults.heal();
    slow.world.wait_status(&slow.node, &run_id, RunStatus::Completed);
}

/// ES-090: a write that is only slow lands by itself, and is not written a second time.
#[test]
fn a_slow_start_that_lands_is_not_repeated() {
    for delay in [2_900, 3_100, 4_500, 9_000] {
        let slow = slow(3, |_| {});
        let run_id = slow.world.run(&slow.node, json!([{"stepId": "a", "with": {"sleepMs": 2_000}}]));
        slow.faults.slow("append", delay);
        slow.world.pass(Duration::from_secs(4));
        slow.faults.heal();
        slow.world.wait_status(&slow.node, &run_id, RunStatus::Completed);
        let started = slow.event(&run_id, "StepStarted");
        let completed = slow.event(&run_id, "StepCompleted");
        assert!(started.run_seq < completed.run_seq && started.occurred_at < completed.occurred_at);
        assert_eq!(slow.adapter.executions().len(), 1, "{delay}");
        slow.world.pass(Duration::from_secs(10));
        slow.world.verify();
    }
}

/// ES-090: the class is configuration. A start that does not fail open is waited for.
#[test]
fn a_start_that_may_not_fail_open_is_waited_for() {
    let slow = slow(4, |cluster| cluster.config.state_store.fail_open_for_event_class.clear());
    let run_id = slow.run_into_silence(json!([{"stepId": "a"}]));
    slow.world.pass(Duration::from_secs(20));
    assert_eq!(slow.adapter.executions().len(), 0);
    slow.faults.heal();
    slow.world.wait_status(&slow.node, &run_id, RunStatus::Completed);
    assert_eq!(slow.adapter.executions().len(), 1);
}

/// ES-090: an end that the store does not take in time fails its step.
#[test]
fn an_end_over_budget_fails_the_step() {
    for (retry, status, executions) in [(1, RunStatus::Failed, 1), (2, RunStatus::Completed, 2)] {
        let slow = slow(5, |_| {});
        let step = json!({"stepId": "a", "with": {"sleepMs": 1_000}, "retry": {"maxAttempts": retry}});
        let run_id = slow.world.run(&slow.node, json!([step]));
        slow.world.wait_in_flight(&slow.node, &run_id);
        slow.faults.fail("append", Fault::Unavailable);
        slow.world.pass(Duration::from_secs(10));
        assert_eq!(slow.world.count(&run_id, "StepFailed"), 0);
        slow.faults.heal();
        let snapshot = slow.world.wait_status(&slow.node, &run_id, status);
        assert_eq!(snapshot.steps[0].status, StepStatus::Failed);
        assert_eq!(snapshot.steps[0].error.as_ref().unwrap().code, "WRITE_BUDGET_EXCEEDED");
        assert_eq!(slow.adapter.executions().len(), executions);
        assert_eq!(slow.world.count(&run_id, "StepFailed"), 1);
    }
}

/// ES-090: unless it landed after all. An attempt ends once.
#[test]
fn a_slow_end_that_lands_counts() {
    for fault in [None, Some(Fault::ExecuteThenUnavailable)] {
        let slow = slow(6, |_| {});
        let run_id = slow.world.run(&slow.node, json!([{"stepId": "a", "with": {"sleepMs": 1_000}}]));
        slow.world.wait_in_flight(&slow.node, &run_id);
        let fate = servo_sim::faults::Fate { before_ms: 4_000, after_ms: 2_000, fault };
        slow.faults.next("append", 2, fate);
        let snapshot = slow.world.wait_status(&slow.node, &run_id, RunStatus::Completed);
        assert_eq!(snapshot.steps[0].status, StepStatus::Success);
        slow.world.pass(Duration::from_secs(20));
        assert_eq!((slow.world.count(&run_id, "StepCompleted"), slow.world.count(&run_id, "StepFailed")), (1, 0));
        slow.world.verify();
    }
}

/// ES-090: a crash while a start waits to be recorded loses that start and nothing else.
#[test]
fn a_crash_loses_at_most_the_deferred_start() {
    let slow = slow(7, |cluster| cluster.config.authority.lease_ms = 15_000);
    let run_id = slow
        .run_into_silence(json!([{"stepId": "a", "with": {"sleepMs": 4_000}}, {"stepId": "b", "dependsOn": ["a"]}]));
    slow.world.pass(Duration::from_secs(4));
    assert_eq!(slow.adapter.executions().len(), 1);
    slow.world.cluster.kill(&slow.node);
    slow.faults.heal();
    let next = slow.world.leader();
    slow.world.wait_status(&next, &run_id, RunStatus::Completed);
    let of_a = |event_type: &str| {
        let events = slow.world.events(&run_id);
        events.iter().filter(|e| e.body.event_type() == event_type && e.body.key_parts().0 == "a").count()
    };
    assert_eq!((of_a("StepStarted"), of_a("StepCompleted")), (1, 1));
    let executions = slow.adapter.executions();
    assert_eq!(executions.iter().filter(|execution| execution.step_id.as_str() == "a").count(), 2);
    slow.world.verify();
}
