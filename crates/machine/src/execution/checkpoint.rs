//! A checkpoint: updates that a handler asks to record. All of them or none.

mod batch;
mod fields;
mod rules;

use servo_model::event::{CheckpointRef, EventBody, HandlerStatus};
use servo_model::execution::Execution;
use servo_model::operation::{ExecutionStatus, OperationAction, OperationType, OperationUpdate};
use servo_model::{RunState, Timestamp};

use super::{Checkpoint, end, handler, settle};
use crate::decision::{Action, Decision};
use crate::refusal::Refusal;

use batch::Batch;

pub(crate) fn decide(
    state: &RunState,
    execution: &Execution,
    call: &Checkpoint,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    if repeats(execution, call) {
        return Ok(Decision::default());
    }
    let head = &execution.head;
    let current = head.invocations == call.invocation && head.checkpoint.number == call.number;
    let Some(running) = head.invocation.as_ref().filter(|_| current && head.start.durable && head.ended.is_none())
    else {
        return Err(Refusal::StaleToken);
    };
    if state.status.is_terminal() {
        return Err(Refusal::StaleToken);
    }
    let mut decision = Decision::default();
    let first = CheckpointRef { number: call.number + 1, client_token: call.client_token.clone() };
    let mut batch = Batch::new(&state.run_id, execution, call, first);
    let (ending, updates) = split_ending(&call.updates)?;
    for update in updates {
        fields::check(update)?;
        batch.add(update)?;
    }
    if let Some(update) = ending {
        fields::check_ending(update, &head.start)?;
        batch.judge(update)?;
    }
    let (facts, spawns, mark) = batch.finish();
    for fact in facts {
        decision.fact(fact);
    }
    for spawn in spawns {
        decision.act(Action::Spawn(spawn));
    }
    match ending {
        Some(update) => {
            // Over with this call: the answer that the handler gives afterwards says nothing new.
            let (status, handler_status) = match update.action {
                OperationAction::Succeed => (ExecutionStatus::Succeeded, HandlerStatus::Succeeded),
                _ => (ExecutionStatus::Failed, HandlerStatus::Failed),
            };
            let mut returned = handler::returned(execution, running, handler_status, None, 0);
            if let EventBody::HandlerReturned(body) = &mut returned {
                // It may be the call's only trace: without it the same call again would not be known.
                body.checkpoint = Some(mark);
            }
            decision.fact(returned);
            let step_id = settle::step(servo_model::execution::HANDLER);
            decision.act(Action::Deliver { step_id, attempt: call.invocation });
            end::end(state, execution, status, update.payload.clone(), update.error.clone(), &mut decision);
        }
        // Branches that wait for one of these go on with the answer to this call.
        None => {
            settle::resolve_due(execution, Some(mark), &mut decision, now);
        }
    }
    Ok(decision)
}

/// The same call again, whose answer was lost: nothing is recorded twice.
fn repeats(execution: &Execution, call: &Checkpoint) -> bool {
    let head = &execution.head;
    call.client_token.is_some()
        && head.invocations == call.invocation
        && head.checkpoint.number == call.number + 1
        && head.checkpoint.client_token == call.client_token
}

/// The update of EXECUTION, which ends it, and the others before it.
fn split_ending(updates: &[OperationUpdate]) -> Result<(Option<&OperationUpdate>, &[OperationUpdate]), Refusal> {
    let ends = |update: &&OperationUpdate| update.operation_type == OperationType::Execution;
    match updates.iter().filter(ends).count() {
        0 => Ok((None, updates)),
        1 => match updates.split_last() {
            Some((last, rest)) if last.operation_type == OperationType::Execution => Ok((Some(last), rest)),
            _ => Err(Refusal::invalid("EXECUTION checkpoint must be the last update.")),
        },
        _ => Err(Refusal::invalid("Cannot checkpoint multiple EXECUTION updates.")),
    }
}
