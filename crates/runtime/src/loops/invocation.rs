//! One invocation of a handler, from its dispatch to its answer.
//!
//! The invocation's own event is the fence: once it is recorded, tokens of earlier invocations are refused. A node that is
//! lost with an invocation in flight is found by its dispatch under the old epoch; the next one goes on with what the
//! handler had recorded.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use servo_adapter::{FailureKind, HandlerCall, HandlerFailure, Handlers, Standing, Usage};
use servo_canon::Digest;
use servo_entrypoint::{CompiledEntrypoint, errors};
use servo_machine::{Answer, Command, ExecutionCommand, Used};
use servo_model::contract::DispatchState;
use servo_model::execution::Execution;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::invocation::{Checkpointing, EntrypointKind};
use servo_model::operation::ErrorObject;
use servo_model::{RunState, RunStatus, trace};
use servo_store::error::Retry;
use servo_store::{DispatchRow, Fence, Scope};
use servo_wire::lambda::{DurableExecutionInvocationOutput, InvocationStatus};

use super::authority::Authority;
use super::inflight::Registered;
use super::supervise;
use crate::engine::{Engine, Error, Order, Patience};
use crate::entrypoints::Loaded;
use crate::executions::{Executions, Refused};
use crate::metrics::standing;
use crate::spans::{self, OpenSpan};

/// Code is ended by whoever runs it when its time is over, who then also knows what it used. This much later it is given up.
const CODE_PATIENCE: Duration = Duration::from_millis(500);
/// What a handler may answer at most.
const ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024 + 64 * 1024;

pub(crate) struct Invocation {
    pub executions: Executions,
    pub authority: Authority,
    pub handlers: Arc<dyn Handlers>,
    pub row: DispatchRow,
    pub invocation: u32,
    pub fence: Fence,
    pub registered: Registered,
    /// Whether a caller waits for the run.
    pub is_awaited: bool,
}

/// What the recorded invocation is to be called with.
pub(crate) struct Prepared {
    payload: String,
    function: String,
    version: String,
    /// Of the function's registration that the run is pinned to.
    digest: Digest,
    durable: bool,
    /// The registration of the entrypoint that this is a run of, and its digest.
    entrypoint: Option<(String, Digest)>,
    timeout: Duration,
    tenant_id: Option<String>,
    client_context: Option<String>,
    subject: Option<String>,
    trace: Option<String>,
}

pub(crate) async fn run(invocation: Invocation) {
    if invocation.row.state == DispatchState::Notified {
        return invocation.lose().await;
    }
    let request_id = invocation.request_id();
    let prepared = match invocation.begin(&request_id).await {
        Ok(Some(prepared)) => prepared,
        Ok(None) => return,
        Err(error) => {
            // The dispatch stays open; whoever holds the authority finds it again.
            tracing::warn!(request_id = %invocation.row.request_id, %error, "handler not invoked");
            return;
        }
    };
    invocation.go_on(&request_id, prepared).await;
}

impl Invocation {
    fn engine(&self) -> &Engine {
        self.executions.engine()
    }

    pub(super) fn request_id(&self) -> String {
        self.engine().ids().event_id(self.engine().now()).to_string()
    }

    fn order(&self, command: ExecutionCommand) -> Order {
        let command = Command::Execution(Box::new(command));
        let mut order = Order::new(Scope::System, self.row.run_id.clone(), command, self.authority.owner().clone());
        order.patience = Patience::Background;
        order
    }

    /// The node that had called the handler is gone.
    async fn lose(&self) {
        let mut order = self.order(ExecutionCommand::Lose { invocation: self.invocation });
        let commands = order.commands.clone();
        order.fence = Some(self.fence);
        match self.engine().execute(order).await {
            Ok(_) => supervise::recovered(self.engine(), self.authority.owner(), "relaunch").await,
            Err(Error::Refused(_)) => self.withdraw(&commands[0]).await,
            Err(Error::Store(servo_store::Error::Fenced { epoch })) => self.authority.lost(epoch),
            Err(error) => tracing::warn!(request_id = %self.row.request_id, %error, "lost invocation not recorded"),
        }
    }

    async fn withdraw(&self, command: &Command) {
        if let Err(error) = self.engine().withdraw(&self.row, command, self.fence).await {
            tracing::debug!(request_id = %self.row.request_id, %error, "dispatch not withdrawn");
        }
    }

    /// Records the invocation under this node's authority. `None` when it is not wanted any more.
    async fn begin(&self, request_id: &str) -> Result<Option<Prepared>, Error> {
        let command = ExecutionCommand::Invoke { invocation: self.invocation, request_id: request_id.to_owned() };
        let mut order = self.order(command);
        let commands = order.commands.clone();
        order.fence = Some(self.fence);
        match self.engine().execute_with(order, |state| self.prepare(state)).await {
            Ok(outcome) if outcome.refusal.is_some() => Ok(None),
            Ok(outcome) => Ok(outcome.view),
            Err(Error::Refused(_)) => {
                // Recorded after all, by a try whose answer was lost?
                let ours = |state: &RunState| self.prepare_if_ours(state, request_id);
                let prepared = self.engine().view(&Scope::System, &self.row.run_id, ours).await?;
                if prepared.is_none() {
                    self.withdraw(&commands[0]).await;
                }
                Ok(prepared)
            }
            Err(Error::Store(servo_store::Error::Fenced { epoch })) => {
                self.authority.lost(epoch);
                Ok(None)
            }
            Err(Error::Store(
                servo_store::Error::DispatchMove { .. }
                | servo_store::Error::DispatchNotFound { .. }
                | servo_store::Error::NotFound,
            ))
            | Err(Error::Quarantined(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What an invocation is called with that is recorded and still wanted; the store may have to be asked more than once.
    /// An error if there is no such run.
    pub(super) async fn recorded(&self, request_id: &str) -> Result<Option<Prepared>, Error> {
        let mut failures = 0;
        loop {
            let ours = |state: &RunState| self.prepare_if_ours(state, request_id);
            match self.engine().view(&Scope::System, &self.row.run_id, ours).await {
                Err(Error::Store(error)) if error.retry() == Retry::Later => {
                    failures += 1;
                    self.engine().back_off(failures).await?;
                }
                Err(Error::Quarantined(_)) => return Ok(None),
                seen => return seen,
            }
        }
    }

    fn prepare_if_ours(&self, state: &RunState, request_id: &str) -> Option<Prepared> {
        let running = state.execution.as_ref().and_then(|execution| execution.head.invocation.as_ref());
        let ours = running.is_some_and(|running| running.request_id == request_id);
        ours.then(|| self.prepare(state)).flatten()
    }

    /// Calls the handler and records its answer.
    pub(super) async fn go_on(&self, request_id: &str, prepared: Prepared) {
        let mut span = self.span(request_id, &prepared);
        // What the handler does is below the span of its invocation.
        let state = prepared.trace.as_deref().and_then(trace::state_of);
        let trace = span.as_ref().map(|span| trace::with_state(span.context().traceparent(), state));
        let prepared = Prepared { trace: trace.or(prepared.trace), ..prepared };
        let Some((answer, used)) = self.call(request_id, prepared).await else {
            span.iter_mut().for_each(|span| span.set("servo.invocation.outcome", "abandoned"));
            return;
        };
        span.iter_mut().for_each(|span| note_answer(span, &answer));
        let status = self.report(answer, used).await;
        if let (Some(span), Some(status)) = (&mut span, status) {
            span.set("servo.run.status", status.as_str());
        }
    }

    fn span(&self, request_id: &str, prepared: &Prepared) -> Option<OpenSpan> {
        let engine = self.engine();
        engine.spans()?;
        let place = (&self.row.run_id, self.invocation);
        let function = prepared.entrypoint.as_ref().map_or(&prepared.function, |(id, _)| id);
        let mut span = engine.invocation_span(place, &self.row.tenant, prepared.trace.as_deref(), function)?;
        span.set("servo.function", prepared.function.as_str());
        span.set("servo.function.version", prepared.version.as_str());
        span.set("faas.invocation_id", request_id);
        let waited = engine.now().since(self.row.queued_at).as_millis();
        span.set("servo.dispatch.waited_ms", i64::try_from(waited).unwrap_or(i64::MAX));
        Some(span)
    }

    pub(super) fn prepare(&self, state: &RunState) -> Option<Prepared> {
        let execution = state.execution.as_deref()?;
        let start = &execution.head.start;
        let payload = if start.durable {
            self.executions.envelope(state, execution, &self.row.tenant)
        } else {
            start.input.clone().unwrap_or_else(|| "null".to_owned())
        };
        let registered = state.plan_ref.as_ref()?.sha256;
        let pin = start.entrypoint.as_ref();
        Some(Prepared {
            payload,
            function: start.function.clone(),
            version: start.version.clone(),
            digest: pin.and_then(|pin| pin.function_digest).unwrap_or(registered),
            durable: start.durable,
            entrypoint: pin.map(|pin| (pin.id.clone(), registered)),
            timeout: time_left(execution),
            tenant_id: start.tenant_id.clone(),
            client_context: start.client_context.clone(),
            subject: state.context.as_ref().and_then(|context| context.triggered_by.clone()),
            trace: start.trace.clone(),
        })
    }

    /// The entrypoint that this is a run of.
    async fn loaded(&self, pinned: Option<(String, Digest)>) -> Result<Option<Arc<Loaded>>, Answer> {
        let Some((id, digest)) = pinned else { return Ok(None) };
        match self.executions.entrypoints().pinned(&id, digest).await {
            Ok(Some(loaded)) => Ok(Some(loaded)),
            Ok(None) => {
                let message = "the entrypoint is not registered any more";
                Err(Answer::Unreachable(errors::not_found(message).to_error()))
            }
            Err(error) => {
                tracing::warn!(%error, "an entrypoint was not read");
                let told = ErrorObject::new("ServiceException", "the entrypoint could not be read");
                // What is there and cannot be read does not get better by itself.
                Err(if error.retry() == Retry::Later { Answer::Unreached(told) } else { Answer::Unreachable(told) })
            }
        }
    }

    /// How the handler is reached: by the entrypoint's own code, or by the function that it refers to.
    async fn spec(
        &self,
        loaded: Option<&Loaded>,
        function: (&str, &str),
        digest: Digest,
    ) -> Result<FunctionSpec, Refused> {
        match loaded.and_then(|loaded| loaded.code.clone()) {
            Some(code) => Ok(code),
            None => {
                let owner = loaded.map_or(&self.row.tenant, |loaded| &loaded.tenant);
                self.executions.pinned(owner, function, digest).await
            }
        }
    }

    /// Calls the handler. `None` when the execution has ended under it, or is another node's.
    async fn call(&self, request_id: &str, prepared: Prepared) -> Option<(Answer, Used)> {
        let Prepared { payload, function, version, digest, durable, entrypoint, timeout, .. } = prepared;
        let Prepared { tenant_id, client_context, subject, trace, .. } = prepared;
        let tenant = &self.row.tenant;
        let loaded = match self.loaded(entrypoint).await {
            Ok(loaded) => loaded,
            Err(answer) => return Some((answer, Used::default())),
        };
        let spec = match self.spec(loaded.as_deref(), (&function, &version), digest).await {
            Ok(spec) => spec,
            Err(refused) if refused.is_fault() => {
                let error = ErrorObject::new(refused.name.as_str(), refused.message);
                return Some((Answer::Unreached(error), Used::default()));
            }
            Err(refused) => {
                let error = ErrorObject::new(refused.name.as_str(), refused.message);
                return Some((Answer::Unreachable(error), Used::default()));
            }
        };
        // Code may wait as long for a process before its time begins.
        let patience = if matches!(spec.reach, Reach::Code(_)) { timeout * 2 + CODE_PATIENCE } else { timeout };
        let right = self.authority.right(self.engine(), self.fence);
        let call = Box::new(HandlerCall {
            tenant: tenant.clone(),
            subject,
            function_arn: self.executions.place().function_arn(&function, &version),
            function,
            version,
            spec,
            request_id: request_id.to_owned(),
            payload,
            timeout,
            tenant_id,
            client_context,
            trace,
            run_id: self.row.run_id.clone(),
            is_awaited: self.is_awaited,
            right: right.clone(),
        });
        let keeps_time = self.handlers.keeps_time(&call.spec.reach);
        let work = async { if right.holds().await { Some(self.handlers.call(call).await) } else { None } };
        let work = AssertUnwindSafe(work).catch_unwind();
        tokio::select! {
            biased;
            () = self.registered.cancel.notified() => None,
            answer = work => Some(match answer {
                // Another node has the work by now, and calls the handler again.
                Ok(None) => return None,
                Ok(Some(Err(_))) if right.standing() == Standing::PassedOn => return None,
                Ok(Some(Ok(reply))) => {
                    let answer = checked(loaded.as_deref(), read_answer(&reply.text, durable));
                    (answer, used(reply.usage))
                }
                Ok(Some(Err(failure))) => failed(failure, durable || loaded.is_some()),
                Err(_) => {
                    let error = ErrorObject::new("Runtime.ExitError", "the handler panicked");
                    (Answer::Crashed(error), Used::default())
                }
            }),
            () = self.engine().clock().sleep(patience), if !keeps_time => {
                let message = format!("Task timed out after {} seconds", timeout.as_secs());
                Some((Answer::Crashed(ErrorObject::new("Sandbox.Timedout", message)), Used::default()))
            }
        }
    }

    /// How the run stands then.
    async fn report(&self, answer: Answer, used: Used) -> Option<RunStatus> {
        let invocation = self.invocation;
        let order = |answer: Answer| self.order(ExecutionCommand::Return { invocation, answer, used });
        let mut recorded = self.engine().execute_with(order(answer), standing).await;
        if let Err(Error::Store(error @ servo_store::Error::Limit { .. })) = &recorded {
            // Too large to be recorded; invoking the handler again would not make it smaller.
            recorded = self.engine().execute_with(order(Answer::Invalid(error.to_string())), standing).await;
        }
        match recorded {
            Ok(outcome) => {
                crate::metrics::run_ended(outcome.view);
                return Some(outcome.view.0);
            }
            Err(Error::Refused(refusal)) => {
                tracing::debug!(request_id = %self.row.request_id, %refusal, "answer not wanted any more");
            }
            Err(error) => {
                tracing::warn!(request_id = %self.row.request_id, %error, "answer not recorded; the handler will be invoked again");
            }
        }
        None
    }
}

/// One attempt of a function has its whole time, and of a workflow that begins again from its start. The invocations of another
/// workflow share it, because waiting between them is not executing.
fn time_left(execution: &Execution) -> Duration {
    let head = &execution.head;
    let whole = Duration::from_secs(head.start.invocation_timeout_seconds);
    let shared = head
        .start
        .entrypoint
        .as_ref()
        .is_some_and(|pin| pin.kind == EntrypointKind::Workflow && pin.checkpointing != Checkpointing::Disabled);
    if shared {
        return whole.saturating_sub(Duration::from_millis(head.executed_ms)).max(Duration::from_millis(1));
    }
    whole
}

/// What an entrypoint returns is what its schema says, or it has failed.
fn checked(loaded: Option<&Loaded>, answer: Answer) -> Answer {
    let (Some(loaded), Answer::Succeeded(result)) = (loaded, &answer) else { return answer };
    let value = match serde_json::from_str(result.as_deref().unwrap_or("null")) {
        Ok(value) => value,
        Err(error) => return Answer::Failed(Some(CompiledEntrypoint::no_json(&error).to_error())),
    };
    match loaded.compiled.check_result(value) {
        Ok(serde_json::Value::Null) => Answer::Succeeded(Some("null".to_owned())),
        Ok(_) => answer,
        Err(failure) => Answer::Failed(Some(failure.to_error())),
    }
}

/// What a span says about an answer: never what the handler said.
fn note_answer(span: &mut OpenSpan, answer: &Answer) {
    let (outcome, error) = match answer {
        Answer::Succeeded(_) => ("succeeded", None),
        Answer::Pending => ("pending", None),
        Answer::Failed(error) => ("failed", Some(spans::kind_of(error.as_ref()))),
        Answer::Crashed(error) | Answer::Raised { error, .. } => ("crashed", Some(spans::kind_of(Some(error)))),
        Answer::Unreached(error) => ("unreached", Some(spans::kind_of(Some(error)))),
        Answer::Unreachable(error) => ("unreachable", Some(spans::kind_of(Some(error)))),
        Answer::Invalid(_) => ("invalid", Some("invalid_answer")),
    };
    span.set("servo.invocation.outcome", outcome);
    if let Some(kind) = error {
        span.fail(kind);
    }
}

fn used(usage: Usage) -> Used {
    Used { cpu_ms: usage.cpu_ms, memory_mb: usage.memory_mb, waited_ms: usage.waited_ms.into() }
}

/// `in_parts`: its callers are told of an error by type and message, and not in the words of the function's runtime.
fn failed(failure: HandlerFailure, in_parts: bool) -> (Answer, Used) {
    let HandlerFailure { mut error, kind, usage } = failure;
    let answer = match kind {
        FailureKind::Failed => Answer::Failed(Some(error)),
        FailureKind::Raised => match error.error_data.take().filter(|_| !in_parts) {
            Some(document) => Answer::Raised { error, document },
            None => Answer::Crashed(error),
        },
        FailureKind::Crashed => Answer::Crashed(error),
        FailureKind::Unreached => Answer::Unreached(error),
        FailureKind::Unreachable => Answer::Unreachable(error),
    };
    (answer, used(usage))
}

/// What the handler said, if it is an answer at all.
fn read_answer(text: &str, durable: bool) -> Answer {
    if text.len() > ANSWER_BYTES_MAX {
        return Answer::Invalid(format!("the answer has at most {ANSWER_BYTES_MAX} bytes"));
    }
    if !durable {
        return Answer::Succeeded(Some(text.to_owned()));
    }
    let output: DurableExecutionInvocationOutput = match servo_wire::document::read(text) {
        Ok(output) => output,
        Err(error) => return Answer::Invalid(format!("Invalid invocation output: {error}")),
    };
    match output.status {
        InvocationStatus::Succeeded if output.error.is_some() => {
            Answer::Invalid("Cannot provide an Error for SUCCEEDED status.".to_owned())
        }
        InvocationStatus::Failed if output.result.is_some() => {
            Answer::Invalid("Cannot provide a Result for FAILED status.".to_owned())
        }
        InvocationStatus::Succeeded => Answer::Succeeded(output.result),
        InvocationStatus::Failed => Answer::Failed(output.error),
        InvocationStatus::Pending => Answer::Pending,
    }
}
