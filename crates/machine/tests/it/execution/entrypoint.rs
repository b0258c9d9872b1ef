//! Runs of entrypoints: retried, undone, given up, opened again, and told things.

use std::sync::Arc;

use servo_machine::{Answer, Command, ExecutionCommand, Refusal, Signal, SignalKind, StartExecution};
use servo_model::event::EventBody;
use servo_model::execution::SIGNAL;
use servo_model::invocation::{
    Checkpointing, CompensationTrigger, EntrypointKind, EntrypointPin, ErrorCategory, Failure, InvocationMode,
    InvocationStatus as S, RetryRule, errors,
};
use servo_model::operation::{ErrorObject, OperationAction as A, OperationStatus};
use servo_model::{RunId, SignalId, StepId};

use super::world::{World, callback, start, step, wait};

pub(super) fn pin(kind: EntrypointKind) -> EntrypointPin {
    EntrypointPin {
        id: "ep_1".to_owned(),
        address: "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~a.b.c.v1~".to_owned(),
        kind,
        mode: InvocationMode::Async,
        retry: RetryRule {
            max_attempts: 3,
            initial_delay_ms: 200,
            max_delay_ms: 10_000,
            backoff_permille: 2_000,
            non_retryable_errors: vec!["gts.a.b.never.v1~".to_owned()],
        },
        on_failure: None,
        on_cancel: None,
        checkpointing: Checkpointing::Automatic,
        max_suspension_seconds: Some(1_000),
        dead_letter_grace_seconds: 100,
        correlation_id: "c".to_owned(),
        memory_limit_mb: 128,
        function_digest: None,
        compensates: None,
        replay_of: None,
    }
}

pub(super) fn starting(pin: EntrypointPin) -> StartExecution {
    let mut start = start(pin.kind == EntrypointKind::Workflow);
    Arc::make_mut(&mut start.start).entrypoint = Some(Box::new(pin));
    start
}

pub(super) fn function() -> World {
    let mut world = World::with(starting(pin(EntrypointKind::Function)));
    world.invoke();
    world
}

pub(super) fn workflow(change: impl FnOnce(&mut EntrypointPin)) -> World {
    let mut pin = pin(EntrypointKind::Workflow);
    change(&mut pin);
    let mut world = World::with(starting(pin));
    world.invoke();
    world
}

pub(super) fn failed(category: ErrorCategory) -> Answer {
    Answer::Failed(Some(Failure::new(errors::EXECUTION, category, "no").to_error()))
}

fn signal(world: &mut World, kind: SignalKind) -> Result<Vec<EventBody>, Refusal> {
    let number = world.log.len();
    let signal_id = SignalId::parse(&format!("s{number}")).unwrap();
    let signal = Signal { signal_id, kind, by: "op".to_owned(), reason: None, denied: None };
    world.execute(&Command::Signal(signal))
}

fn message(name: &str) -> SignalKind {
    SignalKind::Message { name: name.to_owned(), payload: Some(format!("\"{name}\"")) }
}

fn awaits(id: &str, name: &str) -> servo_model::operation::OperationUpdate {
    let mut update = callback(id, None, None);
    update.name = Some(name.to_owned());
    update.sub_type = Some(SIGNAL.to_owned());
    update
}

/// SR-124, SR-125, SR-127: queued until its handler is called, then running, then at its end.
#[test]
fn a_run_is_queued_until_it_is_called() {
    let mut world = World::with(starting(pin(EntrypointKind::Function)));
    assert_eq!(world.state.visible(), S::Queued);
    world.invoke();
    assert_eq!(world.state.visible(), S::Running);
    world.answer(Answer::Succeeded(Some("{}".to_owned()))).unwrap();
    assert_eq!(world.state.visible(), S::Succeeded);
}

/// SR-045, SR-051, SR-055: a function is tried again as a whole, stays running meanwhile, and ends with its last error.
#[test]
fn a_function_is_tried_again_by_its_policy() {
    let mut world = function();
    for (attempt, wait_ms) in [(1, 200), (2, 400)] {
        world.answer(failed(ErrorCategory::Retryable)).unwrap();
        assert_eq!(world.state.visible(), S::Running, "after attempt {attempt}");
        assert!(world.dispatched.is_empty(), "not before its time");
        let due = world.state.next_due(world.now).unwrap();
        assert_eq!(due.as_millis() - world.now.as_millis(), wait_ms);
        world.advance(1);
        world.tick();
        assert_eq!(world.dispatched.len(), 1);
        world.invoke();
    }
    let last = Failure::new(errors::EXECUTION, ErrorCategory::Retryable, "the third").to_error();
    world.answer(Answer::Failed(Some(last.clone()))).unwrap();
    assert_eq!(world.state.visible(), S::Failed);
    assert_eq!(world.execution().head.ended.as_ref().unwrap().error, Some(last));
}

/// SR-029, SR-048, SR-049, SR-050: neither by category nor by name.
#[test]
fn what_is_not_worth_it_is_not_tried_again() {
    use ErrorCategory as C;
    for category in [C::NonRetryable, C::ResourceLimit, C::Timeout, C::Canceled] {
        let mut world = function();
        world.answer(failed(category)).unwrap();
        assert_eq!(world.state.visible(), S::Failed, "{category:?}");
    }
    let mut world = function();
    let listed = Failure::new("gts.a.b.never.v1~", C::Retryable, "listed").to_error();
    world.answer(Answer::Failed(Some(listed))).unwrap();
    assert_eq!(world.state.visible(), S::Failed);
    // Out of time is a failure of its own, also of a workflow, which is not called again.
    for mut world in [function(), workflow(|_| {})] {
        world.answer(Answer::Crashed(ErrorObject::new("Sandbox.Timedout", "too slow"))).unwrap();
        assert_eq!(world.state.visible(), S::Failed);
    }
}

/// A process that died says nothing about the workflow in it.
#[test]
fn a_lost_process_of_a_workflow_is_replaced() {
    let mut world = workflow(|_| {});
    world.answer(Answer::Crashed(ErrorObject::new("Runtime.ExitError", "killed"))).unwrap();
    assert_eq!((world.state.visible(), world.dispatched.len()), (S::Running, 1));
}

/// SR-129, SR-131: a workflow waits, and goes on when what it waits for has come.
#[test]
fn a_workflow_is_suspended_while_it_waits() {
    let mut world = workflow(|_| {});
    world.checkpoint(vec![wait("w", 10)]).unwrap();
    world.answer(Answer::Pending).unwrap();
    assert_eq!(world.state.visible(), S::Suspended);
    world.advance(10);
    world.tick();
    assert_eq!(world.state.visible(), S::Running);
}

/// SR-055: waiting for the next try of a step is no suspension.
#[test]
fn a_step_between_two_tries_does_not_suspend_its_run() {
    let mut world = workflow(|_| {});
    world.checkpoint(vec![step("a", A::Start), step("a", A::Retry)]).unwrap();
    world.answer(Answer::Pending).unwrap();
    assert_eq!(world.state.visible(), S::Running);
}

/// SR-100, SR-133: suspended for too long is failed, by itself and by control.
#[test]
fn a_suspension_has_an_end() {
    for by_control in [false, true] {
        let mut world = workflow(|_| {});
        world.checkpoint(vec![wait("w", 100_000)]).unwrap();
        world.answer(Answer::Pending).unwrap();
        if by_control {
            signal(&mut world, SignalKind::Pause).unwrap();
        }
        assert_eq!(world.state.visible(), S::Suspended);
        world.advance(999);
        world.tick();
        assert_eq!(world.state.visible(), S::Suspended);
        assert!(world.state.next_due(world.now).is_some(), "somebody will look");
        world.advance(1);
        world.tick();
        assert_eq!(world.state.visible(), S::Failed);
        let ended = world.execution().head.ended.clone().unwrap();
        assert_eq!(Failure::of(&ended.error.unwrap()).category, ErrorCategory::Timeout);
    }
}

/// SR-136, SR-149: without a handler a failed run rests for its grace and is then given up.
#[test]
fn a_failed_run_rests_and_is_then_a_dead_letter() {
    let mut world = function();
    world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
    assert_eq!(world.state.next_due(world.now), Some(world.now.plus(std::time::Duration::from_secs(100))));
    world.advance(99);
    assert!(world.tick().is_empty());
    world.advance(1);
    world.tick();
    assert_eq!(world.state.visible(), S::DeadLettered);
    assert_eq!(world.state.next_due(world.now), None);
    assert!(world.tick().is_empty(), "once");
}

/// SR-134, SR-389: a retry queues the same run, which forgets its end and its attempts.
#[test]
fn a_failed_run_is_tried_again() {
    let mut world = function();
    world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
    signal(&mut world, SignalKind::RetryRun).unwrap();
    assert_eq!(world.state.visible(), S::Queued);
    let head = &world.execution().head;
    assert!(head.ended.is_none() && head.begun_at.is_none() && head.failures == 0);
    world.execute(&Command::Begin).unwrap();
    assert_eq!(world.dispatched, [("handler".to_owned(), 2)]);
    assert_eq!(world.state.visible(), S::Queued);
    world.invoke();
    world.answer(Answer::Succeeded(Some("{}".to_owned()))).unwrap();
    assert_eq!(world.state.visible(), S::Succeeded);
    assert!(signal(&mut world, SignalKind::RetryRun).is_err(), "only what has failed");
}

/// What a workflow has done stands; what failed is done anew, also under the same operation ids.
#[test]
fn a_retried_workflow_goes_on_behind_its_last_success() {
    let mut world = workflow(|_| {});
    world.checkpoint(vec![step("a", A::Start), step("a", A::Succeed)]).unwrap();
    world.checkpoint(vec![step("b", A::Start), step("b", A::Fail)]).unwrap();
    world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
    world.advance(100);
    world.tick();
    assert_eq!(world.state.visible(), S::DeadLettered, "a dead letter can be redriven");
    signal(&mut world, SignalKind::RetryRun).unwrap();
    world.execute(&Command::Begin).unwrap();
    world.invoke();
    assert_eq!(world.operation("a").status, OperationStatus::Succeeded);
    assert!(world.execution().operation("b").is_none());
    world.checkpoint(vec![step("b", A::Start), step("b", A::Succeed)]).unwrap();
    world.answer(Answer::Succeeded(Some("{}".to_owned()))).unwrap();
    assert_eq!(world.state.visible(), S::Succeeded);
}

/// RETRY_STEP and SKIP_STEP of a run that has failed, by the step's name.
#[test]
fn a_failed_step_is_tried_again_or_skipped() {
    let named = |id: &str, action: A| {
        let mut update = step(id, action);
        update.name = Some("ship".to_owned());
        update
    };
    let ship = || StepId::parse("ship").unwrap();
    for skip in [false, true] {
        let mut world = workflow(|_| {});
        world.checkpoint(vec![named("b", A::Start), named("b", A::Fail)]).unwrap();
        world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
        let kind = if skip { SignalKind::SkipStep(ship()) } else { SignalKind::RetryStep(ship()) };
        signal(&mut world, kind).unwrap();
        assert_eq!(world.state.visible(), S::Queued);
        let stands = world.execution().operation("b").map(|operation| operation.status);
        assert_eq!(stands, skip.then_some(OperationStatus::Succeeded));
    }
    let mut world = workflow(|_| {});
    world.checkpoint(vec![named("b", A::Start), named("b", A::Succeed)]).unwrap();
    world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
    assert!(signal(&mut world, SignalKind::RetryStep(ship())).is_err(), "it has not failed");
    assert!(signal(&mut world, SignalKind::RetryStep(StepId::parse("x").unwrap())).is_err());
}

/// SR-135, SR-137, SR-150: undone by the handler of its own end, in the same decision as that end.
#[test]
fn a_run_is_undone_by_the_handler_of_its_end() {
    let handler = || Some("gts.h".to_owned());
    let cases = [
        (handler(), None, true, Some(CompensationTrigger::Failure)),
        (None, handler(), true, None),
        (None, handler(), false, Some(CompensationTrigger::Cancellation)),
        (handler(), None, false, None),
    ];
    for (on_failure, on_cancel, fails, trigger) in cases {
        let mut world = workflow(|pin| (pin.on_failure, pin.on_cancel) = (on_failure, on_cancel));
        if fails {
            world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
        } else {
            signal(&mut world, SignalKind::Cancel).unwrap();
        }
        let begun = world.execution().head.compensation.as_ref().map(|compensation| compensation.trigger);
        assert_eq!(begun, trigger);
        assert_eq!(world.state.visible() == S::Compensating, trigger.is_some());
        assert_eq!(world.dispatched.iter().any(|(step, _)| step == "compensate"), trigger.is_some());
        assert_eq!(world.state.dead_letter_at().is_some(), fails && trigger.is_none());
    }
}

/// SR-138, SR-139, SR-146: undone, or given up; told twice is told once; and nobody interferes.
#[test]
fn undoing_ends_well_or_as_a_dead_letter() {
    let undoing = || {
        let mut world = workflow(|pin| pin.on_failure = Some("gts.h".to_owned()));
        world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
        world
    };
    let run_id = || Some(RunId::parse("inv_2").unwrap());
    for (error, status) in [(None, S::Compensated), (Some(ErrorObject::new("No", "no")), S::DeadLettered)] {
        let mut world = undoing();
        for kind in [SignalKind::Cancel, SignalKind::RetryRun, SignalKind::Pause] {
            assert!(signal(&mut world, kind).is_err());
        }
        let told = ExecutionCommand::Compensated { run_id: run_id(), error: error.clone() };
        world.run(told.clone()).unwrap();
        assert_eq!(world.state.visible(), status);
        assert!(world.run(told).unwrap().is_empty());
    }
    let told = ExecutionCommand::Compensated { run_id: run_id(), error: None };
    assert!(workflow(|_| {}).run(told).is_err(), "nobody undoes it");
}

/// SR-138, SR-139, R23: a run that ended at its limit of events is undone, or given up, like any other. An end that would
/// leave no room for that is a short one.
#[test]
fn a_run_at_its_limit_is_told_that_it_is_undone() {
    use servo_model::limits::EVENTS_RESERVED;
    let outcomes = [(None, S::Compensated), (Some(ErrorObject::new("No", "no")), S::DeadLettered)];
    for (error, status) in outcomes {
        let mut world = workflow(|pin| pin.on_failure = Some("gts.h".to_owned()));
        let before = world.log.len() as u64;
        world.policy.events_per_run_max = before + 1 + EVENTS_RESERVED;
        world.checkpoint(vec![step("a", A::Start)]).unwrap();
        assert_eq!(world.state.visible(), S::Running, "the last events below the reserve");
        world.checkpoint(vec![step("b", A::Start)]).unwrap();
        assert_eq!(world.state.visible(), S::Compensating);
        world.run(ExecutionCommand::Compensated { run_id: None, error }).unwrap();
        assert_eq!(world.state.visible(), status);
        assert!(world.log.len() as u64 <= world.policy.events_per_run_max);
    }
    // Four events end it, and two are kept for how undoing went.
    for (room, code) in [(6, "gts."), (5, "LIMIT_EXCEEDED")] {
        let mut world = workflow(|pin| pin.on_failure = Some("gts.h".to_owned()));
        world.policy.events_per_run_max = world.log.len() as u64 + room;
        world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
        let ended = world.execution().head.ended.clone().unwrap().error.unwrap();
        assert!(ended.error_type.unwrap().starts_with(code), "with room for {room}");
    }
}

/// R23: what comes due at once does not use up what is kept for the run's end.
#[test]
fn more_timers_than_there_is_room_for_end_the_run() {
    let due = |room: u64| {
        let mut world = workflow(|_| {});
        world.checkpoint((0..70).map(|number| wait(&format!("w{number}"), 10)).collect()).unwrap();
        world.answer(Answer::Pending).unwrap();
        world.policy.events_per_run_max = world.log.len() as u64 + room + servo_model::limits::EVENTS_RESERVED;
        world.advance(10);
        world.tick();
        assert!(world.log.len() as u64 <= world.policy.events_per_run_max);
        world
    };
    assert_eq!(due(70).state.visible(), S::Running);
    let mut full = due(69);
    assert_eq!(full.state.visible(), S::Failed);
    assert_eq!(
        full.execution().head.ended.as_ref().unwrap().error.as_ref().unwrap().error_type.as_deref(),
        Some("LIMIT_EXCEEDED")
    );
    full.advance(100);
    full.tick();
    assert_eq!(full.state.visible(), S::DeadLettered, "a tick after the end is let through");
}

/// R23: the same if they came due while the run was paused. It is not left paused for ever.
#[test]
fn a_run_that_has_no_room_to_go_on_ends_when_it_is_resumed() {
    // Its signal and that it has resumed, and what came due.
    for (room, status) in [(72, S::Running), (71, S::Failed)] {
        let mut world = workflow(|_| {});
        world.checkpoint((0..70).map(|number| wait(&format!("w{number}"), 10)).collect()).unwrap();
        world.answer(Answer::Pending).unwrap();
        signal(&mut world, SignalKind::Pause).unwrap();
        world.policy.events_per_run_max = world.log.len() as u64 + room + servo_model::limits::EVENTS_RESERVED;
        world.advance(10);
        let _ = signal(&mut world, SignalKind::Resume);
        assert_eq!(world.state.visible(), status, "with room for {room}");
        assert!(world.log.len() as u64 <= world.policy.events_per_run_max);
    }
    // A signal that is rejected ends nothing: the run is not paused, or who sent it may not.
    for denied in [None, Some("no".to_owned())] {
        let mut world = workflow(|_| {});
        if denied.is_some() {
            signal(&mut world, SignalKind::Pause).unwrap();
        }
        world.policy.events_per_run_max = world.log.len() as u64;
        let before = world.state.visible();
        let signal_id = SignalId::parse("late").unwrap();
        let resume = Signal { signal_id, kind: SignalKind::Resume, by: "op".to_owned(), reason: None, denied };
        assert!(matches!(world.execute(&Command::Signal(resume)), Err(Refusal::EventLimit(_))));
        assert_eq!(world.state.visible(), before);
    }
}

/// The run that undoes another one tells it of its end.
#[test]
fn a_handlers_end_is_passed_on() {
    let mut handler = pin(EntrypointKind::Function);
    let run_id = RunId::parse("inv_0").unwrap();
    handler.compensates = Some(servo_model::invocation::Compensates { run_id, trigger: CompensationTrigger::Failure });
    let mut world = World::with(starting(handler));
    world.invoke();
    world.answer(Answer::Succeeded(None)).unwrap();
    assert_eq!(world.dispatched, [("join".to_owned(), 1)]);
}

/// SR-386, SR-387, SR-388, SR-394: messages do not use up what those who operate the run need.
#[test]
fn a_run_full_of_messages_is_still_controlled() {
    use servo_model::limits::SIGNALS_PER_RUN_MAX;
    let mut world = workflow(|_| {});
    world.checkpoint(vec![step("a", A::Start)]).unwrap();
    world.state.signals_accepted = SIGNALS_PER_RUN_MAX - 1;
    let sent = |state: &servo_model::RunState, id: u32, kind: SignalKind| {
        let signal_id = SignalId::parse(&format!("s{id}")).unwrap();
        let signal = Signal { signal_id, kind, by: "op".to_owned(), reason: None, denied: None };
        let (policy, now) = (servo_machine::Policy::default(), world.now);
        servo_machine::decide(servo_machine::Run::Known(state), &Command::Signal(signal), &policy, now)
            .map(|decision| decision.refusal)
    };
    assert_eq!(sent(&world.state, 1, message("go")).unwrap(), None, "the last one that fits");
    let mut full = world.state.clone();
    full.signals_accepted = SIGNALS_PER_RUN_MAX;
    assert_eq!(sent(&full, 2, message("go")).unwrap_err(), Refusal::SignalLimit(SIGNALS_PER_RUN_MAX));
    for kind in [SignalKind::Pause, SignalKind::Cancel] {
        assert_eq!(sent(&full, 3, kind).unwrap(), None);
    }
    full.status = servo_model::RunStatus::Paused;
    assert_eq!(sent(&full, 4, SignalKind::Resume).unwrap(), None);
}

/// SR-222, SR-387: a function neither waits nor is suspended nor told anything.
#[test]
fn a_function_is_not_suspended() {
    for kind in [SignalKind::Pause, message("m")] {
        let mut world = function();
        let facts = signal(&mut world, kind).unwrap();
        assert!(matches!(facts.as_slice(), [EventBody::SignalRejected(_)]), "{facts:?}");
        assert_eq!(world.state.visible(), S::Running);
    }
}

/// SR-222: nor is it undone, however it ends and whatever its pin says, and between two tries it is running.
#[test]
fn a_function_is_never_undone() {
    let handler = || Some("gts.h".to_owned());
    let begun = || {
        let mut pin = pin(EntrypointKind::Function);
        (pin.on_failure, pin.on_cancel) = (handler(), handler());
        let mut world = World::with(starting(pin));
        world.invoke();
        world
    };
    let is_undone = |world: &World| {
        let compensates = world.dispatched.iter().any(|(step, _)| step == "compensate");
        compensates || world.execution().head.compensation.is_some()
    };
    let fails = |world: &mut World, category| {
        world.answer(failed(category)).unwrap();
        assert!(!is_undone(world));
    };
    let mut world = begun();
    for _ in 0..2 {
        fails(&mut world, ErrorCategory::Retryable);
        assert_eq!(world.state.visible(), S::Running, "it waits for its next try, and is not suspended");
        world.advance(1);
        world.tick();
        world.invoke();
    }
    fails(&mut world, ErrorCategory::Retryable);
    assert_eq!(world.state.visible(), S::Failed);
    world.advance(100);
    world.tick();
    assert_eq!((world.state.visible(), is_undone(&world)), (S::DeadLettered, false));

    for category in [ErrorCategory::NonRetryable, ErrorCategory::Timeout, ErrorCategory::ResourceLimit] {
        let mut world = begun();
        fails(&mut world, category);
        assert_eq!(world.state.visible(), S::Failed);
    }
    let mut world = begun();
    signal(&mut world, SignalKind::Cancel).unwrap();
    assert_eq!((world.state.visible(), is_undone(&world)), (S::Canceled, false));
}

/// A message answers whoever waits for its name, and only once.
#[test]
fn a_message_answers_the_oldest_wait_of_its_name() {
    let mut world = workflow(|_| {});
    world.checkpoint(vec![awaits("x", "other"), awaits("a", "go"), awaits("b", "go")]).unwrap();
    world.answer(Answer::Pending).unwrap();
    signal(&mut world, message("go")).unwrap();
    assert_eq!(world.dispatched, [("handler".to_owned(), 2)]);
    let status = |world: &World, id: &str| world.operation(id).status;
    assert_eq!(status(&world, "a"), OperationStatus::Succeeded);
    assert_eq!(world.operation("a").result.as_deref(), Some("\"go\""));
    assert_eq!((status(&world, "b"), status(&world, "x")), (OperationStatus::Started, OperationStatus::Started));
    assert!(world.execution().head.messages.is_empty());
}

/// A message that comes early is kept, and answers the wait that comes later, each one wait.
#[test]
fn an_early_message_waits_for_its_wait() {
    let mut world = workflow(|_| {});
    signal(&mut world, message("go")).unwrap();
    signal(&mut world, message("go")).unwrap();
    assert!(world.dispatched.is_empty(), "nobody waits");
    world.checkpoint(vec![awaits("a", "go"), awaits("x", "other")]).unwrap();
    assert_eq!(world.operation("a").status, OperationStatus::Succeeded);
    assert_eq!(world.execution().head.messages.len(), 1);
    world.checkpoint(vec![awaits("b", "go"), awaits("c", "go")]).unwrap();
    assert_eq!(world.operation("b").status, OperationStatus::Succeeded);
    assert_eq!(world.operation("c").status, OperationStatus::Started);
    assert!(world.execution().head.messages.is_empty());
}

/// SR-102: a workflow that records nothing is tried again from its start: by its policy when it failed, and whatever that says
/// when its process was lost.
#[test]
fn a_workflow_without_checkpoints_is_tried_again_as_a_whole() {
    let disabled = |pin: &mut EntrypointPin| pin.checkpointing = Checkpointing::Disabled;
    let mut world = workflow(disabled);
    for wait_ms in [200, 400] {
        world.answer(failed(ErrorCategory::Retryable)).unwrap();
        assert_eq!(world.state.visible(), S::Running);
        assert_eq!(world.state.next_due(world.now).unwrap().as_millis() - world.now.as_millis(), wait_ms);
        world.advance(1);
        world.tick();
        world.invoke();
    }
    world.answer(failed(ErrorCategory::Retryable)).unwrap();
    assert_eq!(world.state.visible(), S::Failed);

    let mut world = workflow(|pin| {
        disabled(pin);
        pin.retry = RetryRule::never();
    });
    world.answer(Answer::Crashed(ErrorObject::new("Runtime.ExitError", "gone"))).unwrap();
    assert_eq!(world.state.visible(), S::Running, "lost, not failed");
    world.answer(failed(ErrorCategory::Retryable)).unwrap_err();

    // One that records its steps tries those again, and not itself.
    let mut world = workflow(|_| {});
    world.answer(failed(ErrorCategory::Retryable)).unwrap();
    assert_eq!(world.state.visible(), S::Failed);
}
