//! A run as callers see it, how it is started and what may be asked of it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servo_model::Timestamp;
use servo_model::invocation::CompensationTrigger;
use servo_model::listing::{OperationError, OperationSnapshot};
use servo_model::operation::OperationStatus;
pub use servo_model::waiting::Cause;

use super::{EntrypointId, InvocationId, InvocationMode, InvocationStatus, RuntimeErrorPayload, TenantId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationRecord {
    pub invocation_id: InvocationId,
    pub entrypoint_id: EntrypointId,
    pub entrypoint_version: String,
    pub tenant_id: TenantId,
    pub status: InvocationStatus,
    pub mode: InvocationMode,
    pub params: Value,
    pub result: Option<Value>,
    pub error: Option<RuntimeErrorPayload>,
    pub timestamps: InvocationTimestamps,
    pub observability: InvocationObservability,
    /// Why a run that has not ended does not go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<BlockedBy>,
    /// Before this time nothing happens by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_at: Option<Timestamp>,
    /// Who put the run into this store, if it came out of a file: then it says what the file said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_at: Option<Timestamp>,
    /// How undoing it went, if that was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensation: Option<CompensationRecord>,
    /// What a workflow has recorded, in the order in which it began. Told of one that is read by its id, not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationRecord>,
    /// How many there are, where not all are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_total: Option<usize>,
}

/// How undoing a run goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompensationRecord {
    pub trigger: CompensationTrigger,
    pub started_at: Timestamp,
    pub has_ended: bool,
    /// The run that undoes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
    /// Why it could not be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RuntimeErrorPayload>,
}

/// One thing that a run has recorded: a step, a wait, a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRecord {
    pub operation_id: String,
    /// `step`, `wait`, `signal`, `event`, `callback`, `invocation`, or the kind of a context such as `map`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub status: OperationStatus,
    /// The operation that this one is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Of a step, the one that runs among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When time alone will change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Of the last attempt that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationError>,
    /// The run that it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
}

impl From<OperationSnapshot> for OperationRecord {
    fn from(operation: OperationSnapshot) -> Self {
        Self {
            operation_id: operation.operation_id,
            kind: operation.kind,
            name: operation.name,
            status: operation.status,
            parent_id: operation.parent_id,
            attempts: operation.attempts,
            started_at: operation.started_at,
            ended_at: operation.ended_at,
            due_at: operation.due_at,
            error: operation.error,
            invocation_id: operation.run_id.map(|id| id.to_string()),
        }
    }
}

/// A signal that was taken, and the run as it is then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignalResult {
    #[serde(flatten)]
    pub record: InvocationRecord,
    /// Servers from before do not say.
    #[serde(default)]
    pub signal: SignalOutcome,
}

/// What became of a signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalOutcome {
    pub name: String,
    /// Nothing waits for it yet: it is kept until something does.
    pub kept: bool,
    /// The same for people, where there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One thing that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedBy {
    pub cause: Cause,
    /// Of the timer, the message or the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the cause alone does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The run that this one waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
    /// Since when, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvocationTimestamps {
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub suspended_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvocationObservability {
    pub correlation_id: String,
    pub trace_id: Option<String>,
    pub span_id: Option<String>,
    pub metrics: InvocationMetrics,
}

/// Measured values are `null` until the run ends; the limit is known from the start, and 0 when there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InvocationMetrics {
    pub duration_ms: Option<u64>,
    pub billed_duration_ms: Option<u64>,
    pub cpu_time_ms: Option<u64>,
    pub memory_limit_mb: u64,
    pub max_memory_used_mb: Option<u64>,
    pub step_count: Option<u64>,
}

/// The idempotency key is a header and never part of the body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationRequest {
    pub entrypoint_id: EntrypointId,
    /// Absent: the entrypoint's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<InvocationMode>,
    /// Absent: empty.
    #[serde(default = "empty")]
    pub params: Value,
    #[serde(default)]
    pub dry_run: bool,
    #[serde(skip)]
    pub idempotency_key: Option<String>,
}

fn empty() -> Value {
    Value::Object(Map::new())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationResult {
    pub record: InvocationRecord,
    /// The record was made up and is not kept.
    pub dry_run: bool,
    /// The record is the one of an earlier run.
    pub cached: bool,
    /// The idempotency key had started this run before. Told by the status of the answer, not in it.
    #[serde(skip)]
    pub repeated: bool,
    /// What the caller should know about the entrypoint that was called, such as that it is deprecated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What may be asked of a run. The last two are for a step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum InvocationControlAction {
    Cancel,
    Suspend,
    Resume,
    /// The same run again, with the same params.
    Retry,
    /// A new run with the same params.
    Replay,
    RetryStep {
        step_id: String,
    },
    SkipStep {
        step_id: String,
    },
}

impl InvocationControlAction {
    pub const NAMES: [&str; 7] = ["cancel", "suspend", "resume", "retry", "replay", "retry_step", "skip_step"];

    pub fn as_str(&self) -> &'static str {
        match self {
            InvocationControlAction::Cancel => "cancel",
            InvocationControlAction::Suspend => "suspend",
            InvocationControlAction::Resume => "resume",
            InvocationControlAction::Retry => "retry",
            InvocationControlAction::Replay => "replay",
            InvocationControlAction::RetryStep { .. } => "retry_step",
            InvocationControlAction::SkipStep { .. } => "skip_step",
        }
    }
}

/// A message to a workflow that waits for it. The id makes a repeated one harmless.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationSignal {
    pub signal_id: String,
    pub name: String,
    #[serde(default)]
    pub payload: Value,
}
