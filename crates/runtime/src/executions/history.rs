//! The history: the run's events in the API's words. Numbers are counted from the first event on, and an event never
//! changes, so a number once given stays.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use servo_model::event::{EventBody, HandlerStatus, OperationResolved, OperationUpdated};
use servo_model::execution::{Execution, Operation};
use servo_model::operation::{ErrorObject, ExecutionStatus, OperationAction, OperationStatus, OperationType};
use servo_model::{Event, RunId, RunState, TenantId, Timestamp};
use servo_store::Scope;
use servo_wire::lambda::{
    CallbackStartedDetails, ChainedInvokeStartedDetails, ErrorDetails, EventError, EventPayload,
    ExecutionStartedDetails, HistoryDetails as D, HistoryEvent, HistoryResponse, InvocationCompletedDetails, NoDetails,
    ResultDetails, RetryDetails, StepErrorDetails, StepResultDetails, WaitStartedDetails, WaitSucceededDetails,
};

use super::seal::Purpose;
use super::state::page_items;
use super::{Executions, PageQuery, Refused};

/// Payload bytes on one page.
const PAGE_BYTES_MAX: usize = 5 * 1024 * 1024;
/// Events of the log read at once.
const READ: u32 = 1_000;

/// Where a page goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Marker {
    /// After this event of the log, whose successor tells the history from `told` on, with the number `next_id`: what one event of
    /// the log stands for may lie on two pages.
    Forward { run: RunId, after: u64, told: u64, next_id: u64 },
    /// With numbers below this one.
    Reverse { run: RunId, below: u64 },
}

/// What a caller asked for.
struct Wanted {
    scope: Scope,
    run: RunId,
    items: usize,
    with_data: bool,
}

impl Executions {
    pub async fn history(
        &self,
        tenant: &TenantId,
        arn: &str,
        with_data: bool,
        page: PageQuery<'_>,
    ) -> Result<HistoryResponse, Refused> {
        let run = self.run_named(tenant, arn).await?;
        let wanted = Wanted { scope: Self::scope(tenant), run, items: page_items(page.max_items)?, with_data };
        let run = &wanted.run;
        let marker = match page.marker.filter(|marker| !marker.is_empty()) {
            None => None,
            Some(text) => {
                let marker: Option<Marker> = self.seal.open(Purpose::Marker, text);
                Some(marker.ok_or_else(|| Refused::invalid("Invalid marker"))?)
            }
        };
        let history = match (marker, page.reverse) {
            (None, false) => self.forward(&wanted, 0, 1, 1).await?,
            (Some(Marker::Forward { run: of, after, told, next_id }), false) if of == *run => {
                self.forward(&wanted, after, told, next_id).await?
            }
            (None, true) => self.reverse(&wanted, u64::MAX).await?,
            (Some(Marker::Reverse { run: of, below }), true) if of == *run => self.reverse(&wanted, below).await?,
            (Some(_), _) => return Err(Refused::invalid("Invalid marker")),
        };
        let (events, next) = history;
        let next_marker = next.map(|marker| self.seal.close(Purpose::Marker, self.engine.ids().nonce(), &marker));
        Ok(HistoryResponse { events, next_marker })
    }

    /// `told` is the number of the first event that the log tells behind `after`, `next_id` the first that is wanted.
    async fn forward(
        &self,
        wanted: &Wanted,
        mut after: u64,
        mut told: u64,
        mut next_id: u64,
    ) -> Result<(Vec<HistoryEvent>, Option<Marker>), Refused> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        loop {
            let read = self.read(wanted, after, told).await?;
            for (seq, events) in read.events {
                let (behind, from) = (told + events.len() as u64, next_id);
                for (event, size) in events.into_iter().filter(|(event, _)| event.event_id >= from) {
                    if !found.is_empty() && (found.len() == wanted.items || bytes + size > PAGE_BYTES_MAX) {
                        return Ok((found, Some(Marker::Forward { run: wanted.run.clone(), after, told, next_id })));
                    }
                    (next_id, bytes) = (event.event_id + 1, bytes + size);
                    found.push(event);
                }
                (after, told) = (seq, behind);
            }
            if read.last {
                return Ok((found, None));
            }
            after = read.read_to;
        }
    }

    /// From the end: numbers are known only from the beginning, so everything before the page is read as well.
    async fn reverse(&self, wanted: &Wanted, below: u64) -> Result<(Vec<HistoryEvent>, Option<Marker>), Refused> {
        let mut window: VecDeque<(HistoryEvent, usize)> = VecDeque::new();
        let (mut after, mut told, mut bytes) = (0, 1, 0);
        loop {
            let read = self.read(wanted, after, told).await?;
            for (event, size) in read.events.into_iter().flat_map(|(_, events)| events) {
                told += 1;
                if event.event_id >= below {
                    continue;
                }
                bytes += size;
                window.push_back((event, size));
                while window.len() > 1 && (window.len() > wanted.items || bytes > PAGE_BYTES_MAX) {
                    bytes -= window.pop_front().map_or(0, |(_, size)| size);
                }
            }
            if read.last {
                break;
            }
            after = read.read_to;
        }
        let first = window.front().map_or(1, |(event, _)| event.event_id);
        let next = (first > 1).then(|| Marker::Reverse { run: wanted.run.clone(), below: first });
        Ok((window.into_iter().rev().map(|(event, _)| event).collect(), next))
    }

    async fn read(&self, wanted: &Wanted, after: u64, told: u64) -> Result<Read, Refused> {
        let Wanted { scope, run, with_data, .. } = wanted;
        let page = self.engine.read_events(scope, run, after, READ).await?;
        let mut decoded = Vec::with_capacity(page.events.len());
        for stored in &page.events {
            let event = stored.decode().map_err(|invalid| crate::engine::Error::Quarantined(invalid.to_string()))?;
            // What is not shown takes no room.
            decoded.push((event, if *with_data { stored.payload.len() } else { 0 }));
        }
        let read_to = page.events.last().map_or(after, |event| event.run_seq);
        let last = page.events.is_empty() || read_to >= page.head_seq;
        // Read after the events, so that it knows every operation they name.
        let project = |state: &RunState| {
            let execution = state.execution.as_deref()?;
            let mut teller = Teller { executions: self, state, execution, next_id: told, with_data: *with_data };
            let events = decoded.iter().map(|(event, size)| (event.run_seq, sized(teller.tell(event), *size)));
            Some(events.filter(|(_, events)| !events.is_empty()).collect())
        };
        let events = self.engine.view(scope, run, project).await?.ok_or_else(Refused::no_execution)?;
        Ok(Read { events, read_to, last })
    }
}

struct Read {
    /// Sequence in the log, and what it tells, each with the bytes of its payload.
    events: Vec<(u64, Vec<(HistoryEvent, usize)>)>,
    read_to: u64,
    last: bool,
}

/// Where one event of the log tells of a beginning and an end, the end has the payload.
fn sized(events: Vec<HistoryEvent>, size: usize) -> Vec<(HistoryEvent, usize)> {
    let last = events.len().saturating_sub(1);
    events.into_iter().enumerate().map(|(at, event)| (event, if at == last { size } else { 0 })).collect()
}

/// Turns events of the log into numbered events of the history.
struct Teller<'a> {
    executions: &'a Executions,
    state: &'a RunState,
    execution: &'a Execution,
    next_id: u64,
    with_data: bool,
}

impl Teller<'_> {
    fn tell(&mut self, event: &Event) -> Vec<HistoryEvent> {
        let at = event.at();
        match &event.body {
            EventBody::ExecutionStarted(body) => {
                let details = D::ExecutionStarted {
                    execution_started_details: ExecutionStartedDetails {
                        input: self.payload(body.input.clone()),
                        execution_timeout: body.timeout_seconds,
                    },
                };
                vec![self.of_execution(at, details)]
            }
            EventBody::HandlerReturned(body) => {
                let shown = matches!(body.status, HandlerStatus::Crashed | HandlerStatus::Lost | HandlerStatus::Failed);
                let error = body.error.clone().filter(|_| shown).map(|error| self.error(Some(error)));
                let details = D::InvocationCompleted {
                    invocation_completed_details: InvocationCompletedDetails {
                        start_timestamp: body.invoked_at.into(),
                        end_timestamp: at.into(),
                        request_id: body.request_id.clone(),
                        error,
                    },
                };
                vec![self.event(at, None, details)]
            }
            EventBody::OperationUpdated(body) => {
                let Some(operation) = self.execution.operation(&body.operation_id) else { return Vec::new() };
                let starts = body.begins || body.action == OperationAction::Start;
                let started = starts.then(|| self.started(at, operation, body)).flatten();
                let ended = (body.action != OperationAction::Start).then(|| self.ended(at, operation, body)).flatten();
                started.into_iter().chain(ended).collect()
            }
            EventBody::OperationResolved(body) => {
                let Some(operation) = self.execution.operation(&body.operation_id) else { return Vec::new() };
                self.resolved(at, operation, body).into_iter().collect()
            }
            EventBody::ExecutionEnded(body) => {
                let details = match body.status {
                    ExecutionStatus::Succeeded | ExecutionStatus::Running => {
                        D::ExecutionSucceeded { execution_succeeded_details: self.result(body.result.clone()) }
                    }
                    ExecutionStatus::Failed => {
                        D::ExecutionFailed { execution_failed_details: self.failure(body.error.clone()) }
                    }
                    ExecutionStatus::TimedOut => {
                        D::ExecutionTimedOut { execution_timed_out_details: self.failure(body.error.clone()) }
                    }
                    ExecutionStatus::Stopped => {
                        D::ExecutionStopped { execution_stopped_details: self.failure(body.error.clone()) }
                    }
                };
                vec![self.of_execution(at, details)]
            }
            _ => Vec::new(),
        }
    }

    fn started(&mut self, at: Timestamp, operation: &Operation, body: &OperationUpdated) -> Option<HistoryEvent> {
        let details = match operation.operation_type {
            OperationType::Step => D::StepStarted { step_started_details: NoDetails {} },
            OperationType::Context => D::ContextStarted { context_started_details: NoDetails {} },
            OperationType::Wait => {
                let duration = body.seconds.unwrap_or(0);
                let end = at.plus(std::time::Duration::from_secs(duration));
                let details = WaitStartedDetails { duration, scheduled_end_timestamp: end.into() };
                D::WaitStarted { wait_started_details: details }
            }
            OperationType::Callback => {
                let terms = body.callback.as_ref()?;
                D::CallbackStarted {
                    callback_started_details: CallbackStartedDetails {
                        callback_id: terms.callback_id.clone(),
                        heartbeat_timeout: terms.heartbeat_seconds,
                        timeout: terms.timeout_seconds,
                    },
                }
            }
            OperationType::ChainedInvoke => {
                let chained = body.chained.as_ref()?;
                let target = chained.target.as_ref();
                let place = &self.executions.place;
                let name = servo_model::function::FunctionRef::parse(&chained.function).ok().map(|f| f.name);
                let arn = target.filter(|target| target.durable).zip(name).map(|(target, function)| {
                    place.execution_arn(&function, &target.version, &target.name, target.run_id.as_str())
                });
                D::ChainedInvokeStarted {
                    chained_invoke_started_details: ChainedInvokeStartedDetails {
                        function_name: chained.function.clone(),
                        tenant_id: chained.tenant_id.clone(),
                        input: body.payload.clone().map(|payload| self.payload(Some(payload))),
                        executed_version: target.map(|target| target.version.clone()),
                        durable_execution_arn: arn,
                    },
                }
            }
            OperationType::Execution => return None,
        };
        Some(self.event(at, Some(operation), details))
    }

    fn ended(&mut self, at: Timestamp, operation: &Operation, body: &OperationUpdated) -> Option<HistoryEvent> {
        let retry = RetryDetails {
            current_attempt: body.attempt.unwrap_or(1),
            next_attempt_delay_seconds: body.seconds.filter(|_| body.action == OperationAction::Retry),
        };
        // A retry that carries a value has succeeded so far: a condition that does not hold yet.
        let failed = match body.action {
            OperationAction::Fail => true,
            OperationAction::Retry => body.payload.is_none(),
            OperationAction::Start | OperationAction::Succeed | OperationAction::Cancel => false,
        };
        let details = match (operation.operation_type, failed) {
            (OperationType::Step, true) => D::StepFailed {
                step_failed_details: StepErrorDetails { error: self.error(body.error.clone()), retry_details: retry },
            },
            (OperationType::Step, false) => D::StepSucceeded {
                step_succeeded_details: StepResultDetails {
                    result: self.payload(body.payload.clone()),
                    retry_details: retry,
                },
            },
            (OperationType::Context, true) => {
                D::ContextFailed { context_failed_details: self.failure(body.error.clone()) }
            }
            (OperationType::Context, false) => {
                D::ContextSucceeded { context_succeeded_details: self.result(body.payload.clone()) }
            }
            (OperationType::Wait, _) => {
                let error = body.error.clone().map(|error| self.error(Some(error)));
                D::WaitCancelled { wait_cancelled_details: ErrorDetails { error } }
            }
            (OperationType::Callback | OperationType::ChainedInvoke | OperationType::Execution, _) => return None,
        };
        Some(self.event(at, Some(operation), details))
    }

    fn resolved(&mut self, at: Timestamp, operation: &Operation, body: &OperationResolved) -> Option<HistoryEvent> {
        use OperationStatus as S;
        let details = match (operation.operation_type, body.status) {
            (OperationType::Wait, S::Succeeded) => {
                D::WaitSucceeded { wait_succeeded_details: WaitSucceededDetails { duration: operation.seconds } }
            }
            (OperationType::Callback, S::Succeeded) => {
                D::CallbackSucceeded { callback_succeeded_details: self.result(body.payload.clone()) }
            }
            (OperationType::Callback, S::Failed) => {
                D::CallbackFailed { callback_failed_details: self.failure(body.error.clone()) }
            }
            (OperationType::Callback, S::TimedOut) => {
                D::CallbackTimedOut { callback_timed_out_details: self.failure(body.error.clone()) }
            }
            (OperationType::ChainedInvoke, S::Succeeded) => {
                D::ChainedInvokeSucceeded { chained_invoke_succeeded_details: self.result(body.payload.clone()) }
            }
            (OperationType::ChainedInvoke, S::Failed) => {
                D::ChainedInvokeFailed { chained_invoke_failed_details: self.failure(body.error.clone()) }
            }
            (OperationType::ChainedInvoke, S::TimedOut) => {
                D::ChainedInvokeTimedOut { chained_invoke_timed_out_details: self.failure(body.error.clone()) }
            }
            (OperationType::ChainedInvoke, S::Stopped) => {
                D::ChainedInvokeStopped { chained_invoke_stopped_details: self.failure(body.error.clone()) }
            }
            // A step that may be tried again: its next start tells it.
            _ => return None,
        };
        Some(self.event(at, Some(operation), details))
    }

    fn of_execution(&mut self, at: Timestamp, details: D) -> HistoryEvent {
        let mut event = self.event(at, None, details);
        event.id = Some(self.state.run_id.to_string());
        event.name = Some(self.execution.head.start.name.clone());
        event
    }

    fn event(&mut self, at: Timestamp, operation: Option<&Operation>, details: D) -> HistoryEvent {
        let event_id = self.next_id;
        self.next_id += 1;
        HistoryEvent {
            details,
            sub_type: operation.and_then(|operation| operation.sub_type.clone()),
            event_id,
            id: operation.map(|operation| operation.id.to_string()),
            name: operation.and_then(|operation| operation.name.clone()),
            event_timestamp: at.into(),
            parent_id: operation.and_then(|operation| operation.parent_id.as_deref().map(str::to_owned)),
        }
    }

    fn payload(&self, payload: Option<String>) -> EventPayload {
        EventPayload { truncated: payload.is_some() && !self.with_data, payload: payload.filter(|_| self.with_data) }
    }

    fn error(&self, error: Option<ErrorObject>) -> EventError {
        EventError { truncated: error.is_some() && !self.with_data, payload: error.filter(|_| self.with_data) }
    }

    fn result(&self, payload: Option<String>) -> ResultDetails {
        ResultDetails { result: self.payload(payload) }
    }

    fn failure(&self, error: Option<ErrorObject>) -> ErrorDetails {
        ErrorDetails { error: Some(self.error(error)) }
    }
}
