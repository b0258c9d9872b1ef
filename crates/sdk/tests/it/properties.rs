//! The correctness properties that need a whole execution.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::Value;
use servo_sdk::{
    Backoff, Clock as _, CompletionConfig, DurableContext, DurableError, DurableFuture, Duration, InvocationStatus,
    JsonSerDes, MapConfig, OperationAction, OperationStatus, SerDes as _, SerDesContext, StepConfig, StepSemantics,
    TerminationReason,
};

use crate::service::World;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig::with_cases(cases)
}

/// A program of steps, waits and children, and how deep it goes.
#[derive(Debug, Clone)]
enum Part {
    Step(u32),
    Wait(u64),
    Child(Vec<Part>),
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let leaf = prop_oneof![any::<u32>().prop_map(Part::Step), (1_u64..100).prop_map(Part::Wait)];
    let part = leaf.prop_recursive(3, 20, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Part::Child));
    prop::collection::vec(part, 0..6)
}

fn perform<'a>(
    parts: &'a [Part],
    ctx: DurableContext,
    runs: &'a AtomicUsize,
) -> futures_util::future::BoxFuture<'a, Result<u64, DurableError>> {
    Box::pin(async move {
        let mut sum = 0;
        for part in parts {
            match part {
                Part::Step(value) => {
                    let body = |_| {
                        runs.fetch_add(1, Ordering::SeqCst);
                        Ok(u64::from(*value))
                    };
                    sum += ctx.step(body, None).await?;
                }
                Part::Wait(seconds) => ctx.wait(Duration::from_seconds(*seconds), None).await?,
                Part::Child(inner) => {
                    sum += ctx.run_in_child_context(async |child| Ok(perform(inner, child, runs).await?), None).await?;
                }
            }
        }
        Ok(sum)
    })
}

fn steps_of(parts: &[Part]) -> (usize, u64) {
    parts.iter().fold((0, 0), |(count, sum), part| match part {
        Part::Step(value) => (count + 1, sum + u64::from(*value)),
        Part::Wait(_) => (count, sum),
        Part::Child(inner) => {
            let (inner_count, inner_sum) = steps_of(inner);
            (count + inner_count, sum + inner_sum)
        }
    })
}

proptest! {
    #![proptest_config(cases(150))]

    /// DX-050 (property 1): whatever was recorded comes back, and no body runs a second time.
    #[test]
    fn replay_returns_the_record(parts in parts()) {
        let runs = AtomicUsize::new(0);
        let world = World::new("null");
        let handler = async |_: (), ctx: DurableContext| perform(&parts, ctx, &runs).await;
        let report = world.run(handler);
        let (count, sum) = steps_of(&parts);
        prop_assert_eq!(&report.result, &Some(sum.to_string()));
        prop_assert_eq!(runs.load(Ordering::SeqCst), count);
        // Once more over the whole record: the same answer, no body, no call.
        let calls = world.attempts();
        let again = world.invoke(&handler, world.options()).unwrap().unwrap();
        prop_assert_eq!(again.result, report.result);
        prop_assert_eq!((runs.load(Ordering::SeqCst), world.attempts()), (count, calls));
    }

    /// DX-051 (property 2): what JSON writes it reads back.
    #[test]
    fn json_reads_back_what_it_wrote(value in json()) {
        let context = SerDesContext { operation_id: "o".into(), durable_execution_arn: "a".into() };
        let serdes = JsonSerDes::<Value>::new();
        let text = serdes.serialize(&value, &context).unwrap();
        prop_assert_eq!(serdes.deserialize(&text, &context).unwrap(), value);
    }

    /// DX-055 (property 6): a map is done with its M-th success, whatever the rest is doing.
    #[test]
    fn a_map_ends_with_enough_successes(outcomes in prop::collection::vec((any::<bool>(), 1_u64..50), 1..12), min in 1_usize..5) {
        let world = World::new("null");
        let clock = world.clock.clone();
        let started = clock.millis();
        let report = world.run(async |_: (), ctx: DurableContext| {
            let completion_config = CompletionConfig { min_successful: Some(min), ..CompletionConfig::default() };
            let batch = ctx.map(outcomes.clone(), async |child: DurableContext, (ok, millis): (bool, u64), _| {
                let step = StepConfig { retry_strategy: Some(Box::new(Backoff::none())), ..StepConfig::default() };
                Ok(child.step(async |_| {
                    clock.sleep(std::time::Duration::from_millis(millis)).await;
                    if ok { Ok(()) } else { Err("no".into()) }
                }, Some(step)).await?)
            }, Some(MapConfig { completion_config, ..MapConfig::default() })).await?;
            Ok((batch.success_count(), batch.failure_count()))
        });
        let successes = outcomes.iter().filter(|(ok, _)| *ok).count();
        let (succeeded, _): (usize, usize) = serde_json::from_str(&report.result.unwrap()).unwrap();
        let elapsed = clock.millis() - started;
        if successes >= min {
            let mut times: Vec<u64> = outcomes.iter().filter(|(ok, _)| *ok).map(|(_, millis)| *millis).collect();
            times.sort_unstable();
            prop_assert!(succeeded >= min);
            prop_assert_eq!(elapsed, i64::try_from(times[min - 1]).unwrap(), "ends at that success, not later");
        } else {
            prop_assert_eq!(succeeded, successes);
        }
    }

    /// DX-056 (property 7): at most once means START first and no second run in the attempt; at least once means START with
    /// the outcome.
    #[test]
    fn semantics_decide_the_order(at_most_once in any::<bool>(), attempts in 1_u32..4, crash_at in 1_u32..4) {
        let world = World::new("null");
        let runs = std::sync::Mutex::new(Vec::new());
        let crashed = AtomicUsize::new(0);
        let report = world.run(async |_: (), ctx: DurableContext| {
            let step_semantics = if at_most_once { StepSemantics::AtMostOncePerRetry } else { StepSemantics::AtLeastOncePerRetry };
            let retry = Backoff::fixed(attempts, std::time::Duration::from_secs(1));
            let config = StepConfig { step_semantics, retry_strategy: Some(Box::new(retry)), ..StepConfig::default() };
            ctx.step(async |step| {
                runs.lock().unwrap().push(step.attempt());
                let starts = world.calls().iter().flat_map(|call| call.updates.clone()).filter(|update| update.action == OperationAction::Start).count();
                let begun = usize::try_from(step.attempt()).unwrap();
                if at_most_once { assert_eq!(starts, begun) } else { assert!(starts < begun) }
                if step.attempt() == crash_at && crashed.fetch_add(1, Ordering::SeqCst) == 0 {
                    world.crash().await;
                }
                if step.attempt() < attempts { Err("again".into()) } else { Ok(step.attempt()) }
            }, Some(config)).await
        });
        let runs = runs.into_inner().unwrap();
        let crashes = crash_at <= attempts;
        if at_most_once {
            prop_assert_eq!(&runs, &(1..=attempts).collect::<Vec<_>>(), "no attempt runs twice");
            if crashes && crash_at == attempts {
                let error = report.error.unwrap();
                prop_assert_eq!(error.error_type.as_deref(), Some("StepInterruptedError"));
            } else {
                prop_assert_eq!(report.status, InvocationStatus::Succeeded);
            }
        } else {
            prop_assert_eq!(report.status, InvocationStatus::Succeeded);
            prop_assert_eq!(runs.len(), usize::try_from(attempts).unwrap() + usize::from(crashes));
        }
    }

    /// DX-019, DX-057 (property 8): totals of all constructors, and waits under a second are refused.
    #[test]
    fn durations_have_the_right_totals(n in 0_u64..100_000) {
        let cases = [
            (Duration::from_seconds(n), 1), (Duration::from_minutes(n), 60), (Duration::from_hours(n), 3_600),
            (Duration::from_days(n), 86_400), (Duration::from_weeks(n), 604_800), (Duration::from_months(n), 2_592_000),
            (Duration::from_years(n), 31_536_000),
        ];
        for (duration, factor) in cases {
            prop_assert_eq!(duration.to_seconds(), n * factor);
        }
        let short = Duration::from(std::time::Duration::from_millis(n));
        prop_assert_eq!(short.to_seconds(), n.div_ceil(1_000));
        let seconds = n % 2;
        let report = World::new("null").run(async |_: (), ctx: DurableContext| ctx.wait(Duration::from_seconds(seconds), None).await);
        match seconds {
            0 => prop_assert_eq!(report.error.unwrap().error_type, Some("ValidationError".to_owned())),
            _ => prop_assert_eq!(report.status, InvocationStatus::Succeeded),
        }
    }

    /// DX-058 (property 9): who carries a context out of its scope cannot record with it.
    #[test]
    fn an_orphan_cannot_record(before in 0_usize..4, late in any::<bool>()) {
        let world = World::new("null");
        let runs = AtomicUsize::new(0);
        let report = world.run(async |_: (), ctx: DurableContext| {
            let kept = std::sync::Mutex::new(None);
            ctx.run_in_child_context(async |child| {
                for _ in 0..before {
                    child.step(|_| Ok(()), None).await?;
                }
                *kept.lock().unwrap() = Some(child);
                Ok(())
            }, None).await?;
            if late {
                ctx.wait(Duration::from_seconds(1), None).await?;
            }
            // On replay the child's body does not run, so there is nothing to carry out.
            let Some(child) = kept.into_inner().unwrap() else { return Ok("replayed".to_owned()) };
            match child.step(|_| { runs.fetch_add(1, Ordering::SeqCst); Ok(()) }, None).await {
                Err(DurableError::OrphanedChild { .. }) => Ok("orphan".to_owned()),
                other => Ok(format!("{other:?}")),
            }
        });
        prop_assert_eq!(report.result.as_deref(), Some(if late { "\"replayed\"" } else { "\"orphan\"" }));
        prop_assert_eq!(runs.load(Ordering::SeqCst), 0);
    }

    /// DX-059 (property 10): another operation under a recorded id ends the execution, with both sides named, and no
    /// handler can catch it.
    #[test]
    fn a_changed_program_fails(first in 0_usize..4, second in 0_usize..4) {
        async fn one(kind: usize, ctx: &DurableContext) -> Result<(), DurableError> {
            match kind {
                0 => ctx.step(|_| Ok(()), None).await,
                1 => ctx.step(|_| Ok(()), Some(StepConfig { name: Some("named".into()), ..StepConfig::default() })).await,
                2 => ctx.wait(Duration::from_seconds(1), None).await,
                _ => ctx.run_in_child_context(|_| Ok(()), None).await,
            }
        }
        let world = World::new("null");
        let invocation = AtomicUsize::new(0);
        let report = world.run(async |_: (), ctx: DurableContext| {
            let kind = if invocation.fetch_add(1, Ordering::SeqCst) == 0 { first } else { second };
            // Whoever swallows errors still does not get past it.
            let _ = one(kind, &ctx).await;
            ctx.wait(Duration::from_seconds(5), None).await
        });
        if first == second {
            prop_assert_eq!(report.status, InvocationStatus::Succeeded);
        } else {
            prop_assert_eq!(report.status, InvocationStatus::Failed);
            let error = report.error.unwrap();
            prop_assert_eq!(error.error_type.as_deref(), Some("NonDeterministicExecutionError"));
            let names = ["STEP/Step without", "STEP/Step \"named\"", "WAIT/Wait without", "CONTEXT/RunInChildContext without"];
            let message = error.error_message.unwrap();
            prop_assert!(message.contains(names[first]) && message.contains(names[second]), "{}", message);
        }
    }

    /// DX-060, DX-071 (property 11): what a handler returns decides the status.
    #[test]
    fn the_outcome_decides_the_status(kind in 0_usize..9, text in "[a-z]{0,20}") {
        let error = || match kind {
            1 => DurableError::Execution { message: text.clone(), termination_reason: TerminationReason::ExecutionError },
            2 => DurableError::UserCode { message: text.clone(), error_type: "Mine".into(), stack_trace: None },
            3 => DurableError::SizeLimit { message: text.clone() },
            4 => DurableError::Validation { message: text.clone() },
            5 => DurableError::Checkpoint { message: text.clone(), is_retriable: false, aws_error: None },
            6 => DurableError::Invocation { message: text.clone(), termination_reason: TerminationReason::InvocationError },
            7 => DurableError::Checkpoint { message: text.clone(), is_retriable: true, aws_error: None },
            _ => DurableError::Suspend { scheduled_timestamp: None },
        };
        let world = World::new("null");
        let handler = async |_: (), _: DurableContext| if kind == 0 { Ok(text.clone()) } else { Err(error()) };
        let answer = world.invoke(&handler, world.options()).unwrap();
        match kind {
            0 => {
                let answer = answer.unwrap();
                prop_assert_eq!((answer.status, answer.result), (InvocationStatus::Succeeded, Some(format!("\"{text}\""))));
            }
            1..=5 => {
                let answer = answer.unwrap();
                prop_assert_eq!((answer.status, answer.result), (InvocationStatus::Failed, None));
                prop_assert_eq!(answer.error.unwrap().error_message, Some(text));
            }
            6 | 7 => prop_assert_eq!(answer.unwrap_err().0, error()),
            _ => prop_assert_eq!(answer.unwrap().status, InvocationStatus::Pending),
        }
    }

    /// DX-061 (property 12): the body of a READY step waits for no call, and its attempt is the next one.
    #[test]
    fn a_ready_step_runs_at_once(failed in 1_u32..5) {
        let world = World::new("null");
        let calls_at_start = AtomicUsize::new(0);
        let handler = async |_: (), ctx: DurableContext| {
            calls_at_start.store(world.attempts(), Ordering::SeqCst);
            let retry = Backoff::fixed(10, std::time::Duration::from_secs(1));
            ctx.step(|step| {
                assert_eq!(world.attempts(), calls_at_start.load(Ordering::SeqCst), "no call before the body");
                if step.attempt() <= failed { Err("again".into()) } else { Ok(step.attempt()) }
            }, Some(StepConfig { name: Some("s".into()), retry_strategy: Some(Box::new(retry)), ..StepConfig::default() })).await
        };
        let report = world.run(handler);
        prop_assert_eq!(report.result, Some((failed + 1).to_string()));
        prop_assert_eq!(world.calls().len(), usize::try_from(failed).unwrap() + 1, "one call for each attempt");
        prop_assert_eq!(world.named("s").status, OperationStatus::Succeeded);
    }

    /// DX-062 (property 13): all, all_settled, race and any, judged by who settles when.
    #[test]
    fn combinators_keep_their_promise(futures in prop::collection::btree_map(1_u64..60, any::<bool>(), 1..7), kind in 0_usize..4) {
        let mut order: Vec<(u64, bool)> = futures.into_iter().collect();
        // In the program they stand in another order than they settle in.
        order.reverse();
        let world = World::new("null");
        let report = world.run(async |_: (), ctx: DurableContext| {
            let clock = &world.clock;
            let make = |&(millis, ok): &(u64, bool)| -> DurableFuture<'_, Result<u64, DurableError>> {
                let retry = StepConfig { retry_strategy: Some(Box::new(Backoff::none())), ..StepConfig::default() };
                ctx.step(move |_| async move {
                    clock.sleep(std::time::Duration::from_millis(millis)).await;
                    if ok { Ok(millis) } else { Err(format!("{millis} failed").into()) }
                }, Some(retry))
            };
            let futures: Vec<_> = order.iter().map(make).collect();
            let shown = match kind {
                0 => ctx.all(futures).await.map(|all| format!("{all:?}")),
                1 => ctx.race(futures).await.map(|first| first.to_string()),
                2 => ctx.any(futures).await.map(|first| first.to_string()),
                _ => {
                    let batch = ctx.all_settled(futures).await;
                    Ok(format!("{} {} {}", batch.success_count(), batch.failure_count(), batch.total_count()))
                }
            };
            let shown = shown.unwrap_or_else(|error| error.message().to_owned());
            // Once more from the record.
            ctx.wait(Duration::from_seconds(1), None).await?;
            Ok(shown)
        });
        let by_time = || order.iter().rev();
        let first_failure = by_time().find(|(_, ok)| !ok);
        let expected = match kind {
            0 => match first_failure {
                Some((millis, _)) => format!("{millis} failed"),
                None => format!("{:?}", order.iter().map(|(millis, _)| *millis).collect::<Vec<_>>()),
            },
            1 => match by_time().next().unwrap() {
                (millis, true) => millis.to_string(),
                (millis, false) => format!("{millis} failed"),
            },
            2 => match by_time().find(|(_, ok)| *ok) {
                Some((millis, _)) => millis.to_string(),
                None => {
                    let reasons: Vec<String> = by_time().map(|(millis, _)| format!("{millis} failed")).collect();
                    format!("all {} futures failed: {}", reasons.len(), reasons.join("; "))
                }
            },
            _ => {
                let successes = order.iter().filter(|(_, ok)| *ok).count();
                format!("{successes} {} {}", order.len() - successes, order.len())
            }
        };
        prop_assert_eq!(report.result, Some(serde_json::to_string(&expected).unwrap()));
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e300..1e300_f64).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
