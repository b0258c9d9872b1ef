//! PAUSE: no new steps; those in flight are left to finish, for a while.

use servo_model::event::{EventBody, RunPaused};
use servo_model::invocation::{EntrypointKind, InvocationStatus};
use servo_model::run::{IllegalRunChange, RunChange};
use servo_model::{RunState, RunStatus, Timestamp};

use crate::command::Policy;
use crate::decision::Decision;
use crate::execution::end::withdraw;
use crate::refusal::Refusal;
use crate::schedule::View;

pub(crate) fn decide(
    state: &RunState,
    reason: Option<&str>,
    policy: &Policy,
    now: Timestamp,
    decision: &mut Decision,
) -> Result<(), Refusal> {
    if state.entrypoint().is_some_and(|pin| pin.kind == EntrypointKind::Function) {
        return Err(Refusal::NeverWaits);
    }
    // Of an entrypoint: queued until it is called, and what is queued is not suspended.
    if state.entrypoint().is_some() && state.visible() == InvocationStatus::Queued {
        return Err(IllegalRunChange { from: RunStatus::Pending, change: RunChange::Paused }.into());
    }
    let status = state.status.next(RunChange::Paused)?;
    decision.fact(EventBody::RunPaused(RunPaused {
        status,
        logical_attempt_id: state.pauses + 1,
        reason: reason.map(str::to_owned),
        drain_until: (state.in_flight > 0).then(|| now.plus(policy.drain_timeout())),
    }));
    match state.execution.as_deref() {
        Some(execution) => withdraw(execution, decision),
        None => View::new(state).withdraw_all_ready(decision),
    }
    Ok(())
}
