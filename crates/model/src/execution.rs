//! The durable execution of a function: what a run's operation events add up to.
//!
//! Kept so that each command costs what it touches and not what the run has done before: operations are found by id, what
//! changed since a sequence is a range, what is due is the head of a set.

mod apply;
mod operation;
mod round;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::{CheckpointRef, ExecutionStarted};
use crate::invocation::CompensationTrigger;
use crate::operation::{ErrorObject, ExecutionStatus, OperationStatus, OperationType};
use crate::{RunId, Timestamp};

pub use operation::{Due, Operation};
pub use round::{EVENT, SIGNAL};

/// The step id under which invocations of the handler are dispatched.
pub const HANDLER: &str = "handler";
/// The step id under which a run is undone.
pub const COMPENSATE: &str = "compensate";
/// The step id under which the runs below one that was cancelled, or ran out of time, are ended as well.
pub const DESCENDANTS: &str = "descendants";
/// The step id under which the end of a chained execution is told to the one that waits for it.
pub const JOIN: &str = "join";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "(Head, Vec<Operation>)", into = "(Head, Vec<Operation>)")]
pub struct Execution {
    pub head: Head,
    /// In the order in which they started.
    operations: Vec<Operation>,
    index: BTreeMap<Arc<str>, u32>,
    /// By the sequence that last changed them.
    touched: BTreeSet<(u64, u32)>,
    due: BTreeSet<(Timestamp, Due, u32)>,
    /// Operations that something outside the handler will end.
    pending: u32,
    /// Those among them that are no retries.
    waiting: u32,
    bytes: usize,
}

/// Everything about an execution but its operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub start: Arc<ExecutionStarted>,
    pub started_at: Timestamp,
    /// Set while the handler runs.
    pub invocation: Option<Invocation>,
    /// How often the handler was invoked.
    pub invocations: u32,
    /// The last accepted checkpoint of the current invocation.
    pub checkpoint: CheckpointRef,
    /// The sequence up to which the handler knows the operations.
    pub seen: u64,
    /// The same before the current invocation.
    pub seen_before: u64,
    /// The last change that did not come from the handler.
    pub resolved: u64,
    /// Invocations that failed since the last progress.
    pub failures: u32,
    /// Answers of PENDING with nothing pending, in a row.
    pub idle_answers: u32,
    /// The next invocation is not before this time.
    pub retry_at: Option<Timestamp>,
    /// Set while calls do not get to the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreached: Option<Box<Unreached>>,
    pub ended: Option<Ended>,
    /// How often the handler had been invoked before this round.
    #[serde(default)]
    pub invocations_before: u32,
    /// When this round's first invocation began.
    #[serde(default)]
    pub begun_at: Option<Timestamp>,
    /// How long handlers have run in this round.
    #[serde(default)]
    pub executed_ms: u64,
    #[serde(default)]
    pub cpu_ms: Option<u64>,
    #[serde(default)]
    pub memory_mb: Option<u32>,
    /// When it last began to wait.
    #[serde(default)]
    pub suspended_at: Option<Timestamp>,
    /// Messages that nobody has waited for yet, in order: by name.
    #[serde(default)]
    pub messages: Vec<Message>,
    #[serde(default)]
    pub compensation: Option<Compensation>,
    #[serde(default)]
    pub dead_lettered: bool,
    /// The last event number of operations that were taken back when the run was tried again.
    #[serde(default)]
    pub taken_back: BTreeMap<Arc<str>, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub name: String,
    pub payload: Option<String>,
}

/// How undoing the run goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compensation {
    pub trigger: CompensationTrigger,
    pub at: Timestamp,
    pub ended: bool,
    /// The run that undid it.
    pub run_id: Option<RunId>,
    pub error: Option<ErrorObject>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    pub request_id: String,
    pub invoked_at: Timestamp,
}

/// A function that cannot be reached: since when, and how the last call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreached {
    pub since: Timestamp,
    pub error: Option<ErrorObject>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub status: ExecutionStatus,
    pub result: Option<String>,
    pub error: Option<ErrorObject>,
    /// What the runtime of a plain function wrote about its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
}

impl Execution {
    fn new(start: Arc<ExecutionStarted>, started_at: Timestamp) -> Self {
        let kept = [&start.input, &start.client_context].into_iter().flatten();
        let bytes = 2_000 + kept.map(String::len).sum::<usize>();
        let head = Head {
            start,
            started_at,
            invocation: None,
            invocations: 0,
            checkpoint: CheckpointRef { number: 0, client_token: None },
            seen: 0,
            seen_before: 0,
            resolved: 0,
            failures: 0,
            idle_answers: 0,
            retry_at: None,
            unreached: None,
            ended: None,
            invocations_before: 0,
            begun_at: None,
            executed_ms: 0,
            cpu_ms: None,
            memory_mb: None,
            suspended_at: None,
            messages: Vec::new(),
            compensation: None,
            dead_lettered: false,
            taken_back: BTreeMap::new(),
        };
        Self {
            head,
            operations: Vec::new(),
            index: BTreeMap::new(),
            touched: BTreeSet::new(),
            due: BTreeSet::new(),
            pending: 0,
            waiting: 0,
            bytes,
        }
    }

    /// All of them, in the order in which they started.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    pub fn operation(&self, id: &str) -> Option<&Operation> {
        self.index.get(id).map(|number| &self.operations[*number as usize])
    }

    /// Changed after a sequence, in the order in which they started.
    pub fn changed_after(&self, seq: u64) -> Vec<&Operation> {
        let mut numbers: Vec<u32> = self.touched.range((seq + 1, 0)..).map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| &self.operations[number as usize]).collect()
    }

    /// Whether a finished context stands for this operation, so that a handler need not know it.
    pub fn is_hidden(&self, operation: &Operation) -> bool {
        let mut parent = operation.parent_id.as_deref();
        while let Some(context) = parent.and_then(|id| self.operation(id)) {
            if context.status.is_terminal() && !context.replay_children {
                return true;
            }
            parent = context.parent_id.as_deref();
        }
        false
    }

    /// When the whole execution times out.
    pub fn deadline(&self) -> Timestamp {
        self.head.started_at.plus(std::time::Duration::from_secs(self.head.start.timeout_seconds))
    }

    /// What something outside the handler will end.
    pub fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// Something changed that the handler does not know.
    pub fn has_unseen(&self) -> bool {
        self.head.resolved > self.head.seen
    }

    /// The handler should be invoked, and does not run.
    pub fn wants_invocation(&self, now: Timestamp) -> bool {
        if self.head.invocation.is_some() || self.head.ended.is_some() {
            return false;
        }
        match self.head.retry_at {
            Some(at) => at <= now,
            None => self.head.invocations == 0 || self.has_unseen(),
        }
    }

    /// Nothing runs and nothing is about to: the execution waits for something outside.
    pub fn is_suspended(&self) -> bool {
        let waits = self.head.retry_at.is_some() || !self.has_unseen();
        self.head.invocations > 0 && self.head.invocation.is_none() && self.head.ended.is_none() && waits
    }

    /// The handler has been called in this round.
    pub fn has_begun(&self) -> bool {
        self.head.invocations > self.head.invocations_before
    }

    /// Suspended in the sense of callers: it waits for a time, a message or another run, and not only for its next try.
    pub fn waits_outside(&self) -> bool {
        self.is_suspended() && self.head.retry_at.is_none() && self.waiting > 0
    }

    /// When a run that waits has waited too long.
    pub fn suspension_ends(&self) -> Option<Timestamp> {
        let seconds = self.head.start.entrypoint.as_ref()?.max_suspension_seconds?;
        Some(self.head.suspended_at?.plus(std::time::Duration::from_secs(seconds)))
    }

    /// The number of an operation's next event.
    pub fn next_occurrence(&self, id: &str) -> u32 {
        let last = self.operation(id).map(|operation| operation.occurrence);
        last.or_else(|| self.head.taken_back.get(id).copied()).unwrap_or(0) + 1
    }

    /// Operations whose time has come, earliest first.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = (Due, &Operation)> + '_ {
        let due = self.due.iter().take_while(move |(at, _, _)| *at <= now);
        due.map(|(_, kind, number)| (*kind, &self.operations[*number as usize]))
    }

    /// The earliest time of an open operation.
    pub fn earliest_due(&self) -> Option<Timestamp> {
        self.due.iter().map(|(at, _, _)| *at).next()
    }

    /// The next time after `now` at which something happens by itself.
    pub fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let operation = self.due.iter().map(|(at, _, _)| *at).find(|at| *at > now);
        let retry = self.head.retry_at.filter(|at| *at > now && self.head.invocation.is_none());
        let waited = self.suspension_ends().filter(|_| self.waits_outside());
        [operation, retry, waited, Some(self.deadline())].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// Rough bytes in memory.
    pub fn weight_bytes(&self) -> usize {
        self.bytes
    }
}

impl From<Execution> for (Head, Vec<Operation>) {
    fn from(execution: Execution) -> Self {
        (execution.head, execution.operations)
    }
}

impl From<(Head, Vec<Operation>)> for Execution {
    fn from((head, operations): (Head, Vec<Operation>)) -> Self {
        let mut execution = Self::new(head.start.clone(), head.started_at);
        execution.bytes += head.messages.iter().map(Message::weight_bytes).sum::<usize>();
        execution.head = head;
        for operation in operations {
            execution.insert(operation);
        }
        execution
    }
}

/// What the run waits for, in its callers' sense.
fn is_waiting(operation_type: OperationType, status: OperationStatus) -> bool {
    operation_type != OperationType::Step && is_pending(operation_type, status)
}

/// What only something outside the handler ends.
fn is_pending(operation_type: OperationType, status: OperationStatus) -> bool {
    use OperationType as T;
    match status {
        OperationStatus::Pending => operation_type == T::Step,
        OperationStatus::Started => matches!(operation_type, T::Wait | T::Callback | T::ChainedInvoke),
        _ => false,
    }
}
