//! RESUME: what remains is scheduled; what was done before the pause is not done again.
//!
//! A run may be resumed while it still drains: its steps in flight are recorded, so none of them is started twice.

use servo_model::event::{EventBody, RunResumed, StepFailed};
use servo_model::run::RunChange;
use servo_model::{RunState, StepError, StepStatus, Timestamp, codes};

use crate::command::{LateResults, Policy};
use crate::decision::{Action, Decision};
use crate::refusal::Refusal;
use crate::retry::schedule_retry;
use crate::schedule::View;

pub(crate) fn decide(
    state: &RunState,
    policy: &Policy,
    now: Timestamp,
    decision: &mut Decision,
) -> Result<(), Refusal> {
    let status = state.status.next(RunChange::Resumed)?;
    decision.fact(EventBody::RunResumed(RunResumed { status, logical_attempt_id: state.resumes + 1 }));
    let mut view = View::new(state);
    if state.drain_timed_out == state.pauses && policy.late_results == LateResults::Reject {
        replace_orphans(&mut view, decision);
    }
    view.dispatch_all_ready(decision, now);
    view.finish_if_done(decision);
    Ok(())
}

/// With late results refused, attempts that outlived the drain timeout are lost: each fails and gets a successor.
fn replace_orphans(view: &mut View<'_>, decision: &mut Decision) {
    for (number, step) in (0u32..).zip(&view.state.steps) {
        if step.attempt.status != StepStatus::Running {
            continue;
        }
        let attempt = step.attempt.logical_attempt_id;
        let code = codes::ORPHANED_TASK;
        decision.fact(EventBody::StepFailed(StepFailed {
            step_id: step.step_id.clone(),
            status: StepStatus::Failed,
            logical_attempt_id: attempt,
            engine_attempt_id: step.attempt.engine_attempt_id,
            error: StepError::new(code.code, "still in flight after the drain timeout", true),
        }));
        let reason = code.code.to_owned();
        decision.act(Action::Abandon { step_id: step.step_id.clone(), attempt, reason });
        schedule_retry(view, number, attempt + 1, None, decision);
    }
}
