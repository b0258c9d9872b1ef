//! The audit log.

use serde::{Deserialize, Serialize};
use servo_model::AuditEntry;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditList {
    /// Newest first.
    pub items: Vec<AuditEntry>,
    /// Where to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
