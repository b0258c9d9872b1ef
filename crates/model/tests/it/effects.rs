//! What single events do to a run, one example each.

use serde_json::json;
use servo_model::event::EventBody;
use servo_model::projection::project_run;
use servo_model::state::Applied;
use servo_model::{RunSnapshot, RunState, RunStatus, StepStatus};

use crate::samples::artifacts;
use crate::support::{DIAMOND, at, beginning, body, completed, event, fold, log, queued, run_id, started, step};

fn failed(step: &str, attempt: u32, code: &str) -> EventBody {
    body(
        "StepFailed",
        json!({"stepId": step, "status": "FAILED", "logicalAttemptId": attempt, "engineAttemptId": 1,
               "error": {"code": code, "message": "no answer", "retryable": true}}),
    )
}

fn completes() -> EventBody {
    body("RunCompleted", json!({"status": "COMPLETED"}))
}

fn findings(bodies: Vec<EventBody>) -> Vec<Applied> {
    let mut state = RunState::new(run_id());
    let mut findings = Vec::new();
    for event in log(bodies) {
        let (next, applied) = state.apply(&event);
        state = next;
        findings.push(applied);
    }
    findings
}

/// ES-050: status, engine reference, start and watermark.
#[test]
fn run_started_sets_the_run() {
    let before = project_run(&run_id(), &log(beginning(1))[..2]);
    assert_eq!((before.status, before.engine_run_ref, before.started_at), (RunStatus::Approved, None, None));
    let after = project_run(&run_id(), &log(beginning(1)));
    assert_eq!(after.status, RunStatus::Running);
    assert_eq!(after.engine_run_ref.as_deref(), Some("mock://diamond/1"));
    assert_eq!(after.engine_type.as_deref(), Some("mock"));
    assert_eq!(after.started_at, Some(at(1)), "from the event's own startedAt, not from when it was appended");
    assert_eq!(after.last_event_seq, 3);
}

/// ES-050: artifacts of the steps are gathered when the run completes, in plan order, and not before.
#[test]
fn run_completed_aggregates_artifacts() {
    let [report, logs] = artifacts().try_into().unwrap();
    let mut bodies = beginning(1);
    bodies.extend([started("a", 1), completed("a", 1, vec![report.clone()])]);
    for id in ["c", "b", "d"] {
        bodies.extend([started(id, 1), completed(id, 1, if id == "c" { vec![logs.clone()] } else { Vec::new() })]);
    }
    assert_eq!(project_run(&run_id(), &log(bodies.clone())).artifacts, []);
    bodies.push(completes());
    let snapshot = project_run(&run_id(), &log(bodies));
    assert_eq!(snapshot.status, RunStatus::Completed);
    assert_eq!(snapshot.artifacts, [report.clone(), logs]);
    assert_eq!(snapshot.steps[0].artifacts, [report]);
}

/// ES-050: the error is recorded with the attempt, and failed steps are counted, each once.
#[test]
fn step_failed_records_the_error_and_counts() {
    let mut bodies = beginning(1);
    bodies.extend([started("a", 1), failed("a", 1, "TIMEOUT")]);
    let snapshot = project_run(&run_id(), &log(bodies.clone()));
    assert_eq!(snapshot.failed_steps, 1);
    let error = snapshot.steps[0].error.as_ref().unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str(), error.retryable), ("TIMEOUT", "no answer", true));
    // A retry takes the step out of the count, and the failed attempt stays in sight.
    bodies.push(body("StepRetryScheduled", json!({"stepId": "a", "logicalAttemptId": 2})));
    let snapshot = project_run(&run_id(), &log(bodies));
    assert_eq!(snapshot.failed_steps, 0);
    let attempts: Vec<_> =
        snapshot.steps.iter().take(2).map(|s| (s.step_id.as_str(), s.logical_attempt_id, s.status)).collect();
    assert_eq!(attempts, [("a", 1, StepStatus::Failed), ("a", 2, StepStatus::Pending)]);
}

/// ES-050: the root cause, and a retry of the run starts without it.
#[test]
fn run_failed_records_the_root_cause() {
    let mut bodies = beginning(1);
    bodies.extend([started("a", 1), failed("a", 1, "TIMEOUT")]);
    let cause = json!({"stepId": "a", "code": "TIMEOUT", "message": "no answer"});
    bodies.push(body("RunFailed", json!({"status": "FAILED", "rootCause": cause})));
    let snapshot = project_run(&run_id(), &log(bodies.clone()));
    assert_eq!(snapshot.status, RunStatus::Failed);
    assert_eq!(serde_json::to_value(&snapshot.root_cause).unwrap(), cause);
    assert_eq!(snapshot.completed_at, Some(at(6)));
    bodies.push(beginning(2).remove(0));
    let snapshot = project_run(&run_id(), &log(bodies));
    assert_eq!((snapshot.status, snapshot.root_cause, snapshot.completed_at), (RunStatus::Pending, None, None));
}

/// ES-015: a duration is taken from when things happened, and from when they were appended only where that is unknown.
#[test]
fn durations_use_when_it_happened() {
    let mut bodies = beginning(1);
    bodies.extend([started("a", 1), completed("a", 1, Vec::new()), completes()]);
    let mut events = log(bodies);
    let snapshot = project_run(&run_id(), &events);
    assert_eq!(snapshot.total_duration_ms, Some(5_000), "from startedAt to when the end was appended");
    assert_eq!(snapshot.steps[0].completed_at, Some(at(5)));
    for (event, seconds) in events[3..].iter_mut().zip([2, 3, 4]) {
        event.occurred_at = Some(at(seconds));
    }
    let snapshot = project_run(&run_id(), &events);
    assert_eq!(snapshot.total_duration_ms, Some(3_000));
    assert_eq!((snapshot.steps[0].started_at, snapshot.steps[0].completed_at), (Some(at(2)), Some(at(3))));
    // A clock that went backwards gives no duration below zero.
    events[5].occurred_at = Some(at(-60));
    assert_eq!(project_run(&run_id(), &events).total_duration_ms, Some(0));
}

/// ES-015: the sequence decides, also where the times say the opposite.
#[test]
fn order_is_the_sequence() {
    let mut events = log(beginning(1).into_iter().chain([started("a", 1), failed("a", 1, "C")]));
    for (event, seconds) in events.iter_mut().zip([50, 40, 30, 20, 10]) {
        event.emitted_at = at(seconds);
        event.occurred_at = Some(at(seconds));
    }
    assert_eq!(fold(&events).step(0).attempt.status, StepStatus::Failed);
}

/// ES-100: paused at once, with a substatus and a message for as long as attempts are in flight.
#[test]
fn a_paused_run_drains() {
    let mut bodies = beginning(1);
    bodies.extend([started("a", 1), completed("a", 1, Vec::new()), started("b", 1), started("c", 1)]);
    bodies.push(body("RunPaused", json!({"status": "PAUSED", "reason": "maintenance", "drainUntil": at(300)})));
    let shown = |bodies: &[EventBody]| {
        let snapshot = serde_json::to_value(project_run(&run_id(), &log(bodies.to_vec()))).unwrap();
        (snapshot["status"].clone(), snapshot["substatus"].clone(), snapshot["message"].clone())
    };
    let waiting = "Workflow paused. Waiting for 2 in-flight tasks to complete.";
    assert_eq!(shown(&bodies), (json!("PAUSED"), json!("DRAINING"), json!(waiting)));
    bodies.push(completed("b", 1, Vec::new()));
    let waiting = "Workflow paused. Waiting for 1 in-flight task to complete.";
    assert_eq!(shown(&bodies), (json!("PAUSED"), json!("DRAINING"), json!(waiting)));
    let mut drained = bodies.clone();
    drained.push(completed("c", 1, Vec::new()));
    assert_eq!(shown(&drained), (json!("PAUSED"), json!(null), json!("maintenance")));
    // ES-101: or until the drain timeout.
    bodies.push(body("DrainTimedOut", json!({"logicalAttemptId": 1, "inFlight": 1})));
    assert_eq!(shown(&bodies), (json!("PAUSED"), json!(null), json!("maintenance")));
    // The next pause drains again.
    bodies.push(body("RunResumed", json!({"status": "RUNNING", "logicalAttemptId": 1})));
    assert_eq!(shown(&bodies), (json!("RUNNING"), json!(null), json!(null)));
    bodies.push(body("RunPaused", json!({"status": "PAUSED", "logicalAttemptId": 2})));
    assert_eq!(shown(&bodies).1, json!("DRAINING"));
}

/// ES-009: the step that came too early is named, the event is applied, and the log is read on.
#[test]
fn an_inversion_is_reported_and_applied() {
    let mut bodies = beginning(1);
    bodies.extend([started("b", 1), completed("b", 1, Vec::new()), started("a", 1), completed("a", 1, Vec::new())]);
    let inverted = Applied::Inverted { step: step("b"), dependency: step("a") };
    assert_eq!(findings(bodies.clone())[3..], [inverted.clone(), inverted, Applied::Changed, Applied::Changed]);
    let state = fold(&log(bodies));
    assert!(state.is_satisfied(0) && state.is_satisfied(1));
}

/// A log that begins with its start, as one written elsewhere may.
#[test]
fn a_log_may_begin_with_its_start() {
    let snapshot = project_run(&run_id(), &log([beginning(1).remove(2), started("x", 1)]));
    assert_eq!((snapshot.status, snapshot.steps.len()), (RunStatus::Running, 1));
}

/// A run that has ended before anything else is known of it stays ended.
#[test]
fn an_end_without_a_beginning_stays() {
    for name in ["RunCancelled", "RunFailed"] {
        let status = if name == "RunFailed" { "FAILED" } else { "CANCELLED" };
        let end = body(name, json!({"status": status, "rootCause": {"code": "C", "message": "m"}}));
        let mut bodies = vec![end];
        bodies.extend(beginning(1));
        let state = fold(&log(bodies));
        assert_eq!(state.status.as_str(), status);
        assert_eq!(state.completed_at, Some(at(1)));
        assert!(state.plan.is_some(), "what the run is can still be learned");
    }
}

/// `RunQueued` that was overtaken by what builds on it brings the plan, and takes nothing away.
#[test]
fn a_late_beginning_brings_the_plan() {
    let [queue, _, start] = beginning(1).try_into().unwrap();
    let retried = body("StepRetryScheduled", json!({"stepId": "x", "logicalAttemptId": 2, "notBefore": at(60)}));
    let state =
        fold(&log([start, started("x", 1), started("c", 1), failed("c", 1, "C"), failed("x", 1, "C"), retried, queue]));
    let steps: Vec<_> = state.steps.iter().map(|step| (step.step_id.as_str(), step.attempt.status)).collect();
    use StepStatus::{Failed, Pending};
    assert_eq!(steps, [("a", Pending), ("b", Pending), ("c", Failed), ("d", Pending), ("x", Pending)]);
    assert_eq!((state.status, state.open_steps, state.failed_steps), (RunStatus::Running, 4, 1));
    assert_eq!(state.first_failure, Some(2));
    assert_eq!(state.due_steps(at(60)).collect::<Vec<_>>(), [4]);
    assert_eq!(state.step_number(&step("x")), Some(4));
    assert!(!state.dependencies_satisfied(3));
}

/// What contradicts the state is reported as such; what merely repeats it is a duplicate.
#[test]
fn contradictions_are_told_from_repetitions() {
    let mut bodies = beginning(1);
    bodies.extend([started("a", 1), completed("a", 1, Vec::new())]);
    let last = |more: EventBody| {
        let mut bodies = bodies.clone();
        bodies.push(more);
        findings(bodies).pop().unwrap()
    };
    let skipped = |id: &str| {
        body(
            "StepSkipped",
            json!({"stepId": id, "status": "SKIPPED", "logicalAttemptId": 1,
        "cause": "OPERATOR", "reason": ""}),
        )
    };
    for repetition in [started("a", 1), completed("a", 1, Vec::new()), bodies[1].clone(), bodies[2].clone()] {
        assert_eq!(last(repetition.clone()), Applied::Duplicate, "{repetition:?}");
    }
    for contradiction in [failed("a", 1, "C"), skipped("a"), body("RunResumed", json!({"status": "RUNNING"}))] {
        assert!(matches!(last(contradiction.clone()), Applied::Illegal(_)), "{contradiction:?}");
    }
}

/// A plan that cannot be read is reported; the run is shown without it.
#[test]
fn an_unreadable_plan_is_reported() {
    let mut first = queued(Some(r#"{"planId":"p"}"#));
    first.reason = Some("why".to_owned());
    let (state, applied) = RunState::new(run_id()).apply(&event(1, EventBody::RunQueued(Box::new(first))));
    assert!(matches!(applied, Applied::Illegal(reason) if reason.contains("plan")));
    assert_eq!(RunSnapshot::from(&state).message.as_deref(), Some("why"));
    assert!(state.steps.is_empty());
    assert!(DIAMOND.contains("steps"));
}
