//! Updates of one call, one after the other: each is judged on what the ones before it lead to.

use std::collections::BTreeMap;

use servo_model::RunId;
use servo_model::event::{
    CallbackTerms, ChainedCall, ChainedTarget, CheckpointRef, EventBody, OperationResolved, OperationUpdated,
};
use servo_model::execution::{Execution, Message};
use servo_model::operation::{OperationAction, OperationStatus, OperationType, OperationUpdate};

use super::rules;
use crate::decision::Spawn;
use crate::execution::{Checkpoint, message};
use crate::refusal::Refusal;

pub(super) struct Batch<'a> {
    /// Also the id of the EXECUTION operation.
    run_id: &'a RunId,
    execution: &'a Execution,
    call: &'a Checkpoint,
    changed: BTreeMap<&'a str, Current<'a>>,
    facts: Vec<EventBody>,
    spawns: Vec<Spawn>,
    mark: CheckpointRef,
    /// Messages that this call has used up.
    taken: Vec<&'a Message>,
}

/// An operation as it stands between two updates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Current<'a> {
    pub operation_type: OperationType,
    pub status: OperationStatus,
    pub parent_id: Option<&'a str>,
    pub name: Option<&'a str>,
    pub sub_type: Option<&'a str>,
    pub attempt: u32,
    occurrence: u32,
    /// What this call has done with it last.
    last: Option<OperationAction>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(run_id: &'a RunId, execution: &'a Execution, call: &'a Checkpoint, mark: CheckpointRef) -> Self {
        Self {
            run_id,
            execution,
            call,
            changed: BTreeMap::new(),
            facts: Vec::new(),
            spawns: Vec::new(),
            mark,
            taken: Vec::new(),
        }
    }

    fn current(&self, id: &str) -> Option<Current<'a>> {
        if let Some(current) = self.changed.get(id) {
            return Some(*current);
        }
        if id == self.run_id.as_str() {
            return Some(Current {
                operation_type: OperationType::Execution,
                status: OperationStatus::Started,
                parent_id: None,
                name: Some(&self.execution.head.start.name),
                sub_type: None,
                attempt: 0,
                occurrence: 0,
                last: None,
            });
        }
        self.execution.operation(id).map(|operation| Current {
            operation_type: operation.operation_type,
            status: operation.status,
            parent_id: operation.parent_id.as_deref(),
            name: operation.name.as_deref(),
            sub_type: operation.sub_type.as_deref(),
            attempt: operation.attempt,
            occurrence: operation.occurrence,
            last: None,
        })
    }

    pub(super) fn add(&mut self, update: &'a OperationUpdate) -> Result<(), Refusal> {
        let current = self.judge(update)?;
        let next = rules::next(update, current.as_ref())?;
        self.record(update, current, next)
    }

    /// The operation that an update is about, if it may be about it.
    pub(super) fn judge(&self, update: &OperationUpdate) -> Result<Option<Current<'a>>, Refusal> {
        let current = self.current(&update.id);
        if let Some(last) = current.and_then(|current| current.last) {
            rules::second(update, last)?;
        }
        if let Some(parent) = update.parent_id.as_deref() {
            let context = self.current(parent);
            if context.is_none_or(|context| context.operation_type != OperationType::Context) {
                return Err(Refusal::invalid("Invalid parent operation id."));
            }
        }
        if let Some(current) = &current {
            rules::identity(update, current)?;
        }
        Ok(current)
    }

    fn record(
        &mut self,
        update: &'a OperationUpdate,
        current: Option<Current<'a>>,
        status: OperationStatus,
    ) -> Result<(), Refusal> {
        let ends_attempt = update.operation_type == OperationType::Step && update.action != OperationAction::Start;
        let attempt = current.map_or(0, |current| current.attempt) + u32::from(ends_attempt);
        let occurrence = match current {
            Some(current) => current.occurrence,
            None => self.execution.next_occurrence(&update.id) - 1,
        };
        let ended = ends_attempt.then_some(attempt);
        if !self.joins(update, ended) {
            let mut body = self.body(update, occurrence + 1);
            body.attempt = ended;
            self.prepare(update, &mut body)?;
            let known = Current {
                operation_type: update.operation_type,
                status,
                parent_id: current.map_or(update.parent_id.as_deref(), |current| current.parent_id),
                name: current.map_or(update.name.as_deref(), |current| current.name),
                sub_type: current.map_or(update.sub_type.as_deref(), |current| current.sub_type),
                attempt,
                occurrence: occurrence + 1,
                last: Some(update.action),
            };
            self.changed.insert(&update.id, known);
            self.facts.push(EventBody::OperationUpdated(Box::new(body)));
            self.fail_unknown_target(update, occurrence + 2);
            self.answer_by_message(update, occurrence + 2);
        } else if let Some(current) = self.changed.get_mut(update.id.as_str()) {
            current.status = status;
            current.attempt = attempt;
            current.last = Some(update.action);
        }
        Ok(())
    }

    /// A step or context whose START stands just before its end is one fact.
    fn joins(&mut self, update: &OperationUpdate, attempt: Option<u32>) -> bool {
        let Some(EventBody::OperationUpdated(start)) = self.facts.last_mut() else { return false };
        if start.operation_id != update.id || start.action != OperationAction::Start {
            return false;
        }
        start.begins = true;
        start.action = update.action;
        start.attempt = attempt;
        start.payload.clone_from(&update.payload);
        start.error.clone_from(&update.error);
        (start.seconds, start.millis) = retry_delay(update);
        start.replay_children = replay_children(update);
        true
    }

    fn body(&mut self, update: &OperationUpdate, occurrence: u32) -> OperationUpdated {
        let starts = update.action == OperationAction::Start;
        // What the START said need not be said again.
        let said_once = |field: &Option<String>| if starts { field.clone() } else { None };
        OperationUpdated {
            operation_id: update.id.clone(),
            occurrence,
            operation_type: update.operation_type,
            action: update.action,
            begins: false,
            parent_id: said_once(&update.parent_id),
            name: said_once(&update.name),
            sub_type: said_once(&update.sub_type),
            payload: update.payload.clone(),
            error: update.error.clone(),
            attempt: None,
            seconds: None,
            millis: None,
            replay_children: replay_children(update),
            callback: None,
            chained: None,
            checkpoint: CheckpointRef { number: self.mark.number, client_token: self.mark.client_token.take() },
        }
    }

    fn prepare(&mut self, update: &OperationUpdate, body: &mut OperationUpdated) -> Result<(), Refusal> {
        match (update.operation_type, update.action) {
            (OperationType::Step, OperationAction::Retry) => (body.seconds, body.millis) = retry_delay(update),
            (OperationType::Wait, OperationAction::Start) => {
                body.seconds = update.wait_options.and_then(|options| options.wait_seconds);
            }
            (OperationType::Callback, OperationAction::Start) => {
                let options = update.callback_options.unwrap_or_default();
                let given = |seconds: Option<u64>| seconds.filter(|seconds| *seconds > 0);
                let id = self.call.callback_ids.get(&update.id).cloned();
                body.callback = Some(CallbackTerms {
                    callback_id: id.ok_or_else(|| Refusal::invalid("Invalid callback."))?,
                    timeout_seconds: given(options.timeout_seconds),
                    heartbeat_seconds: given(options.heartbeat_timeout_seconds),
                });
            }
            (OperationType::ChainedInvoke, OperationAction::Start) => {
                let options = update.chained_invoke_options.clone().unwrap_or_default();
                let spawn = self.call.targets.get(&update.id).and_then(|target| target.as_ref().ok());
                self.spawns.extend(spawn.cloned());
                body.chained = Some(ChainedCall {
                    function: options.function_name,
                    tenant_id: options.tenant_id,
                    target: spawn.map(|spawn| ChainedTarget {
                        run_id: spawn.run_id.clone(),
                        version: spawn.start.start.version.clone(),
                        name: spawn.start.start.name.clone(),
                        durable: spawn.start.start.durable,
                    }),
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// A chained invoke of something that is not there has failed before it began.
    fn fail_unknown_target(&mut self, update: &OperationUpdate, occurrence: u32) {
        if update.operation_type != OperationType::ChainedInvoke {
            return;
        }
        let Some(Err(error)) = self.call.targets.get(&update.id) else { return };
        let mark = CheckpointRef { number: self.mark.number, client_token: None };
        self.facts.push(EventBody::OperationResolved(Box::new(OperationResolved {
            operation_id: update.id.clone(),
            occurrence,
            status: OperationStatus::Failed,
            payload: None,
            error: Some(error.clone()),
            checkpoint: Some(mark),
        })));
    }

    /// What this call waits for may have come already.
    fn answer_by_message(&mut self, update: &OperationUpdate, occurrence: u32) {
        if update.action == OperationAction::Start
            && let Some(found) = message::waiting(self.execution, update, &mut self.taken)
        {
            let mark = CheckpointRef { number: self.mark.number, client_token: None };
            self.facts.push(message::answer(found, &update.id, occurrence, mark));
        }
    }

    pub(super) fn finish(self) -> (Vec<EventBody>, Vec<Spawn>, CheckpointRef) {
        (self.facts, self.spawns, self.mark)
    }
}

/// In seconds, and in milliseconds where these are exact.
fn retry_delay(update: &OperationUpdate) -> (Option<u64>, Option<u64>) {
    let options = update.step_options.unwrap_or_default();
    (options.next_attempt_delay_seconds, options.next_attempt_delay_millis)
}

fn replay_children(update: &OperationUpdate) -> bool {
    update.context_options.and_then(|options| options.replay_children).unwrap_or(false)
}
