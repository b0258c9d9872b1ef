//! What belongs to runs of entrypoints: messages, undoing, and trying a failed run again.

use std::sync::Arc;

use super::{Compensation, Execution, Head, Message, Operation, Unreached};
use crate::Timestamp;
use crate::event::{CompensationEnded, CompensationStarted, HandlerReturned, HandlerStatus, MessageReceived};
use crate::operation::{ErrorObject, OperationStatus, OperationType};
use crate::state::Applied;

/// The kind of callback that a message answers.
pub const SIGNAL: &str = "Signal";
/// The kind of callback that an event answers.
pub const EVENT: &str = "Event";

impl Head {
    /// Adds what an invocation used that ran until then.
    pub(super) fn used(&mut self, body: &HandlerReturned, until: Timestamp) {
        if body.unreached {
            // It did not run.
            return;
        }
        let ran = until.as_millis().saturating_sub(body.invoked_at.as_millis());
        let ran = u64::try_from(ran).unwrap_or(0).saturating_sub(body.waited_ms);
        self.executed_ms = self.executed_ms.saturating_add(ran);
        if let Some(cpu_ms) = body.cpu_ms {
            self.cpu_ms = Some(self.cpu_ms.unwrap_or(0).saturating_add(cpu_ms.into()));
        }
        self.memory_mb = self.memory_mb.max(body.memory_mb);
    }

    /// An outage lasts from the first call that got nowhere until one that got somewhere. A node that was lost meanwhile
    /// says nothing about it.
    pub(super) fn note_unreached(&mut self, body: &HandlerReturned) {
        if body.unreached {
            let since = self.unreached.take().map_or(body.invoked_at, |before| before.since);
            self.unreached = Some(Box::new(Unreached { since, error: body.error.clone() }));
        } else if body.status != HandlerStatus::Lost {
            self.unreached = None;
        }
    }
}

impl Execution {
    /// Why the run could not be undone, if that was tried and has failed.
    pub fn not_undone(&self) -> Option<&ErrorObject> {
        self.head.compensation.as_ref().filter(|undoing| undoing.ended)?.error.as_ref()
    }

    /// Until when an invocation ran. Of one that was lost with its node nobody knows more than when it was last heard of:
    /// the time until somebody missed it is not the run's.
    pub(super) fn ran_until(&self, body: &HandlerReturned, at: Timestamp) -> Timestamp {
        if body.status != HandlerStatus::Lost || body.cut_off {
            return at;
        }
        let heard = self.operations.iter().map(|operation| operation.ended_at.unwrap_or(operation.started_at));
        heard.max().unwrap_or(body.invoked_at)
    }

    /// Opens the next round. What has succeeded stands; what has not is forgotten, so that it is tried anew.
    pub(crate) fn reopen(&mut self, at: Timestamp) {
        let operations = std::mem::take(&mut self.operations);
        let mut head = self.head.clone();
        for operation in operations.iter().filter(|operation| !stands(operation)) {
            head.taken_back.insert(Arc::clone(&operation.id), operation.occurrence);
        }
        head.invocation = None;
        head.invocations_before = head.invocations;
        head.failures = 0;
        head.idle_answers = 0;
        head.retry_at = None;
        head.unreached = None;
        head.ended = None;
        head.started_at = at;
        head.begun_at = None;
        head.executed_ms = 0;
        head.cpu_ms = None;
        head.memory_mb = None;
        head.compensation = None;
        head.dead_lettered = false;
        *self = (head, operations.into_iter().filter(stands).collect()).into();
    }

    pub(super) fn message_received(&mut self, body: &MessageReceived) -> Applied {
        let message = Message { name: body.name.clone(), payload: body.payload.clone() };
        self.bytes += message.weight_bytes();
        self.head.messages.push(message);
        Applied::Changed
    }

    /// A message that has been waited for is not kept.
    pub(super) fn take_message(&mut self, number: u32) {
        let operation = &self.operations[number as usize];
        if operation.status != OperationStatus::Succeeded {
            return;
        }
        let Some(name) = operation.awaited_message() else { return };
        let found = self.head.messages.iter().position(|message| message.name == name);
        if let Some(message) = found.map(|index| self.head.messages.remove(index)) {
            self.bytes -= message.weight_bytes();
        }
    }

    pub(super) fn compensation_started(&mut self, body: &CompensationStarted, at: Timestamp) -> Applied {
        if self.head.compensation.is_some() {
            return Applied::Duplicate;
        }
        let trigger = body.trigger;
        self.head.compensation = Some(Compensation { trigger, at, ended: false, run_id: None, error: None });
        Applied::Changed
    }

    pub(super) fn compensation_ended(&mut self, body: &CompensationEnded) -> Applied {
        let Some(compensation) = &mut self.head.compensation else {
            return Applied::Illegal("the run is not being undone".to_owned());
        };
        if compensation.ended {
            return Applied::Duplicate;
        }
        compensation.ended = true;
        compensation.run_id.clone_from(&body.handler_run_id);
        compensation.error.clone_from(&body.error);
        Applied::Changed
    }

    pub(super) fn dead_lettered(&mut self) -> Applied {
        if self.head.dead_lettered {
            return Applied::Duplicate;
        }
        self.head.dead_lettered = true;
        Applied::Changed
    }

    /// The operation that waits for a message of this name, the oldest first.
    pub fn waits_for_message(&self, name: &str) -> Option<&Operation> {
        let mut waiting = self.operations.iter().filter(|operation| operation.status == OperationStatus::Started);
        waiting.find(|operation| operation.awaited_message() == Some(name))
    }
}

impl Message {
    pub(super) fn weight_bytes(&self) -> usize {
        self.name.len() + self.payload.as_ref().map_or(0, String::len)
    }
}

impl Operation {
    /// The name of the message that would answer this.
    pub fn awaited_message(&self) -> Option<&str> {
        let kind = self.sub_type.as_deref();
        let message = self.operation_type == OperationType::Callback && matches!(kind, Some(SIGNAL | EVENT));
        self.name.as_deref().filter(|_| message)
    }
}

fn stands(operation: &Operation) -> bool {
    operation.status == OperationStatus::Succeeded
}
