//! CANCEL and forced ends, and that an end is one.

use crate::check::{check, given_world};

/// ES-104
#[test]
fn a_cancel_ends_a_run_and_takes_back_what_is_out() {
    check(
        "a b c<a",
        "new; start a",
        "cancel reason=wrong",
        "SignalAccepted 1 s1 CANCEL reason=wrong
         RunCancelled r1 by=ann reason=wrong
         > withdraw b#1
         > abandon a#1 the run was cancelled
         > cancel in flight",
    );
    check(
        "a b c<a",
        "new; start a; pause",
        "cancel",
        "SignalAccepted 2 s2 CANCEL
         RunCancelled r1 by=ann
         > withdraw b#1
         > abandon a#1 the run was cancelled
         > cancel in flight",
    );
}

#[test]
fn a_run_that_waits_leaves_the_queue() {
    let cancelled = "SignalAccepted 1 s1 CANCEL\nRunCancelled r1 by=ann\n> dequeue";
    check("a", "new queue", "cancel", cancelled);
    check("a", "new approval", "cancel", cancelled);
    let approved = "SignalAccepted 2 s2 CANCEL\nRunCancelled r1 by=ann\n> dequeue";
    check("a", "new approval; approve", "cancel", approved);
    let retried = "SignalAccepted 2 s2 CANCEL\nRunCancelled r2 by=ann\n> dequeue";
    check("a", "new; start a; fail a; retry-run", "cancel", retried);
}

#[test]
fn a_forced_end_needs_no_signal() {
    check("a", "new queue", "terminate", "RunCancelled r1 by=root reason=enough\n> dequeue");
    check(
        "a b",
        "new; start a",
        "terminate",
        "RunCancelled r1 by=root reason=enough
         > withdraw b#1
         > abandon a#1 the run was cancelled
         > cancel in flight",
    );
    check(
        "a b",
        "new; start a; start b; pause; ok b",
        "terminate",
        "RunCancelled r1 by=root reason=enough
         > abandon a#1 the run was cancelled
         > cancel in flight",
    );
}

/// ES-021: nothing but a retry of a failed run leads back, whatever is asked.
#[test]
fn an_ended_run_stays_as_it_ended() {
    let ends = [
        ("new; start a; ok a; start b; ok b", "COMPLETED"),
        ("new; start a; fail a", "FAILED"),
        ("new; start a; cancel id=90", "CANCELLED"),
        ("new; terminate", "CANCELLED"),
    ];
    let commands = "begin; start a; take a; ok a; fail a; pause; resume; cancel; approve; skip b; terminate";
    for (given, status) in ends {
        for command in commands.split("; ") {
            check("a b<a", given, command, &format!("! RUN_CLOSED the run has ended: it is {status}"));
        }
        check("a b<a", given, "tick", "nothing");
        check("a b<a", given, "new", "! ILLEGAL_TRANSITION the run exists already");
    }
}

/// What was running when a run was cancelled reports to a closed door.
#[test]
fn a_late_report_does_not_open_a_cancelled_run() {
    let world = check(
        "a*3~10 b<a",
        "new; start a; cancel; +500",
        "fail a retryable",
        "! RUN_CLOSED the run has ended: it is CANCELLED",
    );
    assert_eq!(world.summary(), "CANCELLED a#1:RUNNING b#1:PENDING");
    assert_eq!(world.state().next_due(world.now), None);
}

#[test]
fn a_cancelled_delay_is_not_woken() {
    let world = given_world("a*2~500", "new; start a; fail a retryable; cancel; +900");
    assert_eq!(world.state().next_due(world.now), None);
    check("a*2~500", "new; start a; fail a retryable; cancel; +900", "tick", "nothing");
}
