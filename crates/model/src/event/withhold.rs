//! An event for readers who may know what happened, but not with which data.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::body::{EventBody, UnknownBody};
use crate::operation::ErrorObject;

impl EventBody {
    /// Without inputs, results and what errors carry beside their type and message. Every type is named, so that whoever
    /// adds one says what of it is a payload.
    pub fn without_payloads(mut self) -> Self {
        match &mut self {
            EventBody::RunQueued(body) => body.plan = body.plan.take().and_then(|plan| without_inputs(&plan)),
            EventBody::ExecutionStarted(body) => {
                let body = Arc::make_mut(body);
                (body.input, body.client_context) = (None, None);
            }
            EventBody::HandlerReturned(body) => bare(&mut body.error),
            EventBody::OperationUpdated(body) => {
                body.payload = None;
                bare(&mut body.error);
            }
            EventBody::OperationResolved(body) => {
                body.payload = None;
                bare(&mut body.error);
            }
            EventBody::ExecutionEnded(body) => {
                (body.result, body.document) = (None, None);
                bare(&mut body.error);
            }
            EventBody::MessageReceived(body) => body.payload = None,
            EventBody::CompensationEnded(body) => bare(&mut body.error),
            EventBody::Unknown(UnknownBody { payload, .. }) => {
                let empty = RawValue::from_string("{}".to_owned());
                *payload = empty.unwrap_or_else(|_| RawValue::NULL.to_owned());
            }
            EventBody::RunApproved(_)
            | EventBody::RunStarted(_)
            | EventBody::StepStarted(_)
            | EventBody::StepCompleted(_)
            | EventBody::StepFailed(_)
            | EventBody::StepSkipped(_)
            | EventBody::SignalAccepted(_)
            | EventBody::SignalRejected(_)
            | EventBody::RunPaused(_)
            | EventBody::RunResumed(_)
            | EventBody::RunCompleted(_)
            | EventBody::RunFailed(_)
            | EventBody::RunCancelled(_)
            | EventBody::StepRetryScheduled(_)
            | EventBody::StepTakenOver(_)
            | EventBody::DrainTimedOut(_)
            | EventBody::TaskOrphaned(_)
            | EventBody::HandlerInvoked(_)
            | EventBody::CallbackHeartbeat(_)
            | EventBody::CompensationStarted(_)
            | EventBody::RunDeadLettered(_)
            | EventBody::RunImported(_)
            | EventBody::Runtime(_) => {}
        }
        self
    }
}

fn bare(error: &mut Option<ErrorObject>) {
    if let Some(error) = error {
        (error.error_data, error.stack_trace) = (None, None);
    }
}

/// A plan says what its steps get; the rest is its shape. A plan that cannot be read is left out.
fn without_inputs(plan: &RawValue) -> Option<Box<RawValue>> {
    let mut plan: Value = serde_json::from_str(plan.get()).ok()?;
    for step in plan.get_mut("steps")?.as_array_mut()? {
        step.as_object_mut()?.remove("with");
    }
    serde_json::value::to_raw_value(&plan).ok()
}
