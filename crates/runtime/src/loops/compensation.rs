//! Starts the run that undoes another one. Found by the dispatch that was written with that one's end; after a crash it is found
//! again, and the second time finds the run that the first has started.

use serde_json::{Map, Value};
use servo_canon::Digest;
use servo_entrypoint::{CompensationContext, FailedStepError, InvocationMetadata, InvocationMode};
use servo_machine::{Command, ExecutionCommand};
use servo_model::execution::Execution;
use servo_model::invocation::{Compensates, CompensationTrigger, EntrypointPin, Failure};
use servo_model::operation::{ErrorObject, OperationStatus, OperationType};
use servo_model::{RunState, TenantId};
use servo_store::{DispatchRow, Fence, Scope};

use super::inflight::Registered;
use super::join;
use crate::engine::{Error, Order, Patience};
use crate::executions::{Executions, Refused};
use crate::serverless::{Begin, failure_of};

pub(crate) async fn run(
    executions: Executions,
    row: DispatchRow,
    fence: Fence,
    owner: String,
    _registered: Registered,
) {
    if let Err(error) = compensate(&executions, &row, fence, &owner).await {
        tracing::warn!(request_id = %row.request_id, %error, "a run is not undone yet; it will be tried again");
    }
}

/// What is needed of the run that is undone.
struct Undone {
    handler: String,
    subject: String,
    pin: EntrypointPin,
    trigger: CompensationTrigger,
    round: u32,
    trace: Option<String>,
    context: CompensationContext,
}

/// Why it is tried again later.
#[derive(Debug, thiserror::Error)]
enum NotYet {
    #[error(transparent)]
    Engine(#[from] Error),
    #[error(transparent)]
    Refused(#[from] Refused),
}

async fn compensate(executions: &Executions, row: &DispatchRow, fence: Fence, owner: &str) -> Result<(), NotYet> {
    let engine = executions.engine();
    if let Some(undone) = engine.view(&Scope::System, &row.run_id, undone).await?
        && let Err(failure) = start(executions, row, &undone).await?
    {
        tell(executions, row, failure.to_error()).await?;
    }
    Ok(join::deliver(engine, row, fence, owner).await?)
}

/// The inner error says why the run can never be undone.
async fn start(executions: &Executions, row: &DispatchRow, undone: &Undone) -> Result<Result<(), Failure>, NotYet> {
    let found = executions.entrypoints().callable(&row.tenant, &undone.subject, &undone.handler).await;
    let loaded = match found.map_err(Error::from)? {
        Ok(loaded) => loaded,
        Err(failure) => return Ok(Err(failure)),
    };
    let params = serde_json::to_value(&undone.context).unwrap_or_default();
    if let Err(failure) = loaded.compiled.check_params(Some(&params)) {
        return Ok(Err(failure));
    }
    let begin = Begin {
        loaded: &loaded,
        tenant: row.tenant.clone(),
        subject: undone.subject.clone(),
        correlation_id: undone.pin.correlation_id.clone(),
        mode: InvocationMode::Async,
        params: params.to_string(),
        seconds_max: u64::MAX,
        dead_letter_grace_seconds: undone.pin.dead_letter_grace_seconds,
        parent: None,
        compensates: Some(Compensates { run_id: row.run_id.clone(), trigger: undone.trigger }),
        replay_of: None,
        trace: executions.engine().trace_below_run(&row.run_id, undone.trace.as_deref()),
    };
    let start = match executions.begin(begin).await {
        Ok(start) => start,
        Err(refused) if refused.is_fault() => return Err(refused.into()),
        Err(refused) => return Ok(Err(failure_of(refused))),
    };
    executions.engine().start_execution(start, Some(key(&row.tenant, row.run_id.as_str(), undone.round))).await?;
    Ok(Ok(()))
}

/// One run undoes one round.
fn key(tenant: &TenantId, run_id: &str, round: u32) -> Digest {
    Digest::of_parts(&["compensation", tenant.as_str(), run_id, &round.to_string()], '|')
}

async fn tell(executions: &Executions, row: &DispatchRow, error: ErrorObject) -> Result<(), Error> {
    let command = ExecutionCommand::Compensated { run_id: None, error: Some(error) };
    let command = Command::Execution(Box::new(command));
    let mut order = Order::new(Scope::System, row.run_id.clone(), command, "engine");
    order.patience = Patience::Background;
    match executions.engine().execute(order).await {
        Ok(_) | Err(Error::Refused(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn undone(state: &RunState) -> Option<Undone> {
    let execution = state.execution.as_deref()?;
    let pin = state.entrypoint()?;
    let compensation = execution.head.compensation.as_ref().filter(|compensation| !compensation.ended)?;
    let trigger = compensation.trigger;
    let handler = match trigger {
        CompensationTrigger::Failure => pin.on_failure.clone()?,
        CompensationTrigger::Cancellation => pin.on_cancel.clone()?,
    };
    let object = |text: Option<&str>| match text.and_then(|text| serde_json::from_str(text).ok()) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let error = execution.head.ended.as_ref().and_then(|ended| ended.error.as_ref());
    let context = CompensationContext {
        trigger,
        original_workflow_invocation_id: state.run_id.to_string(),
        failed_step_id: failed_step(execution),
        failed_step_error: (trigger == CompensationTrigger::Failure).then(|| step_error(error)),
        workflow_state_snapshot: snapshot(execution),
        timestamp: compensation.at,
        invocation_metadata: InvocationMetadata {
            entrypoint_id: pin.address.clone(),
            original_input: object(execution.head.start.input.as_deref()),
            tenant_id: state.tenant().map(ToString::to_string).unwrap_or_default(),
            correlation_id: Some(pin.correlation_id.clone()),
            started_at: execution.head.begun_at,
        },
    };
    let subject = state.context.as_ref().and_then(|context| context.triggered_by.clone()).unwrap_or_default();
    let trace = execution.head.start.trace.clone();
    Some(Undone { handler, subject, pin: pin.clone(), trigger, round: state.round, trace, context })
}

/// The step that failed, or the one that was open when the run was cancelled.
fn failed_step(execution: &Execution) -> String {
    let open = |status: OperationStatus| status != OperationStatus::Succeeded;
    let steps = execution.operations().iter().rev();
    let mut steps =
        steps.filter(|operation| operation.operation_type != OperationType::Context && open(operation.status));
    let found = steps.next().map(|operation| operation.name.clone().unwrap_or_else(|| operation.id.to_string()));
    found.unwrap_or_else(|| "unknown".to_owned())
}

fn step_error(error: Option<&ErrorObject>) -> FailedStepError {
    let failure = Failure::of(&error.cloned().unwrap_or_default());
    FailedStepError {
        error_type: failure.error_type_id,
        message: failure.message,
        error_metadata: (!failure.details.is_empty()).then_some(failure.details),
    }
}

/// The last checkpoint: what each step has given so far, by its name.
fn snapshot(execution: &Execution) -> Map<String, Value> {
    let done = execution.operations().iter().filter(|operation| {
        operation.operation_type != OperationType::Context && operation.status == OperationStatus::Succeeded
    });
    let results = done.map(|operation| {
        let name = operation.name.clone().unwrap_or_else(|| operation.id.to_string());
        let value = operation.result.as_deref().and_then(|text| serde_json::from_str(text).ok());
        (name, value.unwrap_or(Value::Null))
    });
    results.collect()
}
