//! A handler's checkpoint.

use std::collections::BTreeMap;

use servo_entrypoint::{InvocationMode, errors};
use servo_machine::{Checkpoint, Command, ExecutionCommand, Spawn};
use servo_model::event::ParentOperation;
use servo_model::invocation::Failure;
use servo_model::operation::{ErrorObject, OperationAction, OperationType, OperationUpdate};
use servo_model::{RunState, RunStatus, TenantId};
use servo_store::Scope;
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, NewExecutionState};

use super::seal::{CallbackRef, Purpose, Token};
use super::{Executions, Refused, StartFunction};
use crate::engine::Order;
use crate::serverless::Begin;

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
        let token = self.token(tenant, arn, &request.checkpoint_token)?;
        let client_token = request.client_token.filter(|text| !text.is_empty());
        if client_token.as_ref().is_some_and(|text| text.len() > CLIENT_TOKEN_CHARS_MAX) {
            return Err(Refused::invalid(format!("ClientToken has at most {CLIENT_TOKEN_CHARS_MAX} characters")));
        }
        let updates = request.updates.unwrap_or_default();
        if updates.len() > UPDATES_MAX {
            return Err(Refused::invalid(format!("a checkpoint has at most {UPDATES_MAX} updates")));
        }
        let polls = updates.is_empty();
        let call = Checkpoint {
            invocation: token.invocation,
            number: token.number,
            client_token,
            callback_ids: self.callback_ids(&token, &updates),
            targets: self.targets(&token, &updates).await?,
            updates,
        };
        let command = Command::Execution(Box::new(ExecutionCommand::Checkpoint(call)));
        let mut order = Order::new(Scope::Tenant(token.tenant.clone()), token.run.clone(), command, "handler");
        order.fresh = polls;
        let outcome = self.engine.execute_with(order, |state| self.answer(state, &token)).await?;
        Ok(outcome.view)
    }

    /// The token's contents, if it belongs to this tenant's execution.
    pub(super) fn token(&self, tenant: &TenantId, arn: &str, text: &str) -> Result<Token, Refused> {
        let run = Self::run_of(arn)?;
        let token: Option<Token> = self.seal.open(Purpose::Token, text);
        token.filter(|token| token.run == run && token.tenant == *tenant).ok_or_else(Refused::stale_token)
    }

    /// Everything that has changed since the handler last looked, and the right to go on.
    fn answer(&self, state: &RunState, token: &Token) -> CheckpointResponse {
        let Some(execution) = &state.execution else {
            return CheckpointResponse { checkpoint_token: None, new_execution_state: NewExecutionState::default() };
        };
        let operations = execution.changed_after(token.seen).into_iter().map(Into::into).collect();
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

    /// What the chained invokes of a call will run. A target that is not there fails its operation, not the call.
    async fn targets(
        &self,
        token: &Token,
        updates: &[OperationUpdate],
    ) -> Result<BTreeMap<String, Result<Spawn, ErrorObject>>, Refused> {
        let mut targets = BTreeMap::new();
        for update in updates {
            let chained =
                update.operation_type == OperationType::ChainedInvoke && update.action == OperationAction::Start;
            let Some(options) = update.chained_invoke_options.as_ref().filter(|_| chained) else { continue };
            if options.function_name.starts_with("gts.") {
                let parent = ParentOperation { run_id: token.run.clone(), operation_id: update.id.clone() };
                let target = self.entrypoint_target(token, &options.function_name, update.payload.as_deref(), parent);
                targets.insert(update.id.clone(), target.await?);
                continue;
            }
            let function = match self.resolve(&token.tenant, &options.function_name, None).await {
                Ok(function) => function,
                Err(refused) if refused.name.status() >= 500 => return Err(refused),
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
                trace: options.trace_id.clone(),
                synchronous: false,
            };
            let parent = ParentOperation { run_id: token.run.clone(), operation_id: update.id.clone() };
            let mut start = self.start_execution(&call, Some(parent))?;
            let run_id = self.engine.ids().run_id(self.engine.now());
            start.start.name = run_id.to_string();
            targets.insert(update.id.clone(), Ok(Spawn { run_id, start: Box::new(start) }));
        }
        Ok(targets)
    }

    /// A chained invoke may also name an entrypoint by its address.
    async fn entrypoint_target(
        &self,
        token: &Token,
        address: &str,
        payload: Option<&str>,
        parent: ParentOperation,
    ) -> Result<Result<Spawn, ErrorObject>, Refused> {
        let wrong = |failure: &Failure| Ok(Err(failure.to_error()));
        // The caller of a run calls on: what it starts is its own.
        let caller = |state: &RunState| {
            let pin = state.entrypoint();
            let subject = state.context.as_ref().and_then(|context| context.triggered_by.clone());
            let correlation = pin.map(|pin| (pin.correlation_id.clone(), pin.dead_letter_grace_seconds));
            (subject, correlation)
        };
        let (subject, correlation) = self.engine.view(&Scope::Tenant(token.tenant.clone()), &token.run, caller).await?;
        let subject = subject.unwrap_or_else(|| format!("execution/{}", token.run));
        let found = self.entrypoints.find(&token.tenant, address).await?;
        let Some(loaded) = found.filter(|loaded| loaded.is_seen_by(&token.tenant, &subject)) else {
            return wrong(&errors::not_found(format!("there is no entrypoint `{address}`")));
        };
        if !servo_entrypoint::status::is_callable(loaded.status()) {
            let status = loaded.status().as_str();
            return wrong(&errors::not_active(format!("the entrypoint `{address}` is `{status}`")));
        }
        let params = match serde_json::from_str(payload.unwrap_or("{}")) {
            Ok(params) => params,
            Err(error) => return wrong(&errors::bad_request(format!("the params are no JSON: {error}"))),
        };
        let params = match loaded.compiled.check_params(Some(&params)) {
            Ok(params) => serde_json::Value::Object(params).to_string(),
            Err(failure) => return wrong(&failure),
        };
        let (correlation_id, grace) = correlation.unwrap_or_else(|| (token.run.to_string(), 86_400));
        let begin = Begin {
            loaded: &loaded,
            tenant: token.tenant.clone(),
            subject,
            correlation_id,
            mode: InvocationMode::Async,
            params,
            seconds_max: u64::MAX,
            dead_letter_grace_seconds: grace,
            parent: Some(parent),
            compensates: None,
            replay_of: None,
        };
        let mut start = self.begin(begin).await?;
        let run_id = self.engine.ids().run_id(self.engine.now());
        start.start.name = run_id.to_string();
        Ok(Ok(Spawn { run_id, start: Box::new(start) }))
    }
}
