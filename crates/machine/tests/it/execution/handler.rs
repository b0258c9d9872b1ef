//! Invocations: fenced, retried, and never for ever.

use std::sync::Arc;

use servo_machine::{Answer, Checkpoint, ExecutionCommand, Refusal, Used};
use servo_model::RunStatus;
use servo_model::event::EventBody;
use servo_model::operation::{ErrorObject, ExecutionStatus, OperationAction as A, OperationUpdate};

use super::world::{World, ending, start, step, wait};

fn crash() -> Answer {
    Answer::Crashed(ErrorObject::new("Runtime.ExitError", "exit status: 1"))
}

/// DX-091: a token is used once, and a new invocation ends the tokens of the one before.
#[test]
fn tokens_of_the_past_are_refused() {
    let mut world = World::running();
    let first = world.call(vec![step("a", A::Start)]);
    world.checkpoint(vec![step("b", A::Start)]).unwrap();
    assert_eq!(world.run(ExecutionCommand::Checkpoint(first)), Err(Refusal::StaleToken));
    let old = world.call(vec![step("c", A::Start)]);
    world.answer(crash()).unwrap();
    assert_eq!(world.run(ExecutionCommand::Checkpoint(old.clone())), Err(Refusal::StaleToken), "between two");
    world.invoke();
    assert_eq!(world.run(ExecutionCommand::Checkpoint(old)), Err(Refusal::StaleToken), "during the next");
}

/// DX-091: a call that is repeated because its answer was lost is recorded once.
#[test]
fn a_repeated_call_changes_nothing() {
    let mut world = World::running();
    let mut call = world.call(vec![step("s", A::Start), step("s", A::Succeed)]);
    call.client_token = Some("once".to_owned());
    assert_eq!(world.run(ExecutionCommand::Checkpoint(call.clone())).unwrap().len(), 1);
    assert_eq!(world.run(ExecutionCommand::Checkpoint(call.clone())).unwrap(), []);
    call.client_token = Some("other".to_owned());
    assert_eq!(
        world.run(ExecutionCommand::Checkpoint(call)),
        Err(Refusal::StaleToken),
        "the same token for another call"
    );
}

/// DX-091: also one that has ended the execution, whatever it has recorded beside that.
#[test]
fn a_repeated_call_that_ended_the_execution_changes_nothing() {
    let error = || Some(ErrorObject::new("Boom", "no"));
    let failure = OperationUpdate { error: error(), ..ending(A::Fail) };
    let table =
        [vec![ending(A::Succeed)], vec![failure], vec![step("s", A::Start), step("s", A::Succeed), ending(A::Succeed)]];
    for updates in table {
        let mut world = World::running();
        let mut call = world.call(updates);
        call.client_token = Some("end".to_owned());
        let facts = world.run(ExecutionCommand::Checkpoint(call.clone())).unwrap();
        assert!(facts.iter().any(|fact| matches!(fact, EventBody::ExecutionEnded(_))));
        assert_eq!(world.run(ExecutionCommand::Checkpoint(call.clone())).unwrap(), [], "{call:?}");
        for other in [Some("other".to_owned()), None] {
            let call = Checkpoint { client_token: other, ..call.clone() };
            assert_eq!(world.run(ExecutionCommand::Checkpoint(call)), Err(Refusal::StaleToken), "another call");
        }
        let next = Checkpoint { number: call.number + 1, client_token: Some("next".to_owned()), ..call };
        assert_eq!(world.run(ExecutionCommand::Checkpoint(next)), Err(Refusal::StaleToken), "a later call");
    }
}

/// DX-093: a handler that dies is invoked again, at once and then with growing pauses, and at last its execution fails.
#[test]
fn a_handler_that_dies_is_invoked_again_and_not_for_ever() {
    let mut world = World::running();
    world.policy.invocation_failures_max = 5;
    let mut waits = Vec::new();
    for _ in 0..4 {
        world.answer(crash()).unwrap();
        let due = world.execution().head.retry_at.unwrap();
        let wait = due.since(world.now).as_secs();
        waits.push(wait);
        if wait > 0 {
            assert!(world.dispatched.is_empty());
            world.advance(wait);
            world.tick();
        }
        assert_eq!(world.dispatched.len(), 1);
        world.invoke();
    }
    assert_eq!(waits, [0, 1, 2, 4]);
    world.answer(crash()).unwrap();
    assert_eq!(world.state.status, RunStatus::Failed);
    let error = world.execution().head.ended.clone().unwrap().error.unwrap();
    assert_eq!(error.error_type.as_deref(), Some("Runtime.ExitError"));
}

#[test]
fn progress_forgives_earlier_deaths() {
    let mut world = World::running();
    for number in 0..20 {
        let id = format!("s{number}");
        world.checkpoint(vec![step(&id, A::Start)]).unwrap();
        world.answer(crash()).unwrap();
        assert_eq!(world.state.status, RunStatus::Running);
        world.invoke();
    }
}

#[test]
fn a_lost_node_is_not_the_handlers_fault() {
    let mut world = World::running();
    for _ in 0..20 {
        let invocation = world.execution().head.invocations;
        world.run(ExecutionCommand::Lose { invocation }).unwrap();
        assert_eq!(world.dispatched, [("handler".to_owned(), invocation + 1)]);
        world.invoke();
    }
    assert_eq!(world.state.status, RunStatus::Running);
    assert_eq!(world.execution().head.failures, 0);
}

/// What a run has used of its time is what its handlers ran, not how long a dead node went unnoticed.
#[test]
fn nobody_pays_for_the_time_until_a_lost_node_is_missed() {
    let mut world = World::running();
    world.advance(2);
    world.checkpoint(vec![step("a", A::Start), step("a", A::Succeed)]).unwrap();
    world.advance(30);
    world.run(ExecutionCommand::Lose { invocation: 1 }).unwrap();
    assert_eq!(world.execution().head.executed_ms, 2_000);
    world.invoke();
    world.advance(30);
    world.run(ExecutionCommand::Lose { invocation: 2 }).unwrap();
    assert_eq!(world.execution().head.executed_ms, 2_000, "nothing was heard of the second");
    world.invoke();
    world.advance(3);
    world.answer(Answer::Succeeded(None)).unwrap();
    assert_eq!(world.execution().head.executed_ms, 5_000);
}

#[test]
fn pending_with_nothing_pending_is_forgiven_twice() {
    let mut world = World::running();
    for _ in 0..2 {
        world.answer(Answer::Pending).unwrap();
        assert_eq!(world.dispatched.len(), 1);
        world.invoke();
    }
    world.answer(Answer::Pending).unwrap();
    let ended = world.execution().head.ended.clone().unwrap();
    assert_eq!(ended.status, ExecutionStatus::Failed);
    let message = ended.error.unwrap().error_message.unwrap();
    assert_eq!(message, "Cannot return PENDING status with no pending operations.");
}

/// A change that the handler has not seen is a reason to be pending: it is invoked again at once.
#[test]
fn a_change_during_the_invocation_is_seen_by_the_next() {
    let mut world = World::running();
    world.checkpoint(vec![wait("w", 1)]).unwrap();
    world.advance(1);
    world.tick();
    assert!(world.dispatched.is_empty(), "it still runs");
    world.answer(Answer::Pending).unwrap();
    assert_eq!(world.dispatched, [("handler".to_owned(), 2)]);
}

#[test]
fn nonsense_fails_at_once() {
    let mut world = World::running();
    world.answer(Answer::Invalid("Invalid invocation output".to_owned())).unwrap();
    let error = world.execution().head.ended.clone().unwrap().error.unwrap();
    assert_eq!(error.error_type.as_deref(), Some("InvalidParameterValueException"));
}

#[test]
fn a_plain_function_is_not_tried_again_and_cannot_checkpoint() {
    let mut world = World::with(start(false));
    world.invoke();
    assert_eq!(world.checkpoint(vec![step("s", A::Start)]), Err(Refusal::StaleToken));
    world.answer(crash()).unwrap();
    assert_eq!(world.state.status, RunStatus::Failed);
}

/// What a function's runtime wrote about its failure is kept for the caller who waits for a plain function, and for nobody else.
#[test]
fn a_document_of_a_failure_is_kept_for_who_waits() {
    let kept = |durable: bool, synchronous: bool, document: &str| {
        let mut begin = start(durable);
        Arc::make_mut(&mut begin.start).synchronous = synchronous;
        let mut world = World::with(begin);
        world.invoke();
        let error = ErrorObject::new("TypeError", "boom");
        world.answer(Answer::Raised { error, document: document.to_owned() }).unwrap();
        assert_eq!(world.state.status == RunStatus::Failed, !durable, "as after any crash");
        world.execution().head.ended.clone().and_then(|ended| ended.document)
    };
    let sent = r#"{"errorType":"TypeError","trace":["at f"]}"#;
    assert_eq!(kept(false, true, sent).as_deref(), Some(sent));
    assert_eq!(kept(false, false, sent), None, "nobody waits");
    assert_eq!(kept(true, true, sent), None, "a durable one is invoked again");
    let large = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    assert!(kept(false, true, &large(6 * 1024 * 1024)).is_some());
    assert_eq!(kept(false, true, &large(6 * 1024 * 1024 + 1)), None, "larger than a result may be");
}

#[test]
fn one_invocation_at_a_time() {
    let mut world = World::running();
    let again = |invocation| ExecutionCommand::Invoke { invocation, request_id: "r".to_owned() };
    assert!(matches!(world.run(again(1)), Err(Refusal::Superseded { .. })));
    assert!(matches!(world.run(again(2)), Err(Refusal::Superseded { .. })));
    let late = ExecutionCommand::Return { invocation: 7, answer: Answer::Pending, used: Used::default() };
    assert!(matches!(world.run(late), Err(Refusal::Superseded { .. })));
}
