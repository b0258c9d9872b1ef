//! From the machine's actions to rows and wake-ups.

use servo_machine::Action;
use servo_model::execution::DESCENDANTS;
use servo_model::{RunId, RunState, StepId, TenantId, Timestamp};
use servo_store::StreamAppend;
use servo_store::dispatch::{DispatchChange, DispatchStep};
use servo_store::log::QueueChange;

use super::{Engine, Order};
use crate::loops::concurrency::target_of;
use crate::loops::descendants;

impl Engine {
    /// Actions that must not be lost become rows of the same transaction.
    pub(super) fn apply_actions(&self, order: &Order, state: &RunState, actions: &[Action], stream: &mut StreamAppend) {
        let epoch = order.fence.map_or(0, |fence| fence.epoch);
        let target = || match (&state.plan, &state.execution) {
            (Some(plan), _) => plan.engine_type.clone(),
            (None, Some(execution)) => target_of(&execution.head.start),
            (None, None) => String::new(),
        };
        let request = |step_id: &StepId, attempt: u32| {
            let step = DispatchStep { step_id: step_id.clone(), logical_attempt: attempt };
            (step.request_id(&order.run_id), step)
        };
        for action in actions {
            let change = match action {
                Action::Enqueue { not_before } => {
                    stream.queue = QueueChange::Put { not_before: *not_before };
                    continue;
                }
                Action::Dequeue => {
                    stream.queue = QueueChange::Remove { leased_by: order.queue_lease.clone() };
                    continue;
                }
                Action::Dispatch { step_id, attempt } => {
                    let (request_id, step) = request(step_id, *attempt);
                    DispatchChange::Queue { request_id, target: target(), step: Some(step) }
                }
                Action::Withdraw { step_id, attempt } => {
                    DispatchChange::Withdraw { request_id: request(step_id, *attempt).0 }
                }
                Action::Notify { step_id, attempt } => DispatchChange::Notify {
                    request_id: request(step_id, *attempt).0,
                    channel: order.emitted_by.to_string(),
                    epoch,
                },
                Action::Adopt { step_id, attempt } => {
                    DispatchChange::Adopt { request_id: request(step_id, *attempt).0, epoch }
                }
                Action::Deliver { step_id, attempt } => {
                    DispatchChange::Deliver { request_id: request(step_id, *attempt).0 }
                }
                Action::Abandon { step_id, attempt, reason } => {
                    DispatchChange::Fail { request_id: request(step_id, *attempt).0, reason: reason.clone() }
                }
                // A stream of its own.
                Action::Spawn(_) => continue,
                Action::CancelInFlight | Action::Alert { .. } => continue,
            };
            stream.dispatches.push(change);
        }
    }

    pub(super) fn wake_for(&self, run_id: &RunId, actions: &[Action], grew: bool, timer: Option<Timestamp>) {
        let wake = &self.inner.wake;
        for action in actions {
            match action {
                Action::Dispatch { step_id, attempt } if is_handed_out(actions, step_id, *attempt) => {}
                Action::Dispatch { .. } | Action::Spawn(_) => wake.dispatch.notify_one(),
                Action::Enqueue { .. } => wake.queue.notify_one(),
                Action::CancelInFlight => self.inner.in_flight.cancel_run(run_id),
                Action::Alert { code, message } => {
                    tracing::warn!(run_id = %run_id, alert = code.as_str(), "{message}");
                }
                _ => {}
            }
        }
        if let Some(due) = timer {
            wake.timer_set(due);
        }
        if grew {
            wake.log_grew();
        }
    }
}

impl Engine {
    /// What a run has started ends with it. Its dispatch says so, too, and may have to wait for its turn.
    pub(super) fn follow_end(&self, run_id: &RunId, tenant: &TenantId, actions: &[Action]) {
        let follows =
            |action: &Action| matches!(action, Action::Dispatch { step_id, .. } if step_id.as_str() == DESCENDANTS);
        if actions.iter().any(follows)
            && let Some(tasks) = self.inner.direct.tasks()
        {
            tasks.spawn("descendants", descendants::at_once(self.clone(), tenant.clone(), run_id.clone()));
        }
    }
}

/// Whether a dispatch is handed out by the same append.
fn is_handed_out(actions: &[Action], step: &StepId, number: u32) -> bool {
    let is_it = |action: &Action| matches!(action, Action::Notify { step_id, attempt } if step_id == step && *attempt == number);
    actions.iter().any(is_it)
}

/// Leaves out what would end dispatches that are not there.
pub(super) fn leave_out(absent: &[String], stream: &mut StreamAppend) {
    stream.dispatches.retain(|change| ended(change).is_none_or(|request_id| !absent.contains(request_id)));
}

/// The dispatch that a change ends.
fn ended(change: &DispatchChange) -> Option<&String> {
    match change {
        DispatchChange::Deliver { request_id } | DispatchChange::Fail { request_id, .. } => Some(request_id),
        DispatchChange::Queue { .. }
        | DispatchChange::Notify { .. }
        | DispatchChange::Adopt { .. }
        | DispatchChange::Withdraw { .. } => None,
    }
}
