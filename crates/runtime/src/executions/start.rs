//! Starting an execution, and waiting for its end.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use servo_canon::Digest;
use servo_machine::{Admission, StartExecution};
use servo_model::event::{ExecutionStarted, ParentOperation};
use servo_model::execution::Ended;
use servo_model::function::is_tenant_id;
use servo_model::ids::Name;
use servo_model::plan::RunContext;
use servo_model::{PlanId, PlanRef, RunId, RunState, TenantId};
use servo_wire::lambda::ErrorName;

use super::{Executions, Refused, Resolved};

/// A call of a function.
#[derive(Debug, Clone)]
pub struct StartFunction {
    pub tenant: TenantId,
    pub subject: String,
    pub function: Resolved,
    /// The caller's name of the execution: the same one never starts two.
    pub name: Option<String>,
    pub input: Option<String>,
    pub tenant_id: Option<String>,
    /// What the caller says about itself: JSON in base64.
    pub client_context: Option<String>,
    pub trace: Option<String>,
    /// The caller waits for the result.
    pub synchronous: bool,
}

#[derive(Debug, Clone)]
pub struct Begun {
    pub run_id: RunId,
    pub arn: String,
    pub version: String,
    /// False when an earlier call under the same name had started it.
    pub created: bool,
}

/// Payload of a call that the caller waits for, and of one that it does not.
const SYNC_INPUT_BYTES_MAX: usize = 6 * 1024 * 1024;
const ASYNC_INPUT_BYTES_MAX: usize = 1024 * 1024;
/// As in the published API.
const CLIENT_CONTEXT_BYTES_MAX: usize = 3_583;

impl Executions {
    pub async fn start(&self, call: StartFunction) -> Result<Begun, Refused> {
        call.check()?;
        let start = self.start_execution(&call, None)?;
        let key = call.name.as_deref().map(|name| name_key(&call.tenant, call.function.name.as_str(), name));
        let version = start.start.version.clone();
        let (run_id, created) = self.engine.start_execution(start, key, (None, None), None).await?;
        if created {
            let name = call.name.as_deref().unwrap_or(run_id.as_str());
            let arn = self.place.execution_arn(call.function.name.as_str(), &version, name, run_id.as_str());
            return Ok(Begun { run_id, arn, version, created });
        }
        let scope = Self::scope(&call.tenant);
        let (arn, version) = self.engine.view(&scope, &run_id, |state| self.names_of(state)).await?;
        Ok(Begun { run_id, arn, version, created })
    }

    /// The execution's ARN, and its function's version.
    pub(super) fn names_of(&self, state: &RunState) -> (String, String) {
        let Some(execution) = &state.execution else { return Default::default() };
        let start = &execution.head.start;
        let arn = self.place.execution_arn(&start.function, &start.version, &start.name, state.run_id.as_str());
        (arn, start.version.clone())
    }

    /// What the machine is told about a new execution.
    pub(super) fn start_execution(
        &self,
        call: &StartFunction,
        parent: Option<ParentOperation>,
    ) -> Result<Box<StartExecution>, Refused> {
        let Resolved { name, version, spec, digest } = &call.function;
        let plan_id = PlanId::parse(name.as_str()).map_err(|invalid| Refused::invalid(invalid.to_string()))?;
        let context = RunContext {
            tenant_id: call.tenant.clone(),
            project_id: Name::default_name(),
            environment_id: Name::default_name(),
            triggered_by: Some(call.subject.clone()),
            trigger_source: None,
        };
        let input_digest = Digest::of(call.input.as_deref().unwrap_or_default().as_bytes());
        Ok(Box::new(StartExecution {
            start: Arc::new(ExecutionStarted {
                function: name.to_string(),
                version: version.to_string(),
                // Without a name of its own an execution is called by its id, which the engine fills in.
                name: call.name.clone().unwrap_or_default(),
                durable: spec.durable,
                input: call.input.clone(),
                timeout_seconds: spec.execution_timeout_seconds,
                invocation_timeout_seconds: spec.invocation_timeout_seconds,
                tenant_id: call.tenant_id.clone(),
                client_context: call.client_context.clone(),
                trace: call.trace.clone(),
                parent,
                max_concurrent: spec.max_concurrent,
                synchronous: call.synchronous,
                entrypoint: None,
                lineage: None,
            }),
            plan_ref: Arc::new(PlanRef {
                uri: format!("function:{name}"),
                sha256: *digest,
                schema_version: "function/v1".to_owned(),
                plan_id,
                plan_version: version.to_string(),
            }),
            context: Arc::new(context),
            request_digest: Some(input_digest),
            run_request_id: None,
            admission: Admission::Now,
        }))
    }

    /// How it ended, once it has; `None` if it has not within the time.
    pub async fn wait(&self, tenant: &TenantId, run_id: &RunId, most: Duration) -> Result<Option<Ended>, Refused> {
        let engine = &self.engine;
        let listener = engine.listen_for_end(run_id);
        let deadline = engine.clock().sleep_outside(most);
        let mut deadline = std::pin::pin!(deadline);
        let scope = Self::scope(tenant);
        let ended = |state: &RunState| state.execution.as_ref().and_then(|execution| execution.head.ended.clone());
        // What runs here ends here, and rings: as long as it has not ended in this node's memory, the store need not be asked.
        let remembered = engine.remembered(&scope, run_id, ended).await;
        let mut is_here = matches!(remembered, Some(None)) && engine.in_flight().runs(run_id);
        loop {
            if !is_here && let Some(ended) = engine.view(&scope, run_id, ended).await? {
                return Ok(Some(ended));
            }
            tokio::select! {
                biased;
                // It has ended here since this began to listen, or it waits for something, which is no end.
                () = listener.rung() => if let Some(Some(ended)) = engine.remembered(&scope, run_id, ended).await {
                    return Ok(Some(ended));
                },
                // An end on another node rings no bell here.
                () = engine.clock().sleep(engine.config().poll()) => {}
                () = &mut deadline => return Ok(None),
            }
            is_here = false;
        }
    }
}

impl StartFunction {
    /// Whether it may start at all; a dry run asks for nothing else.
    pub fn check(&self) -> Result<(), Refused> {
        let limit = if self.synchronous { SYNC_INPUT_BYTES_MAX } else { ASYNC_INPUT_BYTES_MAX };
        if self.input.as_ref().is_some_and(|input| input.len() > limit) {
            return Err(Refused::new(ErrorName::RequestTooLarge, format!("the payload has at most {limit} bytes")));
        }
        if self.tenant_id.as_ref().is_some_and(|id| !is_tenant_id(id)) {
            return Err(Refused::invalid("TenantId has 1 to 256 characters of [a-zA-Z0-9._:/=+-@ ]"));
        }
        self.client_context.as_deref().map_or(Ok(()), check_client_context)?;
        self.name.as_deref().map_or(Ok(()), check_name)
    }
}

/// In the published words.
fn check_client_context(text: &str) -> Result<(), Refused> {
    let refused = |message: String| Err(Refused::new(ErrorName::InvalidRequestContent, message));
    if text.len() > CLIENT_CONTEXT_BYTES_MAX {
        return refused(format!("Client context must be at most {CLIENT_CONTEXT_BYTES_MAX} bytes of Base64."));
    }
    let json = STANDARD.decode(text).ok().filter(|bytes| {
        let object = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(bytes);
        object.is_ok()
    });
    if json.is_none() {
        return refused("Client context must be a valid Base64-encoded JSON object.".to_owned());
    }
    Ok(())
}

pub(super) fn check_name(name: &str) -> Result<(), Refused> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if plain && (1..=64).contains(&name.len()) {
        return Ok(());
    }
    Err(Refused::invalid("DurableExecutionName has 1 to 64 characters of [a-zA-Z0-9-_]"))
}

/// What makes a name unique: one execution of it per tenant and function.
pub(super) fn name_key(tenant: &TenantId, function: &str, name: &str) -> Digest {
    Digest::of_parts(&["execution", tenant.as_str(), function, name], '|')
}
