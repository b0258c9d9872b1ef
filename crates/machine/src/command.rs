//! Commands: requests to change a run. Each may be refused.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use servo_canon::Digest;
use servo_model::event::SignalType;
use servo_model::{ArtifactRef, PlanRef, RunContext, SignalId, StepError, StepId, Timestamp};

use crate::admit::Admission;
use crate::execution::{ExecutionCommand, StartExecution};

#[derive(Debug, Clone)]
pub enum Command {
    /// Creates the run, and starts it if it is admitted at once.
    Start(Box<StartRun>),
    /// Creates the run of a function.
    StartExecution(Box<StartExecution>),
    /// A command about a function's execution.
    Execution(Box<ExecutionCommand>),
    /// Starts a run that waited in the queue.
    Begin,
    /// An attempt is handed to an adapter. `occurred_at` is set when the fact could not be recorded in time and is
    /// recorded late.
    StartStep {
        step_id: StepId,
        attempt: u32,
        occurred_at: Option<Timestamp>,
    },
    /// A lost attempt is handed out again.
    TakeOver {
        step_id: StepId,
        attempt: u32,
    },
    /// The adapter's report.
    FinishStep {
        step_id: StepId,
        attempt: u32,
        engine_attempt: u32,
        result: StepResult,
    },
    Signal(Signal),
    /// Time has passed.
    Tick,
    /// Ends the run whatever it does.
    Terminate {
        by: String,
        reason: String,
    },
}

#[derive(Debug, Clone)]
pub struct StartRun {
    pub plan_ref: Arc<PlanRef>,
    /// The plan as it came in; already checked by whoever parsed it.
    pub plan: Box<RawValue>,
    pub context: Arc<RunContext>,
    pub run_request_id: Option<String>,
    pub request_digest: Option<Digest>,
    pub approval_required: bool,
    pub admission: Admission,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StepResult {
    Success { artifacts: Vec<ArtifactRef> },
    Failure { error: StepError },
}

/// An operator's or program's wish. The same id again changes nothing.
#[derive(Debug, Clone)]
pub struct Signal {
    pub signal_id: SignalId,
    pub kind: SignalKind,
    pub by: String,
    pub reason: Option<String>,
    /// Set when the sender may not do this: recorded as rejected, with this reason.
    pub denied: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalKind {
    Pause,
    Resume,
    Cancel,
    Approve,
    RetryRun,
    RetryStep(StepId),
    SkipStep(StepId),
    /// Something that a workflow waits for, as JSON.
    Message {
        name: String,
        payload: Option<String>,
    },
}

impl SignalKind {
    pub fn signal_type(&self) -> SignalType {
        match self {
            SignalKind::Pause => SignalType::Pause,
            SignalKind::Resume => SignalType::Resume,
            SignalKind::Cancel => SignalType::Cancel,
            SignalKind::Approve => SignalType::Approve,
            SignalKind::RetryRun => SignalType::RetryRun,
            SignalKind::RetryStep(_) => SignalType::RetryStep,
            SignalKind::SkipStep(_) => SignalType::SkipStep,
            SignalKind::Message { .. } => SignalType::Message,
        }
    }

    pub fn step_id(&self) -> Option<&StepId> {
        match self {
            SignalKind::RetryStep(step) | SignalKind::SkipStep(step) => Some(step),
            SignalKind::Pause
            | SignalKind::Resume
            | SignalKind::Cancel
            | SignalKind::Approve
            | SignalKind::RetryRun
            | SignalKind::Message { .. } => None,
        }
    }
}

/// Configuration that decisions depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// How long a paused run waits for steps in flight.
    pub drain_timeout_ms: u64,
    /// What to do with a result that comes after the drain timeout.
    pub late_results: LateResults,
    pub events_per_run_max: u64,
    /// Invocations of a handler that may fail in a row before its execution does.
    pub invocation_failures_max: u32,
    /// The pause before the third try, doubled with each that follows. The second comes at once.
    pub invocation_backoff_ms: u64,
}

/// The contract's two options for a task that finishes after the drain timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LateResults {
    /// Option A: the result counts as any other.
    #[default]
    Accept,
    /// Option B: refused with `ORPHANED_TASK` and recorded for audit; the step runs again after a resume.
    Reject,
}

impl Policy {
    pub fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.drain_timeout_ms)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            drain_timeout_ms: 5 * 60 * 1_000,
            late_results: LateResults::Accept,
            events_per_run_max: servo_model::limits::Limits::default().events_per_run_max,
            // About six minutes: a handler may be down while it is deployed.
            invocation_failures_max: 12,
            invocation_backoff_ms: 1_000,
        }
    }
}
