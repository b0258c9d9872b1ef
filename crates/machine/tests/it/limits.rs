//! The limit on a run's events. The last 64 are kept for ending it.

use crate::check::{check, given_world};

/// `new` records three events, so a limit of `64 + 3 + n` leaves room for `n` more.
const ROOM_FOR_NONE: &str = "max=67; new";

#[test]
fn the_last_event_before_the_limit_is_taken() {
    check("a b", "max=68; new", "start a", "StepStarted a#1/1\n> notify a#1");
}

#[test]
fn the_first_event_over_the_limit_ends_the_run() {
    check(
        "a b",
        ROOM_FOR_NONE,
        "start a",
        "RunFailed r1 LIMIT_EXCEEDED
         > withdraw a#1
         > withdraw b#1
         > cancel in flight
         ! LIMIT_EXCEEDED the run has reached its limit of 67 events",
    );
    let ended = "RunFailed r1 LIMIT_EXCEEDED
                 > withdraw b#1
                 > abandon a#1 LIMIT_EXCEEDED
                 > cancel in flight
                 ! LIMIT_EXCEEDED the run has reached its limit of 68 events";
    for command in ["ok a", "fail a", "take a"] {
        check("a b", "max=68; new; start a", command, ended);
    }
}

/// Room for `SignalAccepted` and `RunPaused`, none for a result.
#[test]
fn a_paused_run_ends_at_the_limit_too() {
    check(
        "a b",
        "max=70; new; start a; pause",
        "ok a",
        "RunFailed r1 LIMIT_EXCEEDED
         > withdraw b#1
         > abandon a#1 LIMIT_EXCEEDED
         > cancel in flight
         ! LIMIT_EXCEEDED the run has reached its limit of 70 events",
    );
}

#[test]
fn what_ends_the_run_may_use_the_last_events() {
    check("a", "max=68; new; start a", "ok a", "StepCompleted a#1/1\nRunCompleted r1\n> deliver a#1");
    let cancelled = "SignalAccepted 1 s1 CANCEL\nRunCancelled r1 by=ann\n> withdraw a#1\n> cancel in flight";
    check("a", ROOM_FOR_NONE, "cancel", cancelled);
    check("a", ROOM_FOR_NONE, "terminate", "RunCancelled r1 by=root reason=enough\n> withdraw a#1\n> cancel in flight");
}

/// A failure that would skip more steps than there are events left does not go beyond the limit itself.
#[test]
fn an_end_that_does_not_fit_is_a_short_one() {
    let skips = "StepFailed a#1/1 BOOM
                 StepSkipped b#1 UPSTREAM_FAILED by=a
                 StepSkipped c#1 UPSTREAM_FAILED by=a
                 RunFailed r1 BOOM step=a
                 > abandon a#1 BOOM";
    check("a b<a c<b", "max=100; new; start a; max=8", "fail a", skips);
    check(
        "a b<a c<b",
        "max=100; new; start a; max=7",
        "fail a",
        "RunFailed r1 LIMIT_EXCEEDED
         > abandon a#1 LIMIT_EXCEEDED
         > cancel in flight
         ! LIMIT_EXCEEDED the run has reached its limit of 7 events",
    );
}

#[test]
fn other_commands_are_refused_at_the_limit() {
    let full = "! LIMIT_EXCEEDED the run has reached its limit of 67 events";
    for command in ["pause", "skip a", "pause denied", "resume", "retry a"] {
        check("a b", ROOM_FOR_NONE, command, full);
    }
    check("a", ROOM_FOR_NONE, "tick", "nothing");
    let failed = "max=68; new; start a; ?take a";
    check("a", failed, "retry-run", "! LIMIT_EXCEEDED the run has reached its limit of 68 events");
}

/// Nobody can answer a queue row or a timer that is refused, so these two are let through.
#[test]
fn a_begin_and_a_drain_timeout_are_let_through() {
    let begun = "RunApproved r1\nRunStarted r1 mock mock:run t+0\n> dequeue\n> dispatch a#1";
    check("a", "max=65; new queue", "begin", begun);
    let timeout = "DrainTimedOut 1 in-flight=1
                   > alert PAUSE_DRAIN_TIMEOUT 1 steps were still in flight at the drain timeout";
    check("a", "max=70; new; start a; pause; +1000", "tick", timeout);
}

/// The attempt that was in flight is lost: its dispatch was given up. The next round gives it a successor.
#[test]
fn a_run_that_ended_at_the_limit_can_be_retried_when_there_is_room_again() {
    let given = "max=68; new; start a; ?take a; max=200";
    assert_eq!(given_world("a b", given).summary(), "FAILED a#1:RUNNING b#1:PENDING");
    check(
        "a b",
        given,
        "retry-run",
        "SignalAccepted 1 s1 RETRY_RUN
         RunQueued r2 reason=retry of the run
         StepFailed a#1/1 ATTEMPT_SUPERSEDED
         StepRetryScheduled a#2
         > enqueue t+0",
    );
    let begun = "RunApproved r2
                 RunStarted r2 mock mock:run t+0
                 > dequeue
                 > dispatch a#2
                 > dispatch b#1";
    check("a b", &format!("{given}; retry-run"), "begin", begun);
    let stale = "! ATTEMPT_SUPERSEDED attempt 1 of step `a` was superseded";
    check("a b", &format!("{given}; retry-run; begin"), "ok a#1", stale);
}
