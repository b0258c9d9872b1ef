//! Executions that wait for others.

use std::sync::Arc;

use servo_machine::{Action, Answer, Command, ExecutionCommand, Run, decide};
use servo_model::RunId;
use servo_model::event::ParentOperation;
use servo_model::execution::Ended;
use servo_model::operation::{ErrorObject, ExecutionStatus as E, OperationStatus as S};

use super::world::{World, invoke, start};

fn ended(status: E) -> Ended {
    let error = (status != E::Succeeded).then(|| ErrorObject::new("Why", "Execution timed out after 9 seconds."));
    Ended { status, result: (status == E::Succeeded).then(|| "1".to_owned()), error, document: None }
}

/// DX-007
#[test]
fn the_end_of_the_other_resolves_the_operation() {
    let table =
        [(E::Succeeded, S::Succeeded), (E::Failed, S::Failed), (E::TimedOut, S::TimedOut), (E::Stopped, S::Stopped)];
    for (end, status) in table {
        let mut world = World::running();
        world.checkpoint(vec![invoke("i", "g")]).unwrap();
        world.answer(Answer::Pending).unwrap();
        let tell = || ExecutionCommand::ChainedEnded { operation_id: "i".to_owned(), ended: ended(end) };
        world.run(tell()).unwrap();
        assert_eq!(world.operation("i").status, status);
        assert_eq!(world.dispatched, [("handler".to_owned(), 2)]);
        assert_eq!(world.run(tell()).unwrap(), [], "told again: nothing");
    }
}

#[test]
fn a_timeout_is_told_in_the_operations_words() {
    let mut world = World::running();
    world.checkpoint(vec![invoke("i", "g")]).unwrap();
    world.run(ExecutionCommand::ChainedEnded { operation_id: "i".to_owned(), ended: ended(E::TimedOut) }).unwrap();
    let error = world.operation("i").error.clone().unwrap();
    assert_eq!(error, ErrorObject::new("ChainedInvoke.Timeout", "CHAINED_INVOKE timed out after 9 seconds."));
}

/// The other is started with the checkpoint that asks for it, in one transaction.
#[test]
fn the_other_is_started_with_the_checkpoint() {
    let world = World::running();
    let call = world.call(vec![invoke("i", "g")]);
    let command = Command::Execution(Box::new(ExecutionCommand::Checkpoint(call)));
    let decision = decide(Run::Known(&world.state), &command, &world.policy, world.now).unwrap();
    let spawned: Vec<_> = decision.actions.iter().filter(|action| matches!(action, Action::Spawn(_))).collect();
    assert_eq!(spawned.len(), 1);
}

#[test]
fn a_target_that_is_not_there_fails_in_the_same_answer() {
    let mut world = World::running();
    world.checkpoint(vec![invoke("i", "missing")]).unwrap();
    assert_eq!(world.operation("i").status, S::Failed);
    assert!(!world.execution().has_unseen(), "the handler sees it in the answer");
}

#[test]
fn who_waits_is_told_of_the_end() {
    let mut waited = start(true);
    Arc::make_mut(&mut waited.start).parent =
        Some(ParentOperation { run_id: RunId::parse("p").unwrap(), operation_id: "i".to_owned() });
    let mut world = World::with(waited);
    world.invoke();
    world.answer(Answer::Succeeded(None)).unwrap();
    assert_eq!(world.dispatched, [("join".to_owned(), 1)]);
}
