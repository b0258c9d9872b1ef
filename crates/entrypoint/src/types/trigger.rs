//! Which events start an entrypoint. The type alone; nothing here listens.

use serde::{Deserialize, Serialize};
use servo_model::Timestamp;

use super::{EntrypointId, GtsId, RetryPolicy, TenantId, TriggerId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    pub trigger_id: TriggerId,
    pub tenant_id: TenantId,
    pub event_type_id: GtsId,
    /// Without one, every event of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_filter_query: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_queue: Option<DeadLetterQueueConfig>,
    pub entrypoint_id: EntrypointId,
    pub status: TriggerStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What becomes of an event that could not be processed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterQueueConfig {
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default)]
    pub retry_policy: RetryPolicy,
    /// Without one, the platform's.
    #[serde(default)]
    pub dlq_topic: Option<GtsId>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerStatus {
    #[default]
    Active,
    Paused,
    Disabled,
}

impl TriggerStatus {
    pub const ALL: [TriggerStatus; 3] = [TriggerStatus::Active, TriggerStatus::Paused, TriggerStatus::Disabled];
}
