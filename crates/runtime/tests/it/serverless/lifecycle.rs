//! From the start of a run to its end, and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use servo_adapter::{FailureKind, HandlerFailure};
use servo_entrypoint::{
    Cause, EntrypointStatusAction, InvocationControlAction as Action, InvocationMode, InvocationRequest,
    InvocationStatus as S, RuntimeErrorCategory, ServerlessRuntime as _, TimelineEventType as T, errors,
};
use servo_model::invocation::Failure;

use super::support::{Bed, FUNCTION, me, request};

fn failure(category: RuntimeErrorCategory, message: &str) -> HandlerFailure {
    HandlerFailure::new(FailureKind::Failed, Failure::new(errors::EXECUTION, category, message).to_error())
}

/// SR-007, SR-008, SR-238, SR-239, SR-240, SR-241, SR-245, SR-246, SR-248: sync waits for the result, async does not, and both leave the same record.
#[test]
fn a_function_is_called_in_both_modes() {
    let bed = Bed::new(1);
    let address = bed.doubles();
    let mut sync = request(&address, json!({"n": 21}));
    sync.mode = Some(InvocationMode::Sync);
    let answer = bed.start_as(&me(), sync).unwrap();
    assert!(!answer.dry_run && !answer.cached);
    let record = answer.record;
    assert_eq!((record.status, record.result.clone()), (S::Succeeded, Some(json!({"doubled": 42}))));
    assert_eq!((record.mode, record.params.clone()), (InvocationMode::Sync, json!({"n": 21})));
    assert_eq!((record.entrypoint_id.as_str(), record.entrypoint_version.as_str()), (address.as_str(), "1.0.0"));
    assert!(
        record.error.is_none() && record.timestamps.finished_at.is_some() && record.timestamps.suspended_at.is_none()
    );
    assert_eq!(record.observability.correlation_id, "c-ada");
    assert_eq!(record.observability.trace_id.as_ref().map(String::len), Some(32));
    assert_eq!(record.observability.span_id.as_ref().map(String::len), Some(16));
    assert_eq!(record.observability.metrics.step_count, Some(1));
    assert_eq!(bed.timeline(&record.invocation_id), [T::Started, T::Succeeded]);

    let begun = bed.start(&address, json!({"n": 1})).unwrap().record;
    assert_eq!((begun.status, begun.result), (S::Queued, None));
    let measured = |metrics: &servo_entrypoint::InvocationMetrics| {
        [metrics.duration_ms, metrics.billed_duration_ms, metrics.step_count].map(|value| value.is_some())
    };
    assert_eq!(
        (begun.observability.metrics.memory_limit_mb, measured(&begun.observability.metrics)),
        (128, [false; 3])
    );
    let record = bed.until(&begun.invocation_id, S::Succeeded);
    assert_eq!(record.result, Some(json!({"doubled": 2})));
    assert_eq!(
        (record.observability.metrics.memory_limit_mb, measured(&record.observability.metrics)),
        (128, [true; 3])
    );
}

/// SR-045, SR-047, SR-054, SR-055, SR-128: attempts by the policy, told as retries of no step.
#[test]
fn a_failing_function_is_retried_and_then_failed() {
    let bed = Bed::new(2);
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let address = bed.function("shaky", move |_| {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Err(failure(RuntimeErrorCategory::Retryable, &format!("failure {number}"))) }
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    let between = bed.until_blocked(&id, Cause::Retry);
    assert!(between.earliest_at.is_some() && between.status == S::Running);
    let record = bed.until(&id, S::Failed);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    let error = record.error.unwrap();
    assert_eq!((error.message.as_str(), error.category), ("failure 3", RuntimeErrorCategory::Retryable));
    assert_eq!(bed.timeline(&id), [T::Started, T::StepRetried, T::StepRetried, T::Failed]);
    let told = bed.run(|serverless| async move { serverless.get_invocation_timeline(&me(), &id).await }).unwrap();
    assert!(told.iter().all(|event| event.step_name.is_none()), "{told:?}");
}

/// SR-029, SR-050: out of time, once.
#[test]
fn a_function_that_takes_too_long_has_timed_out() {
    let bed = Bed::new(3);
    let address = bed.function("slow", |_| std::future::pending());
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    let record = bed.until(&id, S::Failed);
    assert_eq!(record.error.unwrap().error_type_id, errors::TIMEOUT);
    assert_eq!(bed.functions.invocations(), 1);
}

/// SR-024, SR-025: what comes back is what the schema says, or the run has failed, and is not tried again.
#[test]
fn a_wrong_result_fails_the_run() {
    let bed = Bed::new(4);
    let returns = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (name, result) in [("text", r#"{"n": "x"}"#), ("list", "[1]"), ("nothing", "null"), ("word", "hello")] {
        let address = bed.entrypoint(
            FUNCTION,
            name,
            |document| document["schema"]["returns"] = returns.clone(),
            move |_| async move { Ok(result.to_owned()) },
        );
        let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
        let error = bed.until(&id, S::Failed).error.unwrap();
        assert_eq!(
            (error.error_type_id.as_str(), error.category),
            (errors::VALIDATION, RuntimeErrorCategory::NonRetryable)
        );
    }
}

/// SR-134, SR-148 (as ADR 40 has it), SR-149, SR-389: a failed run rests, can be tried again, and is given up when nobody does.
#[test]
fn a_failed_run_is_retried_or_given_up() {
    let bed = Bed::with(5, |platform| platform.dead_letter_grace = Duration::from_secs(600));
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let address = bed.function("second", move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if first { Err(failure(RuntimeErrorCategory::NonRetryable, "no")) } else { Ok("{}".to_owned()) } }
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Failed);
    let queued = bed.control(&id, Action::Retry).unwrap();
    assert_eq!((queued.invocation_id.as_str(), queued.status, queued.error), (id.as_str(), S::Queued, None));
    assert!(queued.timestamps.started_at.is_none() && queued.timestamps.finished_at.is_none());
    bed.until(&id, S::Succeeded);
    assert_eq!(bed.control(&id, Action::Retry).unwrap_err().error_type_id, errors::CONFLICT);

    let calls = bed.function("never", |_| async move { Err(failure(RuntimeErrorCategory::NonRetryable, "no")) });
    let id = bed.start(&calls, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Failed);
    bed.world.pass(Duration::from_secs(590));
    assert_eq!(bed.get(&id).status, S::Failed);
    bed.world.pass(Duration::from_secs(20));
    assert_eq!(bed.until(&id, S::DeadLettered).error.unwrap().message, "no");
    assert_eq!(bed.timeline(&id), [T::Started, T::Failed, T::DeadLettered]);
    assert_eq!(bed.control(&id, Action::Retry).unwrap_err().error_type_id, errors::CONFLICT, "only by a redrive");
}

/// SR-390, SR-391, SR-392: a replay is a new run with the same params, and changes nothing about the old one.
#[test]
fn a_replay_is_a_new_run() {
    let bed = Bed::new(6);
    let address = bed.function("f", |_| async move { Ok("{}".to_owned()) });
    let id = bed.start(&address, json!({"a": 1})).unwrap().record.invocation_id;
    let before = bed.until(&id, S::Succeeded);
    let replay = bed.control(&id, Action::Replay).unwrap();
    assert_ne!(replay.invocation_id, id);
    assert_eq!((replay.status, &replay.params), (S::Queued, &before.params));
    bed.until(&replay.invocation_id, S::Succeeded);
    assert_eq!(bed.get(&id), before);
    bed.act(&address, EntrypointStatusAction::Disable).unwrap();
    assert_eq!(bed.control(&id, Action::Replay).unwrap_err().error_type_id, errors::NOT_ACTIVE);
}

/// SR-379, SR-391: a replay has the mode of the run that it repeats, and nobody waits for it.
#[test]
fn a_replay_keeps_the_mode() {
    let bed = Bed::new(95);
    let only_sync = |document: &mut serde_json::Value| {
        document["traits"]["invocation"] = json!({"supported": ["sync"], "default": "sync"});
    };
    let address = bed.entrypoint(FUNCTION, "f", only_sync, |_| async move { Ok("{}".to_owned()) });
    let start = InvocationRequest { mode: None, ..request(&address, json!({})) };
    let first = bed.start_as(&me(), start).unwrap().record;
    assert_eq!((first.status, first.mode), (S::Succeeded, InvocationMode::Sync));
    let replay = bed.control(&first.invocation_id, Action::Replay).unwrap();
    assert_eq!((replay.status, replay.mode), (S::Queued, InvocationMode::Sync));
    assert_eq!(bed.until(&replay.invocation_id, S::Succeeded).mode, InvocationMode::Sync);
}

/// SR-530, SR-537: what was accepted goes on with the definition it started with.
#[test]
fn a_run_keeps_the_definition_it_started_with() {
    let bed = Bed::new(9);
    let address = bed.waits_for_go("kept");
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    bed.act(&address, EntrypointStatusAction::Disable).unwrap();
    assert_eq!(bed.start(&address, json!({})).unwrap_err().error_type_id, errors::NOT_ACTIVE);
    bed.signal(&id, "m", "go", json!(1)).unwrap();
    bed.until(&id, S::Succeeded);
}

/// SR-030, SR-038, SR-126, SR-130: what has no place stays queued, says why, and can be cancelled there; a place that is free is taken.
#[test]
fn no_more_run_at_once_than_may() {
    let bed = Bed::new(11);
    let address = bed.entrypoint(
        FUNCTION,
        "one",
        |document| document["traits"]["limits"]["max_concurrent"] = 1.into(),
        |call| async move {
            let params: serde_json::Value = serde_json::from_str(&call.call.payload).unwrap();
            if params["hangs"] == true { std::future::pending().await } else { Ok("{}".to_owned()) }
        },
    );
    let start = |hangs: bool| bed.start(&address, json!({"hangs": hangs})).unwrap().record.invocation_id;
    let first = start(true);
    bed.until(&first, S::Running);
    let (second, third) = (start(false), start(false));
    bed.world.pass(Duration::from_secs(5));
    for waiting in [&second, &third] {
        let record = bed.get(waiting);
        assert_eq!((record.status, record.blocked_by[0].cause), (S::Queued, Cause::Slot));
    }
    assert_eq!(bed.control(&second, Action::Cancel).unwrap().status, S::Canceled);
    assert_eq!(bed.control(&first, Action::Cancel).unwrap().status, S::Canceled);
    bed.until(&third, S::Succeeded);
    assert_eq!(bed.functions.invocations(), 2, "what was cancelled before its start was never called");
    assert_eq!(bed.timeline(&second), [T::Canceled]);
}

/// SR-179: a run begins once, and each way to end is told once.
#[test]
fn each_end_is_told_once() {
    let bed = Bed::with(18, |platform| platform.dead_letter_grace = Duration::from_secs(5));
    let address = bed.function("any", |call| async move {
        let params: serde_json::Value = serde_json::from_str(&call.call.payload).unwrap();
        match params["do"].as_str() {
            Some("fail") => Err(failure(RuntimeErrorCategory::NonRetryable, "no")),
            Some("hang") => std::future::pending().await,
            _ => Ok("{}".to_owned()),
        }
    });
    let start = |what: &str| bed.start(&address, json!({"do": what})).unwrap().record.invocation_id;
    let (succeeds, fails, hangs) = (start("work"), start("fail"), start("hang"));
    bed.until(&succeeds, S::Succeeded);
    bed.until(&fails, S::DeadLettered);
    bed.until(&hangs, S::Running);
    bed.control(&hangs, Action::Cancel).unwrap();
    assert_eq!(bed.told(&succeeds), [(T::Started, S::Running), (T::Succeeded, S::Succeeded)]);
    let ends = [(T::Started, S::Running), (T::Failed, S::Failed), (T::DeadLettered, S::DeadLettered)];
    assert_eq!(bed.told(&fails), ends);
    assert_eq!(bed.told(&hangs), [(T::Started, S::Running), (T::Canceled, S::Canceled)]);
}

/// SR-398: a retry and a replay are starts: of what can be called, within the limits, from the first attempt on.
#[test]
fn a_retry_and_a_replay_pass_the_checks_of_a_start() {
    let bed = Bed::with(19, |platform| platform.policy.quotas.max_concurrent_executions = 1);
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let address = bed.entrypoint(
        FUNCTION,
        "shaky",
        |document| {
            document["traits"]["rate_limit"] = json!({
                "strategy": "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~",
                "config": {"max_requests_per_minute": 2},
            });
        },
        move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { Err(failure(RuntimeErrorCategory::Retryable, "no")) }
        },
    );
    let hangs = bed.function("hangs", |_| std::future::pending());
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    let first = bed.until(&id, S::Failed);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    let refused = |error: &str| {
        for action in [Action::Retry, Action::Replay] {
            assert_eq!(bed.control(&id, action).unwrap_err().error_type_id, error);
        }
    };
    bed.act(&address, EntrypointStatusAction::Disable).unwrap();
    refused(errors::NOT_ACTIVE);
    bed.act(&address, EntrypointStatusAction::Enable).unwrap();
    let retried = bed.control(&id, Action::Retry).unwrap();
    assert_eq!(retried.entrypoint_version, first.entrypoint_version);
    bed.until(&id, S::Failed);
    assert_eq!(calls.load(Ordering::SeqCst), 6, "all attempts again");
    refused(errors::RATE_LIMITED);
    bed.world.pass(Duration::from_secs(61));
    bed.start(&hangs, json!({})).unwrap();
    refused(errors::QUOTA_EXCEEDED);
}
