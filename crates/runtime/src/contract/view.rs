//! What events of runs say in the contract's words: nothing is recorded twice for it.

use servo_model::contract::RuntimeEvent;
use servo_model::event::{EventBody, HandlerStatus, OperationUpdated};
use servo_model::execution::{EVENT, HANDLER};
use servo_model::operation::{OperationAction, OperationType};
use servo_store::StoredEvent;

use crate::loops::attempt::assigned;

/// A recorded event in the contract's words.
pub fn view(stored: &StoredEvent) -> Vec<RuntimeEvent> {
    let Ok(event) = stored.decode() else { return Vec::new() };
    let request = |step: &servo_model::StepId, attempt: u32| format!("{}/{step}/{attempt}", stored.run_id);
    let handler = |invocation: u32| format!("{}/{HANDLER}/{invocation}", stored.run_id);
    let worker = || stored.emitted_by.to_string();
    match event.body {
        EventBody::Runtime(event) => vec![event],
        EventBody::RunQueued(queued) if queued.approval_required => vec![RuntimeEvent::RunBlockedOnUser {
            owner: stored.run_id.to_string(),
            reason: "waits for approval".to_owned(),
        }],
        EventBody::OperationUpdated(body) if awaits_somebody(&body) => vec![RuntimeEvent::RunBlockedOnUser {
            owner: stored.run_id.to_string(),
            reason: format!("waits for {}", body.name.as_deref().unwrap_or(&body.operation_id)),
        }],
        EventBody::StepStarted(started) => {
            let request_id = request(&started.step_id, started.logical_attempt_id);
            vec![
                RuntimeEvent::DispatchNotified { request_id: request_id.clone(), channel: worker() },
                assigned(&stored.emitted_by, &request_id),
            ]
        }
        EventBody::StepTakenOver(taken) => {
            let task_id = request(&taken.step_id, taken.logical_attempt_id);
            vec![RuntimeEvent::WorkerAssigned { worker: worker(), task_id }]
        }
        EventBody::HandlerInvoked(body) => {
            let request_id = handler(body.invocation);
            vec![
                RuntimeEvent::DispatchNotified { request_id: request_id.clone(), channel: worker() },
                assigned(&stored.emitted_by, &request_id),
            ]
        }
        EventBody::HandlerReturned(body) => {
            let request_id = handler(body.invocation);
            // Without an error it did answer, and its run was paused.
            match body.error.filter(|_| body.status == HandlerStatus::Lost) {
                Some(error) => {
                    let reason = error.error_message.unwrap_or_default();
                    vec![RuntimeEvent::DispatchFailed { request_id, reason }]
                }
                None => vec![RuntimeEvent::DispatchDelivered { request_id }],
            }
        }
        EventBody::StepCompleted(done) => {
            vec![RuntimeEvent::DispatchDelivered { request_id: request(&done.step_id, done.logical_attempt_id) }]
        }
        EventBody::StepFailed(failed) => vec![RuntimeEvent::DispatchFailed {
            request_id: request(&failed.step_id, failed.logical_attempt_id),
            reason: failed.error.code,
        }],
        _ => Vec::new(),
    }
}

/// Whether an update begins to wait for a person: a callback or a signal. Events come from systems.
fn awaits_somebody(body: &OperationUpdated) -> bool {
    body.operation_type == OperationType::Callback
        && body.action == OperationAction::Start
        && body.sub_type.as_deref() != Some(EVENT)
}
