//! What follows from every decision about an execution: operations whose time has come are resolved, a handler that should
//! run is dispatched, and an execution that has taken too long ends.

use std::collections::BTreeSet;

use servo_model::event::{CheckpointRef, EventBody, OperationResolved};
use servo_model::execution::{Due, Execution, HANDLER, Operation};
use servo_model::invocation::{ErrorCategory, Failure, errors};
use servo_model::operation::{ErrorObject, ExecutionStatus, OperationStatus};
use servo_model::{RunState, RunStatus, StepId, Timestamp};

use super::end;
use crate::decision::{Action, Decision};

/// The dispatch of an invocation.
pub(crate) fn dispatch(invocation: u32) -> Action {
    Action::Dispatch { step_id: step(HANDLER), attempt: invocation }
}

pub(crate) fn step(name: &str) -> StepId {
    StepId::parse(name).expect("the reserved step ids are well-formed")
}

/// Time has passed, or a queued or paused run goes on.
pub(crate) fn settle(state: &RunState, execution: &Execution, decision: &mut Decision, now: Timestamp) {
    // What came due during a pause has no timer any more: going on is the last moment to see it.
    let goes_on = decision.facts.iter().any(|fact| matches!(fact.body, EventBody::RunResumed(_)));
    if (state.status != RunStatus::Running && !goes_on) || ends(decision) {
        return;
    }
    if execution.deadline() <= now {
        let seconds = execution.head.start.timeout_seconds;
        let message = format!("Execution timed out after {seconds} seconds.");
        let error = ErrorObject::new("ExecutionTimedOut", message);
        end::end(state, execution, ExecutionStatus::TimedOut, None, Some(error), decision);
        return;
    }
    if execution.waits_outside() && suspended_too_long(state, execution, decision, now) {
        return;
    }
    let resolved = resolve_due(execution, None, decision, now);
    let next = dispatch(execution.head.invocations + 1);
    if may_run(execution, decision, now)
        && (resolved || execution.wants_invocation(now))
        && !decision.actions.contains(&next)
    {
        decision.act(next);
    }
}

/// Ends a run that has been suspended for longer than its entrypoint allows.
pub(crate) fn suspended_too_long(
    state: &RunState,
    execution: &Execution,
    decision: &mut Decision,
    now: Timestamp,
) -> bool {
    let over = execution.suspension_ends().is_some_and(|at| at <= now);
    if over {
        let message = "the run was suspended for longer than its entrypoint allows";
        let error = Failure::new(errors::TIMEOUT, ErrorCategory::Timeout, message).to_error();
        end::end(state, execution, ExecutionStatus::Failed, None, Some(error), decision);
    }
    over
}

/// The handler does not run after this decision, and need not wait before its next try.
fn may_run(execution: &Execution, decision: &Decision, now: Timestamp) -> bool {
    let returned = decision.facts.iter().find_map(|fact| match &fact.body {
        EventBody::HandlerReturned(body) => Some(body.retry_after_ms == 0),
        EventBody::HandlerInvoked(_) => Some(false),
        _ => None,
    });
    let head = &execution.head;
    returned.unwrap_or_else(|| head.invocation.is_none() && head.retry_at.is_none_or(|at| at <= now))
}

/// Whether the decision ends the run.
pub(crate) fn ends(decision: &Decision) -> bool {
    decision.facts.iter().any(|fact| matches!(fact.body, EventBody::ExecutionEnded(_)))
}

/// Resolves what is due, but for what the decision has changed itself. True if there was anything.
pub(crate) fn resolve_due(
    execution: &Execution,
    mut checkpoint: Option<CheckpointRef>,
    decision: &mut Decision,
    now: Timestamp,
) -> bool {
    let mut due = execution.due(now).peekable();
    if due.peek().is_none() {
        return false;
    }
    let changed: BTreeSet<String> = decision.facts.iter().filter_map(|fact| changed(&fact.body)).collect();
    let mut resolved = false;
    for (kind, operation) in due.filter(|(_, operation)| !changed.contains(&*operation.id)) {
        let mut body = resolution(kind, operation);
        body.checkpoint.clone_from(&checkpoint);
        if let Some(mark) = &mut checkpoint {
            // Only a call's first event names its token.
            mark.client_token = None;
        }
        decision.fact(EventBody::OperationResolved(Box::new(body)));
        resolved = true;
    }
    resolved
}

fn changed(body: &EventBody) -> Option<String> {
    match body {
        EventBody::OperationUpdated(body) => Some(body.operation_id.clone()),
        EventBody::OperationResolved(body) => Some(body.operation_id.clone()),
        EventBody::CallbackHeartbeat(body) => Some(body.operation_id.clone()),
        _ => None,
    }
}

fn resolution(due: Due, operation: &Operation) -> OperationResolved {
    let (status, error) = match due {
        Due::WaitOver => (OperationStatus::Succeeded, None),
        Due::RetryReady => (OperationStatus::Ready, None),
        Due::CallbackTimeout => {
            (OperationStatus::TimedOut, Some(ErrorObject::new("Callback.Timeout", "Callback timed out")))
        }
        Due::HeartbeatTimeout => {
            (OperationStatus::TimedOut, Some(ErrorObject::new("Callback.Heartbeat", "Callback timed out on heartbeat")))
        }
    };
    resolved(operation, status, None, error)
}

/// The fact that something outside the handler has changed an operation.
pub(crate) fn resolved(
    operation: &Operation,
    status: OperationStatus,
    payload: Option<String>,
    error: Option<ErrorObject>,
) -> OperationResolved {
    OperationResolved {
        operation_id: operation.id.to_string(),
        occurrence: operation.occurrence + 1,
        status,
        payload,
        error,
        checkpoint: None,
    }
}
