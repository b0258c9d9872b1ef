//! Why an execution does not go on. Everything that waits says what for, and when it can move at the earliest.

use serde::{Deserialize, Serialize};

use crate::execution::{EVENT, Execution, Operation, SIGNAL, Unreached};
use crate::invocation::InvocationStatus;
use crate::operation::{OperationStatus, OperationType};
use crate::{RunState, RunStatus, Timestamp};

/// Causes that one answer names; a wide map may wait for thousands of things.
const CAUSES_MAX: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// As many runs of the tenant are active as may be.
    Queue,
    /// A free place: of the entrypoint's `max_concurrent`, or of the node.
    Slot,
    /// Somebody who runs this version of the function; the name says which.
    Worker,
    /// The function's handler, which cannot be reached; the reason says since when and why.
    Handler,
    /// The time of the next try.
    Retry,
    Timer,
    Signal,
    Event,
    Callback,
    /// Another run.
    Invocation,
    /// Somebody suspended it.
    Operator,
    /// The run that undoes it.
    Compensation,
}

impl Cause {
    /// As it is written in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Slot => "slot",
            Self::Worker => "worker",
            Self::Handler => "handler",
            Self::Retry => "retry",
            Self::Timer => "timer",
            Self::Signal => "signal",
            Self::Event => "event",
            Self::Callback => "callback",
            Self::Invocation => "invocation",
            Self::Operator => "operator",
            Self::Compensation => "compensation",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait<'e> {
    pub cause: Cause,
    /// `None`: the whole execution waits.
    pub operation: Option<&'e Operation>,
    pub until: Option<Timestamp>,
    /// Set while calls do not get to the function.
    pub unreached: Option<&'e Unreached>,
}

impl Wait<'_> {
    /// Since when, where it is known.
    pub fn since(&self) -> Option<Timestamp> {
        match (self.operation, self.unreached) {
            // A step waits for its next attempt since the last one has ended, which is not kept.
            (Some(operation), _) if operation.operation_type == OperationType::Step => None,
            (Some(operation), _) => Some(operation.started_at),
            (None, unreached) => unreached.map(|unreached| unreached.since),
        }
    }

    /// What the cause alone does not say.
    pub fn reason(&self) -> Option<String> {
        let Unreached { since, error } = self.unreached?;
        let why = error.as_ref().and_then(|error| error.error_message.as_deref()).unwrap_or("no reason was given");
        Some(format!("it cannot be reached since {since}: {why}"))
    }
}

/// What an execution waits for; nothing while its handler runs.
pub fn waits<'e>(state: &RunState, execution: &'e Execution) -> Vec<Wait<'e>> {
    let head = &execution.head;
    let all = |cause, until| vec![Wait { cause, operation: None, until, unreached: None }];
    match state.status {
        RunStatus::Pending | RunStatus::Approved => all(Cause::Queue, state.not_before),
        RunStatus::Paused => all(Cause::Operator, None),
        RunStatus::Running if !execution.has_begun() => all(Cause::Slot, None),
        RunStatus::Running if head.invocation.is_some() => Vec::new(),
        RunStatus::Running => {
            let unreached = head.unreached.as_deref();
            let cause = if unreached.is_some() { Cause::Handler } else { Cause::Retry };
            let again = head.retry_at.map(|at| Wait { cause, operation: None, until: Some(at), unreached });
            let open = execution.operations().iter().filter_map(waits_for);
            again.into_iter().chain(open).take(CAUSES_MAX).collect()
        }
        RunStatus::Failed | RunStatus::Cancelled if state.visible() == InvocationStatus::Compensating => {
            all(Cause::Compensation, None)
        }
        RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => Vec::new(),
    }
}

/// When an execution can move by itself at the earliest, of all that it waits for. A suspension that has an end moves it at
/// the latest then.
pub fn earliest_at(state: &RunState, execution: &Execution) -> Option<Timestamp> {
    let head = &execution.head;
    match state.status {
        RunStatus::Pending | RunStatus::Approved => state.not_before,
        RunStatus::Paused => execution.suspension_ends(),
        RunStatus::Running if head.invocation.is_none() && execution.has_begun() => {
            let waited = execution.suspension_ends().filter(|_| execution.waits_outside());
            [head.retry_at, execution.earliest_due(), waited].into_iter().flatten().min()
        }
        RunStatus::Running | RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => None,
    }
}

/// What an open operation waits for.
fn waits_for(operation: &Operation) -> Option<Wait<'_>> {
    let cause = match (operation.operation_type, operation.status) {
        (OperationType::Step, OperationStatus::Pending) => Cause::Retry,
        (OperationType::Wait, OperationStatus::Started) => Cause::Timer,
        (OperationType::Callback, OperationStatus::Started) => match operation.sub_type.as_deref() {
            Some(SIGNAL) => Cause::Signal,
            Some(EVENT) => Cause::Event,
            _ => Cause::Callback,
        },
        (OperationType::ChainedInvoke, OperationStatus::Started) => Cause::Invocation,
        _ => return None,
    };
    Some(Wait { cause, operation: Some(operation), until: operation.due().map(|(at, _)| at), unreached: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_written_as_they_are_called() {
        use Cause::*;
        for cause in
            [Queue, Slot, Worker, Handler, Retry, Timer, Signal, Event, Callback, Invocation, Operator, Compensation]
        {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
        }
    }
}
