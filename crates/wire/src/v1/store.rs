//! The store, for whoever operates it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_model::RunId;

/// `GET /v1/store/info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreInfo {
    /// `memory`, `sqlite` or `postgres`.
    pub kind: String,
    pub engine_version: String,
    pub schema_version: u32,
    /// One process only may have it open.
    pub single_process: bool,
    pub size_bytes: u64,
    /// Settings that durability rests on, as read back from the running store.
    pub settings: BTreeMap<String, String>,
}

/// `POST /v1/store/verify`: every run folded and compared with its row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifyReport {
    pub runs: u64,
    pub events: u64,
    pub findings: Vec<Finding>,
    /// What the database found when it checked itself; empty when nothing is wrong.
    #[serde(default)]
    pub integrity: Vec<String>,
    /// Events that an earlier version wrote, without a checksum to compare them with.
    #[serde(default)]
    pub without_checksum: u64,
}

/// Something that does not agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub run_id: RunId,
    pub problem: String,
}

impl VerifyReport {
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.integrity.is_empty()
    }
}

/// `POST /v1/store/retention`: how many runs were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retired {
    pub runs_removed: u64,
}
