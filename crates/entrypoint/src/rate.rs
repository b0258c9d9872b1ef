//! Rate limiters: the trait that plugins implement, the table they are found in, and the token bucket that comes with the
//! platform. They decide at acceptance; nothing is queued or retried here.

mod bucket;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use servo_model::SecurityContext;

pub use bucket::{BUCKETS_MAX, Buckets, TokenBucket};

use crate::types::{EntrypointId, GtsId, ValidationIssue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimitDecision {
    Allow,
    Reject {
        /// At least 1.
        retry_after_seconds: u64,
    },
}

/// A limiter of one strategy.
#[async_trait]
pub trait RateLimiter: Send + Sync {
    /// The type of its configuration, which names the strategy.
    fn strategy_type(&self) -> &GtsId;

    /// Whether a start is admitted. An allowance belongs to the caller's tenant and the entrypoint.
    async fn check(&self, ctx: &SecurityContext, entrypoint_id: &EntrypointId, config: &Value) -> RateLimitDecision;

    /// What is wrong with a configuration beyond its schema. Paths start at `$`, the configuration itself.
    fn validate_config(&self, _config: &Value) -> Vec<ValidationIssue> {
        Vec::new()
    }
}

/// A strategy has a limiter already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the strategy `{0}` has a limiter already; give the second one a type of its own")]
pub struct StrategyTaken(pub GtsId);

/// Limiters by strategy.
#[derive(Clone, Default)]
pub struct Limiters(BTreeMap<GtsId, Arc<dyn RateLimiter>>);

impl fmt::Debug for Limiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Limiters {
    pub fn register(&mut self, limiter: Arc<dyn RateLimiter>) -> Result<(), StrategyTaken> {
        let strategy = limiter.strategy_type().clone();
        if self.0.contains_key(&strategy) {
            return Err(StrategyTaken(strategy));
        }
        self.0.insert(strategy, limiter);
        Ok(())
    }

    pub fn find(&self, strategy: &str) -> Option<&Arc<dyn RateLimiter>> {
        self.0.get(strategy)
    }

    pub fn strategies(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
