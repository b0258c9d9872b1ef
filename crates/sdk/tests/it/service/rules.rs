//! What the service accepts: the rules about one call and about the states of each type of operation.

use servo_model::operation::{OperationAction as A, OperationStatus as S, OperationType as T};
use servo_sdk::OperationUpdate;
use servo_wire::lambda::{CHECKPOINT_BYTES_MAX, UPDATES_MAX};

use super::store::{Recorded, Store};

/// All of the call, or nothing of it.
pub(crate) fn check(store: &Store, updates: &[OperationUpdate]) -> Result<(), String> {
    if updates.len() > UPDATES_MAX {
        return Err("Too many updates.".into());
    }
    let size: usize = updates.iter().map(|update| update.payload.as_ref().map_or(0, String::len)).sum();
    if updates.len() > 1 && size > CHECKPOINT_BYTES_MAX {
        return Err("The call is too large.".into());
    }
    let executions = updates.iter().filter(|update| update.operation_type == T::Execution).count();
    if executions > 1 {
        return Err("Cannot checkpoint multiple EXECUTION updates.".into());
    }
    if executions == 1 && updates.last().is_some_and(|update| update.operation_type != T::Execution) {
        return Err("EXECUTION checkpoint must be the last update.".into());
    }
    let mut draft = store.clone();
    for (index, update) in updates.iter().enumerate() {
        let before: Vec<_> = updates[..index].iter().filter(|other| other.id == update.id).collect();
        let closes = matches!(update.operation_type, T::Step | T::Context)
            && before.len() == 1
            && before[0].action == A::Start
            && update.action != A::Start;
        if !before.is_empty() && !closes {
            return Err("Cannot checkpoint multiple operations with the same ID.".into());
        }
        one(&draft, update)?;
        draft.apply(update);
    }
    Ok(())
}

fn one(store: &Store, update: &OperationUpdate) -> Result<(), String> {
    if update.id.is_empty() || update.id.len() > 64 {
        return Err("Invalid operation id.".into());
    }
    if let Some(parent) = &update.parent_id {
        let known = store.get(parent).is_some_and(|operation| operation.operation_type == T::Context);
        if !known {
            return Err("Invalid parent operation id.".into());
        }
    }
    let known = store.get(&update.id);
    if let Some(known) = known {
        consistent(known, update)?;
    }
    let status = known.map(|operation| operation.status);
    match (update.operation_type, update.action) {
        (T::Execution, A::Succeed | A::Fail) => Ok(()),
        (T::Step, A::Start) if matches!(status, None | Some(S::Ready)) => Ok(()),
        (T::Step, A::Start) => Err("Invalid current STEP state to start.".into()),
        (T::Step, A::Retry) => {
            if update.error.is_some() && update.payload.is_some() {
                return Err("Cannot provide both error and payload to RETRY a STEP.".into());
            }
            let delay = update.step_options.and_then(|options| options.next_attempt_delay_seconds);
            if delay.is_none_or(|delay| delay == 0) {
                return Err("Invalid StepOptions for the given action.".into());
            }
            let open = matches!(status, Some(S::Started | S::Ready));
            if open { Ok(()) } else { Err("Invalid current STEP state to re-attempt.".into()) }
        }
        (T::Step, A::Succeed | A::Fail) if matches!(status, Some(S::Started | S::Ready)) => outcome(update),
        (T::Step, A::Succeed | A::Fail) => Err("Invalid current STEP state to close.".into()),
        (T::Context, A::Start) if status.is_none() => Ok(()),
        (T::Context, A::Start) => Err("Cannot start a CONTEXT that already exist.".into()),
        (T::Context, A::Succeed | A::Fail) if status == Some(S::Started) => outcome(update),
        (T::Context, A::Succeed | A::Fail) => Err("Invalid current CONTEXT state to close.".into()),
        (T::Wait, A::Start) if status.is_none() => Ok(()),
        (T::Wait, A::Start) => Err("Cannot start a WAIT that already exist.".into()),
        (T::Wait, A::Cancel) if status == Some(S::Started) => Ok(()),
        (T::Wait, A::Cancel) => Err("Cannot cancel a WAIT that does not exist or has already completed.".into()),
        (T::Callback, A::Start) if status.is_none() => Ok(()),
        (T::Callback, A::Start) => Err("Cannot start a CALLBACK that already exist.".into()),
        (T::ChainedInvoke, A::Start) if status.is_some() => {
            Err("Cannot start a CHAINED_INVOKE operation that already exists.".into())
        }
        (T::ChainedInvoke, A::Start) if update.chained_invoke_options.is_none() => {
            Err("Update for CHAINED_INVOKE operation requires ChainedInvokeOptions.".into())
        }
        (T::ChainedInvoke, A::Start) => Ok(()),
        _ => Err("Invalid action for the given operation type.".into()),
    }
}

fn consistent(known: &Recorded, update: &OperationUpdate) -> Result<(), String> {
    if known.operation_type != update.operation_type {
        return Err("Inconsistent operation type.".into());
    }
    if update.sub_type.is_some() && known.sub_type != update.sub_type {
        return Err("Inconsistent operation subtype.".into());
    }
    if update.name.is_some() && known.name != update.name {
        return Err("Inconsistent operation name.".into());
    }
    if update.parent_id.is_some() && known.parent_id != update.parent_id {
        return Err("Inconsistent parent operation id.".into());
    }
    Ok(())
}

fn outcome(update: &OperationUpdate) -> Result<(), String> {
    match update.action {
        A::Succeed if update.error.is_some() => Err("Cannot provide an Error for SUCCEED action.".into()),
        A::Fail if update.payload.is_some() => Err("Cannot provide a Payload for FAIL action.".into()),
        _ => Ok(()),
    }
}
