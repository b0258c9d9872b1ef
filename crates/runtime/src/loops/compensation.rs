//! Starts the run that undoes another one. Found by the dispatch that was written with that one's end; after a crash it is found
//! again, and the second time finds the run that the first has started.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use servo_canon::Digest;
use servo_entrypoint::{CompensationContext, FailedStepError, InvocationMetadata, InvocationMode, OwnerType};
use servo_machine::{Command, ExecutionCommand};
use servo_model::audit::first_id_at;
use servo_model::event::Lineage;
use servo_model::execution::{Execution, Operation};
use servo_model::invocation::{Compensates, CompensationTrigger, EntrypointPin, ErrorCategory, Failure, errors};
use servo_model::operation::{ErrorObject, ExecutionStatus, OperationStatus, OperationType};
use servo_model::{AuditEntry, AuditOutcome, EventId, RunId, RunState, TenantId};
use servo_store::{DispatchRow, Fence, Scope};

use super::inflight::Registered;
use super::join;
use crate::engine::{Error, Order, Patience};
use crate::entrypoints::{Loaded, from_inside};
use crate::executions::{Executions, Refused, families};
use crate::serverless::{Begin, failure_of};

/// Who acts here, in front of whom it acts for.
const ACTOR: &str = "system:compensation:";

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
    /// The registration that it is a run of.
    entrypoint: String,
    subject: String,
    pin: EntrypointPin,
    trigger: CompensationTrigger,
    round: u32,
    trace: Option<String>,
    lineage: Lineage,
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
    if let Some(undone) = engine.view(&Scope::System, &row.run_id, undone).await? {
        let started = start(executions, row, &undone).await?;
        let entry = entry(row, &undone, &started);
        engine.store().put_audit(vec![Arc::new(entry)]).await.map_err(Error::from)?;
        if let Err(failure) = started {
            tell(executions, row, failure.to_error()).await?;
        }
    }
    Ok(join::deliver(engine, row, fence, owner).await?)
}

/// What the audit log says: nobody has asked for this run, so its actor is the part of the system that has started it, with the
/// identity that it acts under. However often the dispatch is found, it is one entry: its id is of the round that is undone.
fn entry(row: &DispatchRow, undone: &Undone, started: &Result<RunId, Failure>) -> AuditEntry {
    let at = undone.context.timestamp;
    let mut id = *first_id_at(at).as_bytes();
    id[6..].copy_from_slice(&key(&row.tenant, row.run_id.as_str(), undone.round).as_bytes()[..10]);
    (id[6], id[8]) = ((id[6] & 0x0f) | 0x70, (id[8] & 0x3f) | 0x80);
    let (object, outcome, reason) = match started {
        Ok(run_id) => (run_id, AuditOutcome::Allowed, None),
        Err(failure) => (&row.run_id, AuditOutcome::Failed, Some(failure.error_type_id.clone())),
    };
    AuditEntry {
        id: EventId::from_bytes(id),
        at,
        tenant_id: row.tenant.clone(),
        actor: format!("{ACTOR}{}", undone.subject),
        roles: Vec::new(),
        action: "invocation.compensate".to_owned(),
        object_kind: "run".to_owned(),
        object_id: object.to_string(),
        outcome,
        correlation_id: undone.pin.correlation_id.clone(),
        reason,
        source: None,
        count: 1,
    }
    .clipped()
}

/// The inner error says why the run can never be undone.
async fn start(executions: &Executions, row: &DispatchRow, undone: &Undone) -> Result<Result<RunId, Failure>, NotYet> {
    let loaded = match handler(executions, row, undone).await.map_err(Error::from)? {
        Ok(loaded) => loaded,
        Err(failure) => return Ok(Err(failure)),
    };
    // One level more than a run may have that starts others, so that each of those can be undone; but not for ever, where what
    // undoes a run fails and is undone itself.
    let (levels_max, _) = executions.engine().config().families.of(&row.tenant);
    if undone.lineage.level > levels_max.saturating_add(1) {
        return Ok(Err(families::too_deep(levels_max)));
    }
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
    let referred = executions.referred(&loaded).await;
    let mut start = match referred.and_then(|referred| executions.begin(begin, referred)) {
        Ok(start) => start,
        Err(refused) if refused.is_fault() => return Err(refused.into()),
        Err(refused) => return Ok(Err(failure_of(refused))),
    };
    start.belong_to(undone.lineage.clone());
    let key = key(&row.tenant, row.run_id.as_str(), undone.round);
    match executions.engine().start_execution(start, Some(key), (None, None), None).await {
        Ok((run_id, _)) => Ok(Ok(run_id)),
        // It will not get smaller.
        Err(Error::Store(servo_store::Error::Limit { what, limit })) => Ok(Err(too_large(what, limit))),
        Err(error) => Err(error.into()),
    }
}

fn too_large(what: &str, limit: u64) -> Failure {
    let message = format!("what the handler has to know is too large: {what} exceeds the limit of {limit} bytes");
    Failure::new(errors::RESOURCE_LIMIT, ErrorCategory::ResourceLimit, message)
}

/// The handler as whoever started the run sees it, or else as the owner of the workflow does: a workflow that is shared is undone
/// by what its owner keeps.
async fn handler(
    executions: &Executions,
    row: &DispatchRow,
    undone: &Undone,
) -> Result<Result<Arc<Loaded>, Failure>, servo_store::Error> {
    let entrypoints = executions.entrypoints();
    let correlation_id = &undone.pin.correlation_id;
    let found =
        entrypoints.callable(&from_inside(&row.tenant, &undone.subject, correlation_id), &undone.handler).await?;
    let Err(failure) = found else { return Ok(found) };
    match entrypoints.current(&undone.entrypoint).await? {
        Some(workflow) if workflow.owner.owner_type == OwnerType::User && workflow.tenant == row.tenant => {
            let owner = from_inside(&row.tenant, &workflow.owner.id, correlation_id);
            entrypoints.callable(&owner, &undone.handler).await
        }
        _ => Ok(Err(failure)),
    }
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
    let lineage = Lineage::of_undoing(&state.run_id, state.lineage());
    let entrypoint = state.plan_ref.as_ref().map(|plan| plan.plan_id.to_string()).unwrap_or_default();
    Some(Undone {
        handler,
        entrypoint,
        subject,
        pin: pin.clone(),
        trigger,
        round: state.round,
        trace,
        lineage,
        context,
    })
}

/// The step that failed the run, or the one that was active when the run was cancelled or ran out of time. Whoever undoes the
/// run goes backwards from here, so where no step is to blame it is the last that was begun: nothing is left out.
fn failed_step(execution: &Execution) -> String {
    let steps: Vec<&Operation> = steps(execution).collect();
    let ended = execution.head.ended.as_ref();
    let error = ended.and_then(|ended| ended.error.as_ref());
    let is_cut_short = ended.is_some_and(|ended| match ended.status {
        ExecutionStatus::TimedOut | ExecutionStatus::Stopped => true,
        _ => error.is_some_and(|error| Failure::of(error).category == ErrorCategory::Timeout),
    });
    let is_blamed =
        |number: &usize| error.is_some_and(|error| is_same(steps[*number], error)) && !went_on(&steps, *number);
    let blamed = (0..steps.len()).rev().find(is_blamed);
    let active = || steps.iter().rposition(|step| is_cut_short && !step.status.is_terminal());
    let last = steps.len().checked_sub(1);
    let found = blamed.or_else(active).or(last);
    found.map_or_else(|| "unknown".to_owned(), |number| name_of(steps[number]))
}

fn steps(execution: &Execution) -> impl Iterator<Item = &Operation> {
    execution.operations().iter().filter(|operation| operation.operation_type != OperationType::Context)
}

fn name_of(step: &Operation) -> String {
    step.name.clone().unwrap_or_else(|| step.id.to_string())
}

/// Whether a step has failed with this error. Handlers may wrap what a step has failed with; the message stays.
fn is_same(step: &Operation, error: &ErrorObject) -> bool {
    step.status.is_terminal()
        && step.status != OperationStatus::Succeeded
        && step.error.as_ref().is_some_and(|own| own.error_message == error.error_message)
}

/// Whether a later step was begun when this one had ended: then the run had lived through its end.
fn went_on(steps: &[&Operation], number: usize) -> bool {
    let ended_at = steps[number].ended_at;
    steps[number + 1..].iter().any(|later| ended_at.is_none_or(|ended_at| later.started_at >= ended_at))
}

fn step_error(error: Option<&ErrorObject>) -> FailedStepError {
    let failure = Failure::of(&error.cloned().unwrap_or_default());
    FailedStepError {
        error_type: failure.error_type_id,
        message: failure.message,
        error_metadata: (!failure.details.is_empty()).then_some(failure.details),
    }
}

/// The last checkpoint: what each step has given so far, by its name. Steps that share a name have a list, in the order in
/// which they were begun. A result that is no JSON is given as text.
fn snapshot(execution: &Execution) -> Map<String, Value> {
    let mut results: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for step in steps(execution).filter(|step| step.status == OperationStatus::Succeeded) {
        let value = step.result.as_deref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.into()));
        results.entry(name_of(step)).or_default().push(value.unwrap_or(Value::Null));
    }
    let one_or_all = |mut values: Vec<Value>| match values.len() {
        1 => values.remove(0),
        _ => Value::Array(values),
    };
    results.into_iter().map(|(name, values)| (name, one_or_all(values))).collect()
}
