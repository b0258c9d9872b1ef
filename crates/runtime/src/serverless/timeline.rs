//! What happened to a run, for people: computed from its log when it is read.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use servo_entrypoint::{InvocationStatus, InvocationTimelineEvent, TimelineEventType as T, TimelineTail};
use servo_model::event::{EventBody as B, HandlerStatus};
use servo_model::invocation::Failure;
use servo_model::operation::{ErrorObject, OperationAction, OperationType};
use servo_model::{Event, RunId, RunState};
use servo_store::Scope;

use super::record::millis_between;
use super::{Answer, Serverless, engine_error, internal, no_invocation};

/// Events of the log that are read together.
const READ: u32 = 500;

impl Serverless {
    /// Its first events, at least `most` of them if there are so many. A run's log has an end, and so has this.
    pub(super) async fn timeline(
        &self,
        scope: &Scope,
        run_id: &RunId,
        most: usize,
    ) -> Answer<Vec<InvocationTimelineEvent>> {
        let mut tail = Tail::new(self, scope, run_id);
        while tail.read_on().await? && tail.teller.told.len() < most {}
        Ok(tail.teller.told)
    }
}

/// A place in a run's log, with what was told up to it. Going on reads only what is behind that place.
pub(super) struct Tail {
    serverless: Serverless,
    scope: Scope,
    run_id: RunId,
    after: u64,
    teller: Teller,
}

impl Tail {
    pub(super) fn new(serverless: &Serverless, scope: &Scope, run_id: &RunId) -> Self {
        let teller = Teller::new(run_id.clone());
        Self { serverless: serverless.clone(), scope: scope.clone(), run_id: run_id.clone(), after: 0, teller }
    }

    /// Tells the next events of the log; false at its head.
    async fn read_on(&mut self) -> Answer<bool> {
        let read = self.serverless.engine().read_events(&self.scope, &self.run_id, self.after, READ).await;
        let page = read.map_err(engine_error)?;
        for stored in &page.events {
            self.teller.tell(&stored.decode().map_err(|invalid| internal(&invalid))?);
            self.after = stored.run_seq;
        }
        if self.teller.state.entrypoint().is_none() && self.after >= page.head_seq {
            return Err(no_invocation());
        }
        Ok(!page.events.is_empty() && self.after < page.head_seq)
    }
}

#[async_trait]
impl TimelineTail for Tail {
    async fn news(&mut self) -> Answer<(Vec<InvocationTimelineEvent>, InvocationStatus)> {
        while self.read_on().await? && self.teller.told.is_empty() {}
        Ok((std::mem::take(&mut self.teller.told), self.teller.state.visible()))
    }
}

/// Folds the log and tells what each event means for people.
pub(crate) struct Teller {
    state: RunState,
    /// The last checkpoint that was told, by invocation.
    checkpoint: (u32, u32),
    pub(crate) told: Vec<InvocationTimelineEvent>,
}

impl Teller {
    pub(crate) fn new(run_id: RunId) -> Self {
        Self { state: RunState::new(run_id), checkpoint: (0, 0), told: Vec::new() }
    }

    pub(crate) fn tell(&mut self, event: &Event) {
        let before = self.state.visible();
        let begun = self.state.execution.as_ref().is_some_and(|execution| execution.has_begun());
        let state = std::mem::replace(&mut self.state, RunState::new(event.run_id.clone()));
        self.state = state.apply(event).0;
        let status = self.state.visible();
        let mut line = Line { at: event.at(), status, told: &mut self.told };
        match &event.body {
            B::HandlerInvoked(_) if !begun => line.put(T::Started),
            B::HandlerReturned(body) if body.status == HandlerStatus::Retrying || body.unreached => {
                line.error(T::StepRetried, None, body.error.as_ref(), Some(body.retry_after_ms));
            }
            B::OperationUpdated(body) => {
                let number = (self.state.execution.as_ref().map_or(0, |e| e.head.invocations), body.checkpoint.number);
                let new = number > self.checkpoint;
                self.checkpoint = self.checkpoint.max(number);
                if body.operation_type == OperationType::Step {
                    let operation = self.state.execution.as_ref().and_then(|e| e.operation(&body.operation_id));
                    let name = operation.and_then(|op| op.name.clone()).unwrap_or_else(|| body.operation_id.clone());
                    let took = operation.map(|op| millis_between(op.started_at, event.at()));
                    if body.begins || body.action == OperationAction::Start {
                        line.step(T::StepStarted, &name, None);
                    }
                    match body.action {
                        OperationAction::Succeed => line.step(T::StepCompleted, &name, took),
                        OperationAction::Fail => line.error(T::StepFailed, Some(&name), body.error.as_ref(), None),
                        OperationAction::Retry => {
                            let wait = body.delay().and_then(|delay| u64::try_from(delay.as_millis()).ok());
                            line.error(T::StepRetried, Some(&name), body.error.as_ref(), wait);
                        }
                        OperationAction::Start | OperationAction::Cancel => {}
                    }
                }
                if new {
                    line.put(T::CheckpointCreated);
                }
            }
            B::MessageReceived(body) => {
                let details = [("name".to_owned(), json!(body.name)), ("signal_id".to_owned(), json!(body.signal_id))];
                line.with(T::SignalReceived, None, None, details.into_iter().collect());
            }
            B::RunCompleted(_) => line.put(T::Succeeded),
            B::RunFailed(body) => line.with(T::Failed, None, Some(body.root_cause.message.clone()), Map::new()),
            B::RunCancelled(body) => line.with(T::Canceled, None, body.reason.clone(), Map::new()),
            B::CompensationStarted(body) => {
                let details = [("trigger".to_owned(), json!(body.trigger))];
                line.with(T::CompensationStarted, None, None, details.into_iter().collect());
            }
            B::CompensationEnded(body) => {
                let handler = body.handler_run_id.as_ref().map(|id| ("invocation_id".to_owned(), json!(id)));
                let details = handler.into_iter().collect();
                match &body.error {
                    None => line.with(T::CompensationCompleted, None, None, details),
                    Some(error) => {
                        line.with(T::CompensationFailed, None, Some(Failure::of(error).message), details);
                    }
                }
            }
            B::RunDeadLettered(body) => line.with(T::DeadLettered, None, Some(body.reason.clone()), Map::new()),
            _ => {}
        }
        let has_ended = self.state.execution.as_ref().is_some_and(|execution| execution.head.ended.is_some());
        match (before, status) {
            // A run that ends while it waits is not suspended any more, and yet does not go on.
            (InvocationStatus::Suspended, _) if has_ended => {}
            (InvocationStatus::Suspended, InvocationStatus::Running | InvocationStatus::Queued) => line.put(T::Resumed),
            (InvocationStatus::Queued | InvocationStatus::Running, InvocationStatus::Suspended) => {
                line.put(T::Suspended)
            }
            _ => {}
        }
    }
}

struct Line<'a> {
    at: servo_model::Timestamp,
    status: InvocationStatus,
    told: &'a mut Vec<InvocationTimelineEvent>,
}

impl Line<'_> {
    fn put(&mut self, event_type: T) {
        self.with(event_type, None, None, Map::new());
    }

    fn step(&mut self, event_type: T, name: &str, duration_ms: Option<u64>) {
        self.with(event_type, Some(name), None, Map::new());
        if let Some(last) = self.told.last_mut() {
            last.duration_ms = duration_ms;
        }
    }

    fn error(&mut self, event_type: T, name: Option<&str>, error: Option<&ErrorObject>, wait_ms: Option<u64>) {
        let failure = error.map(Failure::of);
        let mut details = Map::new();
        if let Some(failure) = &failure {
            details.insert("error_type_id".to_owned(), json!(failure.error_type_id));
            details.insert("category".to_owned(), json!(failure.category));
        }
        if let Some(wait_ms) = wait_ms {
            details.insert("retry_after_ms".to_owned(), json!(wait_ms));
        }
        self.with(event_type, name, failure.map(|failure| failure.message), details);
    }

    fn with(&mut self, event_type: T, name: Option<&str>, message: Option<String>, details: Map<String, Value>) {
        self.told.push(InvocationTimelineEvent {
            at: self.at,
            event_type,
            status: self.status,
            step_name: name.map(str::to_owned),
            duration_ms: None,
            message,
            details,
        });
    }
}
