//! Reading a run's events.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `GET /v1/runs/{id}/events`: public documents in order, passed on as they were recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    pub events: Vec<Box<RawValue>>,
    /// The run's last sequence when the page was read.
    pub last_event_seq: u64,
    /// The `after` of the next page. Equal to the one that was asked for when nothing was there.
    pub next_after: u64,
}

/// The name of the server-sent event that ends a stream whose run has ended.
pub const END_EVENT: &str = "end";
