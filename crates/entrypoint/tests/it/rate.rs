//! Rate limiters.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use servo_entrypoint::rate::{Buckets, Limiters, RateLimitDecision as Decision, RateLimiter, TokenBucket};
use servo_entrypoint::{EntrypointId, GtsId, TokenBucketRateLimit, gts};
use servo_model::{Role, SecurityContext, Timestamp};

use crate::support::context;

struct World {
    clock: Arc<AtomicI64>,
    limiter: TokenBucket,
}

impl World {
    fn new() -> Self {
        Self::with_max(1_000)
    }

    fn with_max(max: usize) -> Self {
        let clock = Arc::new(AtomicI64::new(1_000_000));
        let time = clock.clone();
        let now = move || Timestamp::from_millis(time.load(Ordering::Relaxed));
        Self { clock, limiter: TokenBucket::with_max(now, max) }
    }

    fn advance(&self, millis: i64) {
        self.clock.fetch_add(millis, Ordering::Relaxed);
    }

    fn ask(&self, tenant: &str, entrypoint: &str, config: &Value) -> Decision {
        let ctx = context(tenant, Role::Operator);
        self.limiter.check(&ctx, &entrypoint.to_owned(), config).now_or_never().unwrap()
    }

    /// How many of so many starts at once are admitted.
    fn admitted(&self, starts: usize, config: &Value) -> usize {
        (0..starts).filter(|_| self.ask("t1", "e1", config) == Decision::Allow).count()
    }
}

/// SR-065, SR-067, SR-071: zero is no limit, and so is no configuration.
#[test]
fn zero_is_no_limit() {
    for config in [json!({}), json!({"max_requests_per_second": 0, "max_requests_per_minute": 0, "burst_size": 1})] {
        assert_eq!(World::new().admitted(500, &config), 500);
    }
}

/// SR-067, SR-069: a burst passes at once, then the rate holds.
#[test]
fn a_burst_passes_then_the_rate_holds() {
    let world = World::new();
    let config = json!({"max_requests_per_second": 2, "burst_size": 20});
    assert_eq!(world.admitted(30, &config), 20);
    world.advance(500);
    assert_eq!(world.admitted(5, &config), 1);
    world.advance(60_000);
    assert_eq!(world.admitted(30, &config), 20);
    assert_eq!(World::new().admitted(30, &json!({"max_requests_per_second": 1})), 10);
}

/// SR-068, SR-070, SR-080: the minute has no burst, holds by itself, and a refusal takes from neither.
#[test]
fn both_limits_hold_and_a_refusal_costs_nothing() {
    let world = World::new();
    let config = json!({"max_requests_per_second": 100, "burst_size": 100, "max_requests_per_minute": 5});
    assert_eq!(world.admitted(10, &config), 5);
    assert_eq!(world.ask("t1", "e1", &config), Decision::Reject { retry_after_seconds: 12 });
    world.advance(12_000);
    assert_eq!(world.admitted(10, &config), 1);

    let config = TokenBucketRateLimit { max_requests_per_second: 1.0, max_requests_per_minute: 1, burst_size: 3 };
    let now = Timestamp::from_millis(1_000_000);
    let mut buckets = Buckets::full(&config, now);
    assert_eq!(buckets.take(&config, now), Decision::Allow);
    let before = buckets;
    assert_eq!(buckets.take(&config, now), Decision::Reject { retry_after_seconds: 60 });
    assert_eq!(buckets, before);
}

/// SR-080: the wait is the longer one, rounded up, and at least a second.
#[test]
fn the_wait_is_rounded_up() {
    let world = World::new();
    let config = json!({"max_requests_per_second": 50, "burst_size": 1});
    assert_eq!(world.admitted(1, &config), 1);
    assert_eq!(world.ask("t1", "e1", &config), Decision::Reject { retry_after_seconds: 1 });
    let slow = json!({"max_requests_per_second": 0.4, "burst_size": 1});
    assert_eq!(world.ask("t1", "e2", &slow), Decision::Allow);
    assert_eq!(world.ask("t1", "e2", &slow), Decision::Reject { retry_after_seconds: 3 });
    world.advance(2_500);
    assert_eq!(world.ask("t1", "e2", &slow), Decision::Allow);
}

/// SR-073, SR-078: tenants and entrypoints have allowances of their own; users of a tenant share one.
#[test]
fn allowances_are_separate() {
    let world = World::new();
    let config = json!({"max_requests_per_minute": 1});
    assert_eq!(world.ask("t1", "e1", &config), Decision::Allow);
    assert!(matches!(world.ask("t1", "e1", &config), Decision::Reject { .. }));
    assert_eq!(world.ask("t2", "e1", &config), Decision::Allow);
    assert_eq!(world.ask("t1", "e2", &config), Decision::Allow);
    let mut other = context("t1", Role::Operator);
    other.subject = "somebody else".to_owned();
    let decision = world.limiter.check(&other, &"e1".to_owned(), &config).now_or_never().unwrap();
    assert!(matches!(decision, Decision::Reject { .. }));
}

/// A clock that goes backwards gives nothing away.
#[test]
fn a_clock_that_goes_back_gives_nothing() {
    let world = World::new();
    let config = json!({"max_requests_per_second": 1, "burst_size": 1});
    assert_eq!(world.admitted(2, &config), 1);
    world.advance(-500_000);
    assert_eq!(world.admitted(2, &config), 0);
    world.advance(500_000);
    assert_eq!(world.admitted(2, &config), 0);
    world.advance(1_000);
    assert_eq!(world.admitted(2, &config), 1);
}

/// SR-073: memory is bounded: full buckets are forgotten, and if there are none, the rest of a tenant shares one.
#[test]
fn buckets_are_bounded() {
    let world = World::with_max(2);
    let config = json!({"max_requests_per_minute": 1});
    assert_eq!(world.ask("t1", "e1", &config), Decision::Allow);
    assert_eq!(world.ask("t1", "e2", &config), Decision::Allow);
    assert_eq!(world.ask("t1", "e3", &config), Decision::Allow);
    assert!(matches!(world.ask("t1", "e4", &config), Decision::Reject { .. }));
    assert!(matches!(world.ask("t1", "e1", &config), Decision::Reject { .. }));
    // Another tenant does not pay for it, until there is no room for any of them.
    assert_eq!(world.ask("t2", "e1", &config), Decision::Allow);
    assert!(matches!(world.ask("t2", "e2", &config), Decision::Reject { .. }));
    assert_eq!(world.ask("t3", "e1", &config), Decision::Allow);
    assert!(matches!(world.ask("t4", "e1", &config), Decision::Reject { .. }));
    world.advance(60_000);
    assert_eq!(world.ask("t1", "e5", &config), Decision::Allow);
    assert_eq!(world.ask("t1", "e6", &config), Decision::Allow);
}

struct Never(GtsId);

#[async_trait]
impl RateLimiter for Never {
    fn strategy_type(&self) -> &GtsId {
        &self.0
    }

    async fn check(&self, _: &SecurityContext, _: &EntrypointId, _: &Value) -> Decision {
        Decision::Reject { retry_after_seconds: 9 }
    }
}

/// SR-059, SR-079, SR-497, SR-498: one limiter per strategy, further ones beside it.
#[test]
fn limiters_are_found_by_strategy() {
    let mut limiters = Limiters::default();
    limiters.register(Arc::new(TokenBucket::new(|| Timestamp::EPOCH))).unwrap();
    let own = format!("{}vendor.app.never.v1~", gts::RATE_LIMIT);
    limiters.register(Arc::new(Never(own.clone()))).unwrap();
    assert_eq!(limiters.find(&own).unwrap().strategy_type(), &own);
    assert_eq!(limiters.find(gts::TOKEN_BUCKET).unwrap().strategy_type(), gts::TOKEN_BUCKET);
    assert!(limiters.find("other").is_none());
    assert!(limiters.register(Arc::new(Never(own))).is_err());
}

proptest! {
    /// Never more than the burst and what has flowed in since, in any window of any sequence of starts.
    #[test]
    fn no_window_admits_more_than_its_allowance(
        rate in 1..20_u32,
        burst in 1..20_u64,
        minute in 0..60_u64,
        gaps in prop::collection::vec(0..900_u64, 1..200),
    ) {
        let config = TokenBucketRateLimit { max_requests_per_second: f64::from(rate), max_requests_per_minute: minute, burst_size: burst };
        let mut now = Timestamp::EPOCH;
        let mut buckets = Buckets::full(&config, now);
        let mut admitted: Vec<Timestamp> = Vec::new();
        for gap in gaps {
            now = now.plus(Duration::from_millis(gap));
            match buckets.take(&config, now) {
                Decision::Allow => admitted.push(now),
                Decision::Reject { retry_after_seconds } => {
                    // Who waits as long as told, and is alone, is admitted.
                    let mut later = buckets;
                    let then = now.plus(Duration::from_secs(retry_after_seconds));
                    prop_assert_eq!(later.take(&config, then), Decision::Allow);
                }
            }
        }
        for (index, from) in admitted.iter().enumerate() {
            for (count, to) in admitted[index..].iter().enumerate() {
                let seconds = to.since(*from).as_secs_f64();
                let count = u32::try_from(count + 1).unwrap();
                prop_assert!(f64::from(count) <= burst as f64 + seconds * f64::from(rate) + 1e-6);
                if minute > 0 {
                    prop_assert!(f64::from(count) <= minute as f64 + seconds * minute as f64 / 60.0 + 1e-6);
                }
            }
        }
    }
}
