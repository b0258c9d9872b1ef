//! The body of each event type. Field names are the published spelling (camelCase).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use servo_canon::Digest;

use super::durable::{
    CallbackHeartbeat, CompensationEnded, CompensationStarted, ExecutionEnded, ExecutionStarted, HandlerInvoked,
    HandlerReturned, MessageReceived, OperationResolved, OperationUpdated, RunDeadLettered,
};
use crate::artifact::{StepError, check_artifacts};
use crate::contract::RuntimeEvent;
use crate::limits::{TEXT_CHARS_MAX, fits};
use crate::plan::{PlanRef, RunContext, check_document, check_version};
use crate::run::RunStatus;
use crate::step::StepStatus;
use crate::{ArtifactRef, Invalid, RunId, SignalId, StepId, Timestamp, integer};

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    RunQueued(Box<RunQueued>),
    RunApproved(RunApproved),
    RunStarted(Box<RunStarted>),
    StepStarted(StepStarted),
    StepCompleted(StepCompleted),
    StepFailed(StepFailed),
    StepSkipped(StepSkipped),
    SignalAccepted(SignalAccepted),
    SignalRejected(SignalRejected),
    RunPaused(RunPaused),
    RunResumed(RunResumed),
    RunCompleted(RunCompleted),
    RunFailed(RunFailed),
    RunCancelled(RunCancelled),
    /// Engine type: a retry made the next attempt of a step.
    StepRetryScheduled(StepRetryScheduled),
    /// Engine type: a lost attempt was handed out again; results of the earlier hand-over are refused.
    StepTakenOver(StepTakenOver),
    /// Engine type: in-flight steps outlived the drain timeout of a pause.
    DrainTimedOut(DrainTimedOut),
    /// Engine type: a step finished after the drain timeout and its result was refused, as configured.
    TaskOrphaned(TaskOrphaned),
    /// Engine types of durable executions.
    ExecutionStarted(Arc<ExecutionStarted>),
    HandlerInvoked(HandlerInvoked),
    HandlerReturned(HandlerReturned),
    OperationUpdated(Box<OperationUpdated>),
    OperationResolved(Box<OperationResolved>),
    CallbackHeartbeat(CallbackHeartbeat),
    ExecutionEnded(Box<ExecutionEnded>),
    /// Engine types of invocations.
    MessageReceived(Box<MessageReceived>),
    CompensationStarted(CompensationStarted),
    CompensationEnded(Box<CompensationEnded>),
    RunDeadLettered(RunDeadLettered),
    /// Engine type: what stands before it came out of a file.
    RunImported(RunImported),
    /// A fact of the runtime contract, on the system stream.
    Runtime(RuntimeEvent),
    /// A type this version does not know, kept as it came.
    Unknown(UnknownBody),
}

/// The published types, in the order of the contract.
pub const CANONICAL_TYPES: [&str; 14] = [
    "RunQueued",
    "RunApproved",
    "RunStarted",
    "StepStarted",
    "StepCompleted",
    "StepFailed",
    "StepSkipped",
    "SignalAccepted",
    "SignalRejected",
    "RunPaused",
    "RunResumed",
    "RunCompleted",
    "RunFailed",
    "RunCancelled",
];

fn one() -> u32 {
    1
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunQueued {
    pub status: RunStatus,
    /// The round: 1 when the run is created, one more for each retry of the whole run.
    #[serde(default = "one", deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub plan_ref: Arc<PlanRef>,
    pub context: Arc<RunContext>,
    /// The plan as it came in; absent in later rounds, which use the first one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_request_id: Option<String>,
    /// Digest of the request, so that the same id with another request is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_digest: Option<Digest>,
    #[serde(default)]
    pub approval_required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl PartialEq for RunQueued {
    fn eq(&self, other: &Self) -> bool {
        let raw = |queued: &Self| queued.plan.as_ref().map(|plan| plan.get().to_owned());
        (self.status, self.logical_attempt_id, &self.plan_ref, &self.context, raw(self))
            == (other.status, other.logical_attempt_id, &other.plan_ref, &other.context, raw(other))
            && (&self.run_request_id, self.request_digest, self.approval_required, self.not_before, &self.reason)
                == (
                    &other.run_request_id,
                    other.request_digest,
                    other.approval_required,
                    other.not_before,
                    &other.reason,
                )
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunApproved {
    pub status: RunStatus,
    #[serde(default = "one", deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    pub status: RunStatus,
    #[serde(default = "one", skip_serializing_if = "is_one", deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub engine_run_ref: String,
    pub engine_type: String,
    pub plan_ref: Arc<PlanRef>,
    pub context: Arc<RunContext>,
    pub started_at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(n: &u32) -> bool {
    *n == 1
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepStarted {
    pub step_id: StepId,
    pub status: StepStatus,
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "integer::some_u32")]
    pub engine_attempt_id: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepCompleted {
    pub step_id: StepId,
    pub status: StepStatus,
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "integer::some_u32")]
    pub engine_attempt_id: Option<u32>,
    #[serde(default)]
    pub artifacts: Vec<ArtifactRef>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepFailed {
    pub step_id: StepId,
    pub status: StepStatus,
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "integer::some_u32")]
    pub engine_attempt_id: Option<u32>,
    pub error: StepError,
}

/// Why a step was not run. After an operator's skip the dependents go on; after an upstream failure they are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SkipCause {
    UpstreamFailed,
    Operator,
    Condition,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSkipped {
    pub step_id: StepId,
    pub status: StepStatus,
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub cause: SkipCause,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_step_id: Option<StepId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SignalType {
    Pause,
    Resume,
    Cancel,
    RetryStep,
    SkipStep,
    Approve,
    RetryRun,
    /// A message for a workflow that waits for it.
    Message,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalAccepted {
    pub signal_id: SignalId,
    pub signal_type: SignalType,
    /// Which accepted signal of the run this is.
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub decided_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalRejected {
    pub signal_id: SignalId,
    pub signal_type: SignalType,
    /// Which rejected signal of the run this is.
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub decided_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    pub code: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPaused {
    pub status: RunStatus,
    /// Which pause of the run this is.
    #[serde(default = "one", deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When waiting for in-flight steps ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResumed {
    pub status: RunStatus,
    /// Which resume of the run this is.
    #[serde(default = "one", deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCompleted {
    pub status: RunStatus,
    #[serde(default = "one", deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
}

/// The first failure that the run could not go on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RootCause {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFailed {
    pub status: RunStatus,
    #[serde(default = "one", deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub root_cause: RootCause,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCancelled {
    pub status: RunStatus,
    #[serde(default = "one", deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRetryScheduled {
    pub step_id: StepId,
    /// The new attempt.
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepTakenOver {
    pub step_id: StepId,
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    /// The new hand-over.
    #[serde(deserialize_with = "integer::u32")]
    pub engine_attempt_id: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainTimedOut {
    /// Which pause of the run timed out.
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    #[serde(deserialize_with = "integer::u32")]
    pub in_flight: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskOrphaned {
    pub step_id: StepId,
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "integer::some_u32")]
    pub engine_attempt_id: Option<u32>,
}

/// The run came from a file, whose events nobody has vouched for: they say what the file said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunImported {
    /// Which import of the run this is.
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub imported_by: String,
    /// What the run was called in the file, where it has another id here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_run_id: Option<RunId>,
}

/// An event of a type this version does not know.
#[derive(Debug, Clone)]
pub struct UnknownBody {
    pub event_type: String,
    pub payload: Box<RawValue>,
}

impl PartialEq for UnknownBody {
    fn eq(&self, other: &Self) -> bool {
        self.event_type == other.event_type && self.payload.get() == other.payload.get()
    }
}

fn expect_status<S: PartialEq + Copy + Serialize>(found: S, wanted: S) -> Result<(), Invalid> {
    if found == wanted {
        return Ok(());
    }
    let wanted = serde_json::to_string(&wanted).unwrap_or_default();
    Err(Invalid::new("status", format!("is {wanted} in this event")))
}

fn check_attempt(field: &str, number: u32) -> Result<(), Invalid> {
    if number == 0 { Err(Invalid::new(field, "starts at 1")) } else { Ok(()) }
}

fn check_text(field: &str, text: &str) -> Result<(), Invalid> {
    if !fits(text, TEXT_CHARS_MAX) {
        return Err(Invalid::new(field, format!("has at most {TEXT_CHARS_MAX} characters")));
    }
    Ok(())
}

impl EventBody {
    /// The step (or `RUN`) and number that enter the idempotency key.
    pub fn key_parts(&self) -> (&str, u32) {
        use EventBody as B;
        match self {
            B::RunQueued(b) => ("RUN", b.logical_attempt_id),
            B::RunApproved(b) => ("RUN", b.logical_attempt_id),
            B::RunStarted(b) => ("RUN", b.logical_attempt_id),
            B::StepStarted(b) => (b.step_id.as_str(), b.logical_attempt_id),
            B::StepCompleted(b) => (b.step_id.as_str(), b.logical_attempt_id),
            B::StepFailed(b) => (b.step_id.as_str(), b.logical_attempt_id),
            B::StepSkipped(b) => (b.step_id.as_str(), b.logical_attempt_id),
            B::SignalAccepted(b) => ("RUN", b.logical_attempt_id),
            B::SignalRejected(b) => ("RUN", b.logical_attempt_id),
            B::RunPaused(b) => ("RUN", b.logical_attempt_id),
            B::RunResumed(b) => ("RUN", b.logical_attempt_id),
            B::RunCompleted(b) => ("RUN", b.logical_attempt_id),
            B::RunFailed(b) => ("RUN", b.logical_attempt_id),
            B::RunCancelled(b) => ("RUN", b.logical_attempt_id),
            B::StepRetryScheduled(b) => (b.step_id.as_str(), b.logical_attempt_id),
            // Engine attempts start again with each logical attempt, so both numbers are needed to tell take-overs apart.
            B::StepTakenOver(b) => (b.step_id.as_str(), hand_over(b.logical_attempt_id, b.engine_attempt_id)),
            B::DrainTimedOut(b) => ("RUN", b.logical_attempt_id),
            // The first hand-over's orphan keeps the key that logs have from before; a later hand-over's is another fact.
            B::TaskOrphaned(b) => match b.engine_attempt_id {
                None | Some(1) => (b.step_id.as_str(), b.logical_attempt_id),
                Some(engine) => (b.step_id.as_str(), hand_over(b.logical_attempt_id, engine)),
            },
            B::ExecutionStarted(_) => ("RUN", 1),
            B::ExecutionEnded(b) => ("RUN", b.logical_attempt_id),
            B::MessageReceived(b) => ("RUN", b.logical_attempt_id),
            B::CompensationStarted(b) => ("RUN", b.logical_attempt_id),
            B::CompensationEnded(b) => ("RUN", b.logical_attempt_id),
            B::RunDeadLettered(b) => ("RUN", b.logical_attempt_id),
            B::RunImported(b) => ("RUN", b.logical_attempt_id),
            B::HandlerInvoked(b) => ("RUN", b.invocation),
            B::HandlerReturned(b) => ("RUN", b.invocation),
            B::OperationUpdated(b) => (b.operation_id.as_str(), b.occurrence),
            B::OperationResolved(b) => (b.operation_id.as_str(), b.occurrence),
            B::CallbackHeartbeat(b) => (b.operation_id.as_str(), b.occurrence),
            B::Runtime(_) | B::Unknown(_) => ("RUN", 1),
        }
    }

    /// What the published schema asks for beyond the types.
    pub fn check(&self) -> Result<(), Invalid> {
        use EventBody as B;
        match self {
            B::RunQueued(b) => {
                expect_status(b.status, RunStatus::Pending)?;
                check_attempt("logicalAttemptId", b.logical_attempt_id)?;
                b.plan_ref.check().map_err(|e| e.inside("planRef"))?;
                b.plan.as_ref().map_or(Ok(()), |plan| check_document(plan.get())).map_err(|e| e.inside("plan"))?;
                b.reason.as_deref().map_or(Ok(()), |text| check_text("reason", text))
            }
            B::RunApproved(b) => {
                expect_status(b.status, RunStatus::Approved)?;
                check_attempt("logicalAttemptId", b.logical_attempt_id)
            }
            B::RunStarted(b) => {
                expect_status(b.status, RunStatus::Running)?;
                check_attempt("logicalAttemptId", b.logical_attempt_id)?;
                b.plan_ref.check().map_err(|e| e.inside("planRef"))?;
                check_version("engineType", &b.engine_type)?;
                check_text("engineRunRef", &b.engine_run_ref)
            }
            B::StepStarted(b) => {
                expect_status(b.status, StepStatus::Running)?;
                check_attempts(b.logical_attempt_id, b.engine_attempt_id)
            }
            B::StepCompleted(b) => {
                expect_status(b.status, StepStatus::Success)?;
                check_attempts(b.logical_attempt_id, b.engine_attempt_id)?;
                check_artifacts(&b.artifacts).map_err(|e| e.inside("artifacts"))
            }
            B::StepFailed(b) => {
                expect_status(b.status, StepStatus::Failed)?;
                check_attempts(b.logical_attempt_id, b.engine_attempt_id)?;
                b.error.check().map_err(|e| e.inside("error"))
            }
            B::StepSkipped(b) => {
                expect_status(b.status, StepStatus::Skipped)?;
                check_attempt("logicalAttemptId", b.logical_attempt_id)?;
                check_text("reason", &b.reason)
            }
            B::SignalAccepted(b) => {
                check_attempt("logicalAttemptId", b.logical_attempt_id)?;
                b.reason.as_deref().map_or(Ok(()), |text| check_text("reason", text))
            }
            B::SignalRejected(b) => {
                check_attempt("logicalAttemptId", b.logical_attempt_id)?;
                check_text("reason", &b.reason)
            }
            B::RunPaused(b) => {
                expect_status(b.status, RunStatus::Paused)?;
                check_attempt("logicalAttemptId", b.logical_attempt_id)?;
                b.reason.as_deref().map_or(Ok(()), |text| check_text("reason", text))
            }
            B::RunResumed(b) => {
                expect_status(b.status, RunStatus::Running)?;
                check_attempt("logicalAttemptId", b.logical_attempt_id)
            }
            B::RunCompleted(b) => {
                expect_status(b.status, RunStatus::Completed)?;
                check_attempt("logicalAttemptId", b.logical_attempt_id)
            }
            B::RunFailed(b) => {
                expect_status(b.status, RunStatus::Failed)?;
                check_attempt("logicalAttemptId", b.logical_attempt_id)?;
                check_text("rootCause/message", &b.root_cause.message)
            }
            B::RunCancelled(b) => {
                expect_status(b.status, RunStatus::Cancelled)?;
                check_attempt("logicalAttemptId", b.logical_attempt_id)?;
                b.reason.as_deref().map_or(Ok(()), |text| check_text("reason", text))
            }
            B::StepRetryScheduled(b) => check_attempt("logicalAttemptId", b.logical_attempt_id),
            B::StepTakenOver(b) => check_attempts(b.logical_attempt_id, Some(b.engine_attempt_id)),
            B::DrainTimedOut(b) => check_attempt("logicalAttemptId", b.logical_attempt_id),
            B::TaskOrphaned(b) => check_attempts(b.logical_attempt_id, b.engine_attempt_id),
            // Made by our own decisions from fields that the API's rules have checked.
            B::ExecutionStarted(_)
            | B::HandlerInvoked(_)
            | B::HandlerReturned(_)
            | B::OperationUpdated(_)
            | B::OperationResolved(_)
            | B::CallbackHeartbeat(_)
            | B::ExecutionEnded(_)
            | B::MessageReceived(_)
            | B::CompensationStarted(_)
            | B::CompensationEnded(_)
            | B::RunDeadLettered(_)
            | B::RunImported(_) => Ok(()),
            B::Runtime(_) | B::Unknown(_) => Ok(()),
        }
    }
}

/// One number for one hand-over of one attempt.
fn hand_over(logical: u32, engine: u32) -> u32 {
    (logical << 16) ^ engine
}

fn check_attempts(logical: u32, engine: Option<u32>) -> Result<(), Invalid> {
    check_attempt("logicalAttemptId", logical)?;
    engine.map_or(Ok(()), |number| check_attempt("engineAttemptId", number))
}
