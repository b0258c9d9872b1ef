//! Starting a run that waited in the queue.

use servo_model::run::{IllegalRunChange, RunChange};
use servo_model::{RunState, RunStatus, Timestamp};

use crate::decision::{Action, Decision};
use crate::execution::settle::dispatch;
use crate::execution::start::ENGINE_TYPE;
use crate::refusal::Refusal;
use crate::schedule::View;
use crate::start::{approved, started};

pub(crate) fn decide(state: &RunState, now: Timestamp) -> Result<Decision, Refusal> {
    let mut decision = Decision::default();
    match state.status {
        RunStatus::Pending if state.approval_required => return Err(Refusal::NeedsApproval),
        RunStatus::Pending => decision.fact(approved(state.round, None)),
        RunStatus::Approved => {}
        status @ (RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled) => {
            return Err(Refusal::Closed(status));
        }
        from @ (RunStatus::Running | RunStatus::Paused) => {
            return Err(Refusal::RunState(IllegalRunChange { from, change: RunChange::Started }));
        }
    }
    if let Some(execution) = state.execution.as_deref() {
        let (Some(plan_ref), Some(context)) = (&state.plan_ref, &state.context) else {
            return Err(Refusal::RunState(IllegalRunChange { from: state.status, change: RunChange::Started }));
        };
        decision.fact(started(&state.run_id, state.round, ENGINE_TYPE, plan_ref, context, now));
        decision.act(Action::Dequeue);
        decision.act(dispatch(execution.head.invocations + 1));
        return Ok(decision);
    }
    let (Some(plan), Some(plan_ref), Some(context)) = (&state.plan, &state.plan_ref, &state.context) else {
        return Err(Refusal::RunState(IllegalRunChange { from: state.status, change: RunChange::Started }));
    };
    decision.fact(started(&state.run_id, state.round, &plan.engine_type, plan_ref, context, now));
    decision.act(Action::Dequeue);
    let view = View::new(state);
    view.dispatch_all_ready(&mut decision, now);
    view.finish_if_done(&mut decision);
    Ok(decision)
}
