//! The runtime contract over HTTP. Commands, events and the snapshot are the contract's own types in `servo-model`, with
//! its snake_case.

use serde::{Deserialize, Serialize};
use servo_model::contract::{RuntimeEvent, RuntimeSnapshot};

/// `POST /runtime/commands`: what the command led to. The snapshot is there for `CaptureSnapshot` only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    pub events: Vec<RuntimeEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<RuntimeSnapshot>,
}

/// `GET /runtime/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeEventPage {
    pub events: Vec<RuntimeEvent>,
    /// The `after` of the next page, such as `cursor-7`. Equal to the one that was asked for at the end of the log.
    pub next: String,
}
