//! What all signals share: recorded either way, answered once.

use crate::check::{check, given_world};

/// ES-016: the record of a signal changes no status by itself; its effect is a fact of its own.
#[test]
fn the_record_of_a_signal_moves_nothing() {
    let world = given_world("a", "new; pause");
    let log = world.log.expect("kept");
    let mut state = servo_model::RunState::new(log[0].run_id.clone());
    for event in &log {
        let before = state.status;
        state = state.apply(event).0;
        if event.body.event_type() == "SignalAccepted" {
            assert_eq!(state.status, before);
        }
    }
    let rejected = given_world("a", "new; ?resume");
    assert_eq!(rejected.summary(), "RUNNING a#1:PENDING");
}

#[test]
fn a_repeated_signal_changes_nothing() {
    check("a", "new; pause id=1", "pause id=1", "nothing");
    check("a", "new; pause id=1; resume id=2", "pause id=1", "nothing");
    check("a", "new; ?resume id=1", "resume id=1", "nothing");
    check("a", "new; ?pause id=1 denied", "pause id=1", "nothing");
    check("a", "new; pause id=1", "cancel id=1", "nothing");
}

/// The answer to a repeated signal does not depend on the run having ended since.
#[test]
fn a_repeated_signal_is_answered_after_the_end() {
    check("a", "new; cancel id=1", "cancel id=1", "nothing");
    check("a", "new; pause id=1; cancel id=2", "pause id=1", "nothing");
    check("a", "new; pause id=1; cancel id=2", "pause id=3", "! RUN_CLOSED the run has ended: it is CANCELLED");
}

#[test]
fn a_signal_of_somebody_who_may_not_is_recorded_as_rejected() {
    for (command, name) in
        [("pause", "PAUSE"), ("cancel", "CANCEL"), ("retry-run", "RETRY_RUN"), ("approve", "APPROVE")]
    {
        check(
            "a",
            "new",
            &format!("{command} denied"),
            &format!("SignalRejected 1 s1 {name} FORBIDDEN\n! FORBIDDEN ann may not do this"),
        );
    }
    let step = "SignalRejected 1 s1 SKIP_STEP step=a FORBIDDEN\n! FORBIDDEN ann may not do this";
    check("a", "new", "skip a denied", step);
}

#[test]
fn a_signal_that_does_not_fit_is_recorded_as_rejected() {
    check(
        "a",
        "new; pause",
        "pause",
        "SignalRejected 1 s2 PAUSE ILLEGAL_TRANSITION
         ! ILLEGAL_TRANSITION a PAUSED run cannot be paused",
    );
    check(
        "a",
        "new queue",
        "pause",
        "SignalRejected 1 s1 PAUSE ILLEGAL_TRANSITION
         ! ILLEGAL_TRANSITION a PENDING run cannot be paused",
    );
    check(
        "a",
        "new queue",
        "approve",
        "SignalRejected 1 s1 APPROVE ILLEGAL_TRANSITION
         ! ILLEGAL_TRANSITION the run does not wait for approval",
    );
    check(
        "a",
        "new approval; approve",
        "approve",
        "SignalRejected 1 s2 APPROVE ILLEGAL_TRANSITION
         ! ILLEGAL_TRANSITION a APPROVED run cannot be approved",
    );
}

/// Accepted and rejected signals are counted apart, so each has a key of its own.
#[test]
fn signals_are_numbered() {
    let given = "new; ?resume; pause; ?pause; resume";
    check("a", given, "pause", "SignalAccepted 3 s5 PAUSE\nRunPaused 2\n> withdraw a#1");
    let third = "SignalRejected 3 s5 RESUME ILLEGAL_TRANSITION\n! ILLEGAL_TRANSITION a RUNNING run cannot be resumed";
    check("a", given, "resume", third);
}

#[test]
fn long_reasons_are_cut() {
    check(
        "a",
        "new",
        "pause reason=long",
        "SignalAccepted 1 s1 PAUSE reason=8192 bytes
         RunPaused 1 reason=8192 bytes
         > withdraw a#1",
    );
    check(
        "a",
        "new",
        "cancel reason=long",
        "SignalAccepted 1 s1 CANCEL reason=8192 bytes
         RunCancelled r1 by=ann reason=8192 bytes
         > withdraw a#1
         > cancel in flight",
    );
}

/// Signal ids are remembered for the life of the run, so there is an end to them; an end of the run still works.
#[test]
fn a_run_takes_so_many_signals() {
    let given: String = (1..=10_000).map(|n| format!("pause id={}; resume id={};", 2 * n - 1, 2 * n)).collect();
    let given = format!("new; {given}");
    check("a", &given, "pause id=20001", "! LIMIT_EXCEEDED the run has reached its limit of 20000 signals");
    check("a", &given, "cancel id=20000", "nothing");
    let ended = "SignalAccepted 20001 s20001 CANCEL\nRunCancelled r1 by=ann\n> withdraw a#1\n> cancel in flight";
    check("a", &given, "cancel id=20001", ended);
    let ended = "RunCancelled r1 by=root reason=enough\n> withdraw a#1\n> cancel in flight";
    check("a", &given, "terminate", ended);
}

/// Rejections are recorded up to a limit of their own, and use up nothing of what the run accepts.
#[test]
fn a_stranger_cannot_use_up_a_runs_signals() {
    let given: String = (1..=1_000).map(|id| format!("?cancel id={id} denied;")).collect();
    let given = format!("new; {given}");
    check("a", &given, "cancel id=1001 denied", "! FORBIDDEN ann may not do this");
    let world = given_world("a", &format!("{given} ?cancel id=1001 denied; ?resume id=1002"));
    assert_eq!((world.state().signals_rejected, world.state().signals.len()), (1_000, 1_000));
    check("a", &given, "pause id=2000", "SignalAccepted 1 s2000 PAUSE\nRunPaused 1\n> withdraw a#1");
}
