//! Bodies of the engine events of durable executions: a handler that is invoked, and the operations it records.
//!
//! One event per fact: a step whose START and end come in one call is one event, as is a wait, a callback's answer or an
//! invocation's end. The service's history is a projection of these (`crate::execution::history`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::invocation::{CompensationTrigger, EntrypointPin};
use crate::operation::{ErrorObject, ExecutionStatus, OperationAction, OperationStatus, OperationType};
use crate::{RunId, SignalId, Timestamp, integer};

/// The run executes a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionStarted {
    pub function: String,
    pub version: String,
    pub name: String,
    /// A plain function gets its input as it is and cannot checkpoint.
    pub durable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    pub timeout_seconds: u64,
    /// How long one invocation may take.
    pub invocation_timeout_seconds: u64,
    /// The caller's tenant in the API's sense, passed on to the handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// What the caller says about itself, in base64 as it came, passed on to the handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Set when another execution waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentOperation>,
    /// Invocations of the function at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// The caller waits for the answer, so its result may be larger.
    #[serde(default)]
    pub synchronous: bool,
    /// Set when the run is one of an entrypoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<Box<EntrypointPin>>,
    /// Set when another run has started this one. A run without it is a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<Lineage>>,
}

/// Where a run stands among runs that start runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lineage {
    /// The run with which it began. All that is below it is bounded together.
    pub root: RunId,
    /// A root has 1, what it starts has 2, and so on.
    #[serde(deserialize_with = "integer::u32")]
    pub level: u32,
    /// The runs whose cancellation reaches this one, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<RunId>,
}

impl Lineage {
    /// Of a run that this one starts and that belongs to it.
    pub fn of_child(run_id: &RunId, own: Option<&Lineage>) -> Self {
        let mut ancestors = own.map(|own| own.ancestors.clone()).unwrap_or_default();
        ancestors.push(run_id.clone());
        Self { ancestors, ..Self::of_undoing(run_id, own) }
    }

    /// Of the run that undoes this one: it counts as what it undoes does, but what has cancelled that does not cancel it.
    pub fn of_undoing(run_id: &RunId, own: Option<&Lineage>) -> Self {
        let (root, level) = own.map_or((run_id, 1), |own| (&own.root, own.level));
        Self { root: root.clone(), level: level + 1, ancestors: Vec::new() }
    }
}

/// The operation of another run that waits for this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentOperation {
    pub run_id: RunId,
    pub operation_id: String,
}

/// The handler is called. The fence of everything it records: an earlier invocation's tokens end here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandlerInvoked {
    #[serde(deserialize_with = "integer::u32")]
    pub invocation: u32,
    pub request_id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HandlerStatus {
    Succeeded,
    Failed,
    Pending,
    /// It died, did not answer in time, or answered something that is no answer.
    Crashed,
    /// The node that had called it was lost, its execution has ended meanwhile, or the call did not get there (`unreached`).
    Lost,
    /// It failed, and is tried again as its retry policy says.
    Retrying,
}

/// The invocation is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandlerReturned {
    #[serde(deserialize_with = "integer::u32")]
    pub invocation: u32,
    pub request_id: String,
    pub invoked_at: Timestamp,
    pub status: HandlerStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// Wait this long before the next invocation.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_after_ms: u64,
    /// What the invocation used, where that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u32>,
    /// Goes with LOST: the call did not get to the function, so it did not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreached: bool,
    /// How long the call waited until somebody took it; no part of the time that it ran.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_ms: u64,
    /// The execution has ended under it: it ran until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Set when a checkpoint ended the execution, and the invocation with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointRef>,
}

/// Which checkpoint call an event belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointRef {
    /// Counted per invocation, from 1.
    #[serde(deserialize_with = "integer::u32")]
    pub number: u32,
    /// On the call's first event: the same call again is answered from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_token: Option<String>,
}

/// The handler recorded something about an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationUpdated {
    pub operation_id: String,
    /// The how-manieth event of this operation.
    #[serde(deserialize_with = "integer::u32")]
    pub occurrence: u32,
    #[serde(rename = "type")]
    pub operation_type: OperationType,
    pub action: OperationAction,
    /// The START came in the same call, just before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub begins: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// Of a step: the attempt that this ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Of a wait, or before the next attempt of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Before the next attempt of a step, where the seconds are these rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub replay_children: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<CallbackTerms>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chained: Option<ChainedCall>,
    pub checkpoint: CheckpointRef,
}

impl OperationUpdated {
    /// How long a wait takes, or how long it is until the next attempt of a step.
    pub fn delay(&self) -> Option<Duration> {
        self.millis.map(Duration::from_millis).or_else(|| self.seconds.map(Duration::from_secs))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallbackTerms {
    pub callback_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_seconds: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainedCall {
    pub function: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Absent when the target could not be found; then the operation has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ChainedTarget>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainedTarget {
    pub run_id: RunId,
    pub version: String,
    pub name: String,
    pub durable: bool,
}

/// Something outside the handler ended an operation or made it ready: time, a callback, another execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationResolved {
    pub operation_id: String,
    #[serde(deserialize_with = "integer::u32")]
    pub occurrence: u32,
    pub status: OperationStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// Set when it was found due while a checkpoint was answered: the handler has seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointRef>,
}

/// Whoever has the callback is still at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallbackHeartbeat {
    pub operation_id: String,
    #[serde(deserialize_with = "integer::u32")]
    pub occurrence: u32,
}

/// The execution is over; the run's own last event follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionEnded {
    /// The round that ended.
    #[serde(default = "one", skip_serializing_if = "is_one", deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub status: ExecutionStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// What the runtime of a plain function wrote about its failure, for the caller who waits for it: JSON, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
}

/// A message for whoever waits for one of its name in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageReceived {
    /// The number of the signal that brought it.
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub signal_id: SignalId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

/// The run is to be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompensationStarted {
    /// The round that is undone.
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub trigger: CompensationTrigger,
}

/// The run was undone, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompensationEnded {
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    /// The run that undid it; absent when none could be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler_run_id: Option<RunId>,
    /// Set when it could not be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

/// Nobody has done anything about a failed run for a while, or it could not be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunDeadLettered {
    #[serde(deserialize_with = "integer::u32")]
    pub logical_attempt_id: u32,
    pub reason: String,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_one(value: &u32) -> bool {
    *value == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
