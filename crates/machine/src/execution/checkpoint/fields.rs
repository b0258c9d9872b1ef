//! What the API's model says about each field of an update.

use servo_model::event::ExecutionStarted;
use servo_model::function::is_tenant_id;
use servo_model::operation::{OperationAction, OperationType, OperationUpdate, StepOptions};

use crate::execution::size;
use crate::refusal::Refusal;

const ERROR_BYTES_MAX: usize = 1024 * 1024;
/// A year and a day.
const SECONDS_MAX: u64 = 31_622_400;
const CALLBACK_SECONDS_MAX: u64 = 99_999_999;

pub(super) fn check(update: &OperationUpdate) -> Result<(), Refusal> {
    plain("Id", &update.id, 64)?;
    if let Some(parent) = &update.parent_id {
        plain("ParentId", parent, 64)?;
    }
    if let Some(sub_type) = &update.sub_type {
        plain("SubType", sub_type, 32)?;
    }
    if let Some(name) = &update.name
        && (name.is_empty() || name.len() > 256 || !is_printable(name))
    {
        return Err(Refusal::Invalid("Name has 1 to 256 printable ASCII characters.".to_owned()));
    }
    if update.payload.as_ref().is_some_and(|payload| payload.len() > size::PAYLOAD_BYTES_MAX) {
        let kind = if update.operation_type == OperationType::ChainedInvoke { "input" } else { "output" };
        return Err(Refusal::Invalid(size::message(update.operation_type.as_str(), kind, size::PAYLOAD_BYTES_MAX)));
    }
    error_size(update)?;
    seconds(update)?;
    if let Some(options) = &update.chained_invoke_options {
        let length = options.function_name.len();
        if length == 0 || length > 256 {
            return Err(Refusal::invalid("FunctionName has 1 to 256 characters."));
        }
        // Both go on as headers of the call: what cannot stand in one would be lost on the way.
        if options.tenant_id.as_ref().is_some_and(|tenant| !is_tenant_id(tenant)) {
            return Err(Refusal::invalid("TenantId has 1 to 256 characters of [a-zA-Z0-9._:/=+-@ ]."));
        }
        if options.trace_id.as_ref().is_some_and(|trace| trace.len() > 8_192 || !is_printable(trace)) {
            return Err(Refusal::invalid("XAmznTraceId has at most 8192 printable ASCII characters."));
        }
    }
    Ok(())
}

/// The update of EXECUTION.
pub(super) fn check_ending(update: &OperationUpdate, start: &ExecutionStarted) -> Result<(), Refusal> {
    plain("Id", &update.id, 64)?;
    match update.action {
        OperationAction::Succeed if update.error.is_some() => {
            return Err(Refusal::invalid("Cannot provide an Error for SUCCEED action."));
        }
        OperationAction::Fail if update.payload.is_some() => {
            return Err(Refusal::invalid("Cannot provide a Payload for FAIL action."));
        }
        OperationAction::Succeed | OperationAction::Fail => {}
        OperationAction::Start | OperationAction::Retry | OperationAction::Cancel => {
            return Err(Refusal::invalid("Invalid action for the given operation type."));
        }
    }
    match size::too_large(start, update.payload.as_deref()) {
        Some(message) => Err(Refusal::Invalid(message)),
        None => error_size(update),
    }
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..=0x7E).contains(&byte))
}

fn plain(field: &str, text: &str, max: usize) -> Result<(), Refusal> {
    let fits = !text.is_empty() && text.len() <= max;
    if fits && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
        return Ok(());
    }
    Err(Refusal::Invalid(format!("{field} has 1 to {max} characters of [a-zA-Z0-9-_].")))
}

fn error_size(update: &OperationUpdate) -> Result<(), Refusal> {
    if update.error.as_ref().is_some_and(|error| error.len() > ERROR_BYTES_MAX) {
        return Err(Refusal::Invalid(format!(
            "Error object size must be less than or equal to {ERROR_BYTES_MAX} bytes."
        )));
    }
    Ok(())
}

fn seconds(update: &OperationUpdate) -> Result<(), Refusal> {
    let out = |seconds: u64| !(1..=SECONDS_MAX).contains(&seconds);
    if update.step_options.and_then(|options| options.next_attempt_delay_seconds).is_some_and(out) {
        return Err(Refusal::Invalid(format!("NextAttemptDelaySeconds is from 1 to {SECONDS_MAX}.")));
    }
    if let Some(options) = update.step_options
        && let Some(millis) = options.next_attempt_delay_millis
        && StepOptions::after_millis(millis).next_attempt_delay_seconds != options.next_attempt_delay_seconds
    {
        return Err(Refusal::invalid("NextAttemptDelayMillis rounds up to NextAttemptDelaySeconds."));
    }
    let waits = update.operation_type == OperationType::Wait && update.action == OperationAction::Start;
    if waits && update.wait_options.and_then(|options| options.wait_seconds).is_none_or(out) {
        return Err(Refusal::Invalid(format!("WaitSeconds is from 1 to {SECONDS_MAX}.")));
    }
    if let Some(options) = update.callback_options {
        for (field, value) in [
            ("TimeoutSeconds", options.timeout_seconds),
            ("HeartbeatTimeoutSeconds", options.heartbeat_timeout_seconds),
        ] {
            if value.is_some_and(|seconds| seconds > CALLBACK_SECONDS_MAX) {
                return Err(Refusal::Invalid(format!("{field} is from 0 to {CALLBACK_SECONDS_MAX}.")));
            }
        }
    }
    Ok(())
}
