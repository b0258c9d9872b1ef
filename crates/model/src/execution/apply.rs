//! Applying the events of an execution. Total, like the rest of the fold: what an event cannot mean is reported.

use std::sync::Arc;
use std::time::Duration;

use super::{Ended, Execution, Invocation, Operation, is_pending, is_waiting};
use crate::event::{
    CallbackHeartbeat, CheckpointRef, EventBody, ExecutionEnded, HandlerInvoked, HandlerReturned, HandlerStatus,
    OperationResolved, OperationUpdated,
};
use crate::operation::{OperationAction, OperationStatus};
use crate::state::Applied;
use crate::{Event, Timestamp};

impl Execution {
    /// Creates the execution from its first event, or applies one to it.
    pub(crate) fn apply(this: &mut Option<Box<Self>>, event: &Event) -> Applied {
        if let EventBody::ExecutionStarted(start) = &event.body {
            if this.is_some() {
                return Applied::Duplicate;
            }
            *this = Some(Box::new(Self::new(start.clone(), event.at())));
            return Applied::Changed;
        }
        let Some(execution) = this else {
            return Applied::Illegal("the run executes no function".to_owned());
        };
        match &event.body {
            EventBody::HandlerInvoked(body) => execution.handler_invoked(body, event),
            EventBody::HandlerReturned(body) => execution.handler_returned(body, event),
            EventBody::OperationUpdated(body) => execution.updated(body, event),
            EventBody::OperationResolved(body) => execution.resolved(body, event),
            EventBody::CallbackHeartbeat(body) => execution.heartbeat(body, event),
            EventBody::ExecutionEnded(body) => execution.ended(body),
            EventBody::MessageReceived(body) => execution.message_received(body),
            EventBody::CompensationStarted(body) => execution.compensation_started(body, event.at()),
            EventBody::CompensationEnded(body) => execution.compensation_ended(body),
            EventBody::RunDeadLettered(_) => execution.dead_lettered(),
            _ => Applied::NoEffect,
        }
    }

    fn handler_invoked(&mut self, body: &HandlerInvoked, event: &Event) -> Applied {
        let head = &mut self.head;
        if body.invocation <= head.invocations {
            return Applied::Duplicate;
        }
        head.invocations = body.invocation;
        head.invocation = Some(Invocation { request_id: body.request_id.clone(), invoked_at: event.at() });
        head.checkpoint = CheckpointRef { number: 0, client_token: None };
        head.seen_before = head.seen;
        head.seen = event.run_seq;
        head.retry_at = None;
        head.begun_at.get_or_insert(event.at());
        Applied::Changed
    }

    fn handler_returned(&mut self, body: &HandlerReturned, event: &Event) -> Applied {
        if body.invocation != self.head.invocations || self.head.invocation.is_none() {
            return Applied::Duplicate;
        }
        let until = self.ran_until(body, event.at());
        let head = &mut self.head;
        head.invocation = None;
        head.used(body, until);
        head.note_unreached(body);
        match body.status {
            HandlerStatus::Crashed | HandlerStatus::Retrying => head.failures += 1,
            HandlerStatus::Lost => {}
            HandlerStatus::Pending if self.pending == 0 && head.resolved <= head.seen => {
                head.failures = 0;
                head.idle_answers += 1;
            }
            HandlerStatus::Pending | HandlerStatus::Succeeded | HandlerStatus::Failed => {
                head.failures = 0;
                head.idle_answers = 0;
            }
        }
        let again = matches!(body.status, HandlerStatus::Crashed | HandlerStatus::Lost | HandlerStatus::Retrying)
            || head.idle_answers > 0;
        head.retry_at = again.then(|| event.at().plus(Duration::from_millis(body.retry_after_ms)));
        if let Some(checkpoint) = &body.checkpoint {
            self.checkpointed(checkpoint, event.run_seq);
        }
        if self.waits_outside() {
            self.head.suspended_at = Some(event.at());
        }
        Applied::Changed
    }

    fn updated(&mut self, body: &OperationUpdated, event: &Event) -> Applied {
        let known = self.index.get(body.operation_id.as_str()).copied();
        if known.is_some_and(|number| self.operations[number as usize].occurrence >= body.occurrence) {
            return Applied::Duplicate;
        }
        let at = event.at();
        let number = match known {
            Some(number) => self.take_out(number),
            None => self.insert_empty(body, at),
        };
        let operation = &mut self.operations[number as usize];
        operation.occurrence = body.occurrence;
        operation.touched = event.run_seq;
        update(operation, body, at);
        self.put_in(number);
        self.checkpointed(&body.checkpoint, event.run_seq);
        self.head.failures = 0;
        self.head.idle_answers = 0;
        self.head.unreached = None;
        Applied::Changed
    }

    fn resolved(&mut self, body: &OperationResolved, event: &Event) -> Applied {
        let Some(number) = self.index.get(body.operation_id.as_str()).copied() else {
            return Applied::Illegal(format!("no operation `{}`", body.operation_id));
        };
        if self.operations[number as usize].occurrence >= body.occurrence {
            return Applied::Duplicate;
        }
        self.take_out(number);
        let operation = &mut self.operations[number as usize];
        operation.occurrence = body.occurrence;
        operation.touched = event.run_seq;
        operation.status = body.status;
        operation.due_at = operation.due_at.filter(|_| body.status != OperationStatus::Ready);
        if body.status.is_terminal() {
            operation.ended_at = Some(event.at());
            operation.result.clone_from(&body.payload);
            operation.error.clone_from(&body.error);
        }
        self.put_in(number);
        self.take_message(number);
        self.head.resolved = event.run_seq;
        if let Some(checkpoint) = &body.checkpoint {
            self.checkpointed(checkpoint, event.run_seq);
        }
        Applied::Changed
    }

    fn heartbeat(&mut self, body: &CallbackHeartbeat, event: &Event) -> Applied {
        let Some(number) = self.index.get(body.operation_id.as_str()).copied() else {
            return Applied::Illegal(format!("no operation `{}`", body.operation_id));
        };
        if self.operations[number as usize].occurrence >= body.occurrence {
            return Applied::Duplicate;
        }
        self.take_out(number);
        let operation = &mut self.operations[number as usize];
        operation.occurrence = body.occurrence;
        operation.heartbeat_at = Some(event.at());
        self.put_in(number);
        Applied::Changed
    }

    fn ended(&mut self, body: &ExecutionEnded) -> Applied {
        if self.head.ended.is_some() {
            return Applied::Duplicate;
        }
        let (result, error, document) = (body.result.clone(), body.error.clone(), body.document.clone());
        self.head.ended = Some(Ended { status: body.status, result, error, document });
        self.head.retry_at = None;
        Applied::Changed
    }

    fn checkpointed(&mut self, checkpoint: &CheckpointRef, seq: u64) {
        if checkpoint.number > self.head.checkpoint.number {
            self.head.checkpoint = checkpoint.clone();
        }
        self.head.seen = seq;
    }

    fn insert_empty(&mut self, body: &OperationUpdated, at: Timestamp) -> u32 {
        let number = u32::try_from(self.operations.len()).expect("events per run are limited far below u32::MAX");
        let parent_id = body.parent_id.as_deref().map(|id| {
            // Shared with the parent's own id, which most children of a map have in common.
            self.index.get_key_value(id).map_or_else(|| id.into(), |(id, _)| Arc::clone(id))
        });
        let operation = Operation {
            id: body.operation_id.as_str().into(),
            operation_type: body.operation_type,
            status: OperationStatus::Started,
            parent_id,
            name: body.name.clone(),
            sub_type: body.sub_type.clone(),
            started_at: at,
            ended_at: None,
            attempt: 0,
            due_at: None,
            seconds: None,
            result: None,
            error: None,
            replay_children: false,
            callback: None,
            heartbeat_at: None,
            chained: None,
            occurrence: 0,
            touched: 0,
        };
        self.index.insert(operation.id.clone(), number);
        self.operations.push(operation);
        number
    }

    /// Takes an operation out of what is derived from it, before it changes.
    fn take_out(&mut self, number: u32) -> u32 {
        let operation = &self.operations[number as usize];
        self.touched.remove(&(operation.touched, number));
        if let Some((at, due)) = operation.due() {
            self.due.remove(&(at, due, number));
        }
        self.pending -= u32::from(is_pending(operation.operation_type, operation.status));
        self.waiting -= u32::from(is_waiting(operation.operation_type, operation.status));
        self.bytes -= operation.weight_bytes();
        number
    }

    fn put_in(&mut self, number: u32) {
        let operation = &self.operations[number as usize];
        self.touched.insert((operation.touched, number));
        if let Some((at, due)) = operation.due() {
            self.due.insert((at, due, number));
        }
        self.pending += u32::from(is_pending(operation.operation_type, operation.status));
        self.waiting += u32::from(is_waiting(operation.operation_type, operation.status));
        self.bytes += operation.weight_bytes();
    }

    pub(super) fn insert(&mut self, operation: Operation) {
        let number = u32::try_from(self.operations.len()).expect("events per run are limited far below u32::MAX");
        self.index.insert(operation.id.clone(), number);
        self.operations.push(operation);
        self.put_in(number);
    }
}

fn update(operation: &mut Operation, body: &OperationUpdated, at: Timestamp) {
    let due = body.delay().map(|delay| at.plus(delay));
    if let Some(attempt) = body.attempt {
        operation.attempt = attempt;
    }
    match body.action {
        OperationAction::Start => {
            operation.status = OperationStatus::Started;
            operation.due_at = due;
            operation.seconds = body.seconds;
            operation.callback.clone_from(&body.callback);
            operation.chained.clone_from(&body.chained);
        }
        OperationAction::Succeed => {
            operation.status = OperationStatus::Succeeded;
            operation.ended_at = Some(at);
            operation.result.clone_from(&body.payload);
            operation.error = None;
            operation.replay_children = body.replay_children;
        }
        OperationAction::Fail => {
            operation.status = OperationStatus::Failed;
            operation.ended_at = Some(at);
            operation.result = None;
            operation.error.clone_from(&body.error);
        }
        OperationAction::Retry => {
            operation.status = OperationStatus::Pending;
            operation.due_at = due;
            operation.result.clone_from(&body.payload);
            operation.error.clone_from(&body.error);
        }
        OperationAction::Cancel => {
            operation.status = OperationStatus::Cancelled;
            operation.ended_at = Some(at);
        }
    }
}
