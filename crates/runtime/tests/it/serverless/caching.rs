//! Results that are served again, and what never is.

use serde_json::{Value, json};
use servo_adapter::{FailureKind, HandlerFailure};
use servo_entrypoint::{
    EntrypointStatusAction, InvocationControlAction as Action, InvocationListFilter, InvocationMode, InvocationRequest,
    InvocationResult, InvocationStatus as S, RestRuntime as _, RuntimeErrorPayload, errors,
};
use servo_model::operation::ErrorObject;

use super::support::{Bed, FUNCTION, me, request};

fn caches(document: &mut Value) {
    document["traits"]["is_idempotent"] = true.into();
    document["traits"]["caching"] = json!({"max_age_seconds": 600});
}

fn sync(bed: &Bed, address: &str, key: &str, dry_run: bool) -> Result<InvocationResult, RuntimeErrorPayload> {
    let asked = request(address, json!({}));
    let key = Some(key.to_owned());
    bed.start_as(&me(), InvocationRequest { mode: Some(InvocationMode::Sync), dry_run, idempotency_key: key, ..asked })
}

/// SR-413, SR-443: a hit passes an exhausted limit; a dry run neither finds a result nor leaves one.
#[test]
fn a_hit_costs_nothing_and_a_dry_run_knows_none() {
    let bed = Bed::new(81);
    let address = bed.entrypoint(
        FUNCTION,
        "f",
        |document| {
            caches(document);
            document["traits"]["rate_limit"] = json!({
                "strategy": "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~",
                "config": {"max_requests_per_minute": 1},
            });
        },
        |_| async move { Ok("{}".to_owned()) },
    );
    assert!(sync(&bed, &address, "k", true).unwrap().dry_run);
    assert!(!sync(&bed, &address, "k", false).unwrap().cached, "the dry run stored nothing");
    let dry = sync(&bed, &address, "k", true).unwrap();
    assert!(dry.dry_run && !dry.cached);
    assert_eq!(sync(&bed, &address, "other", false).unwrap_err().error_type_id, errors::RATE_LIMITED);
    for _ in 0..3 {
        assert!(sync(&bed, &address, "k", false).unwrap().cached);
    }
    assert_eq!(bed.functions.invocations(), 1);
}

/// SR-447, SR-453: a replay and a retry execute, and what cannot be called serves nothing.
#[test]
fn neither_a_replay_nor_a_retry_is_served_from_memory() {
    let bed = Bed::new(82);
    let address = bed.entrypoint(FUNCTION, "f", caches, |_| async move { Ok("{}".to_owned()) });
    let first = sync(&bed, &address, "k", false).unwrap().record;
    assert!(sync(&bed, &address, "k", false).unwrap().cached);
    let replay = bed.control(&first.invocation_id, Action::Replay).unwrap();
    assert_ne!(replay.invocation_id, first.invocation_id);
    bed.until(&replay.invocation_id, S::Succeeded);
    assert_eq!(bed.functions.invocations(), 2);
    bed.act(&address, EntrypointStatusAction::Disable).unwrap();
    assert_eq!(sync(&bed, &address, "k", false).unwrap_err().error_type_id, errors::NOT_ACTIVE);

    let broken = bed.entrypoint(FUNCTION, "broken", caches, |_| async move {
        Err(HandlerFailure::new(FailureKind::Failed, ErrorObject::new("No", "no")))
    });
    let failed = sync(&bed, &broken, "k", false).unwrap().record;
    let calls = bed.functions.invocations();
    bed.control(&failed.invocation_id, Action::Retry).unwrap();
    bed.until(&failed.invocation_id, S::Failed);
    assert!(bed.functions.invocations() > calls);
}

/// SR-408: a dry run holds no place.
#[test]
fn a_hundred_dry_runs_use_nothing_up() {
    let bed = Bed::with(83, |platform| platform.policy.quotas.max_concurrent_executions = 1);
    let address = bed.entrypoint(FUNCTION, "f", |_| {}, |_| std::future::pending());
    for _ in 0..100 {
        bed.start_as(&me(), InvocationRequest { dry_run: true, ..request(&address, json!({})) }).unwrap();
    }
    let counts =
        bed.run(|serverless| async move { serverless.count_invocations(&me(), InvocationListFilter::default()).await });
    assert_eq!(counts.unwrap().iter().map(|count| count.count).sum::<u64>(), 0);
    bed.start(&address, json!({})).unwrap();
}
