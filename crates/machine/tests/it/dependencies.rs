//! What may go when: fan-out, fan-in, diamonds, and what happens behind a failure.

use crate::check::check;

const DIAMOND: &str = "a b<a c<a d<b,c";

#[test]
fn a_step_frees_those_that_wait_for_it() {
    let both = "StepCompleted a#1/1\n> deliver a#1\n> dispatch b#1\n> dispatch c#1";
    check(DIAMOND, "new; start a", "ok a", both);
}

#[test]
fn a_step_waits_for_all_it_depends_on() {
    let given = "new; start a; ok a; start b; start c";
    check(DIAMOND, given, "ok b", "StepCompleted b#1/1\n> deliver b#1");
    let last = "StepCompleted c#1/1\n> deliver c#1\n> dispatch d#1";
    check(DIAMOND, &format!("{given}; ok b"), "ok c", last);
    let fan_in = "StepCompleted c#1/1\n> deliver c#1\n> dispatch d#1";
    check("a b c d<a,b,c", "new; start a; start b; start c; ok b; ok a", "ok c", fan_in);
}

#[test]
fn a_step_cannot_start_before_its_dependencies() {
    let waits = "! ILLEGAL_TRANSITION step `b` waits for steps that it depends on";
    check("a b<a", "new", "start b", waits);
    check("a b<a", "new; start a", "start b", waits);
    let waits = "! ILLEGAL_TRANSITION step `d` waits for steps that it depends on";
    check(DIAMOND, "new; start a; ok a; start b; ok b", "start d", waits);
}

#[test]
fn everything_behind_a_failure_is_skipped() {
    check(
        "a b<a c<b d",
        "new; start a",
        "fail a",
        "StepFailed a#1/1 BOOM
         StepSkipped b#1 UPSTREAM_FAILED by=a
         StepSkipped c#1 UPSTREAM_FAILED by=a
         > abandon a#1 BOOM",
    );
    check(
        DIAMOND,
        "new; start a; ok a; start b; start c",
        "fail b",
        "StepFailed b#1/1 BOOM
         StepSkipped d#1 UPSTREAM_FAILED by=b
         > abandon b#1 BOOM",
    );
}

/// The other branch goes on, and the run ends when it is done.
#[test]
fn a_failure_does_not_stop_its_siblings() {
    check(
        "a b c<b",
        "new; start a; fail a; start b",
        "ok b",
        "StepCompleted b#1/1
         > deliver b#1
         > dispatch c#1",
    );
    check(
        "a b c<b",
        "new; start a; fail a; start b; ok b; start c",
        "ok c",
        "StepCompleted c#1/1
         RunFailed r1 BOOM step=a
         > deliver c#1",
    );
}

#[test]
fn what_was_skipped_already_is_not_skipped_again() {
    check(
        "a b c<a,b d<c",
        "new; start a; start b; fail a",
        "fail b",
        "StepFailed b#1/1 BOOM
         RunFailed r1 BOOM step=a
         > abandon b#1 BOOM",
    );
}

/// ES-050: the first failure that the run could not go on from, not the first that happened.
#[test]
fn the_root_cause_is_the_first_failure_that_stands() {
    check(
        "a*2 b c",
        "new; start a; start b; start c; fail a retryable; fail b; start a#2; ok a#2",
        "fail c",
        "StepFailed c#1/1 BOOM
         RunFailed r1 BOOM step=b
         > abandon c#1 BOOM",
    );
    check(
        "a b c",
        "new; start a; start b; start c; fail a; fail b; retry a; start a#2; ok a#2",
        "fail c",
        "StepFailed c#1/1 BOOM
         RunFailed r1 BOOM step=b
         > abandon c#1 BOOM",
    );
}
