//! Why a run does not go on. Everything that waits says what for, and when it can move at the earliest.

use servo_entrypoint::{BlockedBy, Cause, InvocationStatus};
use servo_model::execution::{EVENT, Execution, Operation, SIGNAL};
use servo_model::operation::{OperationStatus, OperationType};
use servo_model::{RunState, RunStatus, Timestamp};

/// Causes that one answer names; a wide map may wait for thousands of things.
const CAUSES_MAX: usize = 100;

fn waits(cause: Cause, until: Option<Timestamp>) -> BlockedBy {
    BlockedBy { cause, name: None, invocation_id: None, until }
}

pub(super) fn blocked_by(state: &RunState, execution: &Execution) -> Vec<BlockedBy> {
    let head = &execution.head;
    match state.status {
        RunStatus::Pending | RunStatus::Approved => vec![waits(Cause::Queue, state.not_before)],
        RunStatus::Paused => vec![waits(Cause::Operator, None)],
        RunStatus::Running if !execution.has_begun() => vec![waits(Cause::Slot, None)],
        // It runs.
        RunStatus::Running if head.invocation.is_some() => Vec::new(),
        RunStatus::Running => {
            let again = head.retry_at.map(|at| waits(Cause::Retry, Some(at)));
            let open = execution.operations().iter().filter_map(waits_for);
            again.into_iter().chain(open).take(CAUSES_MAX).collect()
        }
        RunStatus::Failed | RunStatus::Cancelled if state.visible() == InvocationStatus::Compensating => {
            vec![waits(Cause::Compensation, None)]
        }
        RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => Vec::new(),
    }
}

/// What an open operation waits for.
fn waits_for(operation: &Operation) -> Option<BlockedBy> {
    let due = operation.due().map(|(at, _)| at);
    let cause = match (operation.operation_type, operation.status) {
        (OperationType::Step, OperationStatus::Pending) => Cause::Retry,
        (OperationType::Wait, OperationStatus::Started) => Cause::Timer,
        (OperationType::Callback, OperationStatus::Started) => match operation.sub_type.as_deref() {
            Some(SIGNAL) => Cause::Signal,
            Some(EVENT) => Cause::Event,
            _ => Cause::Callback,
        },
        (OperationType::ChainedInvoke, OperationStatus::Started) => Cause::Invocation,
        _ => return None,
    };
    let target = operation.chained.as_ref().and_then(|chained| chained.target.as_ref());
    Some(BlockedBy {
        cause,
        name: operation.name.clone(),
        invocation_id: target.map(|target| target.run_id.to_string()),
        until: due,
    })
}
