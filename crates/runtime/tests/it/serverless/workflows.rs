//! Workflows: messages, control, steps that fail, and how their timeline is followed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use servo_entrypoint::{
    Cause, EntrypointStatusAction, InvocationControlAction as Action, InvocationMode, InvocationRequest,
    InvocationStatus as S, RestRuntime as _, RuntimeErrorCategory, TimelineEventType as T, errors,
};
use servo_model::operation::{OperationAction as A, OperationStatus, StepOptions};

use super::support::{Bed, WORKFLOW, awaits, me, request};
use crate::executions::handler::{pending, step, succeeded};

/// SR-129, SR-131, SR-175, SR-180, SR-182, SR-244: a workflow waits for a message and goes on with it.
#[test]
fn a_workflow_waits_for_a_message() {
    let bed = Bed::new(7);
    let address = bed.workflow("order", |invocation| async move {
        if invocation.known("s").is_none() {
            invocation.checkpoint(vec![step("a", A::Start), step("a", A::Succeed)]).await.unwrap();
            invocation.checkpoint(vec![awaits("approved")]).await.unwrap();
            return pending();
        }
        succeeded(r#"{"status":"done"}"#)
    });
    let begun = bed.start(&address, json!({})).unwrap().record;
    let times = |record: &servo_entrypoint::InvocationRecord| {
        let times = &record.timestamps;
        (times.started_at.is_some(), times.suspended_at.is_some(), times.finished_at.is_some())
    };
    assert_eq!((begun.status, times(&begun)), (S::Queued, (false, false, false)));
    let id = begun.invocation_id;
    let waiting = bed.until(&id, S::Suspended);
    assert_eq!(times(&waiting), (true, true, false));
    let blocked: Vec<_> = waiting.blocked_by.iter().map(|blocked| (blocked.cause, blocked.name.as_deref())).collect();
    assert_eq!((blocked, waiting.earliest_at), (vec![(Cause::Signal, Some("approved"))], None));
    let send = |signal_id: &str, name: &str| bed.signal(&id, signal_id, name, json!({"by": "ada"}));
    send("m0", "other").unwrap();
    assert_eq!(bed.get(&id).status, S::Suspended);
    send("m1", "approved").unwrap();
    send("m1", "approved").unwrap();
    let record = bed.until(&id, S::Succeeded);
    assert_eq!(record.result, Some(json!({"status": "done"})));
    assert!(record.timestamps.finished_at.is_some());
    assert_eq!(record.observability.metrics.step_count, Some(1));
    let statuses = bed.told(&id);
    for expected in
        [(T::Started, S::Running), (T::Suspended, S::Suspended), (T::Resumed, S::Running), (T::Succeeded, S::Succeeded)]
    {
        assert!(statuses.contains(&expected), "{expected:?} in {statuses:?}");
    }
    let told = bed.timeline(&id);
    let expected = [
        T::Started,
        T::StepStarted,
        T::StepCompleted,
        T::CheckpointCreated,
        T::CheckpointCreated,
        T::Suspended,
        T::SignalReceived,
        T::SignalReceived,
        T::Resumed,
        T::Succeeded,
    ];
    assert_eq!(told, expected);
    assert_eq!(send("m2", "late").unwrap_err().error_type_id, errors::CONFLICT);
}

/// SR-132, SR-394, SR-395: control of a workflow that runs.
#[test]
fn a_workflow_is_suspended_resumed_and_cancelled() {
    let bed = Bed::new(8);
    let address = bed.workflow("w", |invocation| async move {
        if invocation.known("s").is_none() {
            invocation.checkpoint(vec![awaits("go")]).await.unwrap();
        }
        pending()
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    assert_eq!(bed.control(&id, Action::Suspend).unwrap_err().error_type_id, errors::CONFLICT, "it waits already");
    let cancelled = bed.control(&id, Action::Cancel).unwrap();
    assert_eq!(cancelled.status, S::Canceled);
    assert_eq!(cancelled.error.unwrap().category, RuntimeErrorCategory::Canceled);
    let told = bed.told(&id);
    assert!(told.ends_with(&[(T::Suspended, S::Suspended), (T::Canceled, S::Canceled)]), "{told:?}");
    for action in [Action::Cancel, Action::Resume, Action::Retry, Action::Replay] {
        assert_eq!(bed.control(&id, action).unwrap_err().error_type_id, errors::CONFLICT);
    }
    assert_eq!(bed.control("inv_missing", Action::Cancel).unwrap_err().error_type_id, errors::NOT_FOUND);
}

/// SR-131, SR-388: a run that waits by itself is resumed like any that is suspended: its code looks again, and waits again if
/// what it waits for has not come. Nothing that it waits for is lost by that.
#[test]
fn a_run_that_waits_looks_again_when_it_is_resumed() {
    let bed = Bed::new(17);
    let address = bed.workflow("w", |invocation| async move {
        match invocation.known("s") {
            None => drop(invocation.checkpoint(vec![awaits("go")]).await.unwrap()),
            Some(OperationStatus::Succeeded) => return succeeded("{}"),
            Some(_) => {}
        }
        pending()
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    for _ in 0..2 {
        assert_eq!(bed.control(&id, Action::Resume).unwrap().status, S::Running);
        bed.until(&id, S::Suspended);
    }
    assert_eq!(bed.get(&id).blocked_by.len(), 1, "it waits for the same as before");
    bed.signal(&id, "m1", "go", json!({})).unwrap();
    bed.until(&id, S::Succeeded);
    let told = bed.timeline(&id);
    let moves: Vec<_> = told.into_iter().filter(|told| matches!(told, T::Suspended | T::Resumed)).collect();
    assert_eq!(moves, [T::Suspended, T::Resumed, T::Suspended, T::Resumed, T::Suspended, T::Resumed]);
    assert_eq!(bed.control(&id, Action::Resume).unwrap_err().error_type_id, errors::CONFLICT, "it has ended");
}

/// SR-381: whoever waits for the answer has it as soon as the run waits for something itself.
#[test]
fn a_sync_start_is_answered_when_the_run_waits() {
    let bed = Bed::new(18);
    let address = bed.waits_for_go("order");
    let start = InvocationRequest { mode: Some(InvocationMode::Sync), ..request(&address, json!({})) };
    let record = bed.start_as(&me(), start).unwrap().record;
    assert_eq!(record.status, S::Suspended);
    let waited = bed.world.now().since(record.timestamps.suspended_at.unwrap());
    assert!(waited < bed.engine().config().poll() / 4, "{waited:?}");
}

/// A step that has failed is tried again with its run, or counts as done; neither where its entrypoint is disabled.
#[test]
fn a_failed_step_is_tried_again_or_skipped_by_control() {
    let bed = Bed::new(12);
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let address = bed.workflow("ships", move |invocation| {
        let broken = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if invocation.known("ship") != Some(OperationStatus::Succeeded) {
                let ends = if broken { A::Fail } else { A::Succeed };
                invocation.checkpoint(vec![step("ship", A::Start), step("ship", ends)]).await.unwrap();
                if broken {
                    return Ok(json!({"Status": "FAILED", "Error": {"ErrorType": "NoStock"}}).to_string());
                }
            }
            succeeded("{}")
        }
    });
    let ship = || "ship".to_owned();
    for (action, invocations) in [(Action::RetryStep { step_id: ship() }, 2), (Action::SkipStep { step_id: ship() }, 2)]
    {
        calls.store(0, Ordering::SeqCst);
        let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
        bed.until(&id, S::Failed);
        let unknown = bed.control(&id, Action::RetryStep { step_id: "none".to_owned() }).unwrap_err();
        assert_eq!(unknown.error_type_id, errors::NOT_FOUND);
        bed.act(&address, EntrypointStatusAction::Disable).unwrap();
        assert_eq!(bed.control(&id, action.clone()).unwrap_err().error_type_id, errors::NOT_ACTIVE);
        bed.act(&address, EntrypointStatusAction::Enable).unwrap();
        assert_eq!(bed.control(&id, action.clone()).unwrap().status, S::Queued, "{action:?}");
        bed.until(&id, S::Succeeded);
        let started = bed.timeline(&id).into_iter().filter(|told| *told == T::StepStarted).count();
        let skipped = matches!(action, Action::SkipStep { .. });
        assert_eq!(started, if skipped { 1 } else { 2 }, "{action:?}");
        assert_eq!(calls.load(Ordering::SeqCst), invocations);
        assert_eq!(bed.control(&id, action).unwrap_err().error_type_id, errors::CONFLICT, "it has ended well");
    }
}

/// A timeline that is followed tells what is new, once, and where the run stands.
#[test]
fn a_timeline_is_followed() {
    let bed = Bed::new(15);
    let address = bed.waits_for_go("order");
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    let asked = id.clone();
    let mut tail = bed.run(|serverless| async move { serverless.follow_timeline(&me(), &asked).await }).ok();
    let mut news = || {
        let mut held = tail.take().unwrap();
        let (held, all, status) = bed.world.block_on(async move {
            let mut all = Vec::new();
            loop {
                let (told, status) = held.news().await.unwrap();
                if told.is_empty() {
                    return (held, all, status);
                }
                all.extend(told.into_iter().map(|event| event.event_type));
            }
        });
        tail = Some(held);
        (all, status)
    };
    assert_eq!(news(), (vec![T::Started, T::CheckpointCreated, T::Suspended], S::Suspended));
    assert_eq!(news(), (vec![], S::Suspended));
    bed.signal(&id, "m", "go", json!(1)).unwrap();
    bed.until(&id, S::Succeeded);
    assert_eq!(news(), (vec![T::SignalReceived, T::Resumed, T::Succeeded], S::Succeeded));
    let foreign = super::support::caller("eve", "other");
    let found = bed.run(|serverless| async move { serverless.follow_timeline(&foreign, &id).await.map(drop) });
    assert_eq!(found.unwrap_err().error_type_id, errors::NOT_FOUND);
}

/// What no adapter does is not promised.
#[test]
fn only_automatic_checkpoints_are_taken() {
    let bed = Bed::new(16);
    bed.functions.define(&bed.world, "w", |_| async move { pending() });
    for (strategy, taken) in [("manual", false), ("disabled", false), ("automatic", true)] {
        let mut document = super::support::definition(WORKFLOW, "w");
        document["traits"]["workflow"]["checkpointing"]["strategy"] = strategy.into();
        match bed.register(&document) {
            Ok(_) => assert!(taken, "{strategy}"),
            Err(failure) => {
                assert!(!taken, "{failure:?}");
                let path = &failure.details["issues"][0]["location"]["path"];
                assert_eq!(path, "$.traits.workflow.checkpointing.strategy");
            }
        }
    }
}

/// SR-054, SR-181, SR-230: a step that fails is tried again alone; what was done before it is not done again.
#[test]
fn a_step_is_retried_alone() {
    let bed = Bed::new(17);
    let done = Arc::new(AtomicU32::new(0));
    let counted = done.clone();
    let address = bed.workflow("steps", move |invocation| {
        let done = counted.clone();
        async move {
            if invocation.known("one").is_none() {
                done.fetch_add(1, Ordering::SeqCst);
                invocation.checkpoint(vec![step("one", A::Start), step("one", A::Succeed)]).await.unwrap();
            }
            if invocation.known("two").is_none() {
                let mut again = step("two", A::Retry);
                again.step_options = Some(StepOptions::after_seconds(1));
                invocation.checkpoint(vec![step("two", A::Start), again]).await.unwrap();
                return pending();
            }
            invocation.checkpoint(vec![step("two", A::Start), step("two", A::Succeed)]).await.unwrap();
            invocation.checkpoint(vec![step("three", A::Start), step("three", A::Fail)]).await.unwrap();
            succeeded("{}")
        }
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Succeeded);
    let steps: Vec<_> = bed.timeline(&id).into_iter().filter(|told| told.as_str().starts_with("step_")).collect();
    let (started, retried, completed) = (T::StepStarted, T::StepRetried, T::StepCompleted);
    assert_eq!(steps, [started, completed, started, retried, started, completed, started, T::StepFailed]);
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

/// What a workflow emits is a fact of its run, and reaches whoever listens under a type of its own, once.
#[test]
fn what_is_emitted_is_published() {
    let bus = Arc::new(servo_runtime::InProcessBus::default());
    let bed = Bed::of(97, |cluster| cluster.bus = bus.clone());
    let mut heard = bus.subscribe();
    let address = bed.workflow("emits", |invocation| async move {
        let update = |id: &str, sub_type: &str, action| {
            let mut update = step(id, action);
            (update.name, update.sub_type) = (Some(id.to_owned()), Some(sub_type.to_owned()));
            update
        };
        for (id, sub_type) in [("order-begun", "Emit"), ("charge", "Step")] {
            let updates = vec![
                update(id, sub_type, servo_model::operation::OperationAction::Start),
                update(id, sub_type, servo_model::operation::OperationAction::Succeed),
            ];
            invocation.checkpoint(updates).await.unwrap();
        }
        succeeded("{}")
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Succeeded);
    bed.world.pass(std::time::Duration::from_secs(2));
    let mut told = Vec::new();
    while let Ok(message) = heard.try_recv() {
        if message.run_id.as_str() == id && message.document.contains("OperationUpdated") {
            let document: serde_json::Value = serde_json::from_str(&message.document).unwrap();
            told.push((message.event_type, document["name"].clone(), document["payload"].clone()));
        }
    }
    let of = |event_type: &str, name: &str| (event_type.to_owned(), json!(name), json!("1"));
    assert_eq!(told, [of(servo_runtime::loops::relay::EMITTED, "order-begun"), of("OperationUpdated", "charge")]);
}
