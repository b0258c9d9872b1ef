//! One operation, as it stands.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::event::{CallbackTerms, ChainedCall};
use crate::operation::{ErrorObject, OperationStatus, OperationType};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    pub id: Arc<str>,
    pub operation_type: OperationType,
    pub status: OperationStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Attempts of a step that have ended.
    #[serde(default)]
    pub attempt: u32,
    /// The end of a wait, or the next attempt of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Of a wait, as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    #[serde(default)]
    pub replay_children: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<CallbackTerms>,
    /// The last sign of life of whoever has the callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chained: Option<ChainedCall>,
    /// How many events it has.
    pub occurrence: u32,
    /// The sequence that last changed it.
    pub touched: u64,
}

/// What happens to an operation when its time comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// A wait is over.
    WaitOver,
    /// A step may be tried again.
    RetryReady,
    /// A callback was not answered in time.
    CallbackTimeout,
    /// Nothing was heard of a callback for too long.
    HeartbeatTimeout,
}

impl Operation {
    /// When time alone will change it, and how.
    pub fn due(&self) -> Option<(Timestamp, Due)> {
        match (self.operation_type, self.status) {
            (OperationType::Wait, OperationStatus::Started) => Some((self.due_at?, Due::WaitOver)),
            (OperationType::Step, OperationStatus::Pending) => Some((self.due_at?, Due::RetryReady)),
            (OperationType::Callback, OperationStatus::Started) => {
                let terms = self.callback.as_ref()?;
                let after = |from: Timestamp, seconds: Option<u64>| {
                    seconds.filter(|seconds| *seconds > 0).map(|seconds| from.plus(Duration::from_secs(seconds)))
                };
                let timeout = after(self.started_at, terms.timeout_seconds).map(|at| (at, Due::CallbackTimeout));
                let alive = self.heartbeat_at.unwrap_or(self.started_at);
                let silence = after(alive, terms.heartbeat_seconds).map(|at| (at, Due::HeartbeatTimeout));
                [timeout, silence].into_iter().flatten().min()
            }
            _ => None,
        }
    }

    pub(super) fn weight_bytes(&self) -> usize {
        let error = self.error.as_ref().map_or(0, ErrorObject::len);
        600 + self.id.len() * 2 + self.result.as_ref().map_or(0, String::len) + error
    }
}
