//! Records: what their fields hold after each turn of a run, and who of two that race has it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use servo_adapter::{FailureKind, HandlerFailure};
use servo_entrypoint::{
    InvocationControlAction as Action, InvocationRecord, InvocationStatus as S, RuntimeErrorCategory,
    ServerlessRuntime as _, TimelineEventType as T, errors,
};
use servo_model::function::{FunctionSpec, Reach};
use servo_model::invocation::Failure;
use tokio::sync::Notify;

use super::support::{Bed, FUNCTION, WORKFLOW, awaits, me};
use crate::executions::handler::{pending, succeeded};

fn failure() -> HandlerFailure {
    let failure = Failure::new(errors::EXECUTION, RuntimeErrorCategory::NonRetryable, "no");
    HandlerFailure::new(FailureKind::Failed, failure.to_error())
}

/// SR-237: ids are opaque and never the same, also of runs that start in the same millisecond.
#[test]
fn no_two_runs_have_one_id() {
    let bed = Bed::new(91);
    let address = bed.function("f", |_| async move { Ok("{}".to_owned()) });
    let mut seen = BTreeSet::new();
    for _ in 0..100 {
        assert!(seen.insert(bed.start(&address, json!({})).unwrap().record.invocation_id));
    }
    let (engine, now) = (bed.engine(), bed.world.now());
    for _ in 0..10_000 {
        assert!(seen.insert(engine.ids().run_id(now).to_string()));
    }
    assert!(seen.iter().all(|id| id.starts_with("inv_") && !id.contains("default")));
}

/// SR-247, SR-248: a run that is cancelled while its code runs is billed up to there.
#[test]
fn what_was_cut_short_is_billed() {
    let bed = Bed::new(96);
    let address = bed.function("long", |_| std::future::pending());
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Running);
    bed.world.pass(Duration::from_secs(3));
    let metrics = bed.control(&id, Action::Cancel).unwrap().observability.metrics;
    assert!(metrics.billed_duration_ms >= Some(3_000), "{metrics:?}");
    assert_eq!(metrics.billed_duration_ms, metrics.duration_ms);
    // What comes of its code later changes nothing.
    bed.world.pass(Duration::from_secs(60));
    assert_eq!(bed.get(&id).observability.metrics, metrics);
}

/// SR-180: a function's own limit of time holds however it is started; a run that reaches it while it waits fails
/// without going on.
#[test]
fn the_time_of_a_function_holds_for_its_entrypoints() {
    let bed = Bed::new(97);
    let address = bed.waits_for_go("brief");
    let mut spec = FunctionSpec::new(Reach::InProcess);
    spec.execution_timeout_seconds = 3_600;
    bed.functions.define_as(&bed.world, "brief", &spec, |invocation| async move {
        invocation.checkpoint(vec![awaits("go")]).await.unwrap();
        pending()
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    bed.world.pass(Duration::from_secs(3_590));
    assert_eq!(bed.get(&id).status, S::Suspended);
    bed.world.pass(Duration::from_secs(20));
    let record = bed.get(&id);
    assert_eq!((record.status, record.error.unwrap().error_type_id.as_str()), (S::Failed, errors::TIMEOUT));
    let told = bed.told(&id);
    assert!(told.ends_with(&[(T::Suspended, S::Suspended), (T::Failed, S::Failed)]), "{told:?}");
}

/// SR-253: the latest suspension stays, an end is told once and not moved, and a retry begins anew.
#[test]
fn fields_follow_each_turn_of_a_run() {
    let bed = Bed::new(92);
    let waits_twice = bed.workflow("twice", |invocation| async move {
        for id in ["a", "b"] {
            if invocation.known(id).is_none() {
                let mut update = awaits(id);
                id.clone_into(&mut update.id);
                invocation.checkpoint(vec![update]).await.unwrap();
                return pending();
            }
        }
        succeeded("{}")
    });
    let id = bed.start(&waits_twice, json!({})).unwrap().record.invocation_id;
    let first = bed.until(&id, S::Suspended).timestamps.suspended_at.unwrap();
    bed.world.pass(Duration::from_secs(10));
    bed.signal(&id, "1", "a", json!(1)).unwrap();
    bed.world.pass(Duration::from_secs(1));
    let again = bed.until(&id, S::Suspended).timestamps;
    let second = again.suspended_at.unwrap();
    assert!(second > first && again.finished_at.is_none());
    bed.world.pass(Duration::from_secs(10));
    bed.signal(&id, "2", "b", json!(1)).unwrap();
    let done = bed.until(&id, S::Succeeded);
    assert_eq!(done.timestamps.suspended_at, Some(second), "the latest, also when it is over");
    assert!(done.timestamps.finished_at.unwrap() > second && done.error.is_none());

    let id = bed.start(&waits_twice, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    let cancelled = bed.control(&id, Action::Cancel).unwrap();
    assert!(cancelled.timestamps.finished_at.is_some());
    let error = cancelled.error.unwrap();
    assert_eq!((error.error_type_id.as_str(), error.category), (errors::CANCELED, RuntimeErrorCategory::Canceled));

    let fails = Arc::new(AtomicBool::new(true));
    let asked = fails.clone();
    let shaky = bed.function("shaky", move |_| {
        let fails = asked.load(Ordering::SeqCst);
        async move { if fails { Err(failure()) } else { std::future::pending().await } }
    });
    let id = bed.start(&shaky, json!({})).unwrap().record.invocation_id;
    let failed = bed.until(&id, S::Failed);
    assert!(failed.error.is_some() && failed.timestamps.finished_at.is_some());
    fails.store(false, Ordering::SeqCst);
    bed.world.pass(Duration::from_secs(1));
    let queued = bed.control(&id, Action::Retry).unwrap();
    let clean = |record: &InvocationRecord| record.error.is_none() && record.timestamps.finished_at.is_none();
    assert!(clean(&queued) && queued.timestamps.started_at.is_none());
    let running = bed.until(&id, S::Running);
    assert!(clean(&running) && running.timestamps.started_at > failed.timestamps.started_at);
}

/// SR-253: a retry forgets how the run began and ended, and not when it was last suspended.
#[test]
fn a_retry_keeps_the_latest_suspension() {
    let bed = Bed::new(94);
    let address = bed.workflow("w", |invocation| async move {
        if invocation.known("s").is_none() {
            invocation.checkpoint(vec![awaits("go")]).await.unwrap();
            return pending();
        }
        Ok(json!({"Status": "FAILED", "Error": {"ErrorMessage": "no stock"}}).to_string())
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    let suspended_at = bed.until(&id, S::Suspended).timestamps.suspended_at;
    assert!(suspended_at.is_some());
    bed.signal(&id, "1", "go", json!(1)).unwrap();
    assert_eq!(bed.until(&id, S::Failed).timestamps.suspended_at, suspended_at);
    let queued = bed.control(&id, Action::Retry).unwrap();
    assert_eq!((queued.status, queued.timestamps.suspended_at), (S::Queued, suspended_at));
    assert!(queued.timestamps.started_at.is_none() && queued.timestamps.finished_at.is_none());
    assert_eq!(bed.until(&id, S::Failed).timestamps.suspended_at, suspended_at, "it did not wait again");
}

/// SR-253: what undoes a run does not move its end.
#[test]
fn an_end_is_not_moved_by_what_undoes_it() {
    let bed = Bed::new(93);
    let (go, context) =
        (Arc::new(Notify::new()), json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"}));
    let gate = go.clone();
    let undo = bed.entrypoint(
        FUNCTION,
        "undo",
        |document| document["schema"]["params"] = context,
        move |_| {
            let gate = gate.clone();
            async move {
                gate.notified().await;
                Ok("{}".to_owned())
            }
        },
    );
    let order = bed.entrypoint(
        WORKFLOW,
        "order",
        |document| document["traits"]["workflow"]["compensation"]["on_failure"] = undo.into(),
        |_| async move { Ok(json!({"Status": "FAILED", "Error": {"ErrorMessage": "no stock"}}).to_string()) },
    );
    let id = bed.start(&order, json!({})).unwrap().record.invocation_id;
    let undoing = bed.until(&id, S::Compensating);
    let ended = undoing.timestamps.finished_at.unwrap();
    bed.world.pass(Duration::from_secs(20));
    go.notify_one();
    let undone = bed.until(&id, S::Compensated);
    assert_eq!(undone.timestamps.finished_at, Some(ended));
    assert_eq!(undone.error.map(|error| error.message), undoing.error.map(|error| error.message));
}

/// SR-399: a cancel and a completion that race: one of them has it, the other is told so, and neither is undone later.
#[test]
fn of_a_cancel_and_a_completion_one_wins() {
    let (mut cancelled, mut completed) = (0, 0);
    for seed in 0..24 {
        let bed = Bed::new(1_000 + seed);
        let go = Arc::new(Notify::new());
        let gate = go.clone();
        let address = bed.function("f", move |_| {
            let gate = gate.clone();
            async move {
                gate.notified().await;
                Ok("{}".to_owned())
            }
        });
        let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
        bed.until(&id, S::Running);
        // Both are under way at once; how far the completion is by then differs.
        let asked = id.clone();
        if seed % 2 == 0 {
            go.notify_one();
            bed.world.pass_ms(seed % 4);
        }
        let answer = bed.run(|serverless| async move {
            go.notify_one();
            serverless.control_invocation(&me(), &asked, Action::Cancel).await
        });
        bed.world.pass(Duration::from_secs(5));
        let record = bed.get(&id);
        match answer {
            Ok(told) => {
                assert_eq!((told.status, record.status), (S::Canceled, S::Canceled), "seed {seed}");
                cancelled += 1;
            }
            Err(refused) => {
                assert_eq!(
                    (refused.error_type_id.as_str(), record.status),
                    (errors::CONFLICT, S::Succeeded),
                    "seed {seed}"
                );
                completed += 1;
            }
        }
        let ends = bed.world.log().into_iter().filter(|event| event.run_id.as_str() == id);
        let ends =
            ends.filter(|event| matches!(event.event_type.as_ref(), "RunCompleted" | "RunCancelled" | "RunFailed"));
        assert_eq!(ends.count(), 1, "seed {seed}");
    }
    assert!(cancelled > 0 && completed > 0, "{cancelled} were cancelled and {completed} completed: no race");
}
