//! The limit on a run's events. A run that reaches it ends with a clear cause; the last events are kept for ending it.

use servo_model::codes::LIMIT_EXCEEDED;
use servo_model::event::{EventBody, RootCause, RunFailed};
use servo_model::limits::EVENTS_RESERVED;
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_model::{RunState, RunStatus};

use crate::cancel::release;
use crate::command::{Command, Policy};
use crate::decision::Decision;
use crate::execution::end;
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
    let steps = matches!(
        command,
        Command::StartStep { .. } | Command::FinishStep { .. } | Command::TakeOver { .. } | Command::Execution(_)
    );
    let ends = decision.facts.iter().any(|fact| {
        matches!(fact.body, EventBody::RunCompleted(_) | EventBody::RunFailed(_) | EventBody::RunCancelled(_))
    });
    // A failure may skip more steps than there is room for. One begin a round and one drain timeout a pause are few
    // enough for the reserve, and refused they would come back for ever.
    let comes_back = matches!(command, Command::Begin | Command::Tick);
    if (ends && (!steps || after <= policy.events_per_run_max)) || comes_back {
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
