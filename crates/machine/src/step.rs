//! Step attempts: handed out, taken over, finished.

use std::time::Duration;

use servo_model::event::{EventBody, StepCompleted, StepFailed, StepStarted, StepTakenOver, TaskOrphaned};
use servo_model::step::{IllegalStepChange, StepChange};
use servo_model::{RunState, RunStatus, StepError, StepId, StepStatus, Timestamp};

use crate::command::{LateResults, Policy, StepResult};
use crate::decision::{Action, Decision, Fact};
use crate::refusal::Refusal;
use crate::retry::schedule_retry;
use crate::schedule::View;

pub(crate) struct Report<'a> {
    pub step_id: &'a StepId,
    pub attempt: u32,
    pub engine_attempt: u32,
    pub result: &'a StepResult,
}

pub(crate) fn start(
    state: &RunState,
    step_id: &StepId,
    attempt: u32,
    occurred_at: Option<Timestamp>,
) -> Result<Decision, Refusal> {
    let number = current(state, step_id, attempt)?;
    if state.status != RunStatus::Running {
        return Err(Refusal::NotRunning(state.status));
    }
    state
        .step(number)
        .attempt
        .status
        .next(StepChange::Started)
        .map_err(|illegal| Refusal::StepState { step_id: step_id.clone(), illegal })?;
    if !state.dependencies_satisfied(number) {
        return Err(Refusal::NotReady { step_id: step_id.clone() });
    }
    let mut decision = Decision::default();
    decision.facts.push(Fact {
        body: EventBody::StepStarted(StepStarted {
            step_id: step_id.clone(),
            status: StepStatus::Running,
            logical_attempt_id: attempt,
            engine_attempt_id: Some(1),
        }),
        occurred_at,
    });
    decision.act(Action::Notify { step_id: step_id.clone(), attempt });
    Ok(decision)
}

/// The infrastructure retry: the same logical attempt, the next engine attempt. Its fact is the fence: the report of
/// the lost hand-over names an older engine attempt and is refused.
pub(crate) fn take_over(state: &RunState, step_id: &StepId, attempt: u32) -> Result<Decision, Refusal> {
    let number = current(state, step_id, attempt)?;
    let running = &state.step(number).attempt;
    if running.status != StepStatus::Running {
        let illegal = IllegalStepChange { from: running.status, change: StepChange::Started };
        return Err(Refusal::StepState { step_id: step_id.clone(), illegal });
    }
    let mut decision = Decision::default();
    decision.fact(EventBody::StepTakenOver(StepTakenOver {
        step_id: step_id.clone(),
        logical_attempt_id: attempt,
        engine_attempt_id: running.engine_attempt_id.unwrap_or(1) + 1,
    }));
    decision.act(Action::Adopt { step_id: step_id.clone(), attempt });
    Ok(decision)
}

pub(crate) fn finish(
    state: &RunState,
    report: &Report<'_>,
    policy: &Policy,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let step_id = report.step_id;
    let number = current(state, step_id, report.attempt)?;
    let running = &state.step(number).attempt;
    let change = match report.result {
        StepResult::Success { .. } => StepChange::Completed,
        StepResult::Failure { .. } => StepChange::Failed,
    };
    running.status.next(change).map_err(|illegal| Refusal::StepState { step_id: step_id.clone(), illegal })?;
    if running.engine_attempt_id.is_some_and(|engine| engine != report.engine_attempt) {
        return Err(Refusal::Superseded { step_id: step_id.clone(), attempt: report.attempt });
    }
    let timed_out = state.status == RunStatus::Paused && state.drain_timed_out == state.pauses;
    if timed_out && policy.late_results == LateResults::Reject {
        return Ok(orphaned(report));
    }
    let mut decision = Decision::default();
    let mut view = View::new(state);
    match report.result {
        StepResult::Success { artifacts } => {
            decision.fact(EventBody::StepCompleted(StepCompleted {
                step_id: step_id.clone(),
                status: StepStatus::Success,
                logical_attempt_id: report.attempt,
                engine_attempt_id: Some(report.engine_attempt),
                artifacts: artifacts.clone(),
            }));
            decision.act(Action::Deliver { step_id: step_id.clone(), attempt: report.attempt });
            view.succeed(number);
            if state.status == RunStatus::Running {
                view.dispatch_dependents(number, &mut decision);
            }
        }
        StepResult::Failure { error } => fail(&mut view, number, report, error, &mut decision, now),
    }
    // A paused run stays paused: what remains, or its end, comes with the resume.
    if state.status == RunStatus::Running {
        view.finish_if_done(&mut decision);
    }
    Ok(decision)
}

fn fail(
    view: &mut View<'_>,
    number: u32,
    report: &Report<'_>,
    error: &StepError,
    decision: &mut Decision,
    now: Timestamp,
) {
    let step_id = report.step_id;
    decision.fact(EventBody::StepFailed(StepFailed {
        step_id: step_id.clone(),
        status: StepStatus::Failed,
        logical_attempt_id: report.attempt,
        engine_attempt_id: Some(report.engine_attempt),
        error: error.clone(),
    }));
    let reason = error.code.clone();
    decision.act(Action::Abandon { step_id: step_id.clone(), attempt: report.attempt, reason });
    let policy = view.state.plan.as_ref().and_then(|plan| plan.step(number).retry.clone());
    match policy.filter(|policy| error.retryable && report.attempt < policy.max_attempts) {
        Some(policy) => {
            let delay = Duration::from_millis(policy.delay_ms);
            let not_before = (!delay.is_zero()).then(|| now.plus(delay));
            let next = report.attempt + 1;
            schedule_retry(view, number, next, not_before, decision);
            if not_before.is_none() && view.state.status == RunStatus::Running {
                view.dispatch(number, decision);
            }
        }
        None => {
            view.fail(number, error);
            view.skip_downstream(number, decision);
        }
    }
}

fn orphaned(report: &Report<'_>) -> Decision {
    let mut decision = Decision::default();
    decision.fact(EventBody::TaskOrphaned(TaskOrphaned {
        step_id: report.step_id.clone(),
        logical_attempt_id: report.attempt,
        engine_attempt_id: Some(report.engine_attempt),
    }));
    decision.refusal = Some(Refusal::Orphaned { step_id: report.step_id.clone() });
    decision
}

/// The step's number, if the run is open and the attempt is the current one.
fn current(state: &RunState, step_id: &StepId, attempt: u32) -> Result<u32, Refusal> {
    if state.status.is_terminal() {
        return Err(Refusal::Closed(state.status));
    }
    let number = state.step_number(step_id).ok_or_else(|| Refusal::NoStep(step_id.clone()))?;
    if state.step(number).attempt.logical_attempt_id != attempt {
        return Err(Refusal::Superseded { step_id: step_id.clone(), attempt });
    }
    Ok(number)
}
