//! The end of an execution, and of its run with it.

use servo_model::event::{EventBody, ExecutionEnded, HandlerStatus, RootCause, RunCancelled, RunCompleted, RunFailed};
use servo_model::execution::{Execution, HANDLER, JOIN};
use servo_model::limits::clip;
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_model::{RunState, RunStatus};

use super::settle::step;
use super::{compensation, descendants, handler};
use crate::decision::{Action, Decision};
use crate::refusal::Refusal;

/// What is told of an invocation that did not end by itself.
const ENDED: &str = "the execution has ended";

pub(crate) fn end(
    state: &RunState,
    execution: &Execution,
    status: ExecutionStatus,
    result: Option<String>,
    error: Option<ErrorObject>,
    decision: &mut Decision,
) {
    cut_off(execution, decision);
    let last = last_event(state, status, error.as_ref());
    let logical_attempt_id = state.round;
    let ended = ExecutionEnded { logical_attempt_id, status, result, error, document: None };
    decision.fact(EventBody::ExecutionEnded(Box::new(ended)));
    decision.fact(last);
    release(execution, decision);
    compensation::begin(state, execution, status, decision);
    descendants::follow(state, execution, status, decision);
}

/// An invocation that the end cuts off is over before it, as every other. Nobody waits for what it would have answered.
pub(crate) fn cut_off(execution: &Execution, decision: &mut Decision) {
    let Some(running) = &execution.head.invocation else { return };
    if decision.facts.iter().any(|fact| matches!(fact.body, EventBody::HandlerReturned(_))) {
        return;
    }
    let error = ErrorObject::new("Runtime.ExitError", ENDED);
    let mut returned = handler::returned(execution, running, HandlerStatus::Lost, Some(error), 0);
    if let EventBody::HandlerReturned(body) = &mut returned {
        body.cut_off = true;
    }
    decision.fact(returned);
}

/// Takes back what is still out, and tells whoever waits for this execution.
pub(crate) fn release(execution: &Execution, decision: &mut Decision) {
    let head = &execution.head;
    withdraw(execution, decision);
    let delivered = decision.actions.iter().any(|action| matches!(action, Action::Deliver { .. }));
    if head.invocation.is_some() && !delivered {
        let reason = ENDED.to_owned();
        let (step_id, attempt) = (step(HANDLER), head.invocations);
        decision.act(Action::Abandon { step_id, attempt, reason });
        decision.act(Action::CancelInFlight);
    }
    let compensates = head.start.entrypoint.as_ref().is_some_and(|pin| pin.compensates.is_some());
    if head.start.parent.is_some() || compensates {
        decision.act(Action::Dispatch { step_id: step(JOIN), attempt: 1 });
    }
}

/// Takes back an invocation that was not handed out yet.
pub(crate) fn withdraw(execution: &Execution, decision: &mut Decision) {
    let attempt = execution.head.invocations + 1;
    decision.act(Action::Withdraw { step_id: step(HANDLER), attempt });
}

fn last_event(state: &RunState, status: ExecutionStatus, error: Option<&ErrorObject>) -> EventBody {
    let message = || error.and_then(|error| error.error_message.as_deref()).map(|text| clip(text).to_owned());
    let logical_attempt_id = state.round;
    let failed = |code: &str| {
        let code = error.and_then(|error| error.error_type.as_deref()).unwrap_or(code);
        EventBody::RunFailed(RunFailed {
            status: RunStatus::Failed,
            logical_attempt_id,
            root_cause: RootCause {
                step_id: None,
                code: clip(code).to_owned(),
                message: message().unwrap_or_else(|| "the function failed without a message".to_owned()),
            },
        })
    };
    match status {
        ExecutionStatus::Succeeded | ExecutionStatus::Running => {
            EventBody::RunCompleted(RunCompleted { status: RunStatus::Completed, logical_attempt_id })
        }
        ExecutionStatus::Failed => failed("EXECUTION_FAILED"),
        ExecutionStatus::TimedOut => failed("EXECUTION_TIMED_OUT"),
        ExecutionStatus::Stopped => EventBody::RunCancelled(RunCancelled {
            status: RunStatus::Cancelled,
            logical_attempt_id,
            reason: message(),
            cancelled_by: None,
        }),
    }
}

/// Stopping an execution that is over changes nothing.
pub(crate) fn stop(
    state: &RunState,
    execution: &Execution,
    error: &ErrorObject,
    by: &str,
) -> Result<Decision, Refusal> {
    let mut decision = Decision::default();
    if execution.head.ended.is_some() || state.status.is_terminal() {
        return Ok(decision);
    }
    end(state, execution, ExecutionStatus::Stopped, None, Some(error.clone()), &mut decision);
    for fact in &mut decision.facts {
        if let EventBody::RunCancelled(body) = &mut fact.body {
            body.cancelled_by = Some(by.to_owned());
        }
    }
    if matches!(state.status, RunStatus::Pending | RunStatus::Approved) {
        decision.act(Action::Dequeue);
    }
    Ok(decision)
}
