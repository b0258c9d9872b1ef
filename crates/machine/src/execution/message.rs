//! A message for a workflow: it answers whoever waits for one of its name, or waits itself until somebody does.

use servo_model::event::{CheckpointRef, EventBody, MessageReceived, OperationResolved};
use servo_model::execution::{EVENT, Execution, Message, SIGNAL};
use servo_model::invocation::EntrypointKind;
use servo_model::operation::{OperationStatus, OperationType, OperationUpdate};
use servo_model::{RunState, SignalId};

use super::{callback, settle};
use crate::decision::Decision;
use crate::refusal::Refusal;

pub(crate) fn receive(
    state: &RunState,
    signal_id: &SignalId,
    (name, payload): (&str, Option<&str>),
    decision: &mut Decision,
) -> Result<(), Refusal> {
    let execution = state.execution.as_deref().ok_or(Refusal::NoExecution)?;
    let pin = execution.head.start.entrypoint.as_ref();
    if pin.is_none_or(|pin| pin.kind == EntrypointKind::Function) {
        return Err(Refusal::NeverWaits);
    }
    let payload = payload.map(str::to_owned);
    decision.fact(EventBody::MessageReceived(Box::new(MessageReceived {
        logical_attempt_id: state.signals_accepted + 1,
        signal_id: signal_id.clone(),
        name: name.to_owned(),
        payload: payload.clone(),
    })));
    if let Some(operation) = execution.waits_for_message(name) {
        let answer = settle::resolved(operation, OperationStatus::Succeeded, payload, None);
        callback::resolve(state, execution, answer, decision);
    }
    Ok(())
}

/// A message that has come before anybody waited for it answers the wait at once. `taken` counts those that this call has
/// used up already.
pub(super) fn waiting<'a>(
    execution: &'a Execution,
    update: &OperationUpdate,
    taken: &mut Vec<&'a Message>,
) -> Option<&'a Message> {
    let awaited = matches!(update.sub_type.as_deref(), Some(SIGNAL | EVENT));
    let name = update.name.as_deref().filter(|_| awaited && update.operation_type == OperationType::Callback)?;
    let used = taken.iter().filter(|message| message.name == name).count();
    let found = execution.head.messages.iter().filter(|message| message.name == name).nth(used)?;
    taken.push(found);
    Some(found)
}

pub(super) fn answer(message: &Message, operation_id: &str, occurrence: u32, checkpoint: CheckpointRef) -> EventBody {
    EventBody::OperationResolved(Box::new(OperationResolved {
        operation_id: operation_id.to_owned(),
        occurrence,
        status: OperationStatus::Succeeded,
        payload: message.payload.clone(),
        error: None,
        checkpoint: Some(checkpoint),
    }))
}
