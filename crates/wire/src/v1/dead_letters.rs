//! Events that the bus did not take.

use serde::{Deserialize, Serialize};
use servo_model::{RunId, TenantId, Timestamp};

/// A publication that was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The event's place in the log, such as `cursor-7`.
    pub position: String,
    pub run_id: RunId,
    pub run_seq: u64,
    pub tenant_id: TenantId,
    pub attempts: u32,
    pub last_error: String,
    pub buried_at: Timestamp,
}

/// `GET /v1/dead-letters`, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterList {
    pub items: Vec<DeadLetter>,
    /// The `after` of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// `POST /v1/dead-letters/redrive`: one by position, or all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedriveRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
}

/// How many will be published again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Redriven {
    pub redriven: u64,
}
