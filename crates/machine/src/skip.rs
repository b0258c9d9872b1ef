//! SKIP_STEP: an operator decides that a pending step need not run; its dependents go on.

use servo_model::event::{EventBody, SkipCause, StepSkipped};
use servo_model::step::StepChange;
use servo_model::{RunState, RunStatus, StepId, StepStatus};

use crate::decision::{Action, Decision};
use crate::refusal::Refusal;
use crate::schedule::View;

pub(crate) fn decide(
    state: &RunState,
    step_id: &StepId,
    reason: Option<&str>,
    decision: &mut Decision,
) -> Result<(), Refusal> {
    if state.status.is_terminal() {
        return Err(Refusal::Closed(state.status));
    }
    let number = state.step_number(step_id).ok_or_else(|| Refusal::NoStep(step_id.clone()))?;
    let attempt = &state.step(number).attempt;
    attempt
        .status
        .next(StepChange::Skipped)
        .map_err(|illegal| Refusal::StepState { step_id: step_id.clone(), illegal })?;
    decision.fact(EventBody::StepSkipped(StepSkipped {
        step_id: step_id.clone(),
        status: StepStatus::Skipped,
        logical_attempt_id: attempt.logical_attempt_id,
        cause: SkipCause::Operator,
        reason: reason.unwrap_or("skipped by an operator").to_owned(),
        upstream_step_id: None,
    }));
    decision.act(Action::Withdraw { step_id: step_id.clone(), attempt: attempt.logical_attempt_id });
    let mut view = View::new(state);
    view.skip(number);
    if state.status == RunStatus::Running {
        view.dispatch_dependents(number, decision);
        view.finish_if_done(decision);
    }
    Ok(())
}
