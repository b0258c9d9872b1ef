//! Limits of how fast: a rate before a quota, and one action on many runs at a rate.

use std::time::Duration;

use serde_json::json;
use servo_entrypoint::odata::{Filter, INVOCATIONS};
use servo_entrypoint::{
    BulkControl, InvocationControlAction as Action, InvocationListFilter, InvocationStatus as S, PageQuery,
    RestRuntime as _, errors,
};

use super::support::{Bed, FUNCTION, me};

/// SR-382: what violates both is told of the rate, which is checked first.
#[test]
fn a_rate_is_checked_before_the_quota() {
    let bed = Bed::with(131, |platform| platform.policy.quotas.max_concurrent_executions = 1);
    let address = bed.entrypoint(
        FUNCTION,
        "f",
        |document| {
            document["traits"]["limits"]["timeout_seconds"] = 600.into();
            document["traits"]["rate_limit"] = json!({
                "strategy": "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~",
                "config": {"max_requests_per_minute": 1},
            });
        },
        |_| std::future::pending(),
    );
    let hangs = bed.function("hangs", |_| std::future::pending());
    let refused = |address: &str| bed.start(address, json!({})).unwrap_err().error_type_id;
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Running);
    assert_eq!(refused(&hangs), errors::QUOTA_EXCEEDED, "the place is taken");
    assert_eq!(refused(&address), errors::RATE_LIMITED, "both are used up");
    bed.world.pass(Duration::from_secs(61));
    assert_eq!(bed.get(&id).status, S::Running);
    assert_eq!(refused(&address), errors::QUOTA_EXCEEDED, "only the place");
}

/// One action on many runs goes at the rate that was asked for, and without one at once.
#[test]
fn a_bulk_action_keeps_its_rate() {
    const RUNS: u32 = 7;
    for (seed, per_second) in [(132, Some(2)), (133, Some(10)), (134, None)] {
        let bed = Bed::new(seed);
        let address = bed.function("hangs", |_| std::future::pending());
        for _ in 0..RUNS {
            let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
            bed.until(&id, S::Running);
        }
        let page = PageQuery {
            filter: Some(Filter::parse("status eq 'running'", &INVOCATIONS).unwrap()),
            ..PageQuery::default()
        };
        let filter = InvocationListFilter { page, ..InvocationListFilter::default() };
        let request = BulkControl { filter, action: Action::Cancel, max_items: 20, per_second, dry_run: false };
        let before = bed.world.now();
        let done = bed.run(|serverless| async move { serverless.bulk_control(&me(), request).await }).unwrap();
        let took = bed.world.now().as_millis() - before.as_millis();
        assert_eq!(done.items.len(), RUNS as usize);
        assert!(done.items.iter().all(|outcome| outcome.error.is_none()), "{done:?}");
        let pause = per_second.map_or(0, |rate| 1_000 / i64::from(rate));
        let least = pause * i64::from(RUNS - 1);
        assert!((least..=least + 200).contains(&took), "{RUNS} at {per_second:?} took {took} ms");
        // One after the other, not all after a wait.
        let ends: Vec<i64> = done
            .items
            .iter()
            .map(|outcome| {
                let record = bed.get(&outcome.invocation_id);
                assert_eq!(record.status, S::Canceled);
                record.timestamps.finished_at.unwrap().as_millis()
            })
            .collect();
        assert!(ends.windows(2).all(|pair| pair[1] - pair[0] >= pause), "{per_second:?}: {ends:?}");
    }
}
