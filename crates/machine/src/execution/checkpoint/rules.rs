//! Which update may follow which state. The messages are the service's own: SDKs show them to people, and some compare
//! them.

use servo_model::operation::{OperationAction as A, OperationStatus as S, OperationType as T, OperationUpdate};

use super::batch::Current;
use crate::refusal::Refusal;

/// A second update of the same operation in one call: only the end of a step or context that the call has started.
pub(super) fn second(update: &OperationUpdate, last: A) -> Result<(), Refusal> {
    let ends = matches!(update.operation_type, T::Step | T::Context) && update.action != A::Start;
    if ends && last == A::Start {
        return Ok(());
    }
    Err(Refusal::invalid("Cannot checkpoint multiple operations with the same ID."))
}

/// An operation stays what it was started as; what an update leaves out is not compared.
pub(super) fn identity(update: &OperationUpdate, current: &Current<'_>) -> Result<(), Refusal> {
    let differs = |given: &Option<String>, known: Option<&str>| given.is_some() && given.as_deref() != known;
    let wrong = if update.operation_type != current.operation_type {
        "Inconsistent operation type."
    } else if differs(&update.sub_type, current.sub_type) {
        "Inconsistent operation subtype."
    } else if differs(&update.name, current.name) {
        "Inconsistent operation name."
    } else if differs(&update.parent_id, current.parent_id) {
        "Inconsistent parent operation id."
    } else {
        return Ok(());
    };
    Err(Refusal::invalid(wrong))
}

/// The state that an update leads to.
pub(super) fn next(update: &OperationUpdate, current: Option<&Current<'_>>) -> Result<S, Refusal> {
    content(update)?;
    let status = current.map(|current| current.status);
    let refuse = |message: &str| Err(Refusal::invalid(message));
    match (update.operation_type, update.action) {
        (T::Step, A::Start) => match status {
            None | Some(S::Ready) => Ok(S::Started),
            Some(_) => refuse("Invalid current STEP state to start."),
        },
        (T::Step, A::Succeed | A::Fail) => match status {
            Some(S::Started | S::Ready) => Ok(if update.action == A::Succeed { S::Succeeded } else { S::Failed }),
            _ => refuse("Invalid current STEP state to close."),
        },
        (T::Step, A::Retry) => match status {
            Some(S::Started | S::Ready) => Ok(S::Pending),
            _ => refuse("Invalid current STEP state to re-attempt."),
        },
        (T::Wait, A::Start) => match status {
            None => Ok(S::Started),
            Some(_) => refuse("Cannot start a WAIT that already exist."),
        },
        (T::Wait, A::Cancel) => match status {
            Some(S::Started) => Ok(S::Cancelled),
            _ => refuse("Cannot cancel a WAIT that does not exist or has already completed."),
        },
        (T::Callback, A::Start) => match status {
            None => Ok(S::Started),
            Some(_) => refuse("Cannot start a CALLBACK that already exist."),
        },
        (T::ChainedInvoke, A::Start) => match status {
            None if update.chained_invoke_options.is_none() => {
                refuse("Update for CHAINED_INVOKE operation requires ChainedInvokeOptions.")
            }
            None => Ok(S::Started),
            Some(_) => refuse("Cannot start a CHAINED_INVOKE operation that already exists."),
        },
        (T::Context, A::Start) => match status {
            None => Ok(S::Started),
            Some(_) => refuse("Cannot start a CONTEXT that already exist."),
        },
        (T::Context, A::Succeed | A::Fail) => match status {
            Some(S::Started) => Ok(if update.action == A::Succeed { S::Succeeded } else { S::Failed }),
            _ => refuse("Invalid current CONTEXT state to close."),
        },
        (T::Step, A::Cancel)
        | (T::Wait, A::Succeed | A::Fail | A::Retry)
        | (T::Callback | T::ChainedInvoke, A::Succeed | A::Fail | A::Retry | A::Cancel)
        | (T::Context, A::Retry | A::Cancel)
        | (T::Execution, _) => refuse("Invalid action for the given operation type."),
    }
}

/// What an update of an action may carry.
fn content(update: &OperationUpdate) -> Result<(), Refusal> {
    let delay = update.step_options.and_then(|options| options.next_attempt_delay_seconds);
    let wrong = match update.action {
        A::Retry if update.operation_type == T::Step && delay.is_none() => "Invalid StepOptions for the given action.",
        A::Retry if update.payload.is_some() && update.error.is_some() => {
            "Cannot provide both error and payload to RETRY a STEP."
        }
        A::Start | A::Succeed | A::Fail if update.operation_type == T::Step && delay.is_some() => {
            "Invalid StepOptions for the given action."
        }
        A::Fail if update.payload.is_some() => "Cannot provide a Payload for FAIL action.",
        A::Succeed if update.error.is_some() => "Cannot provide an Error for SUCCEED action.",
        _ => return Ok(()),
    };
    Err(Refusal::invalid(wrong))
}
