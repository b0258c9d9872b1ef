//! The journal: what the service has recorded about an execution, looked up by operation id.
//!
//! It holds what was told and answers questions; it decides nothing about IO and never guesses an outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_model::Timestamp;
use servo_model::operation::OperationType;
use servo_wire::lambda;

use crate::{Divergence, Identity};

/// An operation with its times as points in time, whichever way the wire spelled them.
pub type Operation = lambda::Operation<Timestamp>;

/// What kind of operation it is in the programmer's words. The strings are the same in every SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubType {
    Step,
    Wait,
    Callback,
    RunInChildContext,
    Map,
    MapIteration,
    Parallel,
    ParallelBranch,
    WaitForCallback,
    WaitForCondition,
    ChainedInvoke,
    /// A callback that the signal of its name answers.
    Signal,
    /// A callback that the event of its name answers.
    Event,
    /// A step whose result is an event of its name, for whoever listens.
    Emit,
}

impl SubType {
    pub fn as_str(self) -> &'static str {
        match self {
            SubType::Step => "Step",
            SubType::Wait => "Wait",
            SubType::Callback => "Callback",
            SubType::RunInChildContext => "RunInChildContext",
            SubType::Map => "Map",
            SubType::MapIteration => "MapIteration",
            SubType::Parallel => "Parallel",
            SubType::ParallelBranch => "ParallelBranch",
            SubType::WaitForCallback => "WaitForCallback",
            SubType::WaitForCondition => "WaitForCondition",
            SubType::ChainedInvoke => "ChainedInvoke",
            SubType::Signal => "Signal",
            SubType::Event => "Event",
            SubType::Emit => "Emit",
        }
    }
}

/// A context above the operation is done, so nothing may be recorded under it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "context {context_id} is finished, so operation {operation_id} under it cannot be recorded; await every operation of \
     a context before the context returns"
)]
pub struct Orphan {
    pub operation_id: String,
    pub context_id: String,
}

#[derive(Debug, Default)]
pub struct Journal {
    /// Shared with whoever asks: payloads may be large.
    operations: BTreeMap<String, Arc<Operation>>,
    /// Parent of every context that this process has opened, for contexts that the service has not confirmed yet.
    opened: BTreeMap<String, Option<String>>,
    /// Contexts that this process has finished, for the time until the service says so.
    finished: BTreeSet<String>,
    /// By context: finished operations that were recorded before this invocation and not yet asked for.
    unseen: BTreeMap<Option<String>, BTreeSet<String>>,
    /// By context: all operations that were recorded before this invocation, finished or not, and not yet asked for.
    ahead: BTreeMap<Option<String>, BTreeSet<String>>,
}

impl Journal {
    /// The state at the beginning of an invocation.
    pub fn load(operations: impl IntoIterator<Item = Operation>) -> Self {
        let mut journal = Self::default();
        for operation in operations {
            journal.merge(operation);
        }
        for operation in journal.operations.values() {
            if operation.operation_type == OperationType::Execution {
                continue;
            }
            journal.ahead.entry(operation.parent_id.clone()).or_default().insert(operation.id.clone());
            if operation.status.is_terminal() {
                let unseen = journal.unseen.entry(operation.parent_id.clone()).or_default();
                unseen.insert(operation.id.clone());
            }
        }
        journal
    }

    /// Takes over what the service says. Says whether it was news.
    pub fn merge(&mut self, operation: Operation) -> bool {
        let known = self.operations.get(&operation.id);
        // A late page of an earlier answer must not undo an outcome.
        if known.is_some_and(|known| known.status.is_terminal() || **known == operation) {
            return false;
        }
        self.operations.insert(operation.id.clone(), Arc::new(operation));
        true
    }

    pub fn get(&self, id: &str) -> Option<&Arc<Operation>> {
        self.operations.get(id)
    }

    pub fn operations(&self) -> impl Iterator<Item = &Arc<Operation>> {
        self.operations.values()
    }

    pub fn execution(&self) -> Option<&Arc<Operation>> {
        self.operations.values().find(|operation| operation.operation_type == OperationType::Execution)
    }

    /// What is recorded under `id`, if it is what the program asks for.
    pub fn lookup(&mut self, id: &str, identity: &Identity) -> Result<Option<Arc<Operation>>, Divergence> {
        let finished = match self.operations.get(id) {
            Some(recorded) => {
                identity.check(recorded)?;
                recorded.status.is_terminal()
            }
            None => false,
        };
        if !self.operations.contains_key(id) {
            self.ahead.remove(&identity.parent_id);
        } else if let Some(ahead) = self.ahead.get_mut(&identity.parent_id) {
            ahead.remove(id);
        }
        if finished {
            if let Some(unseen) = self.unseen.get_mut(&identity.parent_id) {
                unseen.remove(id);
            }
        } else {
            // Something new happens here: whatever else is recorded, the context has left the past.
            self.unseen.remove(&identity.parent_id);
        }
        Ok(self.operations.get(id).cloned())
    }

    /// Whether the context still walks through the recorded past.
    pub fn is_replaying(&self, context: Option<&str>) -> bool {
        self.unseen.get(&context.map(str::to_owned)).is_some_and(|unseen| !unseen.is_empty())
    }

    /// Whether an earlier invocation came further in the context than this place: something is recorded there that was not
    /// yet asked for. Unlike [`Journal::is_replaying`] it counts operations that are still under way, so that a line before
    /// a long wait is written once however often the program comes by.
    pub fn is_behind(&self, context: Option<&str>) -> bool {
        self.ahead.get(&context.map(str::to_owned)).is_some_and(|ahead| !ahead.is_empty())
    }

    pub fn open_context(&mut self, id: &str, parent: Option<&str>) {
        self.opened.insert(id.to_owned(), parent.map(str::to_owned));
    }

    pub fn finish_context(&mut self, id: &str) {
        self.finished.insert(id.to_owned());
    }

    /// Refuses a record under a context that is finished, or that lies in one.
    pub fn check_parent(&self, operation_id: &str, parent: Option<&str>) -> Result<(), Orphan> {
        let mut context = parent.map(str::to_owned);
        // Contexts nest as deep as the program's calls; a cycle in foreign data must not hang us.
        for _ in 0..=self.operations.len() + self.opened.len() {
            let Some(id) = context else { return Ok(()) };
            let recorded = self.operations.get(&id);
            let finished = recorded.is_some_and(|operation| operation.status.is_terminal());
            if finished || self.finished.contains(&id) {
                return Err(Orphan { operation_id: operation_id.to_owned(), context_id: id });
            }
            context = match recorded {
                Some(operation) => operation.parent_id.clone(),
                None => self.opened.get(&id).cloned().flatten(),
            };
        }
        Ok(())
    }

    /// The next time at which the service will complete one of these operations by itself.
    pub fn next_due<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Option<Timestamp> {
        let due = |id: &str| {
            let operation = self.operations.get(id)?;
            let wait = operation.wait_details.as_ref().and_then(|details| details.scheduled_end_timestamp);
            let retry = operation.step_details.as_ref().and_then(|details| details.next_attempt_timestamp);
            wait.or(retry)
        };
        ids.into_iter().filter_map(due).min()
    }
}
