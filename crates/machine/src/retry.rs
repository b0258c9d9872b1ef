//! Retries: of a step, by signal or by the plan's policy, and of a whole failed run.

use servo_model::event::{EventBody, RunQueued, SkipCause, StepRetryScheduled};
use servo_model::{RunState, RunStatus, StepId, StepStatus, Timestamp};

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

/// RETRY_STEP. In a failed run it opens the run again, for this step and what was skipped because of it.
pub(crate) fn step(
    state: &RunState,
    step_id: &StepId,
    decision: &mut Decision,
    now: Timestamp,
) -> Result<(), Refusal> {
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
            requeue(state, decision, now, &format!("retry of step `{step_id}`"));
            reopen_steps(&mut view, &[number], decision);
            Ok(())
        }
        status @ (RunStatus::Pending | RunStatus::Approved) => Err(Refusal::NotRunning(status)),
        status @ (RunStatus::Completed | RunStatus::Cancelled) => Err(Refusal::Closed(status)),
    }
}

/// RETRY_RUN: every failed step gets a new attempt.
pub(crate) fn run(state: &RunState, decision: &mut Decision, now: Timestamp) -> Result<(), Refusal> {
    state.status.next(servo_model::run::RunChange::Requeued)?;
    let failed: Vec<u32> = (0u32..)
        .zip(&state.steps)
        .filter(|(_, step)| step.attempt.status == StepStatus::Failed)
        .map(|(number, _)| number)
        .collect();
    requeue(state, decision, now, "retry of the run");
    reopen_steps(&mut View::new(state), &failed, decision);
    Ok(())
}

fn requeue(state: &RunState, decision: &mut Decision, now: Timestamp, reason: &str) {
    let (Some(plan_ref), Some(context)) = (&state.plan_ref, &state.context) else { return };
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
}

/// New attempts for the failed steps and for everything that was skipped because of them.
fn reopen_steps(view: &mut View<'_>, failed: &[u32], decision: &mut Decision) {
    let Some(plan) = view.state.plan.clone() else { return };
    let mut open = failed.to_vec();
    let mut seen = std::collections::BTreeSet::new();
    while let Some(number) = open.pop() {
        if !seen.insert(number) {
            continue;
        }
        let attempt = view.state.step(number).attempt.logical_attempt_id + 1;
        schedule_retry(view, number, attempt, None, decision);
        for &next in plan.dependents(number) {
            let attempt = &view.state.step(next).attempt;
            if attempt.status == StepStatus::Skipped && attempt.skip == Some(SkipCause::UpstreamFailed) {
                open.push(next);
            }
        }
    }
}
