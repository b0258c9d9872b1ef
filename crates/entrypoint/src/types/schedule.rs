//! When an entrypoint is started by time. The type alone; nothing here reads a clock.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servo_model::Timestamp;

use super::{EntrypointId, ScheduleId, TenantId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub schedule_id: ScheduleId,
    pub tenant_id: TenantId,
    pub entrypoint_id: EntrypointId,
    pub name: String,
    /// An IANA zone.
    #[serde(default = "utc")]
    pub timezone: String,
    pub expression: ScheduleExpression,
    #[serde(default)]
    pub input_overrides: Map<String, Value>,
    #[serde(default)]
    pub missed_policy: MissedSchedulePolicy,
    pub status: ScheduleStatus,
    pub next_run_at: Option<Timestamp>,
    pub last_run_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

fn utc() -> String {
    "UTC".to_owned()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum ScheduleExpression {
    /// Five fields.
    Cron(String),
    /// An ISO 8601 duration.
    Interval(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleStatus {
    #[default]
    Active,
    Paused,
    Disabled,
}

impl ScheduleStatus {
    pub const ALL: [ScheduleStatus; 3] = [ScheduleStatus::Active, ScheduleStatus::Paused, ScheduleStatus::Disabled];
}

/// What becomes of times that passed while nothing was there to start a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedSchedulePolicy {
    #[default]
    Skip,
    /// One run for all of them.
    CatchUp,
    /// One run for each.
    Backfill,
}

impl MissedSchedulePolicy {
    pub const ALL: [MissedSchedulePolicy; 3] =
        [MissedSchedulePolicy::Skip, MissedSchedulePolicy::CatchUp, MissedSchedulePolicy::Backfill];
}
