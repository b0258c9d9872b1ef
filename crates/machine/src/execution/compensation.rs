//! Undoing a run that failed or was cancelled, by the entrypoint that its own names for this.
//!
//! The wish is recorded with the run's end, in the same append; whoever finds its dispatch starts the run that undoes this
//! one. When that is over, this run is told.

use servo_model::event::{CompensationEnded, CompensationStarted, EventBody, RunDeadLettered};
use servo_model::execution::{COMPENSATE, Execution};
use servo_model::invocation::{CompensationTrigger, EntrypointKind, Failure};
use servo_model::limits::clip;
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_model::{RunId, RunState};

use super::settle::step;
use crate::decision::{Action, Decision};
use crate::refusal::Refusal;

/// With the end of a run: begins to undo it, if its entrypoint says how. A function has nothing to undo, whatever it says.
pub(crate) fn begin(state: &RunState, execution: &Execution, status: ExecutionStatus, decision: &mut Decision) {
    let pin = execution.head.start.entrypoint.as_ref().filter(|pin| pin.kind == EntrypointKind::Workflow);
    let Some(pin) = pin else { return };
    let (trigger, handler) = match status {
        ExecutionStatus::Failed | ExecutionStatus::TimedOut => (CompensationTrigger::Failure, &pin.on_failure),
        ExecutionStatus::Stopped => (CompensationTrigger::Cancellation, &pin.on_cancel),
        ExecutionStatus::Running | ExecutionStatus::Succeeded => return,
    };
    if handler.is_none() {
        return;
    }
    let logical_attempt_id = state.round;
    decision.fact(EventBody::CompensationStarted(CompensationStarted { logical_attempt_id, trigger }));
    decision.act(Action::Dispatch { step_id: step(COMPENSATE), attempt: state.round });
}

/// A run that could not be undone is nobody's but the operator's.
pub(crate) fn ended(
    state: &RunState,
    execution: &Execution,
    run_id: Option<&RunId>,
    error: Option<&ErrorObject>,
) -> Result<Decision, Refusal> {
    let mut decision = Decision::default();
    match &execution.head.compensation {
        Some(compensation) if !compensation.ended => {}
        // Told again after a crash.
        Some(_) => return Ok(decision),
        None => return Err(Refusal::Closed(state.status)),
    }
    let logical_attempt_id = state.round;
    decision.fact(EventBody::CompensationEnded(Box::new(CompensationEnded {
        logical_attempt_id,
        handler_run_id: run_id.cloned(),
        error: error.cloned(),
    })));
    if let Some(error) = error {
        let reason = format!("it could not be undone: {}", Failure::of(error).message);
        decision.fact(dead_lettered(state, &reason));
    }
    Ok(decision)
}

pub(crate) fn dead_lettered(state: &RunState, reason: &str) -> EventBody {
    let reason = clip(reason).to_owned();
    EventBody::RunDeadLettered(RunDeadLettered { logical_attempt_id: state.round, reason })
}
