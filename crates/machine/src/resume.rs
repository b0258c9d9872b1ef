//! RESUME: what remains is scheduled; what was done before the pause is not done again.
//!
//! A run may be resumed while it still drains: its steps in flight are recorded, so none of them is started twice. A run that
//! nobody paused, and that waits by itself, looks again (ADR 20).

use servo_model::event::{EventBody, RunResumed};
use servo_model::run::RunChange;
use servo_model::{RunState, Timestamp, codes};

use crate::command::{LateResults, Policy};
use crate::decision::{Action, Decision};
use crate::execution::settle::dispatch;
use crate::refusal::Refusal;
use crate::retry::replace_lost;
use crate::schedule::View;

pub(crate) fn decide(
    state: &RunState,
    policy: &Policy,
    now: Timestamp,
    decision: &mut Decision,
) -> Result<(), Refusal> {
    if let Some(execution) = state.execution.as_deref().filter(|_| state.waits_outside()) {
        decision.act(dispatch(execution.head.invocations + 1));
        return Ok(());
    }
    let status = state.status.next(RunChange::Resumed)?;
    decision.fact(EventBody::RunResumed(RunResumed { status, logical_attempt_id: state.resumes + 1 }));
    if let Some(execution) = state.execution.as_deref() {
        if execution.wants_invocation(now) {
            decision.act(dispatch(execution.head.invocations + 1));
        }
        return Ok(());
    }
    let mut view = View::new(state);
    if state.drain_timed_out == state.pauses && policy.late_results == LateResults::Reject {
        // With late results refused, attempts that outlived the drain timeout are lost.
        let reason = codes::ORPHANED_TASK.code;
        for (step_id, attempt) in replace_lost(&mut view, reason, "still in flight after the drain timeout", decision) {
            decision.act(Action::Abandon { step_id, attempt, reason: reason.to_owned() });
        }
    }
    view.dispatch_all_ready(decision, now);
    view.finish_if_done(decision);
    Ok(())
}
