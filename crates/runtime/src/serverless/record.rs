//! A run as the API shows it.

use serde_json::Value;
use servo_entrypoint::{
    CompensationRecord, InvocationMetrics, InvocationObservability, InvocationRecord, InvocationStatus,
    InvocationTimestamps, RuntimeErrorPayload,
};
use servo_model::execution::{Compensation, Execution};
use servo_model::invocation::{EntrypointKind, EntrypointPin};
use servo_model::listing;
use servo_model::operation::{ExecutionStatus, OperationType};
use servo_model::waiting::earliest_at;
use servo_model::{RunState, Timestamp, TraceContext};

use super::blocked;

/// `None` for a run that is no invocation.
pub(crate) fn record(state: &RunState) -> Option<InvocationRecord> {
    let execution = state.execution.as_deref()?;
    let pin = state.entrypoint()?;
    let head = &execution.head;
    let finished_at = state.completed_at.filter(|_| state.status.is_terminal());
    let (result, error) = outcome(execution);
    let blocked_by = blocked::blocked_by(state, execution);
    let (trace_id, span_id) = trace(head.start.trace.as_deref());
    Some(InvocationRecord {
        invocation_id: state.run_id.to_string(),
        entrypoint_id: pin.address.clone(),
        entrypoint_version: state.plan_version().to_owned(),
        tenant_id: state.tenant().map(ToString::to_string).unwrap_or_default(),
        status: state.visible(),
        mode: pin.mode,
        params: json(head.start.input.as_deref()).unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        result,
        error,
        timestamps: InvocationTimestamps {
            created_at: state.run_id.created_at().or(state.queued_at).unwrap_or(head.started_at),
            started_at: head.begun_at,
            suspended_at: head.suspended_at,
            finished_at,
        },
        observability: InvocationObservability {
            correlation_id: pin.correlation_id.clone(),
            trace_id,
            span_id,
            metrics: metrics(execution, pin, finished_at),
        },
        earliest_at: earliest_at(state, execution),
        blocked_by,
        imported_by: state.imported.as_ref().map(|imported| imported.by.clone()),
        imported_at: state.imported.as_ref().map(|imported| imported.at),
        compensation: head.compensation.as_ref().map(compensation),
        operations: Vec::new(),
        operations_total: None,
    })
}

/// The same with its operations, for whoever reads one run.
pub(crate) fn whole(state: &RunState) -> Option<InvocationRecord> {
    let mut record = record(state)?;
    let (operations, total) = listing::list(state.execution.as_deref()?);
    record.operations_total = (operations.len() < total).then_some(total);
    record.operations = operations.into_iter().map(Into::into).collect();
    Some(record)
}

fn compensation(undoing: &Compensation) -> CompensationRecord {
    CompensationRecord {
        trigger: undoing.trigger,
        started_at: undoing.at,
        has_ended: undoing.ended,
        invocation_id: undoing.run_id.as_ref().map(ToString::to_string),
        error: undoing.error.as_ref().map(RuntimeErrorPayload::of),
    }
}

fn json(text: Option<&str>) -> Option<Value> {
    text.and_then(|text| serde_json::from_str(text).ok())
}

fn outcome(execution: &Execution) -> (Option<Value>, Option<RuntimeErrorPayload>) {
    let Some(ended) = &execution.head.ended else { return (None, None) };
    let error = || ended.error.clone().unwrap_or_default();
    match ended.status {
        ExecutionStatus::Succeeded => (json(ended.result.as_deref()).filter(|value| !value.is_null()), None),
        ExecutionStatus::Running => (None, None),
        ExecutionStatus::Failed | ExecutionStatus::TimedOut | ExecutionStatus::Stopped => {
            (None, Some(RuntimeErrorPayload::of(&error())))
        }
    }
}

/// Measured values are known at the end.
fn metrics(execution: &Execution, pin: &EntrypointPin, finished_at: Option<Timestamp>) -> InvocationMetrics {
    let head = &execution.head;
    let mut metrics = InvocationMetrics { memory_limit_mb: pin.memory_limit_mb, ..InvocationMetrics::default() };
    let Some(finished_at) = finished_at else { return metrics };
    let steps = execution.operations().iter().filter(|operation| operation.operation_type == OperationType::Step);
    metrics.duration_ms = Some(head.begun_at.map_or(0, |begun| millis_between(begun, finished_at)));
    metrics.billed_duration_ms = Some(head.executed_ms);
    metrics.cpu_time_ms = head.cpu_ms;
    metrics.max_memory_used_mb = head.memory_mb.map(Into::into);
    metrics.step_count = Some(match pin.kind {
        // As a whole, one step.
        EntrypointKind::Function => u64::from(head.begun_at.is_some()),
        EntrypointKind::Workflow => steps.count() as u64,
    });
    metrics
}

pub(super) fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millis() - from.as_millis()).unwrap_or(0)
}

/// The ids of the trace and of the span in it.
fn trace(text: Option<&str>) -> (Option<String>, Option<String>) {
    let context = text.and_then(TraceContext::parse);
    (context.map(TraceContext::trace_id), context.map(TraceContext::span_id))
}

/// Whether a synchronous caller has waited long enough.
pub(super) fn is_settled(status: InvocationStatus) -> bool {
    !matches!(status, InvocationStatus::Queued | InvocationStatus::Running)
}
