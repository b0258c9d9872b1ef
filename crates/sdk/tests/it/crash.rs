//! The process dies at every call, before and after the service has carried it out, and the answer is lost. Whatever
//! happens, the result is the same, and a body whose outcome is recorded does not run again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use servo_sdk::{
    Backoff, BoxError, DurableContext, DurableError, Duration, InvocationStatus, MapConfig, StepConfig, StepContext,
    StepSemantics, WaitDecision, WaitForCallbackConfig, WaitForConditionConfig, branch,
};

use crate::service::{Fault, World};

/// How often each body ran, by name and attempt.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<BTreeMap<(String, u32), usize>>>);

impl Runs {
    fn count(&self, name: &str, step: &StepContext) {
        *self.0.lock().unwrap().entry((name.to_owned(), step.attempt())).or_default() += 1;
    }

    fn take(&self) -> BTreeMap<(String, u32), usize> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn config(name: &str, step_semantics: StepSemantics) -> Option<StepConfig> {
    let retry = Backoff::fixed(3, std::time::Duration::from_secs(2));
    Some(StepConfig {
        name: Some(name.into()),
        retry_strategy: Some(Box::new(retry)),
        step_semantics,
        ..StepConfig::default()
    })
}

/// Something of everything.
async fn everything(runs: Runs, ctx: DurableContext) -> Result<Vec<u64>, DurableError> {
    let least = StepSemantics::AtLeastOncePerRetry;
    let body = |name: &'static str, value: u64| {
        let runs = runs.clone();
        move |step: StepContext| -> Result<u64, BoxError> {
            runs.count(name, &step);
            Ok(value)
        }
    };
    let mut results = vec![ctx.step(body("first", 1), config("first", least)).await?];
    let flaky = |step: StepContext| {
        runs.count("flaky", &step);
        if step.attempt() < 3 { Err("not yet".into()) } else { Ok(2) }
    };
    results.push(ctx.step(flaky, config("flaky", least)).await?);
    ctx.wait(Duration::from_seconds(30), Some("pause")).await?;
    let callback = WaitForCallbackConfig { name: Some("approve".into()), ..WaitForCallbackConfig::default() };
    let submit = |step: StepContext, _: String| {
        runs.count("submit", &step);
        Ok(())
    };
    results.push(ctx.wait_for_callback(submit, Some(callback)).await?);
    let runs_of_items = runs.clone();
    let mapped = ctx
        .map(
            vec![10_u64, 20, 30],
            async |child: DurableContext, item: u64, index: usize| {
                let name = format!("item{index}");
                let runs = runs_of_items.clone();
                let counted = name.clone();
                let value: u64 = child
                    .step(
                        move |step| {
                            runs.count(&counted, &step);
                            Ok(item)
                        },
                        config(&name, StepSemantics::AtLeastOncePerRetry),
                    )
                    .await?;
                child.wait(Duration::from_seconds(item), None).await?;
                Ok(value + 1)
            },
            Some(MapConfig { max_concurrency: Some(2), ..MapConfig::default() }),
        )
        .await?;
    results.extend(mapped.get_results()?.into_iter().copied());
    let grown = WaitForConditionConfig::new(0_u64, |state, _| match state {
        3.. => WaitDecision::Done,
        _ => WaitDecision::Continue(Duration::from_seconds(4)),
    });
    results.push(ctx.wait_for_condition(|state, _| Ok(state + 1), grown).await?);
    let once = body("once", 7);
    let branches = vec![
        branch(async move |child: DurableContext| {
            Ok(child.step(once, config("once", StepSemantics::AtMostOncePerRetry)).await?)
        }),
        branch(async |child: DurableContext| Ok(child.invoke::<u64, u64>("double", 4, None).await?)),
    ];
    let both = ctx.parallel(branches, None).await?;
    results.extend(both.items.iter().map(|item| item.result.unwrap_or(0)));
    let raced = vec![ctx.step(body("racer", 9), config("racer", least))];
    results.push(ctx.race(raced).await?);
    Ok(results)
}

fn world() -> World {
    World::new("null").answer("approve create callback id", 100, Ok("3".into())).function("double", 6, Ok("8".into()))
}

/// What comes out, and how often bodies ran.
fn play(world: &World) -> (Option<String>, InvocationStatus, BTreeMap<(String, u32), usize>) {
    let runs = Runs::default();
    let report = world.run(async |_: (), ctx: DurableContext| everything(runs.clone(), ctx).await);
    assert!(report.invocations > report.crashes + report.reinvocations, "the last one returned");
    (report.result, report.status, runs.take())
}

const GOOD: &str = "[1,2,3,11,21,31,3,7,8,9]";
/// The at-most-once step was interrupted three times: its attempts are used up and its branch has failed.
const WITHOUT_ONCE: &str = "[1,2,3,11,21,31,3,0,8,9]";

#[test]
fn without_faults_every_body_runs_once_for_each_attempt() {
    let world = world();
    let (result, _, runs) = play(&world);
    assert_eq!(result.as_deref(), Some(GOOD));
    assert!(runs.values().all(|count| *count == 1), "{runs:?}");
    assert_eq!(runs.len(), 10);
}

/// DX-050, DX-071: at every call, each kind of fault.
#[test]
fn a_fault_at_any_call_changes_no_result() {
    let calls = {
        let world = world();
        play(&world);
        world.attempts()
    };
    assert!(calls > 15, "the handler should be worth crashing: {calls} calls");
    let faults = [
        Fault::CrashBefore,
        Fault::CrashAfter,
        Fault::LostAnswer,
        Fault::Throttled,
        Fault::Unavailable,
        Fault::StaleToken("Invalid checkpoint token: it is old"),
        Fault::StaleToken("Invalid Checkpoint Token"),
        Fault::Withdrawn,
    ];
    for call in 1..=calls {
        for fault in faults {
            let world = world().fault(call, fault);
            let (result, status, runs) = play(&world);
            assert_eq!((result.as_deref(), status), (Some(GOOD), InvocationStatus::Succeeded), "{fault:?} at {call}");
            let most = match fault {
                // The invocation went on: nothing was lost, so nothing is repeated.
                Fault::LostAnswer | Fault::Throttled | Fault::Unavailable | Fault::Withdrawn | Fault::CrashAfter => 1,
                _ => 2,
            };
            assert!(runs.values().all(|count| *count <= most), "{fault:?} at {call}: {runs:?}");
            for ((name, attempt), count) in runs {
                assert!(name != "once" || count == 1, "at most once: {fault:?} at {call}, attempt {attempt}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// DX-050: many faults in one execution.
    #[test]
    fn many_faults_change_no_result(faults in prop::collection::btree_map(1_usize..60, 0_usize..5, 0..8)) {
        let kinds = [Fault::CrashBefore, Fault::CrashAfter, Fault::LostAnswer, Fault::Throttled, Fault::Withdrawn];
        let mut world = world();
        for (call, kind) in &faults {
            world = world.fault(*call, kinds[*kind]);
        }
        let (result, status, runs) = play(&world);
        prop_assert_eq!(status, InvocationStatus::Succeeded);
        let result = result.unwrap_or_default();
        prop_assert!(result == GOOD || result == WITHOUT_ONCE, "{}", result);
        let crashes = faults.values().filter(|kind| **kind == 0).count();
        for ((name, _), count) in runs {
            prop_assert!(count <= 1 + crashes);
            prop_assert!(name != "once" || count == 1);
        }
    }
}

/// Seen from the side of at-least-once: the control for the tests above. A body does run again when its outcome was lost.
#[test]
fn a_lost_outcome_runs_the_body_again() {
    let world = world().fault(1, Fault::CrashBefore);
    let (_, _, runs) = play(&world);
    assert_eq!(runs.get(&("first".to_owned(), 1)), Some(&2));
}
