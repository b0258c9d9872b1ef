//! Trying a failed run of an entrypoint again, and skipping a step that fails.
//!
//! What has succeeded stands: a workflow goes on behind its last success. A function has nothing that could stand.

use servo_model::event::EventBody;
use servo_model::execution::{Execution, Operation};
use servo_model::invocation::InvocationStatus;
use servo_model::operation::{OperationStatus, OperationType};
use servo_model::run::RunChange;
use servo_model::{RunState, RunStatus, StepId, Timestamp};

use super::{callback, settle};
use crate::decision::Decision;
use crate::refusal::Refusal;
use crate::retry::queue_again;

pub(crate) fn run(state: &RunState, reason: &str, decision: &mut Decision, now: Timestamp) -> Result<(), Refusal> {
    state.status.next(RunChange::Requeued)?;
    // A run that is being undone, or was, is over.
    if !matches!(state.visible(), InvocationStatus::Failed | InvocationStatus::DeadLettered) {
        return Err(Refusal::Closed(state.status));
    }
    queue_again(state, reason, decision, now)
}

/// A step by its id or its name; the last one of a name counts.
fn find<'a>(execution: &'a Execution, step_id: &StepId) -> Result<&'a Operation, Refusal> {
    let id = step_id.as_str();
    let steps = execution.operations().iter().rev().filter(|operation| operation.operation_type == OperationType::Step);
    let named = |operation: &&Operation| operation.name.as_deref() == Some(id);
    let found = execution.operation(id).or_else(|| steps.into_iter().find(named));
    found.ok_or_else(|| Refusal::NoStep(step_id.clone()))
}

/// RETRY_STEP: the step has failed, and its run with it.
pub(crate) fn step(
    state: &RunState,
    execution: &Execution,
    step_id: &StepId,
    decision: &mut Decision,
    now: Timestamp,
) -> Result<(), Refusal> {
    let operation = find(execution, step_id)?;
    if operation.status != OperationStatus::Failed {
        return Err(Refusal::NotFailed { step_id: step_id.clone(), status: operation.status.as_str() });
    }
    run(state, &format!("retry of step `{step_id}`"), decision, now)
}

/// SKIP_STEP: a step that failed, or waits for its next try, counts as done with no result.
pub(crate) fn skip(
    state: &RunState,
    execution: &Execution,
    step_id: &StepId,
    decision: &mut Decision,
    now: Timestamp,
) -> Result<(), Refusal> {
    let operation = find(execution, step_id)?;
    let done = settle::resolved(operation, OperationStatus::Succeeded, Some("null".to_owned()), None);
    match (operation.operation_type, operation.status, state.status) {
        (OperationType::Step, OperationStatus::Pending | OperationStatus::Ready, RunStatus::Running) => {
            callback::resolve(state, execution, done, decision);
            Ok(())
        }
        (OperationType::Step, OperationStatus::Failed, RunStatus::Failed) => {
            // Before the run is opened again, which forgets what has not succeeded.
            decision.fact(EventBody::OperationResolved(Box::new(done)));
            run(state, &format!("skip of step `{step_id}`"), decision, now)
        }
        _ => Err(Refusal::NotFailed { step_id: step_id.clone(), status: operation.status.as_str() }),
    }
}
