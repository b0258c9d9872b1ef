//! The published status machine of invocations, held against every event of every world of these tests.

use servo_machine::{Answer, Command, ExecutionCommand, Signal, SignalKind};
use servo_model::invocation::{EntrypointKind, ErrorCategory, InvocationStatus as S};
use servo_model::operation::ErrorObject;
use servo_model::{RunId, RunState, SignalId, StepId};

use super::entrypoint::{failed, function, workflow};
use super::world::{World, wait};

/// What may follow. A dead letter is terminal but for a redrive, which queues it again.
pub(super) fn may_follow(from: S, kind: EntrypointKind) -> Vec<S> {
    let workflow = kind == EntrypointKind::Workflow;
    let all = match from {
        S::Queued => vec![S::Running, S::Canceled],
        S::Running => vec![S::Suspended, S::Succeeded, S::Failed, S::Canceled],
        S::Suspended => vec![S::Running, S::Canceled, S::Failed],
        S::Failed => vec![S::Queued, S::Compensating, S::DeadLettered],
        S::Canceled => vec![S::Compensating],
        S::Compensating => vec![S::Compensated, S::DeadLettered],
        S::DeadLettered => vec![S::Queued],
        S::Succeeded | S::Compensated => Vec::new(),
    };
    all.into_iter().filter(|status| workflow || !matches!(status, S::Suspended | S::Compensating)).collect()
}

/// Whether a decision led somewhere that the table does not.
pub(super) fn check(before: &RunState, after: &RunState) {
    let Some(pin) = after.entrypoint() else { return };
    let (from, to) = (before.visible(), after.visible());
    // The first events of a run make it queued.
    if before.entrypoint().is_some() && from != to {
        assert!(may_follow(from, pin.kind).contains(&to), "{from:?} to {to:?} of a {:?}", pin.kind);
    }
}

fn in_every_status() -> Vec<World> {
    let mut worlds = Vec::new();
    for make in
        [function as fn() -> World, || workflow(|_| {}), || workflow(|pin| pin.on_failure = Some("gts.h".to_owned()))]
    {
        let mut world = make();
        worlds.push(make());
        world.answer(Answer::Succeeded(Some("{}".to_owned()))).unwrap();
        worlds.push(world);
        let mut world = make();
        world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
        worlds.push(world);
        let mut world = make();
        world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
        world.advance(100);
        world.tick();
        worlds.push(world);
        let mut world = make();
        send(&mut world, SignalKind::Cancel);
        worlds.push(world);
    }
    for error in [None, Some(ErrorObject::new("No", "no"))] {
        let mut world = workflow(|pin| pin.on_failure = Some("gts.h".to_owned()));
        world.answer(failed(ErrorCategory::NonRetryable)).unwrap();
        world.run(ExecutionCommand::Compensated { run_id: RunId::parse("inv_2").ok(), error }).unwrap();
        worlds.push(world);
    }
    let mut world = workflow(|_| {});
    world.checkpoint(vec![wait("w", 10)]).unwrap();
    world.answer(Answer::Pending).unwrap();
    worlds.push(world);
    for kind in [EntrypointKind::Function, EntrypointKind::Workflow] {
        worlds.push(World::with(super::entrypoint::starting(super::entrypoint::pin(kind))));
    }
    worlds
}

fn send(world: &mut World, kind: SignalKind) {
    let signal_id = SignalId::parse(&format!("t{}", world.log.len())).unwrap();
    let signal = Signal { signal_id, kind, by: "op".to_owned(), reason: None, denied: None };
    // A refusal changes nothing; what is accepted is checked by the world.
    let _ = world.execute(&Command::Signal(signal));
}

/// SR-140, SR-141, SR-142, SR-143, SR-144, SR-145, SR-146, SR-147: whatever is asked in whatever status, nothing outside the
/// table happens.
#[test]
fn nothing_outside_the_table_happens() {
    let kinds = || {
        let step = || StepId::parse("w").unwrap();
        [
            SignalKind::Pause,
            SignalKind::Resume,
            SignalKind::Cancel,
            SignalKind::Approve,
            SignalKind::RetryRun,
            SignalKind::RetryStep(step()),
            SignalKind::SkipStep(step()),
            SignalKind::Message { name: "m".to_owned(), payload: None },
        ]
    };
    let worlds = in_every_status().len();
    for status in S::ALL {
        assert!(in_every_status().iter().any(|world| world.state.visible() == status), "no world is {status:?}");
    }
    for number in 0..worlds {
        for first in kinds() {
            for second in kinds() {
                let mut world = in_every_status().swap_remove(number);
                send(&mut world, first.clone());
                send(&mut world, second);
                world.advance(10_000);
                let _ = world.execute(&Command::Tick);
            }
        }
    }
}
