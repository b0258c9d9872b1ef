//! Results that are served again, and what never is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    let address = bed.function("f", |_| std::future::pending());
    for _ in 0..100 {
        bed.start_as(&me(), InvocationRequest { dry_run: true, ..request(&address, json!({})) }).unwrap();
    }
    let counts =
        bed.run(|serverless| async move { serverless.count_invocations(&me(), InvocationListFilter::default()).await });
    assert_eq!(counts.unwrap().iter().map(|count| count.count).sum::<u64>(), 0);
    bed.start(&address, json!({})).unwrap();
}

/// A function that caches its results, and fails while it is told to.
fn moody(bed: &Bed, name: &str) -> (String, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    let asked = fails.clone();
    let address = bed.entrypoint(FUNCTION, name, caches, move |_| {
        let fails = asked.load(Ordering::SeqCst);
        async move {
            if fails {
                Err(HandlerFailure::new(FailureKind::Failed, ErrorObject::new("No", "no")))
            } else {
                Ok("{}".to_owned())
            }
        }
    });
    (address, fails)
}

/// SR-436, SR-446: what fails takes nothing away from what is stored; only another key, or age, brings a new execution.
#[test]
fn a_failure_takes_no_result_away() {
    let bed = Bed::new(84);
    let (address, fails) = moody(&bed, "f");
    let first = sync(&bed, &address, "k", false).unwrap().record;
    fails.store(true, Ordering::SeqCst);
    let replay = bed.control(&first.invocation_id, Action::Replay).unwrap();
    bed.until(&replay.invocation_id, S::Failed);
    let other = sync(&bed, &address, "other", false).unwrap();
    assert_eq!((other.cached, other.record.status), (false, S::Failed), "a new key executes");
    let hit = sync(&bed, &address, "k", false).unwrap();
    assert!(hit.cached);
    assert_eq!((hit.record.invocation_id.as_str(), hit.record.status), (first.invocation_id.as_str(), S::Succeeded));
    fails.store(false, Ordering::SeqCst);
    bed.world.pass(Duration::from_secs(601));
    let calls = bed.functions.invocations();
    let late = sync(&bed, &address, "k", false).unwrap();
    assert_eq!((late.cached, bed.functions.invocations()), (false, calls + 1), "too old, so it executes");
    assert_ne!(late.record.invocation_id, first.invocation_id);
}

/// SR-452: a retry has the key of its run, and what it brings is served; a replay has none, and what it brings never is.
#[test]
fn a_retry_stores_what_a_replay_does_not() {
    let bed = Bed::new(85);
    let (address, fails) = moody(&bed, "f");
    fails.store(true, Ordering::SeqCst);
    let (retried, replayed) =
        (sync(&bed, &address, "a", false).unwrap().record, sync(&bed, &address, "b", false).unwrap().record);
    assert_eq!((retried.status, replayed.status), (S::Failed, S::Failed));
    fails.store(false, Ordering::SeqCst);
    bed.control(&retried.invocation_id, Action::Retry).unwrap();
    bed.until(&retried.invocation_id, S::Succeeded);
    let replay = bed.control(&replayed.invocation_id, Action::Replay).unwrap();
    bed.until(&replay.invocation_id, S::Succeeded);
    let calls = bed.functions.invocations();
    let hit = sync(&bed, &address, "a", false).unwrap();
    assert!(hit.cached && hit.record.invocation_id == retried.invocation_id);
    let repeat = sync(&bed, &address, "b", false).unwrap();
    assert!(!repeat.cached && repeat.record.invocation_id == replayed.invocation_id, "the failed one, as before");
    assert_eq!(bed.functions.invocations(), calls);
}

/// SR-410, SR-411, SR-444, SR-445: a trace and what is billed are facts of a run, written with it. A dry run and a hit write
/// nothing and call nobody.
#[test]
fn neither_a_dry_run_nor_a_hit_is_traced_or_billed() {
    let bed = Bed::new(86);
    let (address, _) = moody(&bed, "f");
    let first = sync(&bed, &address, "k", false).unwrap().record;
    let traces = || bed.functions.calls.lock().unwrap().iter().map(|call| call.trace.clone()).collect::<Vec<_>>();
    // What leaves the platform is published from the log, so nothing leaves that is not in it.
    let facts = || bed.world.log().iter().filter(|event| event.tenant.as_str() == "default").count();
    let (known, traced) = (facts(), traces());
    let dry = sync(&bed, &address, "new", true).unwrap().record;
    assert_eq!((dry.observability.trace_id, dry.observability.span_id), (None, None));
    assert_eq!(dry.observability.metrics.billed_duration_ms, None);
    let hit = sync(&bed, &address, "k", false).unwrap();
    assert!(hit.cached);
    assert_eq!(hit.record.observability.trace_id, first.observability.trace_id, "of the run that was executed");
    bed.world.pass(Duration::from_secs(5));
    assert_eq!((facts(), traces()), (known, traced.clone()));

    // The control: what is executed is traced and billed.
    let second = sync(&bed, &address, "other", false).unwrap().record;
    assert!(second.observability.metrics.billed_duration_ms.is_some());
    assert_ne!(second.observability.trace_id, first.observability.trace_id);
    assert!(facts() > known && traces().len() == traced.len() + 1);
}
