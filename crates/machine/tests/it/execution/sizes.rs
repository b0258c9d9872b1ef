//! What an execution may return, by whichever way.

use std::sync::Arc;

use servo_machine::{Answer, ExecutionCommand, Refusal, StartExecution};
use servo_model::RunId;
use servo_model::event::ParentOperation;
use servo_model::execution::Ended;
use servo_model::invocation::EntrypointKind;
use servo_model::operation::{
    ErrorObject, ExecutionStatus as E, OperationAction as A, OperationStatus, OperationUpdate,
};

use super::entrypoint::{pin, starting};
use super::world::{World, ending, invoke, start};

const SMALL: usize = 1_048_576;
const LARGE: usize = 6_291_456;

fn synchronous(mut start: StartExecution) -> StartExecution {
    Arc::make_mut(&mut start.start).synchronous = true;
    start
}

fn chained(mut start: StartExecution) -> StartExecution {
    Arc::make_mut(&mut start.start).parent =
        Some(ParentOperation { run_id: RunId::parse("p").unwrap(), operation_id: "i".to_owned() });
    start
}

/// DX-007: the service's limits of results (1 MiB of a child or where nobody waits, 6 MiB else) fail an execution that returns
/// more, and refuse the checkpoint that says the same.
#[test]
fn a_result_is_judged_alike_whether_it_is_returned_or_recorded() {
    let workflow = || starting(pin(EntrypointKind::Workflow));
    let function = || starting(pin(EntrypointKind::Function));
    let table = [
        (start(true), SMALL, "Execution"),
        (synchronous(start(true)), LARGE, "Execution"),
        (chained(start(true)), SMALL, "Execution"),
        (start(false), LARGE, "Execution"),
        (chained(start(false)), SMALL, "CHAINED_INVOKE"),
        (workflow(), LARGE, "Execution"),
        (chained(workflow()), SMALL, "Execution"),
        (function(), LARGE, "Execution"),
        (chained(function()), SMALL, "CHAINED_INVOKE"),
    ];
    for (start, max, what) in table {
        let message = format!("{what} output payload size must be less than or equal to {max} bytes.");
        let case = format!("{:?}", start.start);
        let running = || {
            let mut world = World::with(start.clone());
            world.invoke();
            world
        };
        for (size, status) in [(max, E::Succeeded), (max + 1, E::Failed)] {
            let result = Some("x".repeat(size));
            let mut world = running();
            world.answer(Answer::Succeeded(result.clone())).unwrap();
            let ended = world.execution().head.ended.clone().unwrap();
            assert_eq!(ended.status, status, "{size}: {case}");
            let error = (status == E::Failed).then(|| ErrorObject::new("InvalidParameterValueException", &message));
            assert_eq!((ended.result.is_some(), ended.error), (error.is_none(), error), "{size}: {case}");
            if start.start.durable {
                let update = OperationUpdate { payload: result, ..ending(A::Succeed) };
                let recorded = running().checkpoint(vec![update]).map(|_| ());
                let refused = Err(Refusal::Invalid(message.clone()));
                assert_eq!(recorded, if status == E::Failed { refused } else { Ok(()) }, "{size}: {case}");
            }
        }
    }
}

/// One whose end was recorded when nobody judged it.
#[test]
fn a_large_result_of_another_fails_the_operation() {
    for (size, status) in [(SMALL, OperationStatus::Succeeded), (SMALL + 1, OperationStatus::Failed)] {
        let mut world = World::running();
        world.checkpoint(vec![invoke("i", "g")]).unwrap();
        let ended = Ended { status: E::Succeeded, result: Some("x".repeat(size)), error: None, document: None };
        world.run(ExecutionCommand::ChainedEnded { operation_id: "i".to_owned(), ended }).unwrap();
        assert_eq!(world.operation("i").status, status);
        let said = world.operation("i").error.clone().and_then(|error| error.error_message);
        let message = "CHAINED_INVOKE output payload size must be less than or equal to 1048576 bytes.";
        assert_eq!(said.as_deref(), (size > SMALL).then_some(message));
    }
}
