//! How things were: what a chart begins with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_model::Timestamp;

/// `GET /v1/series`, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// The distance of two points; one that is missing could not be measured.
    pub every_ms: u64,
    /// The server's time, by which the points are dated.
    pub now: Timestamp,
    pub points: Vec<SeriesPoint>,
}

/// One look at a tenant's invocations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeriesPoint {
    pub at: Timestamp,
    /// By status; those that none is in are left out.
    pub counts: BTreeMap<String, u64>,
    /// How long the oldest queued one has waited; 0 when none is queued.
    pub queue_age_ms: u64,
}
