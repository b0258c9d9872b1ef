//! Workflows: messages, control, steps that fail, and how their timeline is followed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;
use servo_entrypoint::{
    Cause, EntrypointStatusAction, InvocationControlAction as Action, InvocationMode, InvocationRequest,
    InvocationStatus as S, RestRuntime as _, RuntimeErrorCategory, TimelineEventType as T, errors,
};
use servo_model::function::Reach;
use servo_model::invocation::Failure;
use servo_model::operation::{
    OperationAction as A, OperationStatus, OperationType, OperationUpdate, StepOptions, WaitOptions,
};
use servo_runtime::serverless::STARLARK;

use super::adapters::AnySource;
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
    assert_eq!(blocked, vec![(Cause::Signal, Some("approved"))]);
    let day = waiting.timestamps.suspended_at.unwrap().plus(Duration::from_secs(86_400));
    assert_eq!(waiting.earliest_at, Some(day), "a message may never come, and then the suspension ends");
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

/// Decision 17: of more timers than a record names, the earliest counts; and a suspension by control has an end as well.
#[test]
fn the_earliest_of_all_timers_is_told() {
    let bed = Bed::new(98);
    let address = bed.workflow("timers", |invocation| async move {
        let timers = (0..150).map(|number| {
            let mut wait = OperationUpdate::new(format!("w{number}"), OperationType::Wait, A::Start);
            wait.wait_options = Some(WaitOptions { wait_seconds: Some(if number == 149 { 600 } else { 3_600 }) });
            wait
        });
        if invocation.known("w0").is_none() {
            invocation.checkpoint(timers.collect()).await.unwrap();
        }
        pending()
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    let waiting = bed.until(&id, S::Suspended);
    assert_eq!(waiting.blocked_by.len(), 100);
    let started = waiting.timestamps.started_at.unwrap();
    let seconds = |record: &servo_entrypoint::InvocationRecord| record.earliest_at.unwrap().since(started).as_secs();
    assert!((600..700).contains(&seconds(&waiting)), "{}", seconds(&waiting));

    let hangs = bed.workflow("hangs", |_| std::future::pending());
    let id = bed.start(&hangs, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Running);
    let suspended = bed.control(&id, Action::Suspend).unwrap();
    assert_eq!(suspended.status, S::Suspended);
    let day = suspended.timestamps.suspended_at.unwrap().plus(Duration::from_secs(86_400));
    assert_eq!(suspended.earliest_at, Some(day));
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

/// SR-049, SR-054, SR-181, SR-230: a step that fails is tried again alone, by the policy of its entrypoint; what was done before it is
/// not done again.
#[test]
fn a_step_is_retried_alone() {
    let bed = Bed::with(17, |platform| {
        platform.sources = Arc::new(AnySource);
        platform.adapters.push(STARLARK.to_owned());
    });
    let mut document = super::support::definition(WORKFLOW, "steps");
    document["implementation"] =
        json!({"adapter": STARLARK, "kind": "code", "code": {"language": "starlark", "source": "x"}});
    document["traits"]["retry"] =
        json!({"max_attempts": 3, "initial_delay_ms": 7_000, "non_retryable_errors": ["gts.a.b.never.v1~"]});
    let registered = bed.register(&document).unwrap();
    let done = Arc::new(AtomicU32::new(0));
    let tried = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (counted, noted) = (done.clone(), tried.clone());
    // As an adapter does it: by the policy that it is called with.
    bed.functions.answer(&registered.id.unwrap(), move |invocation| {
        let (done, tried) = (counted.clone(), noted.clone());
        async move {
            let Reach::Code(code) = &invocation.call.spec.reach else { panic!("it has code of its own") };
            let fails = |id: &str, attempt: u32, error_type: &str| {
                let failure = Failure::new(error_type, RuntimeErrorCategory::Retryable, "no");
                let Some(wait_ms) = code.retry.next_delay_ms(attempt, &failure) else { return step(id, A::Fail) };
                let mut again = step(id, A::Retry);
                again.step_options = Some(StepOptions::after_seconds(wait_ms / 1_000));
                again
            };
            if invocation.known("one").is_none() {
                done.fetch_add(1, Ordering::SeqCst);
                invocation.checkpoint(vec![step("one", A::Start), step("one", A::Succeed)]).await.unwrap();
            }
            let attempt = {
                let mut tried = tried.lock().unwrap();
                tried.push(invocation.executions.engine().now());
                u32::try_from(tried.len()).unwrap()
            };
            let ended = fails("two", attempt, errors::EXECUTION);
            let is_over = ended.action == A::Fail;
            invocation.checkpoint(vec![step("two", A::Start), ended]).await.unwrap();
            if !is_over {
                return pending();
            }
            let listed = fails("three", 1, "gts.a.b.never.v1~");
            invocation.checkpoint(vec![step("three", A::Start), listed]).await.unwrap();
            succeeded("{}")
        }
    });
    bed.act(&registered.entrypoint_id, EntrypointStatusAction::Activate).unwrap();
    let id = bed.start(&registered.entrypoint_id, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Succeeded);
    let steps: Vec<_> = bed.timeline(&id).into_iter().filter(|told| told.as_str().starts_with("step_")).collect();
    let (started, retried, failed) = (T::StepStarted, T::StepRetried, T::StepFailed);
    let two = [started, retried, started, retried, started, failed];
    assert_eq!(steps, [&[started, T::StepCompleted][..], &two, &[started, failed]].concat());
    assert_eq!(done.load(Ordering::SeqCst), 1);
    let tried = tried.lock().unwrap();
    let waited: Vec<_> = tried.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
    assert_eq!(waited, [7, 10], "twice as long, up to what the policy has by default");
}

/// SR-327, SR-384: a timeline goes on to the run's end, however long it is.
#[test]
fn a_long_timeline_is_told_to_its_end() {
    let bed = Bed::new(99);
    let address = bed.workflow("long", |invocation| async move {
        for round in 0..101 {
            let ids = (0..500).map(|number| format!("{round}-{number}"));
            let updates = ids.flat_map(|id| [step(&id, A::Start), step(&id, A::Succeed)]);
            invocation.checkpoint(updates.collect()).await.unwrap();
        }
        succeeded("{}")
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Succeeded);
    let told = bed.timeline(&id);
    assert_eq!((told.len(), told.last()), (1 + 101 * 1_001 + 1, Some(&T::Succeeded)));
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
    bed.world.pass(Duration::from_secs(2));
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
