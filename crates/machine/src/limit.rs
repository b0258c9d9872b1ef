//! The limit on a run's events. A run that reaches it ends with a clear cause; the last events are kept for ending it.

use servo_model::codes::LIMIT_EXCEEDED;
use servo_model::event::{EventBody, RootCause, RunFailed};
use servo_model::limits::EVENTS_RESERVED;
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_model::{RunState, RunStatus};

use crate::cancel::release;
use crate::command::{Command, Policy};
use crate::decision::Decision;
use crate::execution::{ExecutionCommand, end};
use crate::refusal::Refusal;

pub(crate) fn enforce(
    state: &RunState,
    command: &Command,
    policy: &Policy,
    decision: &mut Decision,
) -> Result<(), Refusal> {
    let after = state.last_event_seq + decision.facts.len() as u64;
    if decision.facts.is_empty() || after <= policy.events_per_run_max.saturating_sub(EVENTS_RESERVED) {
        return Ok(());
    }
    let has = |wanted: fn(&EventBody) -> bool| decision.facts.iter().any(|fact| wanted(&fact.body));
    let steps = match command {
        Command::StartStep { .. } | Command::FinishStep { .. } | Command::TakeOver { .. } => true,
        Command::Execution(command) => !matches!(**command, ExecutionCommand::Compensated { .. }),
        // What comes due at once may be more than there is room for, also what came due in a pause: refused, the run would stay
        // paused for ever.
        Command::Tick => state.execution.is_some() && state.status == RunStatus::Running,
        Command::Signal(_) => state.execution.is_some() && has(|body| matches!(body, EventBody::RunResumed(_))),
        _ => false,
    };
    let ends =
        has(|body| matches!(body, EventBody::RunCompleted(_) | EventBody::RunFailed(_) | EventBody::RunCancelled(_)));
    // A failure may skip more steps than there is room for.
    let fits = after + follows(state, decision) <= policy.events_per_run_max;
    // One begin a round, one drain timeout a pause, and how undoing went or that nobody does it, are few enough for the
    // reserve. Refused they would come back for ever, or the run would be undone for ever.
    let comes_back = match command {
        Command::Begin => true,
        Command::Tick => !steps,
        Command::Execution(command) => matches!(**command, ExecutionCommand::Compensated { .. }),
        _ => false,
    };
    if (ends && (!steps || fits)) || comes_back {
        return Ok(());
    }
    let refusal = Refusal::EventLimit(policy.events_per_run_max);
    if !steps || !matches!(state.status, RunStatus::Running | RunStatus::Paused) {
        return Err(refusal);
    }
    *decision = Decision::default();
    if let Some(execution) = state.execution.as_deref() {
        let error = ErrorObject::new(LIMIT_EXCEEDED.code, refusal.to_string());
        end::end(state, execution, ExecutionStatus::Failed, None, Some(error), decision);
        decision.refusal = Some(refusal);
        return Ok(());
    }
    decision.fact(EventBody::RunFailed(RunFailed {
        status: RunStatus::Failed,
        logical_attempt_id: state.round,
        root_cause: RootCause {
            step_id: None,
            code: LIMIT_EXCEEDED.code.to_owned(),
            message: format!("the run has reached its limit of {} events", policy.events_per_run_max),
        },
    }));
    release(state, LIMIT_EXCEEDED.code, decision);
    // What the command asked for was not done: the caller must not take its step for started or finished.
    decision.refusal = Some(refusal);
    Ok(())
}

/// Events that come after the end which was decided: how undoing went, and that the run is given up.
fn follows(state: &RunState, decision: &Decision) -> u64 {
    let is = |wanted: fn(&EventBody) -> bool| decision.facts.iter().any(|fact| wanted(&fact.body));
    match state.entrypoint() {
        Some(_) if is(|body| matches!(body, EventBody::CompensationStarted(_))) => 2,
        Some(_) if is(|body| matches!(body, EventBody::RunFailed(_))) => 1,
        _ => 0,
    }
}
