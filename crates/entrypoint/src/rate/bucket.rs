//! The token bucket: one bucket for the second, which holds a burst, and one for the minute. A start takes from both or from
//! neither.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use servo_model::{SecurityContext, Timestamp};

use super::{RateLimitDecision, RateLimiter};
use crate::gts;
use crate::types::{EntrypointId, GtsId, TokenBucketRateLimit};

/// Pairs of tenant and entrypoint that are remembered. Past it, buckets that are full again are forgotten, which changes
/// nothing for anybody; should none be full, new pairs of a tenant share one bucket, and past twice as many those of all tenants.
pub const BUCKETS_MAX: usize = 100_000;

/// Room for the rounding of tokens that are counted in fractions.
const EPSILON: f64 = 1e-9;

/// Tokens of one tenant for one entrypoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buckets {
    second: f64,
    minute: f64,
    at: Timestamp,
}

#[expect(clippy::cast_precision_loss, reason = "sizes above 2^53 are as good as no limit")]
fn float(number: u64) -> f64 {
    number as f64
}

impl Buckets {
    pub fn full(config: &TokenBucketRateLimit, now: Timestamp) -> Self {
        Self { second: float(config.burst_size), minute: float(config.max_requests_per_minute), at: now }
    }

    /// Adds what has flowed in since the last look. A clock that goes backwards adds nothing.
    fn refill(&mut self, config: &TokenBucketRateLimit, now: Timestamp) {
        let seconds = now.since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        let minute = float(config.max_requests_per_minute);
        self.second = (self.second + seconds * config.max_requests_per_second).min(float(config.burst_size));
        self.minute = (self.minute + seconds * minute / 60.0).min(minute);
    }

    /// Takes a token from each bucket that has a limit, or from none and says how long to wait.
    pub fn take(&mut self, config: &TokenBucketRateLimit, now: Timestamp) -> RateLimitDecision {
        self.refill(config, now);
        let per_second = config.max_requests_per_second > 0.0;
        let per_minute = config.max_requests_per_minute > 0;
        let second = if per_second { wait(self.second, config.max_requests_per_second) } else { 0.0 };
        let minute = if per_minute { wait(self.minute, float(config.max_requests_per_minute) / 60.0) } else { 0.0 };
        let longest = second.max(minute);
        if longest > 0.0 {
            return RateLimitDecision::Reject { retry_after_seconds: whole_seconds(longest) };
        }
        self.second -= if per_second { 1.0 } else { 0.0 };
        self.minute -= if per_minute { 1.0 } else { 0.0 };
        RateLimitDecision::Allow
    }

    fn is_full(&self, config: &TokenBucketRateLimit, now: Timestamp) -> bool {
        let mut copy = *self;
        copy.refill(config, now);
        copy.second >= float(config.burst_size) && copy.minute >= float(config.max_requests_per_minute)
    }
}

/// Seconds until a token is there; 0 when one is.
fn wait(tokens: f64, rate: f64) -> f64 {
    if tokens + EPSILON >= 1.0 { 0.0 } else { (1.0 - tokens) / rate }
}

/// Rounded up, and never nothing.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; a float cast saturates")]
fn whole_seconds(seconds: f64) -> u64 {
    ((seconds - EPSILON).ceil() as u64).max(1)
}

/// Reads a configuration that was checked when its entrypoint was registered. To JSON Schema 5.0 is an integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float cast saturates")]
fn read(config: &Value) -> TokenBucketRateLimit {
    let number = |name: &str| config.get(name).and_then(Value::as_f64);
    let default = TokenBucketRateLimit::default();
    TokenBucketRateLimit {
        max_requests_per_second: number("max_requests_per_second").unwrap_or(default.max_requests_per_second),
        max_requests_per_minute: number("max_requests_per_minute")
            .map_or(default.max_requests_per_minute, |n| n as u64),
        burst_size: number("burst_size").map_or(default.burst_size, |n| n as u64).max(1),
    }
}

type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

struct Entry {
    buckets: Buckets,
    config: TokenBucketRateLimit,
}

/// In this process; each node of a cluster has its own.
pub struct TokenBucket {
    strategy: GtsId,
    clock: Clock,
    entries: Mutex<HashMap<(String, EntrypointId), Entry>>,
    max: usize,
}

impl fmt::Debug for TokenBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBucket").field("max", &self.max).finish_non_exhaustive()
    }
}

impl TokenBucket {
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self::with_max(clock, BUCKETS_MAX)
    }

    /// Remembers at most `max` pairs.
    pub fn with_max(clock: impl Fn() -> Timestamp + Send + Sync + 'static, max: usize) -> Self {
        let entries = Mutex::new(HashMap::new());
        Self { strategy: gts::TOKEN_BUCKET.to_owned(), clock: Arc::new(clock), entries, max }
    }

    fn decide(&self, tenant: &str, entrypoint_id: &str, config: &TokenBucketRateLimit) -> RateLimitDecision {
        let now = (self.clock)();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (tenant.to_owned(), entrypoint_id.to_owned());
        if entries.len() >= self.max && !entries.contains_key(&key) {
            entries.retain(|_, entry| !entry.buckets.is_full(&entry.config, now));
            // The rest of a tenant shares one allowance, and no other tenant pays for it; only past twice the room do tenants share.
            if entries.len() >= self.max {
                key.1.clear();
            }
            if entries.len() >= self.max.saturating_mul(2) && !entries.contains_key(&key) {
                key.0.clear();
            }
        }
        let entry =
            entries.entry(key).or_insert_with(|| Entry { buckets: Buckets::full(config, now), config: *config });
        entry.config = *config;
        entry.buckets.take(config, now)
    }
}

#[async_trait]
impl RateLimiter for TokenBucket {
    fn strategy_type(&self) -> &GtsId {
        &self.strategy
    }

    async fn check(&self, ctx: &SecurityContext, entrypoint_id: &EntrypointId, config: &Value) -> RateLimitDecision {
        let config = read(config);
        if config.max_requests_per_second <= 0.0 && config.max_requests_per_minute == 0 {
            return RateLimitDecision::Allow;
        }
        self.decide(ctx.tenant.as_str(), entrypoint_id, &config)
    }
}
