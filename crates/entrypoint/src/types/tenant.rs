//! What a tenant may use, and what holds where its entrypoints say nothing.

use serde::{Deserialize, Serialize};
use servo_model::Timestamp;

use super::{GtsId, TenantId, float};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantRuntimePolicy {
    pub tenant_id: TenantId,
    pub enabled: bool,
    pub quotas: TenantQuotas,
    pub retention: TenantRetention,
    #[serde(default)]
    pub policies: TenantPolicies,
    #[serde(default)]
    pub idempotency: TenantIdempotency,
    #[serde(default)]
    pub defaults: TenantDefaults,
    /// Absent for a tenant that nobody configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

impl TenantRuntimePolicy {
    /// Of a tenant that nobody configured.
    pub fn platform_default(tenant_id: impl Into<TenantId>) -> Self {
        Self {
            tenant_id: tenant_id.into(),
            enabled: true,
            quotas: TenantQuotas::default(),
            retention: TenantRetention::default(),
            policies: TenantPolicies::default(),
            idempotency: TenantIdempotency::default(),
            defaults: TenantDefaults::default(),
            created_at: None,
            updated_at: None,
        }
    }
}

/// An omitted quota is the platform's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantQuotas {
    pub max_concurrent_executions: u64,
    pub max_definitions: u64,
    pub max_schedules: u64,
    pub max_triggers: u64,
    pub max_execution_history_mb: u64,
    pub max_memory_per_execution_mb: u64,
    #[serde(with = "float")]
    pub max_cpu_per_execution: f32,
    pub max_execution_duration_seconds: u64,
}

impl Default for TenantQuotas {
    fn default() -> Self {
        Self {
            max_concurrent_executions: 200,
            max_definitions: 500,
            max_schedules: 50,
            max_triggers: 100,
            max_execution_history_mb: 10_240,
            // The largest that an adapter's limits allow: a platform that wants less says so.
            max_memory_per_execution_mb: 10_240,
            max_cpu_per_execution: 2.0,
            // 366 days.
            max_execution_duration_seconds: 31_622_400,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantRetention {
    pub execution_history_days: u64,
    pub audit_log_days: u64,
}

impl Default for TenantRetention {
    fn default() -> Self {
        Self { execution_history_days: 7, audit_log_days: 90 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TenantPolicies {
    /// Adapters. Absent allows all that are registered, an empty list none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_runtimes: Option<Vec<GtsId>>,
}

impl TenantPolicies {
    pub fn allows(&self, adapter: &str) -> bool {
        self.allowed_runtimes.as_ref().is_none_or(|allowed| allowed.iter().any(|id| id == adapter))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantIdempotency {
    pub deduplication_window_seconds: u64,
}

impl Default for TenantIdempotency {
    fn default() -> Self {
        Self { deduplication_window_seconds: 86_400 }
    }
}

/// For limits that an entrypoint leaves out, where its adapter has them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantDefaults {
    pub timeout_seconds: u64,
    pub memory_mb: u64,
    #[serde(with = "float")]
    pub cpu: f32,
}

impl Default for TenantDefaults {
    fn default() -> Self {
        Self { timeout_seconds: 30, memory_mb: 128, cpu: 0.2 }
    }
}
