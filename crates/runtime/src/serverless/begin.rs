//! What the machine is told about a new run of an entrypoint.

use std::sync::Arc;

use servo_canon::Digest;
use servo_entrypoint::{EntrypointType, InvocationMode, pin};
use servo_machine::{Admission, StartExecution};
use servo_model::event::{ExecutionStarted, ParentOperation};
use servo_model::function::EXECUTION_SECONDS_MAX;
use servo_model::ids::Name;
use servo_model::invocation::Compensates;
use servo_model::plan::RunContext;
use servo_model::{RunId, TenantId};
use servo_wire::lambda::ErrorName;

use crate::entrypoints::Loaded;
use crate::executions::{Executions, Refused, Resolved};

/// One start, whoever asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Begin<'a> {
    pub loaded: &'a Loaded,
    pub tenant: TenantId,
    pub subject: String,
    pub correlation_id: String,
    pub mode: InvocationMode,
    /// As JSON.
    pub params: String,
    /// Executing time, if the tenant allows less than the entrypoint.
    pub seconds_max: u64,
    pub dead_letter_grace_seconds: u64,
    pub parent: Option<ParentOperation>,
    pub compensates: Option<Compensates>,
    pub replay_of: Option<RunId>,
    /// What it is part of; a trace begins with it otherwise.
    pub trace: Option<String>,
}

impl Executions {
    /// What a run of an entrypoint executes that refers to a function. It is pinned as well: its newest version now, which may
    /// be of another kind than the one that the entrypoint was registered over.
    pub(crate) async fn referred(&self, loaded: &Loaded) -> Result<Option<Resolved>, Refused> {
        let Some(reference) = loaded.refers_to() else { return Ok(None) };
        let function = Box::pin(self.resolve(&loaded.tenant, reference, None)).await?;
        check_kind(loaded, &function)?;
        Ok(Some(function))
    }

    /// `referred` is what the entrypoint refers to, if it does.
    pub(crate) fn begin(&self, begin: Begin<'_>, referred: Option<Resolved>) -> Result<Box<StartExecution>, Refused> {
        let (loaded, tenant) = (begin.loaded, begin.tenant);
        let definition = &loaded.entrypoint.definition;
        let traits = &definition.traits;
        let (function, version, durable, timeout_seconds, function_digest) = match referred {
            Some(function) => {
                let (name, version) = (function.name.to_string(), function.version.to_string());
                let spec = function.spec;
                (name, version, spec.durable, spec.execution_timeout_seconds, Some(function.digest))
            }
            None => {
                let workflow = loaded.kind == EntrypointType::Workflow;
                (loaded.id.clone(), definition.version.clone(), workflow, EXECUTION_SECONDS_MAX, None)
            }
        };
        let pin = pin::of(&loaded.entrypoint, begin.mode, &begin.correlation_id, begin.dead_letter_grace_seconds);
        let mut pin = pin.ok_or_else(|| Refused::invalid("the entrypoint is not registered"))?;
        pin.function_digest = function_digest;
        // Nobody waits for a replay, whatever its mode.
        let synchronous = begin.mode == InvocationMode::Sync && begin.replay_of.is_none();
        (pin.compensates, pin.replay_of) = (begin.compensates, begin.replay_of);
        let request_digest = Digest::of(begin.params.as_bytes());
        Ok(Box::new(StartExecution {
            start: Arc::new(ExecutionStarted {
                function,
                version,
                // Called by its id, which the engine fills in.
                name: String::new(),
                durable,
                timeout_seconds,
                invocation_timeout_seconds: traits.limits.timeout_seconds.min(begin.seconds_max).max(1),
                tenant_id: None,
                client_context: None,
                trace: Some(begin.trace.unwrap_or_else(|| self.engine().ids().traceparent())),
                parent: begin.parent,
                max_concurrent: u32::try_from(traits.limits.max_concurrent).ok(),
                synchronous,
                input: Some(begin.params),
                entrypoint: Some(Box::new(pin)),
                lineage: None,
            }),
            plan_ref: loaded.plan_ref.clone(),
            context: Arc::new(RunContext {
                tenant_id: tenant,
                project_id: Name::default_name(),
                environment_id: Name::default_name(),
                triggered_by: Some(begin.subject),
                trigger_source: None,
            }),
            request_digest: Some(request_digest),
            run_request_id: None,
            admission: Admission::Now,
        }))
    }
}

/// A function never waits and is never undone, and a durable one does both: as which of them it runs, the entrypoint has said.
fn check_kind(loaded: &Loaded, function: &Resolved) -> Result<(), Refused> {
    let is_workflow = loaded.kind == EntrypointType::Workflow;
    if is_workflow == function.spec.durable {
        return Ok(());
    }
    let (kind, fitting) = if is_workflow { ("workflow", "durable") } else { ("function", "plain") };
    let (other_kind, other) = if is_workflow { ("function", "plain") } else { ("workflow", "durable") };
    let (address, Resolved { name, version, .. }) = (&loaded.entrypoint.entrypoint_id, function);
    let message = format!(
        "the entrypoint `{address}` is a {kind}, and version {version} of the function `{name}`, which it refers to, is {other}; \
         publish a {fitting} version of `{name}`, or register a {other_kind} over it and call that"
    );
    Err(Refused::new(ErrorName::ResourceConflict, message))
}
