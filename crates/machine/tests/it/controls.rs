//! The search must notice a broken machine. Each control breaks it in one way and switches on a single comparison (or
//! none but the fair schedule), so that every comparison is shown to see something.

use crate::random::checker::Checks;
use crate::random::search::search;
use crate::random::subject::Damage;

const MODEL: Checks = Checks { model: true, ..Checks::NONE };
const WATCH: Checks = Checks { watch: true, ..Checks::NONE };
const LOG: Checks = Checks { log: true, ..Checks::NONE };
const ROWS: Checks = Checks { rows: true, ..Checks::NONE };
/// Only that a fair schedule ends the run.
const LIVENESS: Checks = Checks::NONE;

#[track_caller]
fn noticed(damage: Damage, checks: Checks, wanted: &str) {
    let (coverage, failures) = search(10_000, 0, damage, checks);
    let Some(failure) = failures.first() else {
        panic!("{damage:?} went unnoticed in {} sequences by {checks:?}", coverage.sequences);
    };
    assert!(failure.message.contains(wanted), "{damage:?} was noticed for another reason:\n{failure}");
}

/// Without damage no comparison complains, so what the others find is the damage.
#[test]
fn control_of_the_controls() {
    for checks in [MODEL, WATCH, LOG, ROWS, LIVENESS] {
        let (coverage, failures) = search(300, 0, Damage::None, checks);
        assert!(failures.is_empty() && coverage.sequences >= 300, "{checks:?}: {failures:?}");
    }
}

#[test]
fn control_a_forgotten_dispatch_is_a_stuck_run() {
    noticed(Damage::DropDispatch, LIVENESS, "the run is stuck");
    noticed(Damage::DropDispatch, ROWS, "neither a dispatch nor a timer waits for it");
}

#[test]
fn control_a_dispatch_that_is_not_withdrawn() {
    noticed(Damage::DropWithdraw, ROWS, "and its dispatch waits");
}

#[test]
fn control_an_attempt_handed_out_before_its_time() {
    noticed(Damage::DispatchEarly, WATCH, "handed out before its time");
}

#[test]
fn control_a_report_on_an_attempt_that_never_started() {
    noticed(Damage::CompletePending, WATCH, "goes to Ended(true) and is Pending");
    noticed(Damage::CompletePending, MODEL, "and not [] Some(\"StepState\")");
}

#[test]
fn control_an_attempt_completed_twice() {
    noticed(Damage::CompleteTwice, WATCH, "goes to Ended(true) and is Ended(true)");
    noticed(Damage::CompleteTwice, LOG, "has the idempotency key of an earlier event");
}

#[test]
fn control_a_step_that_does_not_wait_for_its_dependencies() {
    noticed(Damage::StartUnready, WATCH, "starts before");
    noticed(Damage::StartUnready, LOG, "was folded as Inverted");
}

#[test]
fn control_the_report_of_a_replaced_hand_over() {
    noticed(Damage::AcceptOldEngine, MODEL, "and not [] Some(\"Superseded\")");
}

#[test]
fn control_occurrences_that_are_not_counted() {
    noticed(Damage::ForgetOccurrence, LOG, "has the idempotency key of an earlier event");
    noticed(Damage::ForgetOccurrence, WATCH, "occurrence 1 follows 1");
}

#[test]
fn control_a_run_that_nothing_ends() {
    noticed(Damage::ForgetEnd, WATCH, "no step is open and the run goes on");
    noticed(Damage::ForgetEnd, LIVENESS, "the run is stuck");
}

#[test]
fn control_a_closed_run_that_records_signals() {
    noticed(Damage::RecordWhenClosed, WATCH, "a run that ended records a signal");
    noticed(Damage::RecordWhenClosed, MODEL, "and not [] Some(\"Closed\")");
}

#[test]
fn control_a_pause_that_does_not_pause() {
    noticed(Damage::ForgetPause, LIVENESS, "the run is stuck");
    noticed(Damage::ForgetPause, MODEL, "RunPaused");
}
