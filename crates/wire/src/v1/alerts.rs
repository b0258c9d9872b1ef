//! Alerts.

use serde::{Deserialize, Serialize};
use servo_model::alert::Alert;

/// `GET /v1/alerts`, latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertList {
    pub items: Vec<Alert>,
}
