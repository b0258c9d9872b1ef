//! How an entrypoint behaves: modes, caching, limits, retries, and what only workflows have.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use servo_model::invocation::RetryRule;

use super::{CheckpointingStrategy, EntrypointId, GtsId, InvocationMode, float};

/// In JSON the two fields of modes are `invocation: {supported, default}`.
#[derive(Debug, Clone, PartialEq)]
pub struct EntrypointTraits {
    pub supported_invocations: Vec<InvocationMode>,
    pub default_invocation: InvocationMode,
    pub is_idempotent: bool,
    pub caching: ResponseCachingPolicy,
    pub rate_limit: Option<RateLimit>,
    pub limits: EntrypointLimits,
    pub retry: RetryPolicy,
    pub workflow: Option<WorkflowTraits>,
    /// Members that the schema does not know, kept as they came.
    pub extra: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct Modes {
    supported: Vec<InvocationMode>,
    default: InvocationMode,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    invocation: Modes,
    #[serde(default)]
    is_idempotent: bool,
    #[serde(default)]
    caching: ResponseCachingPolicy,
    #[serde(default)]
    rate_limit: Option<RateLimit>,
    limits: EntrypointLimits,
    retry: RetryPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workflow: Option<WorkflowTraits>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl Serialize for EntrypointTraits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.clone();
        Wire {
            invocation: Modes { supported: all.supported_invocations, default: all.default_invocation },
            is_idempotent: all.is_idempotent,
            caching: all.caching,
            rate_limit: all.rate_limit,
            limits: all.limits,
            retry: all.retry,
            workflow: all.workflow,
            extra: all.extra,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EntrypointTraits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            supported_invocations: wire.invocation.supported,
            default_invocation: wire.invocation.default,
            is_idempotent: wire.is_idempotent,
            caching: wire.caching,
            rate_limit: wire.rate_limit,
            limits: wire.limits,
            retry: wire.retry,
            workflow: wire.workflow,
            extra: wire.extra,
        })
    }
}

/// Active only with an idempotency key, an idempotent entrypoint and an age above zero; see `cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ResponseCachingPolicy {
    /// How long a result is served again, in seconds; 0 is never.
    #[serde(default)]
    pub max_age_seconds: u64,
}

/// Which limiter guards an entrypoint; see `rate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateLimit {
    pub strategy: GtsId,
    /// For the limiter alone.
    pub config: Value,
}

/// What the token bucket that comes with the platform is told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenBucketRateLimit {
    /// 0 is no limit a second.
    pub max_requests_per_second: f64,
    /// 0 is no limit a minute.
    pub max_requests_per_minute: u64,
    /// Of the bucket of the second alone.
    pub burst_size: u64,
}

impl Default for TokenBucketRateLimit {
    fn default() -> Self {
        Self { max_requests_per_second: 0.0, max_requests_per_minute: 0, burst_size: 10 }
    }
}

/// The limits that every adapter has, and those of this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntrypointLimits {
    /// Of the executing time of one attempt.
    #[serde(default = "timeout_default")]
    pub timeout_seconds: u64,
    #[serde(default = "concurrent_default")]
    pub max_concurrent: u64,
    /// Beside the others in JSON.
    #[serde(flatten)]
    pub extra: Option<Map<String, Value>>,
}

fn timeout_default() -> u64 {
    30
}

fn concurrent_default() -> u64 {
    100
}

impl EntrypointLimits {
    /// 0 when the adapter has no such limit.
    pub fn memory_mb(&self) -> u64 {
        self.extra.as_ref().and_then(|extra| extra.get("memory_mb")?.as_u64()).unwrap_or(0)
    }

    /// Cores, where the adapter has such a limit.
    pub fn cpu(&self) -> Option<f64> {
        self.extra.as_ref()?.get("cpu")?.as_f64()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Counts the first attempt.
    pub max_attempts: u32,
    #[serde(default = "initial_delay_default")]
    pub initial_delay_ms: u64,
    #[serde(default = "max_delay_default")]
    pub max_delay_ms: u64,
    #[serde(default = "backoff_default", with = "float")]
    pub backoff_multiplier: f32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable_errors: Vec<GtsId>,
}

fn initial_delay_default() -> u64 {
    200
}

fn max_delay_default() -> u64 {
    10_000
}

fn backoff_default() -> f32 {
    2.0
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_delay_ms: initial_delay_default(),
            max_delay_ms: max_delay_default(),
            backoff_multiplier: backoff_default(),
            non_retryable_errors: Vec::new(),
        }
    }
}

impl RetryPolicy {
    /// As runs keep it.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped; a float cast saturates")]
    pub fn rule(&self) -> RetryRule {
        RetryRule {
            max_attempts: self.max_attempts,
            initial_delay_ms: self.initial_delay_ms,
            max_delay_ms: self.max_delay_ms,
            backoff_permille: (f64::from(self.backoff_multiplier) * 1_000.0).round().max(1_000.0) as u32,
            non_retryable_errors: self.non_retryable_errors.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowTraits {
    pub compensation: CompensationConfig,
    pub checkpointing: CheckpointingConfig,
    /// A run that waits longer has failed.
    pub max_suspension_days: u64,
}

/// Entrypoints that undo a run; `null` is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CompensationConfig {
    #[serde(default)]
    pub on_failure: Option<EntrypointId>,
    #[serde(default)]
    pub on_cancel: Option<EntrypointId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CheckpointingConfig {
    #[serde(default)]
    pub strategy: CheckpointingStrategy,
}
