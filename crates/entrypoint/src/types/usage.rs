//! What a tenant uses of what it may use.

use serde::{Deserialize, Serialize};
use servo_model::Timestamp;

use super::{TenantId, TenantQuotas};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantUsage {
    pub tenant_id: TenantId,
    pub timestamp: Timestamp,
    pub current: UsageMetrics,
    pub quotas: TenantQuotas,
    pub utilization_percent: UsageUtilization,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageMetrics {
    pub concurrent_executions: u64,
    pub total_definitions: u64,
    pub total_schedules: u64,
    pub total_triggers: u64,
    pub execution_history_mb: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct UsageUtilization {
    pub concurrent_executions: f64,
    pub definitions: f64,
    pub schedules: f64,
    pub triggers: f64,
    pub execution_history: f64,
}

impl UsageUtilization {
    pub fn of(current: &UsageMetrics, quotas: &TenantQuotas) -> Self {
        Self {
            concurrent_executions: percent(current.concurrent_executions, quotas.max_concurrent_executions),
            definitions: percent(current.total_definitions, quotas.max_definitions),
            schedules: percent(current.total_schedules, quotas.max_schedules),
            triggers: percent(current.total_triggers, quotas.max_triggers),
            execution_history: percent(current.execution_history_mb, quotas.max_execution_history_mb),
        }
    }
}

/// Of a quota of 0, nothing is 0 and anything is 100.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn percent(current: u64, quota: u64) -> f64 {
    match (current, quota) {
        (0, _) => 0.0,
        (_, 0) => 100.0,
        (current, quota) => current as f64 * 100.0 / quota as f64,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageHistoryFilter {
    pub start_time: Option<Timestamp>,
    pub end_time: Option<Timestamp>,
    pub granularity: Option<UsageGranularity>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageGranularity {
    Hourly,
    Daily,
    Weekly,
}
