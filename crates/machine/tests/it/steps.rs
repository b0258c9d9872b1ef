//! One attempt: handed out, reported on, taken over.

use crate::check::check;

#[test]
fn an_attempt_is_handed_out_and_notified() {
    check("a", "new", "start a", "StepStarted a#1/1\n> notify a#1");
    check("a", "new; +90", "start a late=30", "StepStarted a#1/1 occurred=t+30\n> notify a#1");
}

#[test]
fn a_success_delivers_and_a_failure_abandons() {
    check("a b", "new; start a", "ok a", "StepCompleted a#1/1\n> deliver a#1");
    check("a b", "new; start a", "fail a", "StepFailed a#1/1 BOOM\n> abandon a#1 BOOM");
}

#[test]
fn the_last_step_ends_the_run() {
    check("a", "new; start a", "ok a", "StepCompleted a#1/1\nRunCompleted r1\n> deliver a#1");
    check("a", "new; start a", "fail a", "StepFailed a#1/1 BOOM\nRunFailed r1 BOOM step=a\n> abandon a#1 BOOM");
    check(
        "a b",
        "new; start a; start b; fail a",
        "ok b",
        "StepCompleted b#1/1\nRunFailed r1 BOOM step=a\n> deliver b#1",
    );
}

/// ES-037: only a pending attempt starts.
#[test]
fn an_attempt_starts_once() {
    let started = "! ILLEGAL_TRANSITION step `a`: a RUNNING attempt cannot be started";
    check("a b", "new; start a", "start a", started);
    let done = "! ILLEGAL_TRANSITION step `a`: a SUCCESS attempt cannot be started";
    check("a b", "new; start a; ok a", "start a", done);
    let failed = "! ILLEGAL_TRANSITION step `a`: a FAILED attempt cannot be started";
    check("a b", "new; start a; fail a", "start a", failed);
    let skipped = "! ILLEGAL_TRANSITION step `a`: a SKIPPED attempt cannot be started";
    check("a b", "new; skip a", "start a", skipped);
}

/// ES-036: only a running attempt ends.
#[test]
fn only_a_running_attempt_ends() {
    let refused = |status, how| format!("! ILLEGAL_TRANSITION step `a`: a {status} attempt cannot be {how}");
    for (command, how) in [("ok a", "completed"), ("fail a", "failed")] {
        check("a b", "new", command, &refused("PENDING", how));
        check("a b", "new; start a; ok a", command, &refused("SUCCESS", how));
        check("a b", "new; start a; fail a", command, &refused("FAILED", how));
        check("a b", "new; skip a", command, &refused("SKIPPED", how));
    }
}

#[test]
fn steps_start_only_in_a_running_run() {
    check("a", "new queue", "start a", "! ILLEGAL_TRANSITION the run is PENDING and starts no steps");
    let approved = "! ILLEGAL_TRANSITION the run is APPROVED and starts no steps";
    check("a", "new approval; approve", "start a", approved);
    check("a", "new; pause", "start a", "! ILLEGAL_TRANSITION the run is PAUSED and starts no steps");
    check("a", "new; cancel", "start a", "! RUN_CLOSED the run has ended: it is CANCELLED");
}

#[test]
fn a_step_that_the_plan_does_not_have_is_named() {
    for command in ["start z", "take z", "ok z", "fail z"] {
        check("a", "new", command, "! STEP_NOT_FOUND no step `z` in this run");
    }
}

#[test]
fn a_lost_attempt_is_handed_out_again() {
    check("a", "new; start a", "take a", "StepTakenOver a#1/2\n> adopt a#1");
    check("a", "new; start a; take a", "take a", "StepTakenOver a#1/3\n> adopt a#1");
    check("a", "new; start a; pause", "take a", "StepTakenOver a#1/2\n> adopt a#1");
    check("a", "new", "take a", "! ILLEGAL_TRANSITION step `a`: a PENDING attempt cannot be started");
    check("a b", "new; start a; ok a", "take a", "! ILLEGAL_TRANSITION step `a`: a SUCCESS attempt cannot be started");
    check("a", "new; start a; cancel", "take a", "! RUN_CLOSED the run has ended: it is CANCELLED");
}
