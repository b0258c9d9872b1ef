//! What a run has started ends with it, if it is cancelled or runs out of time.
//!
//! The wish is recorded with the run's end, in the same append; whoever finds its dispatch ends the runs below this one, until
//! none is open. A program that ends by itself takes nothing with it: what it has not waited for goes on.

use servo_model::event::EventBody;
use servo_model::execution::{DESCENDANTS, Execution};
use servo_model::operation::{ErrorObject, ExecutionStatus, OperationType};
use servo_model::{RunState, RunStatus};

use super::{end, settle};
use crate::decision::{Action, Decision};
use crate::refusal::Refusal;

/// With the end of a run.
pub(crate) fn follow(state: &RunState, execution: &Execution, status: ExecutionStatus, decision: &mut Decision) {
    let is_cut_short = match status {
        ExecutionStatus::Stopped | ExecutionStatus::TimedOut => true,
        ExecutionStatus::Running | ExecutionStatus::Succeeded | ExecutionStatus::Failed => false,
    };
    // An earlier round may have left runs behind whose operations are gone.
    if is_cut_short && (state.round > 1 || has_started_runs(execution)) {
        decision.act(Action::Dispatch { step_id: settle::step(DESCENDANTS), attempt: state.round });
    }
}

fn has_started_runs(execution: &Execution) -> bool {
    execution.operations().iter().any(|operation| operation.operation_type == OperationType::ChainedInvoke)
}

/// Ends a run below one that has ended. It needs no dispatch for what is below itself, which is below that one as well, and
/// tells nobody: whoever waits for it ends, too.
pub(crate) fn end_with(
    state: &RunState,
    execution: &Execution,
    ancestor: &servo_model::RunId,
) -> Result<Decision, Refusal> {
    let mut decision = Decision::default();
    let is_below = state.lineage().is_some_and(|lineage| lineage.ancestors.contains(ancestor));
    if !is_below || execution.head.ended.is_some() || state.status.is_terminal() {
        return Ok(decision);
    }
    let error = ErrorObject::new("Execution.Stopped", format!("the run `{ancestor}`, which it belongs to, was ended"));
    end::end(state, execution, ExecutionStatus::Stopped, None, Some(error), &mut decision);
    let is_for_others = |action: &Action| match action {
        Action::Dispatch { step_id, .. } => {
            step_id.as_str() != DESCENDANTS && step_id.as_str() != servo_model::execution::JOIN
        }
        _ => true,
    };
    decision.actions.retain(is_for_others);
    for fact in &mut decision.facts {
        if let EventBody::RunCancelled(body) = &mut fact.body {
            body.cancelled_by = Some("engine".to_owned());
        }
    }
    if matches!(state.status, RunStatus::Pending | RunStatus::Approved) {
        decision.act(Action::Dequeue);
    }
    Ok(decision)
}
