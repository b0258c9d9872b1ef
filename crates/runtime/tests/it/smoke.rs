//! The shortest stories: a run from start to end.

use serde_json::json;
use servo_machine::SignalKind;
use servo_model::RunStatus;

use crate::world::{World, plan};

#[test]
fn a_diamond_runs_to_its_end() {
    let world = World::new(1);
    let node = world.node();
    let request = plan(json!([
        {"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}, {"stepId": "c", "dependsOn": ["a"]},
        {"stepId": "d", "dependsOn": ["b", "c"]},
    ]));
    let started = world.start(&node, request).unwrap();
    let snapshot = world.wait_status(&node, &started.run_id, RunStatus::Completed);
    assert_eq!(snapshot.steps.len(), 4);
    let types = world.types(&started.run_id);
    assert_eq!(types[..3], ["RunQueued", "RunApproved", "RunStarted"]);
    assert_eq!(types.last().unwrap(), "RunCompleted");
    assert_eq!(types.len(), 3 + 8 + 1);
}

#[test]
fn a_failed_step_is_retried_and_then_skips_what_follows() {
    let world = World::new(2);
    let node = world.node();
    let request = plan(json!([
        {"stepId": "a", "with": {"outcome": "fail"}, "retry": {"maxAttempts": 3, "delayMs": 1000}},
        {"stepId": "b", "dependsOn": ["a"]},
    ]));
    let started = world.start(&node, request).unwrap();
    let snapshot = world.wait_status(&node, &started.run_id, RunStatus::Failed);
    assert_eq!(snapshot.steps.iter().filter(|step| step.step_id.as_str() == "a").count(), 3);
    assert!(snapshot.total_duration_ms.unwrap() >= 2_000);
    assert_eq!(snapshot.root_cause.unwrap().code, "MOCK_FAILURE");
}

#[test]
fn a_paused_run_drains_and_goes_on() {
    let world = World::new(3);
    let node = world.node();
    let request = plan(json!([
        {"stepId": "a", "with": {"sleepMs": 5000}}, {"stepId": "b", "dependsOn": ["a"]},
    ]));
    let started = world.start(&node, request).unwrap();
    world.wait(&node, &started.run_id, |s| s.steps[0].started_at.is_some());
    world.signal(&node, &started.run_id, "s1", SignalKind::Pause).unwrap();
    let snapshot = world.snapshot(&node, &started.run_id);
    assert_eq!(snapshot.message.as_deref(), Some("Workflow paused. Waiting for 1 in-flight task to complete."));
    world.wait(&node, &started.run_id, |s| s.substatus.is_none());
    world.signal(&node, &started.run_id, "s2", SignalKind::Resume).unwrap();
    world.wait_status(&node, &started.run_id, RunStatus::Completed);
}

#[test]
fn a_killed_node_is_followed_by_another() {
    let world = World::new(4);
    let node = world.node();
    let request = plan(json!([{"stepId": "a", "with": {"sleepMs": 60_000}}, {"stepId": "b", "dependsOn": ["a"]}]));
    let started = world.start(&node, request).unwrap();
    world.wait(&node, &started.run_id, |s| s.steps[0].started_at.is_some());
    world.cluster.kill(&node);
    let second = world.node();
    let snapshot = world.wait_status(&second, &started.run_id, RunStatus::Completed);
    assert_eq!(snapshot.steps[0].engine_attempt_id, Some(2));
    assert_eq!(world.types(&started.run_id).iter().filter(|t| *t == "StepCompleted").count(), 2);
}

#[test]
fn an_approved_run_waits_and_starts() {
    let world = World::new(5);
    let node = world.node();
    let mut request = plan(json!([{"stepId": "a"}]));
    request.approval_required = true;
    let started = world.start(&node, request).unwrap();
    assert_eq!(started.snapshot.status, RunStatus::Pending);
    assert_eq!(started.snapshot.blocked_by[0].cause, "approval");
    world.signal(&node, &started.run_id, "ok", SignalKind::Approve).unwrap();
    world.wait_status(&node, &started.run_id, RunStatus::Completed);
}

#[test]
fn a_cancelled_run_stops_running_code() {
    let world = World::new(6);
    let node = world.node();
    let started = world.start(&node, plan(json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]))).unwrap();
    world.wait(&node, &started.run_id, |s| s.steps[0].started_at.is_some());
    world.signal(&node, &started.run_id, "stop", SignalKind::Cancel).unwrap();
    let snapshot = world.snapshot(&node, &started.run_id);
    assert_eq!(snapshot.status, RunStatus::Cancelled);
    assert_eq!(world.runtime_snapshot().backlog.failed, 1);
    assert_eq!(world.types(&started.run_id).last().unwrap(), "RunCancelled");
}
