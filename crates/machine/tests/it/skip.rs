//! SKIP_STEP: the step need not run, and those behind it go on.

use crate::check::check;

#[test]
fn dependents_of_a_skipped_step_go_on() {
    check(
        "a b<a c<a d<b",
        "new",
        "skip a",
        "SignalAccepted 1 s1 SKIP_STEP step=a
         StepSkipped a#1 OPERATOR
         > withdraw a#1
         > dispatch b#1
         > dispatch c#1",
    );
    let waits = "SignalAccepted 1 s1 SKIP_STEP step=a\nStepSkipped a#1 OPERATOR\n> withdraw a#1";
    check("a b c<a,b", "new", "skip a", waits);
    check("a b c<a,b", "new; skip a; start b", "ok b", "StepCompleted b#1/1\n> deliver b#1\n> dispatch c#1");
}

#[test]
fn the_last_skip_ends_the_run() {
    check(
        "a b",
        "new; start a; ok a",
        "skip b",
        "SignalAccepted 1 s1 SKIP_STEP step=b
         StepSkipped b#1 OPERATOR
         RunCompleted r1
         > withdraw b#1",
    );
    check(
        "a b",
        "new; start a; fail a",
        "skip b",
        "SignalAccepted 1 s1 SKIP_STEP step=b
         StepSkipped b#1 OPERATOR
         RunFailed r1 BOOM step=a
         > withdraw b#1",
    );
}

/// A step that still waits for others can be skipped too, and frees what is behind it.
#[test]
fn a_step_that_is_not_ready_can_be_skipped() {
    check(
        "a b<a c<b",
        "new; start a",
        "skip b",
        "SignalAccepted 1 s1 SKIP_STEP step=b
         StepSkipped b#1 OPERATOR
         > withdraw b#1
         > dispatch c#1",
    );
    let alone = "StepFailed a#1/1 BOOM\n> abandon a#1 BOOM";
    check("a b<a c<b", "new; start a; skip b", "fail a", alone);
}

#[test]
fn a_skip_outside_a_running_run_waits_with_it() {
    let skipped = "SignalAccepted 1 s1 SKIP_STEP step=a\nStepSkipped a#1 OPERATOR\n> withdraw a#1";
    check("a b<a", "new queue", "skip a", skipped);
    check("a b<a", "new approval", "skip a", skipped);
    let begun = "RunApproved r1\nRunStarted r1 mock mock:run t+0\n> dequeue\n> dispatch b#1";
    check("a b<a", "new queue; skip a", "begin", begun);
    let paused = "SignalAccepted 2 s2 SKIP_STEP step=a\nStepSkipped a#1 OPERATOR\n> withdraw a#1";
    check("a b<a", "new; pause", "skip a", paused);
    check("a b<a", "new; pause; skip a", "resume", "SignalAccepted 3 s3 RESUME\nRunResumed 1\n> dispatch b#1");
    let ends = "SignalAccepted 3 s3 RESUME\nRunResumed 1\nRunCompleted r1";
    check("a", "new; pause; skip a", "resume", ends);
}

#[test]
fn only_a_pending_step_is_skipped() {
    let refused = |status| {
        format!(
            "SignalRejected 1 s1 SKIP_STEP step=a ILLEGAL_TRANSITION
             ! ILLEGAL_TRANSITION step `a`: a {status} attempt cannot be skipped"
        )
    };
    check("a b", "new; start a", "skip a", &refused("RUNNING"));
    check("a b", "new; start a; ok a", "skip a", &refused("SUCCESS"));
    check("a b", "new; start a; fail a", "skip a", &refused("FAILED"));
    let again = refused("SKIPPED").replace("s1", "s2");
    check("a b", "new; skip a", "skip a", &again);
    let unknown = "SignalRejected 1 s1 SKIP_STEP step=z STEP_NOT_FOUND\n! STEP_NOT_FOUND no step `z` in this run";
    check("a", "new", "skip z", unknown);
}

/// A reason that is too long is cut rather than refused.
#[test]
fn the_reason_is_kept() {
    let kept = "SignalAccepted 1 s1 SKIP_STEP step=a reason=holiday\nStepSkipped a#1 OPERATOR\n> withdraw a#1";
    let world = check("a b", "new", "skip a reason=holiday", kept);
    assert_eq!(world.state().steps[0].attempt.skip_reason.as_deref(), Some("holiday"));
    let cut = "SignalAccepted 1 s1 SKIP_STEP step=a reason=8192 bytes\nStepSkipped a#1 OPERATOR\n> withdraw a#1";
    check("a b", "new", "skip a reason=long", cut);
}
