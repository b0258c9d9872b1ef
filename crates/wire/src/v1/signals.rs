//! Signals to a run.

use serde::{Deserialize, Serialize};
use servo_model::event::SignalType;
use servo_model::{RunSnapshot, SignalId, StepId};

/// `POST /v1/runs/{id}/signals`. The same `signalId` again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignalRequest {
    pub signal_id: SignalId,
    #[serde(rename = "type")]
    pub signal_type: SignalType,
    /// For `RETRY_STEP` and `SKIP_STEP`, and for no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A signal that was accepted. A refused one is answered with a problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalAnswer {
    pub accepted: bool,
    pub snapshot: RunSnapshot,
}
