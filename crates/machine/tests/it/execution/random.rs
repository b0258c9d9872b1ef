//! Random histories: whatever is asked in whatever order, a command is refused or recorded, and the fold of the log is the
//! state (`World::record` compares). What must hold after every command is checked here.

use proptest::prelude::*;
use servo_machine::{Answer, CallbackAnswer, ExecutionCommand};
use servo_model::execution::Ended;
use servo_model::operation::{ErrorObject, ExecutionStatus, OperationAction as A, OperationUpdate};

use super::world::{World, callback, cancel, context, inside, invoke, step, wait};

#[derive(Debug, Clone)]
enum Op {
    Checkpoint(Vec<Update>),
    Invoke,
    Answer(u8),
    Lose,
    Callback(u8, u8),
    Chained(u8),
    Pass(u64),
    Tick,
    Stop,
}

#[derive(Debug, Clone)]
struct Update {
    kind: u8,
    id: u8,
    action: u8,
    parent: Option<u8>,
}

fn update() -> impl Strategy<Value = Update> {
    (0..6u8, 0..4u8, 0..5u8, proptest::option::weighted(0.3, 0..4u8)).prop_map(|(kind, id, action, parent)| Update {
        kind,
        id,
        action,
        parent,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => proptest::collection::vec(update(), 0..4).prop_map(Op::Checkpoint),
        4 => Just(Op::Invoke),
        3 => (0..6u8).prop_map(Op::Answer),
        1 => Just(Op::Lose),
        2 => (0..4u8, 0..3u8).prop_map(|(id, answer)| Op::Callback(id, answer)),
        1 => (0..4u8).prop_map(Op::Chained),
        3 => (0..20u64).prop_map(Op::Pass),
        3 => Just(Op::Tick),
        1 => Just(Op::Stop),
    ]
}

fn build(update: &Update) -> OperationUpdate {
    let action = [A::Start, A::Succeed, A::Fail, A::Retry, A::Cancel][usize::from(update.action)];
    let id = |kind: &str| format!("{kind}{}", update.id);
    let made = match update.kind {
        0 | 1 => step(&id("s"), action),
        2 => context(&id("c"), action),
        3 if action == A::Cancel => cancel(&id("w")),
        3 => wait(&id("w"), 5),
        4 => callback(&id("b"), Some(10), Some(4)),
        _ => invoke(&id("i"), "g"),
    };
    match update.parent {
        Some(parent) => inside(made, &format!("c{parent}")),
        None => made,
    }
}

/// Refused commands record nothing and are no failure of the test.
fn perform(world: &mut World, op: &Op) {
    match op {
        Op::Checkpoint(updates) => drop(world.checkpoint(updates.iter().map(build).collect())),
        Op::Invoke => {
            let invocation = world.execution().head.invocations + 1;
            drop(world.run(ExecutionCommand::Invoke { invocation, request_id: format!("r{invocation}") }));
        }
        Op::Answer(kind) => {
            let error = ErrorObject::new("E", "e");
            let answer = match kind {
                0 => Answer::Succeeded(Some("1".to_owned())),
                1 => Answer::Failed(Some(error)),
                2 => Answer::Crashed(error),
                3 => Answer::Unreached(error),
                _ => Answer::Pending,
            };
            drop(world.answer(answer));
        }
        Op::Lose => {
            let invocation = world.execution().head.invocations;
            drop(world.run(ExecutionCommand::Lose { invocation }));
        }
        Op::Callback(id, answer) => {
            let answer = match answer {
                0 => CallbackAnswer::Succeed(None),
                1 => CallbackAnswer::Fail(ErrorObject::default()),
                _ => CallbackAnswer::Heartbeat,
            };
            drop(world.callback(&format!("b{id}"), answer));
        }
        Op::Chained(id) => {
            let ended = Ended { status: ExecutionStatus::Succeeded, result: None, error: None, document: None };
            drop(world.run(ExecutionCommand::ChainedEnded { operation_id: format!("i{id}"), ended }));
        }
        Op::Pass(seconds) => world.advance(*seconds),
        Op::Tick => drop(world.tick()),
        Op::Stop => {
            let error = ErrorObject::new("Stop", "stop");
            drop(world.run(ExecutionCommand::Stop { error, by: "x".to_owned() }));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens_the_log_tells_it(ops in proptest::collection::vec(op(), 1..60)) {
        let mut world = World::new();
        for op in &ops {
            let before = world.state.clone();
            perform(&mut world, op);
            let (state, execution) = (&world.state, world.execution());
            if before.status.is_terminal() {
                prop_assert_eq!(state, &before, "an end is an end");
                continue;
            }
            prop_assert_eq!(execution.head.ended.is_some(), state.status.is_terminal());
            // Nothing that is open is forgotten: the handler runs, is on its way, or a time or somebody outside will come.
            if !state.status.is_terminal() {
                let moves = execution.head.invocation.is_some()
                    || execution.wants_invocation(world.now)
                    || execution.has_pending()
                    || execution.head.retry_at.is_some();
                prop_assert!(moves, "stuck after {:?}: {:?}", op, execution.head);
                prop_assert!(state.next_due(world.now).is_some() || execution.deadline() <= world.now);
            }
        }
    }
}
