//! Callbacks, invocations, contexts, conditions, groups and combinators: success, failure and replay of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use servo_sdk::{
    Backoff, BatchItemStatus, CallbackConfig, CompletionConfig, CompletionReason, ContextConfig, DurableContext,
    DurableError, Duration, ErrorObject, InvocationStatus, InvokeConfig, ItemBatcher, MapConfig, OperationStatus,
    OperationType, ParallelConfig, StepConfig, WaitDecision, WaitForCallbackConfig, WaitForConditionConfig, branch,
};

use crate::service::World;

fn named(name: &str) -> Option<StepConfig> {
    Some(StepConfig { name: Some(name.into()), ..StepConfig::default() })
}

/// DX-006: an answer, a failure and both timeouts resolve a callback.
#[test]
fn a_callback_resolves_in_four_ways() {
    async fn handler(timeout: (Option<u64>, Option<u64>), ctx: DurableContext) -> Result<String, DurableError> {
        let config = CallbackConfig {
            name: Some("approval".into()),
            timeout_seconds: timeout.0,
            heartbeat_timeout_seconds: timeout.1,
            ..CallbackConfig::default()
        };
        let callback = ctx.create_callback::<String>(Some(config)).await?;
        let id = callback.callback_id().to_owned();
        match callback.result().await {
            Ok(answer) => Ok(format!("{id}: {answer}")),
            Err(DurableError::Callback { message, callback_id, status }) => {
                Ok(format!("{}: {message} {:?}", callback_id.unwrap_or_default(), status))
            }
            Err(error) => Err(error),
        }
    }
    let answered = World::new("[null,null]").answer("approval", 60, Ok("\"yes\"".into())).run(handler);
    assert_eq!((answered.result.as_deref(), answered.invocations), (Some("\"cb1: yes\""), 2));
    let error = ErrorObject::new("Denied", "no way");
    let failed = World::new("[null,null]").answer("approval", 60, Err(error)).run(handler);
    assert_eq!(failed.result.as_deref(), Some("\"cb1: no way Some(Failed)\""));
    let late = World::new("[30,null]").answer("approval", 60, Ok("\"yes\"".into())).run(handler);
    assert_eq!(late.result.as_deref(), Some("\"cb1: Callback timed out Some(TimedOut)\""));
    let silent = World::new("[null,10]").run(handler);
    assert_eq!(silent.result.as_deref(), Some("\"cb1: Callback timed out on heartbeat Some(TimedOut)\""));
}

/// DX-012: a callback, its submitter as a step, and the answer, in one context.
#[test]
fn wait_for_callback_submits_once() {
    let submitted = AtomicUsize::new(0);
    let world = World::new("null").answer("approve create callback id", 3600, Ok("5".into()));
    let report = world.run(async |_: (), ctx: DurableContext| {
        let config = WaitForCallbackConfig { name: Some("approve".into()), ..WaitForCallbackConfig::default() };
        let answer: u32 = ctx
            .wait_for_callback(
                |_, id| {
                    assert_eq!(id, "cb2");
                    submitted.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                },
                Some(config),
            )
            .await?;
        Ok(answer)
    });
    assert_eq!(report.result.as_deref(), Some("5"));
    assert_eq!(submitted.load(Ordering::SeqCst), 1);
    assert_eq!(world.named("approve").sub_type.as_deref(), Some("WaitForCallback"));
}

/// DX-007: result, error and tenant of an invoked function.
#[test]
fn invoke_returns_the_result_or_the_error() {
    async fn handler(name: String, ctx: DurableContext) -> Result<u32, DurableError> {
        let config =
            InvokeConfig { tenant_id: Some("acme".into()), name: Some("call".into()), ..InvokeConfig::default() };
        ctx.invoke::<u32, u32>(&name, 3, Some(config)).await
    }
    let world = World::new("\"double\"").function("double", 30, Ok("6".into()));
    assert_eq!(world.run(handler).result.as_deref(), Some("6"));
    let sent = &world.calls()[0].updates[0];
    let options = sent.chained_invoke_options.clone().unwrap();
    assert_eq!((options.function_name.as_str(), options.tenant_id.as_deref()), ("double", Some("acme")));
    assert_eq!(sent.payload.as_deref(), Some("3"));

    let failing = World::new("\"double\"").function("double", 30, Err(ErrorObject::new("Broken", "it broke")));
    let error = failing.run(handler).error.unwrap();
    assert_eq!((error.error_type.as_deref(), error.error_message.as_deref()), (Some("Broken"), Some("it broke")));

    // The answer to the START is looked at: a function that does not exist costs no second invocation.
    let missing = World::new("\"nobody\"").run(handler);
    assert_eq!((missing.status, missing.invocations), (InvocationStatus::Failed, 1));
}

/// DX-010: ids of a child are its own, its result is recorded once, and its operations are not replayed afterwards.
#[test]
fn a_finished_child_is_not_run_again() {
    let bodies = AtomicUsize::new(0);
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let config = ContextConfig { name: Some("child".into()), ..ContextConfig::default() };
        let value: u32 = ctx
            .run_in_child_context(
                async |child| {
                    bodies.fetch_add(1, Ordering::SeqCst);
                    let a: u32 = child.step(|_| Ok(1), named("inner")).await?;
                    child.wait(Duration::from_seconds(5), None).await?;
                    let b: u32 = child.step(|_| Ok(2), None).await?;
                    Ok(a + b)
                },
                Some(config),
            )
            .await?;
        ctx.wait(Duration::from_seconds(5), None).await?;
        Ok(value)
    });
    assert_eq!((report.result.as_deref(), report.invocations), (Some("3"), 3));
    assert_eq!(bodies.load(Ordering::SeqCst), 2, "once, and once more because it was suspended inside");
    assert_eq!(world.named("inner").parent_id, Some(world.named("child").id));
}

/// DX-010, §22: a result over 256 KB is not recorded; the body runs again over its recorded steps.
#[test]
fn a_large_result_is_replayed_from_the_children() {
    let (bodies, steps) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let config = ContextConfig { name: Some("large".into()), ..ContextConfig::default() };
        let text: String = ctx
            .run_in_child_context(
                async |child| {
                    bodies.fetch_add(1, Ordering::SeqCst);
                    let part: String = child
                        .step(
                            |_| {
                                steps.fetch_add(1, Ordering::SeqCst);
                                Ok("x".repeat(200 * 1024))
                            },
                            None,
                        )
                        .await?;
                    Ok(part.repeat(2))
                },
                Some(config),
            )
            .await?;
        ctx.wait(Duration::from_seconds(5), None).await?;
        Ok(text.len())
    });
    assert_eq!(report.result.as_deref(), Some("409600"));
    assert_eq!((bodies.load(Ordering::SeqCst), steps.load(Ordering::SeqCst)), (2, 1));
    let details = world.named("large").context_details.unwrap();
    assert_eq!((details.replay_children, details.result.as_deref()), (Some(true), Some("")));
}

/// DX-011: the state goes from check to check; nothing runs in between.
#[test]
fn a_condition_is_polled_with_its_state() {
    let world = World::new("null");
    let checks = AtomicUsize::new(0);
    let report = world.run(async |_: (), ctx: DurableContext| {
        let config = WaitForConditionConfig::new(10_u32, |state: &u32, _| {
            if *state >= 13 { WaitDecision::Done } else { WaitDecision::Continue(Duration::from_minutes(10)) }
        });
        ctx.wait_for_condition(
            |state, context| {
                let count = checks.fetch_add(1, Ordering::SeqCst) + 1;
                assert_eq!(usize::try_from(context.attempt()).unwrap(), count);
                Ok(state + 1)
            },
            config.named("grown"),
        )
        .await
    });
    assert_eq!((report.result.as_deref(), report.invocations), (Some("13"), 3));
    assert_eq!(checks.load(Ordering::SeqCst), 3);
    assert_eq!(world.named("grown").sub_type.as_deref(), Some("WaitForCondition"));
}

/// DX-008, DX-030, DX-031: a map runs its items side by side within its limit, and failures are part of the result.
#[test]
fn a_map_collects_results_and_failures() {
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let world = World::new("null");
    let clock: Arc<dyn servo_sdk::Clock> = Arc::new(world.clock.clone());
    let report = world.run(async |_: (), ctx: DurableContext| {
        let config = MapConfig { max_concurrency: Some(3), name: Some("all".into()), ..MapConfig::default() };
        let batch = ctx
            .map(
                (0_u64..10).collect(),
                async |child: DurableContext, item: u64, index: usize| {
                    let retry = StepConfig { retry_strategy: Some(Box::new(Backoff::none())), ..StepConfig::default() };
                    let value: u64 = child
                        .step(
                            async |_| {
                                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                                clock.sleep(std::time::Duration::from_millis(10 + item)).await;
                                now.fetch_sub(1, Ordering::SeqCst);
                                if item % 4 == 3 { Err("odd one".into()) } else { Ok(item * 2) }
                            },
                            Some(retry),
                        )
                        .await?;
                    assert_eq!(u64::try_from(index).unwrap(), item);
                    Ok(value)
                },
                Some(config),
            )
            .await?;
        assert_eq!((batch.success_count(), batch.failure_count(), batch.total_count()), (8, 2, 10));
        assert!(batch.has_failures() && batch.throw_if_errors().is_err() && batch.get_results().is_err());
        assert_eq!(batch.failed().iter().map(|item| item.index).collect::<Vec<_>>(), [3, 7]);
        assert_eq!(batch.completion_reason, CompletionReason::AllCompleted);
        Ok(batch.succeeded().iter().filter_map(|item| item.result).collect::<Vec<_>>())
    });
    assert_eq!(report.result.as_deref(), Some("[0,2,4,8,10,12,16,18]"), "{report:?}");
    assert_eq!(most.load(Ordering::SeqCst), 3);
    let items =
        world.operations().into_iter().filter(|operation| operation.sub_type.as_deref() == Some("MapIteration"));
    assert_eq!(items.count(), 10);
}

/// DX-008: a map over 256 KB comes back from its items, and unfinished items stay unfinished.
#[test]
fn a_large_map_is_replayed_from_its_items() {
    let bodies = AtomicUsize::new(0);
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let completion = CompletionConfig { min_successful: Some(3), ..CompletionConfig::default() };
        let batch = ctx
            .map(
                vec![0_usize, 1, 2, 3, 4],
                async |child: DurableContext, item: usize, _| {
                    bodies.fetch_add(1, Ordering::SeqCst);
                    if item == 1 {
                        child.wait(Duration::from_days(1), None).await?;
                    }
                    Ok(item.to_string().repeat(100 * 1024))
                },
                Some(MapConfig { completion_config: completion, max_concurrency: Some(2), ..MapConfig::default() }),
            )
            .await?;
        ctx.wait(Duration::from_seconds(5), None).await?;
        let shown = batch.items.iter().map(|item| (item.index, item.status, item.result.as_ref().map(String::len)));
        Ok((shown.collect::<Vec<_>>(), batch.completion_reason))
    });
    let size = Some(102_400);
    let expected = (
        vec![
            (0, BatchItemStatus::Succeeded, size),
            (1, BatchItemStatus::Started, None),
            (2, BatchItemStatus::Succeeded, size),
            (3, BatchItemStatus::Succeeded, size),
        ],
        CompletionReason::MinSuccessfulReached,
    );
    assert_eq!(report.result, Some(serde_json::to_string(&expected).unwrap()));
    assert_eq!(bodies.load(Ordering::SeqCst), 4, "the items' own results are recorded, no body runs again");
}

/// DX-022: items share contexts, by number and by size.
#[test]
fn an_item_batcher_groups_items() {
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let batcher = ItemBatcher { max_items_per_batch: 4, max_bytes_per_batch: 1_000 };
        let batch = ctx
            .map(
                (0_u32..10).collect(),
                |_, item: u32, _| if item == 5 { Err("five".into()) } else { Ok(item + 1) },
                Some(MapConfig { item_batcher: Some(batcher), ..MapConfig::default() }),
            )
            .await?;
        assert_eq!(batch.failed()[0].index, 5);
        Ok(batch.success_count())
    });
    assert_eq!(report.result.as_deref(), Some("9"));
    let groups =
        world.operations().into_iter().filter(|operation| operation.sub_type.as_deref() == Some("MapIteration"));
    assert_eq!(groups.count(), 3);
}

/// DX-009: different functions side by side; a limit of none is refused before anything is recorded.
#[test]
fn parallel_runs_different_branches() {
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let branches = vec![
            branch(|_| Ok(1_u32)),
            branch(async |child: DurableContext| Ok(child.step(|_| Ok(2_u32), None).await?)),
            branch(async |child: DurableContext| {
                child.wait(Duration::from_seconds(2), None).await?;
                Ok(3)
            }),
        ];
        let batch = ctx.parallel(branches, None).await?;
        let refused = ctx
            .parallel(vec![branch(|_| Ok(()))], Some(ParallelConfig { max_concurrency: Some(0), ..Default::default() }))
            .await;
        assert!(matches!(refused, Err(DurableError::Validation { .. })), "{refused:?}");
        Ok(batch.get_results()?.into_iter().copied().collect::<Vec<u32>>())
    });
    assert_eq!((report.result.as_deref(), report.invocations), (Some("[1,2,3]"), 2), "{report:?}");
    let kinds = world.operations().into_iter().filter(|operation| operation.operation_type == OperationType::Context);
    assert_eq!(kinds.count(), 4);
}

/// DX-013: who won a race is recorded; on replay, when both are there, the winner is the same.
#[test]
fn a_race_is_decided_once() {
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let slow = ctx.wait(Duration::from_seconds(20), Some("slow"));
        let fast = ctx.wait(Duration::from_seconds(10), Some("fast"));
        let slow = async { slow.await.map(|()| "slow".to_owned()) };
        let fast = async { fast.await.map(|()| "fast".to_owned()) };
        let futures: Vec<std::pin::Pin<Box<dyn Future<Output = _> + Send>>> = vec![Box::pin(slow), Box::pin(fast)];
        let winner = ctx.race(futures).await?;
        ctx.wait(Duration::from_minutes(5), None).await?;
        Ok(winner)
    });
    assert_eq!(report.result.as_deref(), Some("\"fast\""));
    assert_eq!(world.named("slow").status, OperationStatus::Succeeded, "the loser was there too, on replay");
}

/// DX-005: a wait that is cancelled lets its waiter go on; cancelling it again changes nothing.
#[test]
fn a_cancelled_wait_lets_go() {
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let wait = ctx.wait(Duration::from_days(30), Some("long"));
        let id = wait.operation_id().to_owned();
        let cancel = async {
            ctx.step(|_| Ok(()), None).await?;
            ctx.cancel_wait(&id).await?;
            ctx.cancel_wait(&id).await
        };
        let (waited, cancelled) = futures_util::future::join(wait, cancel).await;
        waited.and(cancelled)
    });
    assert_eq!((report.status, report.invocations), (InvocationStatus::Succeeded, 1), "{report:?}");
    assert_eq!(world.named("long").status, OperationStatus::Cancelled);
}

/// DX-014: the input, also after a replay.
#[test]
fn the_original_input_stays_readable() {
    let report = World::new("{\"n\":4}").run(async |_: serde_json::Value, ctx: DurableContext| {
        ctx.wait(Duration::from_seconds(1), None).await?;
        let input: serde_json::Value = ctx.get_original_input()?;
        Ok(input["n"].as_u64())
    });
    assert_eq!((report.result.as_deref(), report.invocations), (Some("4"), 2));
}
