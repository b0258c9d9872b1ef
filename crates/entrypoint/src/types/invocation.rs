//! A run as callers see it, how it is started and what may be asked of it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servo_model::Timestamp;
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
