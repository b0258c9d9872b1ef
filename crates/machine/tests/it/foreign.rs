//! A log that was written elsewhere and brings no plan: it begins with `RunStarted`, and its steps appear as they run.

use servo_machine::{Decision, Fact};

use crate::check::given_world;
use crate::op::op;
use crate::text::answer;
use crate::world::World;

/// The events of these types, in this order of types, as one of our own runs has them.
fn foreign(given: &str, types: &[&str]) -> World {
    let log = given_world("a b", given).log.expect("kept");
    let mut kept: Vec<_> = log.into_iter().filter(|event| types.contains(&event.body.event_type())).collect();
    kept.sort_by_key(|event| types.iter().position(|name| *name == event.body.event_type()));
    let facts = kept.into_iter().map(|event| Fact { body: event.body, occurred_at: None }).collect();
    let mut world = World::new("a b");
    world.record(&Decision { facts, ..Decision::default() }).expect("the log folds");
    world
}

#[track_caller]
fn check(mut world: World, command: &str, expected: &[&str]) -> World {
    let command = world.command(&op(command)).expect("a command");
    let outcome = world.decide(&command);
    assert_eq!(answer(&outcome), expected);
    if let Ok(decision) = &outcome {
        world.record(decision).expect("the answer folds");
    }
    world
}

#[test]
fn its_steps_can_be_reported_on_and_end_it() {
    let running = || foreign("new; start a", &["RunStarted", "StepStarted"]);
    check(running(), "ok a", &["StepCompleted a#1/1", "RunCompleted r1", "> deliver a#1"]);
    check(running(), "fail a retryable", &["StepFailed a#1/1 BOOM", "RunFailed r1 BOOM step=a", "> abandon a#1 BOOM"]);
    check(running(), "take a", &["StepTakenOver a#1/2", "> adopt a#1"]);
    check(running(), "start b", &["! STEP_NOT_FOUND no step `b` in this run"]);
}

#[test]
fn it_is_paused_and_resumed_without_anything_to_schedule() {
    let paused = check(
        foreign("new; start a", &["RunStarted", "StepStarted"]),
        "pause",
        &["SignalAccepted 1 s1 PAUSE", "RunPaused 1 drain=t+1000"],
    );
    check(paused, "resume", &["SignalAccepted 2 s2 RESUME", "RunResumed 1"]);
}

/// Its steps are not known to be all, so it cannot begin again.
#[test]
fn it_is_not_queued_again() {
    let failed =
        || foreign("new; start a; start b; fail a; fail b", &["RunStarted", "StepStarted", "StepFailed", "RunFailed"]);
    check(failed(), "retry-run", &["! ILLEGAL_TRANSITION a FAILED run cannot be queued again"]);
    check(failed(), "retry a", &["! ILLEGAL_TRANSITION a FAILED run cannot be queued again"]);
}

/// The plan may also come late. The steps get its numbers then, and the first failure is still the first.
#[test]
fn a_plan_that_comes_late_changes_no_root_cause() {
    let given = "new; start b; start a; fail b";
    let world = foreign(given, &["RunStarted", "StepStarted", "StepFailed", "RunQueued"]);
    assert_eq!(world.summary(), "RUNNING a#1:RUNNING b#1:FAILED");
    check(world, "fail a", &["StepFailed a#1/1 BOOM", "RunFailed r1 BOOM step=b", "> abandon a#1 BOOM"]);
}
