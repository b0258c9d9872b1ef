//! Retries: of a step, by signal or by the plan's policy, and of a whole failed run.

use std::collections::VecDeque;

use servo_model::event::{EventBody, RunQueued, StepFailed, StepRetryScheduled};
use servo_model::run::{IllegalRunChange, RunChange};
use servo_model::{RunState, RunStatus, StepError, StepId, StepStatus, Timestamp, codes};

use crate::decision::{Action, Decision};
use crate::refusal::Refusal;
use crate::schedule::View;

/// Makes the next attempt of a step. The failed one stays as it ended.
pub(crate) fn schedule_retry(
    view: &mut View<'_>,
    number: u32,
    attempt: u32,
    not_before: Option<Timestamp>,
    decision: &mut Decision,
) {
    decision.fact(EventBody::StepRetryScheduled(StepRetryScheduled {
        step_id: view.state.step(number).step_id.clone(),
        logical_attempt_id: attempt,
        not_before,
    }));
    view.pend(number, attempt);
}

/// Attempts that nobody will report on any more: each fails and gets a successor. Gives those that were lost.
pub(crate) fn replace_lost(
    view: &mut View<'_>,
    code: &str,
    message: &str,
    decision: &mut Decision,
) -> Vec<(StepId, u32)> {
    let mut lost = Vec::new();
    for (number, step) in (0u32..).zip(&view.state.steps) {
        if step.attempt.status != StepStatus::Running {
            continue;
        }
        let attempt = step.attempt.logical_attempt_id;
        decision.fact(EventBody::StepFailed(StepFailed {
            step_id: step.step_id.clone(),
            status: StepStatus::Failed,
            logical_attempt_id: attempt,
            engine_attempt_id: step.attempt.engine_attempt_id,
            error: StepError::new(code, message, true),
        }));
        schedule_retry(view, number, attempt + 1, None, decision);
        lost.push((step.step_id.clone(), attempt));
    }
    lost
}

/// RETRY_STEP. In a failed run it opens the run again, for this step and what was skipped because of it.
pub(crate) fn step(state: &RunState, step_id: &StepId, decision: &mut Decision, now: Timestamp) -> Result<(), Refusal> {
    let number = state.step_number(step_id).ok_or_else(|| Refusal::NoStep(step_id.clone()))?;
    let status = state.step(number).attempt.status;
    if status != StepStatus::Failed {
        return Err(Refusal::NotFailed { step_id: step_id.clone(), status: status.as_str() });
    }
    let mut view = View::new(state);
    match state.status {
        RunStatus::Running | RunStatus::Paused => {
            reopen_steps(&mut view, &[number], decision);
            if state.status == RunStatus::Running {
                view.dispatch(number, decision);
            }
            Ok(())
        }
        RunStatus::Failed => {
            requeue(&mut view, decision, now, &format!("retry of step `{step_id}`"))?;
            reopen_steps(&mut view, &[number], decision);
            Ok(())
        }
        status @ (RunStatus::Pending | RunStatus::Approved) => Err(Refusal::NotRunning(status)),
        status @ (RunStatus::Completed | RunStatus::Cancelled) => Err(Refusal::Closed(status)),
    }
}

/// RETRY_RUN: every failed step gets a new attempt.
pub(crate) fn run(state: &RunState, decision: &mut Decision, now: Timestamp) -> Result<(), Refusal> {
    state.status.next(RunChange::Requeued)?;
    let failed: Vec<u32> = (0u32..)
        .zip(&state.steps)
        .filter(|(_, step)| step.attempt.status == StepStatus::Failed)
        .map(|(number, _)| number)
        .collect();
    let mut view = View::new(state);
    requeue(&mut view, decision, now, "retry of the run")?;
    reopen_steps(&mut view, &failed, decision);
    Ok(())
}

fn never_begun(state: &RunState) -> Refusal {
    Refusal::RunState(IllegalRunChange { from: state.status, change: RunChange::Requeued })
}

/// Opens the next round, of a plan or of an entrypoint.
pub(crate) fn queue_again(
    state: &RunState,
    reason: &str,
    decision: &mut Decision,
    now: Timestamp,
) -> Result<(), Refusal> {
    let (Some(plan_ref), Some(context)) = (&state.plan_ref, &state.context) else { return Err(never_begun(state)) };
    decision.fact(EventBody::RunQueued(Box::new(RunQueued {
        status: RunStatus::Pending,
        logical_attempt_id: state.round + 1,
        plan_ref: plan_ref.clone(),
        context: context.clone(),
        plan: None,
        run_request_id: None,
        request_digest: None,
        approval_required: false,
        not_before: None,
        reason: Some(reason.to_owned()),
    })));
    decision.act(Action::Enqueue { not_before: now });
    Ok(())
}

/// The next round of a plan. A run that ended at its limit of events had attempts in flight; their dispatches were given up then.
fn requeue(view: &mut View<'_>, decision: &mut Decision, now: Timestamp, reason: &str) -> Result<(), Refusal> {
    if view.state.plan.is_none() {
        // A log from elsewhere may have no plan. Such a run could be queued, but never begun.
        return Err(never_begun(view.state));
    }
    queue_again(view.state, reason, decision, now)?;
    replace_lost(view, codes::ATTEMPT_SUPERSEDED.code, "in flight when the run ended", decision);
    Ok(())
}

/// New attempts for the failed steps and for everything that was skipped because of them. What is also behind another
/// failure stays skipped: it could never start, and the run could never end.
fn reopen_steps(view: &mut View<'_>, failed: &[u32], decision: &mut Decision) {
    let Some(plan) = view.state.plan.clone() else { return };
    let attempt_after = |view: &View<'_>, number| view.state.step(number).attempt.logical_attempt_id + 1;
    let mut open = VecDeque::new();
    for &number in failed {
        schedule_retry(view, number, attempt_after(view, number), None, decision);
        open.push_back(number);
    }
    while let Some(number) = open.pop_front() {
        for &next in plan.dependents(number) {
            if view.is_skipped_upstream(next) && !view.is_behind_failure(next) {
                schedule_retry(view, next, attempt_after(view, next), None, decision);
                open.push_back(next);
            }
        }
    }
}
