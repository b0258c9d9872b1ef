//! The plan's own retries and RETRY_STEP.

use crate::check::{check, given_world};

#[test]
fn the_plan_tries_again_at_once() {
    check(
        "a*2 b<a",
        "new; start a",
        "fail a retryable",
        "StepFailed a#1/1 BOOM
         StepRetryScheduled a#2
         > abandon a#1 BOOM
         > dispatch a#2",
    );
}

#[test]
fn the_plan_tries_again_later() {
    let failed = "StepFailed a#1/1 BOOM\nStepRetryScheduled a#2 not-before=t+510\n> abandon a#1 BOOM";
    let world = check("a*2~500 b<a", "new; start a; +10", "fail a retryable", failed);
    let waits = world.state().next_due(world.now).map(crate::text::time);
    assert_eq!(waits.as_deref(), Some("t+510"));
}

#[test]
fn a_delayed_attempt_is_handed_out_when_its_time_has_come() {
    let given = "new; start a; fail a retryable";
    check("a*2~500", &format!("{given}; +499"), "tick", "nothing");
    check("a*2~500", &format!("{given}; +500"), "tick", "> dispatch a#2");
    check("a*2~500", &format!("{given}; +500; tick; start a#2"), "tick", "nothing");
}

/// The append of any decision replaces the run's timer, so any decision hands out what is due.
#[test]
fn whatever_comes_first_after_the_delay_hands_the_attempt_out() {
    let given = "new; start a; start b; fail a retryable; +500";
    check("a*2~500 b", given, "ok b", "StepCompleted b#1/1\n> deliver b#1\n> dispatch a#2");
    check("a*2~500 b", given, "start a#2", "StepStarted a#2/1\n> notify a#2");
    check(
        "a*2~500 b",
        given,
        "resume",
        "SignalRejected 1 s1 RESUME ILLEGAL_TRANSITION
         > dispatch a#2
         ! ILLEGAL_TRANSITION a RUNNING run cannot be resumed",
    );
    check(
        "a*2~500 b",
        given,
        "pause denied",
        "SignalRejected 1 s1 PAUSE FORBIDDEN
         > dispatch a#2
         ! FORBIDDEN ann may not do this",
    );
}

/// What is due is not handed out by the decision that takes it back.
#[test]
fn a_due_attempt_that_is_taken_back_stays_back() {
    let given = "new; start a; fail a retryable; +500";
    check("a*2~500 b", given, "pause", "SignalAccepted 1 s1 PAUSE\nRunPaused 1\n> withdraw a#2\n> withdraw b#1");
    check(
        "a*2~500 b",
        given,
        "skip a",
        "SignalAccepted 1 s1 SKIP_STEP step=a
         StepSkipped a#2 OPERATOR
         > withdraw a#2",
    );
    check(
        "a*2~500 b",
        given,
        "cancel",
        "SignalAccepted 1 s1 CANCEL
         RunCancelled r1 by=ann
         > withdraw a#2
         > withdraw b#1
         > cancel in flight",
    );
}

#[test]
fn the_plan_gives_up_after_the_last_try() {
    check(
        "a*2 b<a",
        "new; start a; fail a retryable; start a#2",
        "fail a#2 retryable",
        "StepFailed a#2/1 BOOM
         StepSkipped b#1 UPSTREAM_FAILED by=a
         RunFailed r1 BOOM step=a
         > abandon a#2 BOOM",
    );
}

#[test]
fn an_error_that_says_so_is_not_retried() {
    check("a*2", "new; start a", "fail a", "StepFailed a#1/1 BOOM\nRunFailed r1 BOOM step=a\n> abandon a#1 BOOM");
}

/// ES-035
#[test]
fn retry_step_in_a_running_run_goes_at_once() {
    check(
        "a b<a c<b d",
        "new; start a; fail a",
        "retry a",
        "SignalAccepted 1 s1 RETRY_STEP step=a
         StepRetryScheduled a#2
         StepRetryScheduled b#2
         StepRetryScheduled c#2
         > dispatch a#2",
    );
    check(
        "a b<a c<b d",
        "new; start a; fail a; retry a; start a#2",
        "ok a#2",
        "StepCompleted a#2/1
         > deliver a#2
         > dispatch b#2",
    );
}

#[test]
fn retry_step_in_a_paused_run_waits_for_the_resume() {
    let given = "new; start a; fail a; pause";
    let retried = "SignalAccepted 2 s2 RETRY_STEP step=a\nStepRetryScheduled a#2";
    check("a b", given, "retry a", retried);
    check(
        "a b",
        &format!("{given}; retry a"),
        "resume",
        "SignalAccepted 3 s3 RESUME
         RunResumed 1
         > dispatch a#2
         > dispatch b#1",
    );
}

#[test]
fn only_a_failed_step_is_retried() {
    let refused = |status, step| {
        format!(
            "SignalRejected 1 s1 RETRY_STEP step={step} ILLEGAL_TRANSITION
             ! ILLEGAL_TRANSITION step `{step}` is {status}, not FAILED; only a failed step is retried"
        )
    };
    check("a b<a c", "new", "retry a", &refused("PENDING", "a"));
    check("a b<a c", "new; start a", "retry a", &refused("RUNNING", "a"));
    check("a b<a c", "new; start a; ok a", "retry a", &refused("SUCCESS", "a"));
    check("a b<a c", "new; start a; fail a", "retry b", &refused("SKIPPED", "b"));
    let unknown = "SignalRejected 1 s1 RETRY_STEP step=z STEP_NOT_FOUND\n! STEP_NOT_FOUND no step `z` in this run";
    check("a", "new", "retry z", unknown);
}

/// What is behind another failure as well could not start, and the run could not end.
#[test]
fn a_step_behind_two_failures_waits_for_both_retries() {
    let given = "new; start a; start b; start e; fail a; fail b";
    let plan = "a b c<a,b d<c e";
    let one = "SignalAccepted 1 s1 RETRY_STEP step=a\nStepRetryScheduled a#2\n> dispatch a#2";
    check(plan, given, "retry a", one);
    check(
        plan,
        &format!("{given}; retry a; ok e; start a#2"),
        "ok a#2",
        "StepCompleted a#2/1
         RunFailed r1 BOOM step=b
         > deliver a#2",
    );
    check(
        plan,
        &format!("{given}; retry a"),
        "retry b",
        "SignalAccepted 2 s2 RETRY_STEP step=b
         StepRetryScheduled b#2
         StepRetryScheduled c#2
         StepRetryScheduled d#2
         > dispatch b#2",
    );
}

#[test]
fn a_retried_step_can_end_the_run_well() {
    let world = given_world("a b<a", "new; start a; fail a; retry a; begin; start a#2; ok a#2; start b#2; ok b#2");
    assert_eq!(world.summary(), "COMPLETED a#2:SUCCESS b#2:SUCCESS");
}
