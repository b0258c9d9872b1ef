//! Answers to a callback, from whoever has its id.

use servo_model::event::{CallbackHeartbeat, EventBody};
use servo_model::execution::Execution;
use servo_model::operation::{OperationStatus, OperationType};
use servo_model::{RunState, Timestamp};

use super::{CallbackAnswer, settle};
use crate::decision::Decision;
use crate::refusal::Refusal;

pub(crate) fn decide(
    state: &RunState,
    execution: &Execution,
    operation_id: &str,
    answer: &CallbackAnswer,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let operation = execution
        .operation(operation_id)
        .filter(|operation| operation.operation_type == OperationType::Callback)
        .ok_or_else(|| Refusal::NoOperation(operation_id.to_owned()))?;
    // An answer that comes after its time is too late, also if nobody has looked at the clock yet.
    let late = operation.due().is_some_and(|(at, _)| at <= now);
    if state.status.is_terminal() || operation.status != OperationStatus::Started || late {
        return Err(Refusal::CallbackClosed);
    }
    let mut decision = Decision::default();
    let (status, payload, error) = match answer {
        CallbackAnswer::Heartbeat => {
            decision.fact(EventBody::CallbackHeartbeat(CallbackHeartbeat {
                operation_id: operation_id.to_owned(),
                occurrence: operation.occurrence + 1,
            }));
            return Ok(decision);
        }
        CallbackAnswer::Succeed(payload) => (OperationStatus::Succeeded, payload.clone(), None),
        CallbackAnswer::Fail(error) => (OperationStatus::Failed, None, Some(error.clone())),
    };
    resolve(state, execution, settle::resolved(operation, status, payload, error), &mut decision);
    Ok(decision)
}

/// Records it, and has the handler invoked if it does not run.
pub(crate) fn resolve(
    state: &RunState,
    execution: &Execution,
    body: servo_model::event::OperationResolved,
    decision: &mut Decision,
) {
    decision.fact(EventBody::OperationResolved(Box::new(body)));
    let waits = execution.head.invocation.is_none() && execution.head.retry_at.is_none();
    if waits && state.status == servo_model::RunStatus::Running {
        decision.act(settle::dispatch(execution.head.invocations + 1));
    }
}
