//! A failed run is queued again: RETRY_RUN, and RETRY_STEP after the end.

use crate::check::{check, given_world};

const FAILED: &str = "new; start a; fail a; start d; fail d";

#[test]
fn retry_run_gives_every_failed_step_a_new_attempt() {
    check(
        "a b<a c<b d",
        &format!("{FAILED}; +50"),
        "retry-run",
        "SignalAccepted 1 s1 RETRY_RUN
         RunQueued r2 reason=retry of the run
         StepRetryScheduled a#2
         StepRetryScheduled d#2
         StepRetryScheduled b#2
         StepRetryScheduled c#2
         > enqueue t+50",
    );
    check(
        "a b<a c<b d",
        &format!("{FAILED}; retry-run; +60"),
        "begin",
        "RunApproved r2
         RunStarted r2 mock mock:run t+60
         > dequeue
         > dispatch a#2
         > dispatch d#2",
    );
}

#[test]
fn what_succeeded_is_not_done_again() {
    let world = given_world("a b<a", "new; start a; ok a; start b; fail b; retry-run");
    assert_eq!(world.summary(), "PENDING a#1:SUCCESS b#2:PENDING");
    let begun = "RunApproved r2\nRunStarted r2 mock mock:run t+0\n> dequeue\n> dispatch b#2";
    check("a b<a", "new; start a; ok a; start b; fail b; retry-run", "begin", begun);
}

#[test]
fn the_second_round_ends_for_itself() {
    let given = "new; start a; fail a; retry-run; begin; start a#2";
    check("a", given, "ok a#2", "StepCompleted a#2/1\nRunCompleted r2\n> deliver a#2");
    check("a", given, "fail a#2", "StepFailed a#2/1 BOOM\nRunFailed r2 BOOM step=a\n> abandon a#2 BOOM");
    let world = given_world("a", &format!("{given}; fail a#2; retry-run; begin; start a#3; ok a#3"));
    assert_eq!((world.summary().as_str(), world.state().round), ("COMPLETED a#3:SUCCESS", 3));
}

#[test]
fn retry_step_after_the_end_queues_the_run_for_that_step() {
    check(
        "a b<a c<b d",
        FAILED,
        "retry a",
        "SignalAccepted 1 s1 RETRY_STEP step=a
         RunQueued r2 reason=retry of step `a`
         StepRetryScheduled a#2
         StepRetryScheduled b#2
         StepRetryScheduled c#2
         > enqueue t+0",
    );
    let rest = format!("{FAILED}; retry a; begin; start a#2; ok a#2; start b#2; ok b#2; start c#2");
    check("a b<a c<b d", &rest, "ok c#2", "StepCompleted c#2/1\nRunFailed r2 BOOM step=d\n> deliver c#2");
}

/// The next round needs no second approval, and its wait is over.
#[test]
fn a_later_round_does_not_wait_for_approval() {
    let given = "new delay=90 approval; approve; begin; start a; fail a; retry-run";
    let world = given_world("a", given);
    assert!(!world.state().approval_required);
    assert_eq!(world.state().not_before, None);
    check("a", given, "begin", "RunApproved r2\nRunStarted r2 mock mock:run t+0\n> dequeue\n> dispatch a#2");
}

#[test]
fn only_a_failed_run_is_retried() {
    for (given, status) in [("new queue", "PENDING"), ("new", "RUNNING"), ("new; pause id=9", "PAUSED")] {
        let refused = format!(
            "SignalRejected 1 s10 RETRY_RUN ILLEGAL_TRANSITION
             ! ILLEGAL_TRANSITION a {status} run cannot be queued again"
        );
        check("a", given, "retry-run id=10", &refused);
    }
    for (given, status) in [("new; start a; ok a", "COMPLETED"), ("new; cancel", "CANCELLED")] {
        check("a", given, "retry-run", &format!("! RUN_CLOSED the run has ended: it is {status}"));
        check("a", given, "retry a", &format!("! RUN_CLOSED the run has ended: it is {status}"));
    }
}

/// A retry that cannot be done opens nothing and records nothing.
#[test]
fn a_wrong_retry_leaves_the_log_of_a_failed_run_closed() {
    let given = "new; start a; fail a";
    check("a b<a", given, "retry z", "! STEP_NOT_FOUND no step `z` in this run");
    let skipped = "! ILLEGAL_TRANSITION step `b` is SKIPPED, not FAILED; only a failed step is retried";
    check("a b<a", given, "retry b", skipped);
    check("a b<a", given, "retry a denied", "! FORBIDDEN ann may not do this");
}

/// While the run waits for its next round, other failed steps wait for it to begin.
#[test]
fn a_queued_round_takes_no_further_retry() {
    check(
        "a b",
        "new; start a; start b; fail a; fail b; retry a",
        "retry b",
        "SignalRejected 1 s2 RETRY_STEP step=b ILLEGAL_TRANSITION
         ! ILLEGAL_TRANSITION the run is PENDING and starts no steps",
    );
}
