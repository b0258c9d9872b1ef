//! Moving, ending and removing single runs.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use servo_canon::Digest;
use servo_model::{RunId, Timestamp};

/// One run as a file: what `GET /v1/runs/{id}/export` answers and `POST /v1/runs/import` takes. A client that only
/// carries it from one to the other may treat it as bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunFile {
    pub format: String,
    pub run_id: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_key: Option<Digest>,
    pub created_at: Timestamp,
    /// Public documents, in order.
    pub events: Vec<Box<RawValue>>,
    /// Digest over the events as they stand in the file.
    pub sha256: Digest,
}

/// `POST /v1/runs/{id}/terminate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TerminateRequest {
    pub reason: String,
}

/// Names the run that an import or a termination was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRef {
    pub run_id: RunId,
}
