//! Why a command was refused. Each has a code of the public table.

use servo_model::codes::{self, Code};
use servo_model::run::IllegalRunChange;
use servo_model::step::IllegalStepChange;
use servo_model::{RunStatus, StepId};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the run exists already")]
    Exists,
    #[error("no such run")]
    NoRun,
    #[error("no step `{0}` in this run")]
    NoStep(StepId),
    #[error("{0}")]
    RunState(#[from] IllegalRunChange),
    #[error("step `{step_id}`: {illegal}")]
    StepState { step_id: StepId, illegal: IllegalStepChange },
    #[error("the run has ended: it is {}", .0.as_str())]
    Closed(RunStatus),
    #[error("attempt {attempt} of step `{step_id}` was superseded")]
    Superseded { step_id: StepId, attempt: u32 },
    #[error("step `{step_id}` finished after the drain timeout of the pause")]
    Orphaned { step_id: StepId },
    #[error("the run is {} and starts no steps", .0.as_str())]
    NotRunning(RunStatus),
    #[error("step `{step_id}` waits for steps that it depends on")]
    NotReady { step_id: StepId },
    #[error("the run waits for approval")]
    NeedsApproval,
    #[error("the run does not wait for approval")]
    NoApprovalNeeded,
    #[error("step `{step_id}` is {status}, not FAILED; only a failed step is retried")]
    NotFailed { step_id: StepId, status: &'static str },
    #[error("{0}")]
    Denied(String),
    #[error("the run has reached its limit of {0} events")]
    EventLimit(u64),
    #[error("the run has reached its limit of {0} signals")]
    SignalLimit(u32),
    #[error("the run executes no function")]
    NoExecution,
    #[error("a function has no steps to retry or skip, and an execution that has ended stays ended")]
    NotForExecutions,
    #[error("a function neither waits nor is suspended; only a workflow does")]
    NeverWaits,
    /// The published wording, which SDKs compare.
    #[error("Invalid checkpoint token")]
    StaleToken,
    #[error("{0}")]
    Invalid(String),
    #[error("no operation `{0}` in this execution")]
    NoOperation(String),
    #[error("the callback is closed: it was answered, timed out, or its execution has ended")]
    CallbackClosed,
}

impl Refusal {
    pub(crate) fn invalid(message: &str) -> Self {
        Refusal::Invalid(message.to_owned())
    }

    pub fn code(&self) -> Code {
        match self {
            Refusal::NoRun => codes::RUN_NOT_FOUND,
            Refusal::NoStep(_) => codes::STEP_NOT_FOUND,
            Refusal::Exists
            | Refusal::RunState(_)
            | Refusal::StepState { .. }
            | Refusal::NotRunning(_)
            | Refusal::NotReady { .. }
            | Refusal::NeedsApproval
            | Refusal::NoApprovalNeeded
            | Refusal::NotFailed { .. }
            | Refusal::NoExecution
            | Refusal::NotForExecutions
            | Refusal::NeverWaits
            | Refusal::CallbackClosed => codes::ILLEGAL_TRANSITION,
            Refusal::StaleToken => codes::ATTEMPT_SUPERSEDED,
            Refusal::Invalid(_) => codes::SCHEMA_VALIDATION_FAILED,
            Refusal::NoOperation(_) => codes::STEP_NOT_FOUND,
            Refusal::Closed(_) => codes::RUN_CLOSED,
            Refusal::Superseded { .. } => codes::ATTEMPT_SUPERSEDED,
            Refusal::Orphaned { .. } => codes::ORPHANED_TASK,
            Refusal::Denied(_) => codes::FORBIDDEN,
            Refusal::EventLimit(_) | Refusal::SignalLimit(_) => codes::LIMIT_EXCEEDED,
        }
    }
}
