//! CANCEL: the run ends now; running code is told to stop and its later reports are refused.

use servo_model::event::{EventBody, ExecutionEnded, RunCancelled};
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_model::run::RunChange;
use servo_model::{RunState, RunStatus, StepStatus};

use crate::decision::{Action, Decision};
use crate::execution::{compensation, descendants, end};
use crate::refusal::Refusal;
use crate::schedule::View;

pub(crate) fn decide(state: &RunState, by: &str, reason: Option<&str>, decision: &mut Decision) -> Result<(), Refusal> {
    let status = state.status.next(RunChange::Cancelled)?;
    if let Some(execution) = state.execution.as_deref() {
        end::cut_off(execution, decision);
        decision.fact(stopped(state.round, reason));
    }
    decision.fact(EventBody::RunCancelled(RunCancelled {
        status,
        logical_attempt_id: state.round,
        reason: reason.map(str::to_owned),
        cancelled_by: Some(by.to_owned()),
    }));
    release(state, "the run was cancelled", decision);
    if let Some(execution) = state.execution.as_deref() {
        compensation::begin(state, execution, ExecutionStatus::Stopped, decision);
        descendants::follow(state, execution, ExecutionStatus::Stopped, decision);
    }
    Ok(())
}

/// The same in the words of executions.
fn stopped(logical_attempt_id: u32, reason: Option<&str>) -> EventBody {
    let error = ErrorObject::new("Execution.Stopped", reason.unwrap_or("the run was cancelled"));
    let (status, error) = (ExecutionStatus::Stopped, Some(error));
    let (result, document) = (None, None);
    EventBody::ExecutionEnded(Box::new(ExecutionEnded { logical_attempt_id, status, result, error, document }))
}

/// Takes back everything that a run which ends still has out.
pub(crate) fn release(state: &RunState, reason: &str, decision: &mut Decision) {
    if let Some(execution) = state.execution.as_deref() {
        if matches!(state.status, RunStatus::Pending | RunStatus::Approved) {
            decision.act(Action::Dequeue);
        }
        return end::release(execution, decision);
    }
    if matches!(state.status, RunStatus::Pending | RunStatus::Approved) {
        decision.act(Action::Dequeue);
        return;
    }
    View::new(state).withdraw_all_ready(decision);
    for step in state.steps.iter().filter(|step| step.attempt.status == StepStatus::Running) {
        let (step_id, attempt) = (step.step_id.clone(), step.attempt.logical_attempt_id);
        decision.act(Action::Abandon { step_id, attempt, reason: reason.to_owned() });
    }
    decision.act(Action::CancelInFlight);
}
