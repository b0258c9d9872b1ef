//! The end of an execution, told to the operation that waits for it.

use servo_model::RunState;
use servo_model::execution::{Ended, Execution};
use servo_model::operation::{ErrorObject, ExecutionStatus, OperationStatus, OperationType};

use super::{callback, settle, size};
use crate::decision::Decision;
use crate::refusal::Refusal;

pub(crate) fn ended(
    state: &RunState,
    execution: &Execution,
    operation_id: &str,
    ended: &Ended,
) -> Result<Decision, Refusal> {
    if state.status.is_terminal() {
        return Err(Refusal::Closed(state.status));
    }
    let operation = execution
        .operation(operation_id)
        .filter(|operation| operation.operation_type == OperationType::ChainedInvoke)
        .ok_or_else(|| Refusal::NoOperation(operation_id.to_owned()))?;
    let mut decision = Decision::default();
    if operation.status != OperationStatus::Started {
        return Ok(decision);
    }
    let (status, result, error) = match ended.status {
        ExecutionStatus::Succeeded | ExecutionStatus::Running => {
            // The other fails by itself with such a result; one that has ended before it did so is judged here.
            if ended.result.as_ref().is_some_and(|result| result.len() > size::PAYLOAD_BYTES_MAX) {
                let message = size::message("CHAINED_INVOKE", "output", size::PAYLOAD_BYTES_MAX);
                (OperationStatus::Failed, None, Some(ErrorObject::new("InvalidParameterValueException", message)))
            } else {
                (OperationStatus::Succeeded, ended.result.clone(), None)
            }
        }
        ExecutionStatus::Failed => (OperationStatus::Failed, None, ended.error.clone()),
        ExecutionStatus::Stopped => (OperationStatus::Stopped, None, ended.error.clone()),
        ExecutionStatus::TimedOut => {
            let seconds = ended.error.as_ref().and_then(|error| error.error_message.clone());
            let message = seconds.unwrap_or_default().replacen("Execution", "CHAINED_INVOKE", 1);
            (OperationStatus::TimedOut, None, Some(ErrorObject::new("ChainedInvoke.Timeout", message)))
        }
    };
    callback::resolve(state, execution, settle::resolved(operation, status, result, error), &mut decision);
    Ok(decision)
}
