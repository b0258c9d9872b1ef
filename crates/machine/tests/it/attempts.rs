//! Logical attempts count decisions to try again, engine attempts count hand-overs; only the first enter decisions.

use servo_model::StepStatus;

use crate::check::{check, given_world};

/// ES-034: after a take-over the lost hand-over's report is refused, and the attempt ends once.
#[test]
fn the_report_of_a_lost_hand_over_is_refused() {
    let superseded = "! ATTEMPT_SUPERSEDED attempt 1 of step `a` was superseded";
    check("a", "new; start a; take a", "ok a#1/1", superseded);
    check("a", "new; start a; take a", "fail a#1/1", superseded);
    check("a", "new; start a; take a", "ok a#1/2", "StepCompleted a#1/2\nRunCompleted r1\n> deliver a#1");
    let twice = "! ILLEGAL_TRANSITION step `a`: a SUCCESS attempt cannot be completed";
    check("a b", "new; start a; take a; ok a#1/2", "ok a#1/2", twice);
    check("a b", "new; start a; take a; ok a#1/2", "ok a#1/1", twice);
    check("a", "new; start a", "ok a#1/2", superseded);
}

/// ES-034: an infrastructure retry changes no idempotency key of the attempt.
#[test]
fn a_take_over_leaves_the_keys_alone() {
    let key = |given: &str, event: &str| {
        let world = given_world("a", given);
        let log = world.log.expect("kept");
        log.iter().find(|e| e.body.event_type() == event).expect("in the log").idempotency_key
    };
    for event in ["StepStarted", "StepCompleted"] {
        assert_eq!(key("new; start a; ok a", event), key("new; start a; take a; take a; ok a#1/3", event), "{event}");
    }
}

/// ES-030: starts at 1 and grows by one on RETRY_STEP and on the plan's retry, per step.
#[test]
fn logical_attempts_count_retries() {
    let world = given_world("a*2 b", "new; start a; fail a retryable; start a#2; fail a#2; retry a; start b");
    assert_eq!(world.summary(), "RUNNING a#3:PENDING b#1:RUNNING");
    let past: Vec<u32> = world.state().steps[0].past.iter().map(|attempt| attempt.logical_attempt_id).collect();
    assert_eq!(past, [1, 2]);
}

/// ES-030: a take-over is no retry.
#[test]
fn a_take_over_counts_engine_attempts_only() {
    let world = given_world("a*2", "new; start a; take a; take a");
    let attempt = &world.state().steps[0].attempt;
    assert_eq!((attempt.logical_attempt_id, attempt.engine_attempt_id), (1, Some(3)));
}

/// A plan with two tries has two logical attempts, however often each was handed out; the next one starts
/// counting hand-overs anew.
#[test]
fn engine_attempts_do_not_use_up_retries() {
    check(
        "a*2 b<a",
        "new; start a; take a; take a",
        "fail a#1/3 retryable",
        "StepFailed a#1/3 BOOM
         StepRetryScheduled a#2
         > abandon a#1 BOOM
         > dispatch a#2",
    );
    let again = "new; start a; take a; fail a#1/2 retryable; start a#2";
    check("a*2", again, "take a#2", "StepTakenOver a#2/2\n> adopt a#2");
    check(
        "a*2 b<a",
        again,
        "ok a#2/1",
        "StepCompleted a#2/1
         > deliver a#2
         > dispatch b#1",
    );
}

#[test]
fn commands_for_another_attempt_are_superseded() {
    for command in ["start a#1", "take a#1", "ok a#1", "fail a#1"] {
        let given = "new; start a; fail a retryable";
        check("a*2", given, command, "! ATTEMPT_SUPERSEDED attempt 1 of step `a` was superseded");
        check("a", "new", &command.replace("#1", "#2"), "! ATTEMPT_SUPERSEDED attempt 2 of step `a` was superseded");
    }
}

/// ES-035: the failed attempt stays as it ended.
#[test]
fn a_retry_leaves_the_failed_attempt_alone() {
    let before = given_world("a b", "new; start a; +5; fail a");
    let after = given_world("a b", "new; start a; +5; fail a; +9; retry a");
    let failed = &before.state().steps[0].attempt;
    assert_eq!(failed.status, StepStatus::Failed);
    assert_eq!(after.state().steps[0].past, std::slice::from_ref(failed));
    assert_eq!(after.state().steps[0].attempt.status, StepStatus::Pending);
}
