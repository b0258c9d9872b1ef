//! Creating and beginning runs.

use crate::check::{check, given_world};

#[test]
fn without_a_gate_a_run_is_queued_approved_and_started_at_once() {
    check(
        "a b<a c",
        "",
        "new",
        "RunQueued r1 plan
         RunApproved r1
         RunStarted r1 mock mock:run t+0
         > dispatch a#1
         > dispatch c#1",
    );
}

/// ES-070
#[test]
fn a_queued_run_waits_for_its_turn() {
    check("a", "", "new queue", "RunQueued r1 plan\n> enqueue t+0");
    check(
        "a b",
        "new queue; +40",
        "begin",
        "RunApproved r1
         RunStarted r1 mock mock:run t+40
         > dequeue
         > dispatch a#1
         > dispatch b#1",
    );
}

/// ES-070
#[test]
fn a_delayed_run_waits_for_its_time() {
    check("a", "+10", "new delay=500", "RunQueued r1 plan not-before=t+510\n> enqueue t+510");
}

#[test]
fn a_run_that_needs_approval_waits_for_it() {
    check("a", "", "new approval", "RunQueued r1 plan approval");
    check("a", "new approval", "begin", "! ILLEGAL_TRANSITION the run waits for approval");
    check(
        "a",
        "new approval; +7",
        "approve",
        "SignalAccepted 1 s1 APPROVE
         RunApproved r1 by=ann
         > enqueue t+7",
    );
    check(
        "a",
        "new approval; approve; +7",
        "begin",
        "RunStarted r1 mock mock:run t+7
         > dequeue
         > dispatch a#1",
    );
}

/// Approval does not shorten the delay, and a delay that is over does not reach back.
#[test]
fn approval_and_delay_both_count() {
    let early = "SignalAccepted 1 s1 APPROVE\nRunApproved r1 by=ann\n> enqueue t+500";
    check("a", "new delay=500 approval", "approve", early);
    let late = "SignalAccepted 1 s1 APPROVE\nRunApproved r1 by=ann\n> enqueue t+700";
    check("a", "new delay=500 approval; +700", "approve", late);
}

#[test]
fn a_run_is_created_and_begun_once() {
    check("a", "new", "new", "! ILLEGAL_TRANSITION the run exists already");
    check("a", "new", "begin", "! ILLEGAL_TRANSITION a RUNNING run cannot be started");
    check("a", "new; pause", "begin", "! ILLEGAL_TRANSITION a PAUSED run cannot be started");
    check("a", "new queue; cancel", "begin", "! RUN_CLOSED the run has ended: it is CANCELLED");
}

#[test]
fn nothing_can_be_asked_of_a_run_that_does_not_exist() {
    for command in ["begin", "start a", "take a", "ok a", "fail a", "pause", "cancel", "retry-run", "tick", "terminate"]
    {
        check("a", "", command, "! RUN_NOT_FOUND no such run");
    }
}

#[test]
fn a_run_whose_steps_were_all_skipped_ends_when_it_begins() {
    check(
        "a b<a",
        "new queue; skip a; skip b",
        "begin",
        "RunApproved r1
         RunStarted r1 mock mock:run t+0
         RunCompleted r1
         > dequeue",
    );
}

/// The plan's engine stands in `RunStarted`, with a reference that no other run has.
#[test]
fn the_engine_says_its_name() {
    for engine in ["native", "temporal", "conductor", "mock"] {
        let given = given_world(&format!("@{engine} a"), "new queue");
        assert_eq!(given.state().engine_type, None);
        let begun = check(
            &format!("@{engine} a"),
            "new queue",
            "begin",
            &format!(
                "RunApproved r1
                 RunStarted r1 {engine} {engine}:run t+0
                 > dequeue
                 > dispatch a#1"
            ),
        );
        assert_eq!(begun.state().engine_type.as_deref(), Some(engine));
        assert_eq!(begun.state().engine_run_ref, Some(format!("{engine}:run")));
    }
}
