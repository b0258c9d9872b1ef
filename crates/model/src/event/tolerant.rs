//! Reading stored bodies whose enums hold values that a newer version wrote. A reader that failed on them would stop
//! working during every rolling upgrade.
//!
//! Each enum has its own answer, chosen so that nothing is invented that later events would build on:
//! - `status` repeats what the type says; the type counts.
//! - `context.triggerSource` is for people; it is left out.
//! - `cause` of a skip: that the step is skipped is certain; its dependents go on, as after every cause but one.
//! - `signalType`: the whole event is kept as it came, like one of an unknown type.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::body::{EventBody, SignalType, SkipCause, UnknownBody};
use crate::plan::TriggerSource;
use crate::{RunStatus, StepStatus};

/// `None` if something else is wrong with the body as well.
pub(super) fn decode(event_type: &str, payload: &str) -> Option<EventBody> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(payload).ok()?;
    let signal = matches!(event_type, "SignalAccepted" | "SignalRejected");
    if signal && fields.get("signalType").is_some_and(|value| is_new::<SignalType>(value)) {
        let payload = RawValue::from_string(payload.to_owned()).ok()?;
        return Some(EventBody::Unknown(UnknownBody { event_type: event_type.to_owned(), payload }));
    }
    let is_new_status = if event_type.starts_with("Run") { is_new::<RunStatus> } else { is_new::<StepStatus> };
    if let Some(own) = own_status(event_type)
        && fields.get("status").is_some_and(|value| is_new_status(value))
    {
        put(&mut fields, "status", own)?;
    }
    if event_type == "StepSkipped" && fields.get("cause").is_some_and(|value| is_new::<SkipCause>(value)) {
        put(&mut fields, "cause", &SkipCause::Condition)?;
    }
    if let Some(context) = fields.get("context") {
        let mut context: Map<String, Value> = serde_json::from_str(context.get()).ok()?;
        let source = context.get("triggerSource").and_then(|value| to_raw_value(value).ok());
        if source.is_some_and(|value| is_new::<TriggerSource>(&value)) {
            context.remove("triggerSource");
            put(&mut fields, "context", &context)?;
        }
    }
    EventBody::decode_strict(event_type, &serde_json::to_string(&fields).ok()?).ok()
}

/// A string that is no value of the enum. Other types of JSON are wrong, not new.
fn is_new<E: DeserializeOwned>(value: &RawValue) -> bool {
    value.get().starts_with('"') && serde_json::from_str::<E>(value.get()).is_err()
}

fn put<T: Serialize + ?Sized>(fields: &mut BTreeMap<String, Box<RawValue>>, name: &str, value: &T) -> Option<()> {
    fields.insert(name.to_owned(), to_raw_value(value).ok()?);
    Some(())
}

fn own_status(event_type: &str) -> Option<&'static str> {
    Some(match event_type {
        "RunQueued" => RunStatus::Pending.as_str(),
        "RunApproved" => RunStatus::Approved.as_str(),
        "RunStarted" | "RunResumed" => RunStatus::Running.as_str(),
        "RunPaused" => RunStatus::Paused.as_str(),
        "RunCompleted" => RunStatus::Completed.as_str(),
        "RunFailed" => RunStatus::Failed.as_str(),
        "RunCancelled" => RunStatus::Cancelled.as_str(),
        "StepStarted" => StepStatus::Running.as_str(),
        "StepCompleted" => StepStatus::Success.as_str(),
        "StepFailed" => StepStatus::Failed.as_str(),
        "StepSkipped" => StepStatus::Skipped.as_str(),
        _ => return None,
    })
}
