//! Calls that do not get to the function: an outage of the handler costs an execution nothing but time.

use std::sync::Arc;

use servo_machine::{Answer, ExecutionCommand, Used};
use servo_model::event::{EventBody, HandlerReturned, HandlerStatus};
use servo_model::limits::{EVENTS_RESERVED, Limits};
use servo_model::operation::{ErrorObject, OperationAction as A};
use servo_model::waiting::{Cause, waits};
use servo_model::{RunStatus, Timestamp};

use super::world::{World, start, step};

fn refused() -> Answer {
    Answer::Unreached(ErrorObject::new("Runtime.ConnectionError", "connection refused"))
}

/// Lets the pause pass, and has the handler invoked again; how long it was.
fn again(world: &mut World) -> u64 {
    let pause = world.execution().head.retry_at.unwrap().since(world.now);
    assert!(world.dispatched.is_empty(), "not before the pause is over");
    world.now = world.now.plus(pause);
    world.tick();
    assert_eq!(world.dispatched.len(), 1);
    world.invoke();
    u64::try_from(pause.as_millis()).unwrap()
}

fn returned(facts: &[EventBody]) -> &HandlerReturned {
    let found = facts.iter().find_map(|fact| match fact {
        EventBody::HandlerReturned(body) => Some(body),
        _ => None,
    });
    found.unwrap()
}

/// DX-093: a handler that is down for hours is called again for as long as it takes, and then the execution goes on. Calls that got
/// nowhere are not counted, whatever crashes stand beside them.
#[test]
fn an_outage_is_waited_for() {
    let mut world = World::running();
    world.policy.invocation_failures_max = 2;
    world.answer(Answer::Crashed(ErrorObject::new("Runtime.ExitError", "exit status: 1"))).unwrap();
    world.invoke();
    let began = world.now;
    let mut tries = 0;
    while world.now.since(began).as_secs() < 4 * 3_600 {
        let facts = world.answer(refused()).unwrap();
        assert_eq!((returned(&facts).status, returned(&facts).unreached), (HandlerStatus::Lost, true));
        assert_eq!(world.state.status, RunStatus::Running);
        let lasted = world.now.since(began).as_millis();
        let pause = u128::from(again(&mut world));
        assert!((1_000..=300_000).contains(&pause) && pause <= (lasted / 10).max(1_000), "{pause} after {lasted}");
        tries += 1;
    }
    assert!((50..200).contains(&tries), "{tries}");
    assert_eq!(world.execution().head.failures, 1, "the crash before it is neither forgiven nor joined");
    assert_eq!(world.execution().head.executed_ms, 0, "nothing ran");
    world.answer(Answer::Succeeded(Some("1".to_owned()))).unwrap();
    assert_eq!(world.state.status, RunStatus::Completed);
    assert_eq!(world.execution().head.unreached, None);
}

/// R21: those that were refused together do not come back together, and a decision that is made again is the same.
#[test]
fn pauses_differ_between_runs() {
    let pause = |name: &str, lasted: u64| {
        let mut world = World::named(name);
        world.invoke();
        world.answer(refused()).unwrap();
        again(&mut world);
        world.advance(lasted);
        world.answer(refused()).unwrap();
        world.execution().head.retry_at.unwrap().since(world.now).as_millis()
    };
    for (lasted, shortest, longest) in [(599, 30_000, 60_000), (9_999, 255_000, 300_000)] {
        let pauses: Vec<u128> = (0..200).map(|number| pause(&format!("inv_{number}"), lasted)).collect();
        assert!(pauses.iter().all(|pause| (shortest..=longest).contains(pause)), "{pauses:?}");
        // Of ten parts each has its share, about.
        let part = |pause: &u128| (pause - shortest) * 10 / (longest - shortest + 1);
        for number in 0..10 {
            let count = pauses.iter().filter(|pause| part(pause) == number).count();
            assert!((5..=40).contains(&count), "{count} of 200 in part {number} of {shortest} to {longest}");
        }
        assert_eq!(pause("inv_1", lasted), pauses[1]);
    }
}

/// The longest execution there is can wait all its time for its handler, also with the shortest of the longest pauses.
#[test]
fn the_log_has_room_for_the_longest_outage() {
    let pauses = servo_model::function::EXECUTION_SECONDS_MAX / 255 + 200;
    assert!(2 * pauses + EVENTS_RESERVED < Limits::default().events_per_run_max);
}

/// What the run waits for is said, and since when.
#[test]
fn an_outage_is_visible() {
    let mut world = World::running();
    let since = world.now;
    for _ in 0..3 {
        world.advance(7);
        world.answer(refused()).unwrap();
        let waits = waits(&world.state, world.execution());
        let at = world.execution().head.retry_at;
        assert_eq!((waits.len(), waits[0].cause, waits[0].until), (1, Cause::Handler, at));
        let reason = format!("it cannot be reached since {since}: connection refused");
        assert_eq!(waits[0].reason().as_deref(), Some(reason.as_str()));
        again(&mut world);
        assert!(servo_model::waiting::waits(&world.state, world.execution()).is_empty(), "it is being called");
    }
    world.answer(Answer::Crashed(ErrorObject::new("Runtime.ExitError", "exit status: 1"))).unwrap();
    let after = waits(&world.state, world.execution());
    assert_eq!((after[0].cause, after[0].reason()), (Cause::Retry, None), "it was reached");
}

/// A lost node in the middle of an outage does not end it.
#[test]
fn a_lost_node_says_nothing_about_the_outage() {
    let mut world = World::running();
    let since: Timestamp = world.now;
    world.answer(refused()).unwrap();
    again(&mut world);
    let invocation = world.execution().head.invocations;
    world.run(ExecutionCommand::Lose { invocation }).unwrap();
    assert_eq!(world.execution().head.unreached.as_ref().unwrap().since, since);
}

/// Something on the way said that it was not there, and yet it has checkpointed: then it was there, and died.
#[test]
fn what_has_checkpointed_was_reached() {
    let mut world = World::running();
    world.policy.invocation_failures_max = 2;
    world.checkpoint(vec![step("a", A::Start)]).unwrap();
    let facts = world.answer(refused()).unwrap();
    assert_eq!((returned(&facts).status, returned(&facts).unreached), (HandlerStatus::Crashed, false));
    assert_eq!(world.execution().head.failures, 1);
}

/// A plain function has not run, so it may be called again; but who waits for its answer is told at once.
#[test]
fn a_plain_function_is_called_again_unless_somebody_waits() {
    let mut world = World::with(start(false));
    world.invoke();
    world.answer(refused()).unwrap();
    assert_eq!(world.state.status, RunStatus::Running);
    again(&mut world);
    world.answer(Answer::Succeeded(None)).unwrap();
    assert_eq!(world.state.status, RunStatus::Completed);
    let mut awaited = start(false);
    Arc::make_mut(&mut awaited.start).synchronous = true;
    let mut world = World::with(awaited);
    world.invoke();
    world.answer(refused()).unwrap();
    assert_eq!(world.state.status, RunStatus::Failed);
}

/// An outage does not outlive the execution's own time.
#[test]
fn an_outage_ends_with_the_execution() {
    let mut world = World::running();
    world.answer(refused()).unwrap();
    world.now = world.execution().deadline();
    world.tick();
    assert_eq!(world.state.status, RunStatus::Failed);
    assert_eq!(world.execution().head.ended.as_ref().unwrap().status.as_str(), "TIMED_OUT");
}

/// Nobody pays for the time that a call waited until somebody took it.
#[test]
fn waiting_to_be_taken_is_not_running() {
    let mut world = World::running();
    world.advance(10);
    let used = Used { waited_ms: 7_500, ..Used::default() };
    world.run(ExecutionCommand::Return { invocation: 1, answer: Answer::Succeeded(None), used }).unwrap();
    assert_eq!(world.execution().head.executed_ms, 2_500);
}
