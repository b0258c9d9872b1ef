//! A handler's checkpoint.

use std::collections::BTreeMap;

use servo_entrypoint::{InvocationMode, errors, pin};
use servo_machine::{Checkpoint, Command, ExecutionCommand, Spawn};
use servo_model::event::ParentOperation;
use servo_model::execution::{self, Operation};
use servo_model::invocation::Failure;
use servo_model::operation::{ErrorObject, OperationAction, OperationType, OperationUpdate};
use servo_model::{RunState, RunStatus, TenantId, TraceContext, trace};
use servo_store::Scope;
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, NewExecutionState};

use super::seal::{CallbackRef, Purpose, Token, mark_of};
use super::{Executions, HANDLER, NO_ARN, Refused, StartFunction, of_a_token};
use crate::engine::{Order, Places};
use crate::entrypoints::from_inside;
use crate::loops::supervise;
use crate::serverless::{Begin, failure_of};
use crate::spans::OpenSpan;

/// Updates in one call. SDKs send at most 250.
const UPDATES_MAX: usize = 1_000;
const CLIENT_TOKEN_CHARS_MAX: usize = 64;

impl Executions {
    pub async fn checkpoint(
        &self,
        tenant: &TenantId,
        arn: &str,
        request: CheckpointRequest,
    ) -> Result<CheckpointResponse, Refused> {
        self.checkpoint_with(tenant, arn, request, &[]).await
    }

    /// The same for a caller who need not be told what it has said itself.
    pub async fn checkpoint_for_news(
        &self,
        tenant: &TenantId,
        arn: &str,
        request: CheckpointRequest,
    ) -> Result<CheckpointResponse, Refused> {
        let said = request.updates.iter().flatten().filter(|update| update.says_all());
        let mut said: Vec<String> = said.map(|update| update.id.clone()).collect();
        said.sort_unstable();
        self.checkpoint_with(tenant, arn, request, &said).await
    }

    /// `said` has the operations, in order, that are left out of the answer where the call has begun and ended them at once.
    async fn checkpoint_with(
        &self,
        tenant: &TenantId,
        arn: &str,
        request: CheckpointRequest,
        said: &[String],
    ) -> Result<CheckpointResponse, Refused> {
        let token = self.token(tenant, arn, &request.checkpoint_token)?;
        let span = self.checkpoint_span(&token, request.updates.as_deref()).await?;
        let trace = span.as_ref().map(OpenSpan::context);
        let answer = self.record_checkpoint(token, request, said, trace).await;
        if let (Some(mut span), Err(refused)) = (span, &answer) {
            span.fail(refused.name.as_str());
        }
        answer
    }

    /// Polls tell nothing, so they have none.
    async fn checkpoint_span(
        &self,
        token: &Token,
        updates: Option<&[OperationUpdate]>,
    ) -> Result<Option<OpenSpan>, Refused> {
        let count = updates.map_or(0, <[_]>::len);
        if self.engine.spans().is_none() || count == 0 {
            return Ok(None);
        }
        let trace = self.trace(token).await?;
        let place = (&token.run, token.invocation);
        let mut span = self.engine.span_in_invocation(place, &token.tenant, trace.as_deref(), "checkpoint");
        if let Some(span) = &mut span {
            span.set("servo.checkpoint.updates", count);
        }
        Ok(span)
    }

    /// `trace` is the checkpoint's own span, where it has one.
    async fn record_checkpoint(
        &self,
        mut token: Token,
        request: CheckpointRequest,
        said: &[String],
        trace: Option<TraceContext>,
    ) -> Result<CheckpointResponse, Refused> {
        if self.engine.config().is_sabotaged("two-invocations") {
            self.renew(&mut token).await?;
        }
        let client_token = request.client_token;
        if client_token.as_ref().is_some_and(|text| !is_client_token(text)) {
            let message =
                format!("ClientToken has 1 to {CLIENT_TOKEN_CHARS_MAX} printable ASCII characters and no space");
            return Err(Refused::invalid(message));
        }
        let updates = request.updates.unwrap_or_default();
        if updates.len() > UPDATES_MAX {
            return Err(Refused::invalid(format!("a checkpoint has at most {UPDATES_MAX} updates")));
        }
        let polls = updates.is_empty();
        let (targets, places) = self.targets(&token, &updates, trace).await?;
        let call = Checkpoint {
            invocation: token.invocation,
            number: token.number,
            client_token,
            callback_ids: self.callback_ids(&token, &updates),
            targets,
            updates,
        };
        let command = Command::Execution(Box::new(ExecutionCommand::Checkpoint(call)));
        let mut order = Order::new(Scope::Tenant(token.tenant.clone()), token.run.clone(), command, HANDLER);
        order.fresh = polls;
        let outcome =
            self.engine.execute_with(order, |state| self.answer(state, &token, said)).await.map_err(of_a_token)?;
        // The same call again has started nothing, and its places are given back.
        places.into_iter().filter(|_| outcome.recorded > 0 && outcome.refusal.is_none()).for_each(Places::recorded);
        supervise::heard(&self.engine, &format!("{}/{}/{}", token.run, execution::HANDLER, token.invocation));
        Ok(outcome.view)
    }

    /// The token's contents, if it belongs to this tenant's execution, and the ARN is that execution's as a whole. The operations that
    /// take a token know no execution that is not found.
    pub(super) fn token(&self, tenant: &TenantId, arn: &str, text: &str) -> Result<Token, Refused> {
        let run = Self::run_of(arn).map_err(|_| Refused::invalid(NO_ARN))?;
        let token: Option<Token> = self.seal.open(Purpose::Token, text);
        let token =
            token.filter(|token| token.run == run && token.tenant == *tenant).ok_or_else(Refused::stale_token)?;
        if token.arn.is_some_and(|mark| mark != mark_of(arn)) {
            return Err(Refused::invalid("DurableExecutionArn is not the ARN of the execution that the token is for"));
        }
        Ok(token)
    }

    /// The broken variant in which an invocation goes on although another has taken its place: whatever its token was worth, it
    /// is worth what the newest one is.
    async fn renew(&self, token: &mut Token) -> Result<(), Refused> {
        let newest = |state: &RunState| {
            let head = state.execution.as_ref().map(|execution| &execution.head);
            head.map(|head| (head.invocations, head.checkpoint.number))
        };
        let scope = Scope::Tenant(token.tenant.clone());
        if let Some(newest) = self.engine.view(&scope, &token.run, newest).await? {
            (token.invocation, token.number) = newest;
        }
        Ok(())
    }

    /// Everything that has changed since the handler last looked, and the right to go on.
    fn answer(&self, state: &RunState, token: &Token, said: &[String]) -> CheckpointResponse {
        let Some(execution) = &state.execution else {
            return CheckpointResponse { checkpoint_token: None, new_execution_state: NewExecutionState::default() };
        };
        let is_known = |operation: &Operation| {
            operation.occurrence == 1 && said.binary_search_by(|id| id.as_str().cmp(&operation.id)).is_ok()
        };
        let changed = execution.changed_after(token.seen).into_iter().filter(|operation| !is_known(operation));
        let operations = changed.map(Into::into).collect();
        let goes_on = state.status == RunStatus::Running && execution.head.ended.is_none();
        let next = Token { number: execution.head.checkpoint.number, seen: state.last_event_seq, ..token.clone() };
        CheckpointResponse {
            checkpoint_token: goes_on.then(|| self.close_token(&next)),
            new_execution_state: NewExecutionState { operations, next_marker: None },
        }
    }

    pub(super) fn close_token(&self, token: &Token) -> String {
        self.seal.close(Purpose::Token, self.engine.ids().nonce(), token)
    }

    fn callback_ids(&self, token: &Token, updates: &[OperationUpdate]) -> BTreeMap<String, String> {
        let started = updates.iter().filter(|update| {
            update.operation_type == OperationType::Callback && update.action == OperationAction::Start
        });
        let sealed = started.map(|update| {
            let reference =
                CallbackRef { run: token.run.clone(), tenant: token.tenant.clone(), operation: update.id.clone() };
            (update.id.clone(), self.seal.close(Purpose::Callback, self.engine.ids().nonce(), &reference))
        });
        sealed.collect()
    }

    /// What the chained invokes of a call will run. A target that is not there fails its operation, not the call; one that cannot
    /// be there, by its name, is no call.
    async fn targets(
        &self,
        token: &Token,
        updates: &[OperationUpdate],
        span: Option<TraceContext>,
    ) -> Result<(BTreeMap<String, Result<Spawn, ErrorObject>>, Option<Places>), Refused> {
        let mut targets = BTreeMap::new();
        let mut below = None;
        let mut caller = None;
        let mut trace: Option<Option<String>> = None;
        for update in updates {
            let chained =
                update.operation_type == OperationType::ChainedInvoke && update.action == OperationAction::Start;
            let Some(options) = update.chained_invoke_options.as_ref().filter(|_| chained) else { continue };
            let below = match &mut below {
                Some(below) => below,
                none => none.insert(self.below(token).await?),
            };
            if let Some(error) = below.refuses(&options.function_name) {
                targets.insert(update.id.clone(), Err(error));
                continue;
            }
            // What a handler does not say is known: the trace goes on.
            let trace = match (&options.trace_id, &mut trace) {
                (Some(given), _) => Some(given.clone()),
                (None, Some(known)) => self.child_trace(known.as_deref(), span),
                (None, none) => self.child_trace(none.insert(self.trace(token).await?).as_deref(), span),
            };
            if options.function_name.starts_with("gts.") {
                let caller = match &mut caller {
                    Some(caller) => caller,
                    none => none.insert(self.caller(token).await?),
                };
                let parent = ParentOperation { run_id: token.run.clone(), operation_id: update.id.clone() };
                let (address, payload) = (&options.function_name, update.payload.as_deref());
                let target = self.entrypoint_target(caller, address, payload, (parent, trace)).await?;
                targets.insert(update.id.clone(), target);
                continue;
            }
            self.check_target(&options.function_name)?;
            let function = match self.resolve(&token.tenant, &options.function_name, None).await {
                Ok(function) => function,
                Err(refused) if refused.is_fault() => return Err(refused),
                Err(refused) => {
                    let error = ErrorObject::new(refused.name.as_str(), refused.message);
                    targets.insert(update.id.clone(), Err(error));
                    continue;
                }
            };
            let call = StartFunction {
                tenant: token.tenant.clone(),
                subject: format!("execution/{}", token.run),
                function,
                name: None,
                // Without a payload the target gets an empty object.
                input: Some(update.payload.clone().unwrap_or_else(|| "{}".to_owned())),
                tenant_id: options.tenant_id.clone(),
                client_context: None,
                trace,
                synchronous: false,
            };
            let parent = ParentOperation { run_id: token.run.clone(), operation_id: update.id.clone() };
            let mut start = self.start_execution(&call, Some(parent))?;
            let run_id = self.engine.ids().run_id(self.engine.now());
            start.call_it(run_id.as_str());
            targets.insert(update.id.clone(), Ok(Spawn { run_id, start }));
        }
        let places = match below {
            Some(below) => self.bound(token, below, updates, &mut targets).await?,
            None => None,
        };
        Ok((targets, places))
    }

    /// The trace that an execution belongs to.
    async fn trace(&self, token: &Token) -> Result<Option<String>, Refused> {
        let trace =
            |state: &RunState| state.execution.as_ref().and_then(|execution| execution.head.start.trace.clone());
        Ok(self.engine.view(&Scope::Tenant(token.tenant.clone()), &token.run, trace).await?)
    }

    /// Of an execution that another one starts: the same trace, from the span that starts it or from one of its own. A text in no known
    /// form is passed on.
    fn child_trace(&self, parent: Option<&str>, span: Option<TraceContext>) -> Option<String> {
        let state = parent.and_then(trace::state_of);
        if let Some(span) = span {
            return Some(trace::with_state(span.traceparent(), state));
        }
        let text = parent?;
        let child = TraceContext::parse(text).map(|context| context.child(self.engine.ids().span()));
        Some(child.map_or_else(|| text.to_owned(), |child| trace::with_state(child.traceparent(), state)))
    }

    /// The caller of a run calls on: what it starts is its own.
    async fn caller(&self, token: &Token) -> Result<Caller, Refused> {
        let caller = |state: &RunState| {
            let subject = state.context.as_ref().and_then(|context| context.triggered_by.clone());
            let pin = state.entrypoint();
            Caller {
                tenant: token.tenant.clone(),
                subject: subject.unwrap_or_else(|| format!("execution/{}", token.run)),
                correlation_id: pin.map_or_else(|| token.run.to_string(), |pin| pin.correlation_id.clone()),
                dead_letter_grace_seconds: pin
                    .map_or(pin::DEAD_LETTER_GRACE_SECONDS, |pin| pin.dead_letter_grace_seconds),
            }
        };
        Ok(self.engine.view(&Scope::Tenant(token.tenant.clone()), &token.run, caller).await?)
    }

    /// A chained invoke may also name an entrypoint by its address. What the caller did wrong fails the operation.
    async fn entrypoint_target(
        &self,
        caller: &Caller,
        address: &str,
        payload: Option<&str>,
        (parent, trace): (ParentOperation, Option<String>),
    ) -> Result<Result<Spawn, ErrorObject>, Refused> {
        let wrong = |failure: &Failure| Ok(Err(failure.to_error()));
        let ctx = from_inside(&caller.tenant, &caller.subject, &caller.correlation_id);
        let loaded = match self.entrypoints.callable(&ctx, address).await? {
            Ok(loaded) => loaded,
            Err(failure) => return wrong(&failure),
        };
        let params = match serde_json::from_str(payload.unwrap_or("{}")) {
            Ok(params) => params,
            Err(error) => return wrong(&errors::bad_request(format!("the params are no JSON: {error}"))),
        };
        let params = match loaded.compiled.check_params(Some(&params)) {
            Ok(params) => serde_json::Value::Object(params).to_string(),
            Err(failure) => return wrong(&failure),
        };
        let is_limited = loaded.entrypoint.definition.traits.rate_limit.is_some();
        let is_repeated = is_limited && self.is_recorded(&parent, &caller.tenant).await?;
        let begin = Begin {
            loaded: &loaded,
            tenant: caller.tenant.clone(),
            subject: caller.subject.clone(),
            correlation_id: caller.correlation_id.clone(),
            mode: InvocationMode::Async,
            params,
            seconds_max: u64::MAX,
            dead_letter_grace_seconds: caller.dead_letter_grace_seconds,
            parent: Some(parent),
            compensates: None,
            replay_of: None,
            trace,
        };
        let referred = self.referred(&loaded).await;
        let mut start = match referred.and_then(|referred| self.begin(begin, referred)) {
            Ok(start) => start,
            Err(refused) if refused.is_fault() => return Err(refused),
            Err(refused) => return wrong(&failure_of(refused)),
        };
        // The run that calls was admitted with what it calls, so the tenant's quota is not asked again. A checkpoint that comes a
        // second time starts nothing, and so takes nothing of the rate.
        if !is_repeated && let Err(failure) = self.entrypoints.check_rate(&ctx, &loaded).await {
            return wrong(&failure);
        }
        let run_id = self.engine.ids().run_id(self.engine.now());
        start.call_it(run_id.as_str());
        Ok(Ok(Spawn { run_id, start }))
    }

    /// Whether an execution has this operation already.
    async fn is_recorded(&self, operation: &ParentOperation, tenant: &TenantId) -> Result<bool, Refused> {
        let look = |state: &RunState| {
            state.execution.as_ref().is_some_and(|execution| execution.operation(&operation.operation_id).is_some())
        };
        Ok(self.engine.view(&Scope::Tenant(tenant.clone()), &operation.run_id, look).await?)
    }
}

fn is_client_token(text: &str) -> bool {
    (1..=CLIENT_TOKEN_CHARS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whose run checkpoints.
struct Caller {
    tenant: TenantId,
    subject: String,
    correlation_id: String,
    dead_letter_grace_seconds: u64,
}
