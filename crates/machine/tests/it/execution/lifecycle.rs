//! From start to end.

use servo_machine::{Action, Admission, Answer, Command, ExecutionCommand, Refusal, Run, Signal, SignalKind, decide};
use servo_model::event::EventBody;
use servo_model::operation::{ErrorObject, ExecutionStatus, OperationAction as A};
use servo_model::{RunStatus, SignalId};

use super::world::{World, ending, start, step, wait};

fn handler(number: u32) -> Vec<(String, u32)> {
    vec![("handler".to_owned(), number)]
}

#[test]
fn an_execution_starts_with_its_first_invocation() {
    let mut world = World::new();
    assert_eq!(world.state.status, RunStatus::Running);
    assert_eq!(world.dispatched, handler(1));
    world.invoke();
    let facts = world.answer(Answer::Succeeded(Some("1".to_owned()))).unwrap();
    let kinds: Vec<_> = facts.iter().map(EventBody::event_type).collect();
    assert_eq!(kinds, ["HandlerReturned", "ExecutionEnded", "RunCompleted"]);
    let ended = world.execution().head.ended.as_ref().unwrap();
    assert_eq!((ended.status, ended.result.as_deref()), (ExecutionStatus::Succeeded, Some("1")));
}

#[test]
fn a_queued_execution_begins_later() {
    let mut world = World::with(servo_machine::StartExecution { admission: Admission::Queue, ..start(true) });
    assert_eq!((world.state.status, world.dispatched.len()), (RunStatus::Pending, 0));
    world.execute(&Command::Begin).unwrap();
    assert_eq!((world.state.status, world.dispatched.clone()), (RunStatus::Running, handler(1)));
}

/// DX-092: a wait suspends, its time resolves it, and the handler is invoked again.
#[test]
fn a_wait_suspends_until_its_time_and_not_before() {
    let mut world = World::running();
    world.checkpoint(vec![wait("w", 10)]).unwrap();
    world.answer(Answer::Pending).unwrap();
    assert!(world.state.is_suspended());
    assert_eq!(world.state.next_due(world.now), Some(world.now.plus(std::time::Duration::from_secs(10))));
    world.advance(9);
    assert!(world.tick().is_empty());
    world.advance(1);
    assert_eq!(world.tick().len(), 1);
    assert_eq!(world.dispatched, handler(2));
    assert!(!world.state.is_suspended());
    world.invoke();
    assert_eq!(world.execution().changed_after(world.execution().head.seen_before).len(), 1);
}

#[test]
fn an_execution_that_takes_too_long_ends() {
    let mut world = World::running();
    world.checkpoint(vec![wait("w", 99_999)]).unwrap();
    world.answer(Answer::Pending).unwrap();
    world.advance(100_000);
    world.tick();
    let ended = world.execution().head.ended.clone().unwrap();
    assert_eq!(ended.status, ExecutionStatus::TimedOut);
    assert_eq!(ended.error.unwrap().error_message.unwrap(), "Execution timed out after 100000 seconds.");
    assert_eq!(world.state.status, RunStatus::Failed);
    assert_eq!(world.state.next_due(world.now), None, "nothing is due any more");
}

#[test]
fn a_stop_ends_it_once() {
    let mut world = World::running();
    let stop = || ExecutionCommand::Stop { error: ErrorObject::new("Why", "because"), by: "ops".to_owned() };
    world.run(stop()).unwrap();
    assert_eq!(world.state.status, RunStatus::Cancelled);
    assert_eq!(world.run(stop()).unwrap(), [], "again: nothing");
    assert_eq!(world.checkpoint(vec![step("s", A::Start)]), Err(Refusal::StaleToken), "later checkpoints are refused");
    assert!(world.answer(Answer::Succeeded(None)).is_err());
}

type End = dyn Fn(&mut World) -> Vec<EventBody>;

/// API: the end of an invocation stands before the end of its execution, also of one that is cut off; and only of one that runs.
#[test]
fn an_invocation_that_is_cut_off_is_over_before_the_end() {
    let stop = |world: &mut World| {
        let error = ErrorObject::new("Why", "because");
        world.run(ExecutionCommand::Stop { error, by: "ops".to_owned() }).unwrap()
    };
    let time_out = |world: &mut World| {
        world.advance(100_000);
        world.tick()
    };
    let cancel = |world: &mut World| world.execute(&signal(1, SignalKind::Cancel)).unwrap();
    let terminate = |world: &mut World| {
        world.execute(&Command::Terminate { by: "ops".to_owned(), reason: "why".to_owned() }).unwrap()
    };
    let limit = |world: &mut World| {
        world.policy.events_per_run_max = 69;
        world.checkpoint(vec![step("s", A::Start)]).unwrap()
    };
    let ends: [(&str, &End); 5] =
        [("stop", &stop), ("time-out", &time_out), ("cancel", &cancel), ("terminate", &terminate), ("limit", &limit)];
    let told = |facts: Vec<EventBody>| -> Vec<String> {
        let kinds = facts.iter().map(EventBody::event_type);
        let of_handlers = kinds.filter(|kind| matches!(*kind, "HandlerReturned" | "ExecutionEnded"));
        of_handlers.map(str::to_owned).collect()
    };
    for (name, end) in ends {
        let mut world = World::running();
        let facts = end(&mut world);
        assert_eq!(told(facts), ["HandlerReturned", "ExecutionEnded"], "{name}");
        assert!(world.execution().head.invocation.is_none(), "{name}");
        assert!(world.answer(Answer::Succeeded(None)).is_err(), "{name}: a late answer is not wanted");
        if name != "limit" {
            let mut world = World::running();
            world.checkpoint(vec![wait("w", 99_999)]).unwrap();
            world.answer(Answer::Pending).unwrap();
            assert_eq!(told(end(&mut world)), ["ExecutionEnded"], "{name}: it is not running");
        }
    }
}

/// The answer to a large result: it was checkpointed before.
#[test]
fn an_execution_update_ends_it_with_the_call() {
    let mut world = World::running();
    let mut last = ending(A::Succeed);
    last.payload = Some("large".to_owned());
    let facts = world.checkpoint(vec![step("s", A::Start), step("s", A::Succeed), last]).unwrap();
    let kinds: Vec<_> = facts.iter().map(EventBody::event_type).collect();
    assert_eq!(kinds, ["OperationUpdated", "HandlerReturned", "ExecutionEnded", "RunCompleted"]);
    assert_eq!(world.execution().head.ended.as_ref().unwrap().result.as_deref(), Some("large"));
}

pub(super) fn signal(number: u32, kind: SignalKind) -> Command {
    let signal_id = SignalId::parse(&format!("s{number}")).unwrap();
    Command::Signal(Signal { signal_id, kind, by: "ops".to_owned(), reason: None, denied: None })
}

#[test]
fn a_paused_execution_records_and_goes_on_after_the_resume() {
    let mut world = World::running();
    world.execute(&signal(1, SignalKind::Pause)).unwrap();
    world.checkpoint(vec![step("s", A::Start), step("s", A::Succeed)]).unwrap();
    world.answer(Answer::Succeeded(Some("1".to_owned()))).unwrap();
    assert_eq!((world.state.status, world.dispatched.len()), (RunStatus::Paused, 0), "a paused run does not end");
    world.execute(&signal(2, SignalKind::Resume)).unwrap();
    assert_eq!(world.dispatched, handler(2));
    world.invoke();
    world.answer(Answer::Succeeded(Some("1".to_owned()))).unwrap();
    assert_eq!(world.state.status, RunStatus::Completed);
}

#[test]
fn what_becomes_due_during_a_pause_is_resolved_with_the_resume() {
    let mut world = World::running();
    world.checkpoint(vec![wait("w", 10)]).unwrap();
    world.answer(Answer::Pending).unwrap();
    world.execute(&signal(1, SignalKind::Pause)).unwrap();
    world.advance(60);
    assert!(world.tick().is_empty());
    world.execute(&signal(2, SignalKind::Resume)).unwrap();
    world.tick();
    assert_eq!(world.dispatched, handler(2));
}

#[test]
fn a_cancel_is_a_stop() {
    let mut world = World::running();
    world.execute(&signal(1, SignalKind::Cancel)).unwrap();
    assert_eq!(world.execution().head.ended.as_ref().unwrap().status, ExecutionStatus::Stopped);
    assert_eq!(world.state.status, RunStatus::Cancelled);
}

#[test]
fn steps_of_plans_are_not_steps_of_executions() {
    let mut world = World::running();
    world.execute(&signal(1, SignalKind::RetryRun)).unwrap();
    assert!(matches!(world.log.last().unwrap().body, EventBody::SignalRejected(_)));
}

/// R23: a run at its limit ends with the cause, and the handler's own end is told apart from it.
#[test]
fn too_many_events_end_the_execution() {
    let mut world = World::running();
    world.policy.events_per_run_max = 69;
    let checkpoint = world.call(vec![step("s", A::Start)]);
    let command = Command::Execution(Box::new(ExecutionCommand::Checkpoint(checkpoint)));
    let decision = decide(Run::Known(&world.state), &command, &world.policy, world.now).unwrap();
    assert!(matches!(decision.refusal, Some(Refusal::EventLimit(69))));
    assert!(decision.facts.iter().any(|fact| matches!(&fact.body, EventBody::ExecutionEnded(_))));
    assert!(decision.actions.iter().any(|action| matches!(action, Action::Abandon { .. })));
}
