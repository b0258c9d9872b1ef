//! Faults at every checkpoint of a handler that has something of everything.

use std::collections::BTreeMap;

use servo_sdk::{
    Backoff, DurableContext, DurableError, Duration, MapConfig, StepConfig, StepContext, WaitDecision,
    WaitForCallbackConfig, WaitForConditionConfig,
};
use servo_sdk_testkit::{Answer, Crash, Kit, Outcome};

fn named(name: &str) -> Option<StepConfig> {
    let retry = Backoff::fixed(3, std::time::Duration::from_secs(2));
    Some(StepConfig { name: Some(name.into()), retry_strategy: Some(Box::new(retry)), ..StepConfig::default() })
}

async fn everything(start: u64, ctx: DurableContext) -> Result<Vec<u64>, DurableError> {
    let mut results: Vec<u64> = vec![ctx.step(|_| Ok(start), named("first")).await?];
    let flaky = |step: StepContext| if step.attempt() < 2 { Err("not yet".into()) } else { Ok(2) };
    results.push(ctx.step(flaky, named("flaky")).await?);
    ctx.wait(Duration::from_days(30), Some("pause")).await?;
    let callback = WaitForCallbackConfig { name: Some("approve".into()), ..WaitForCallbackConfig::default() };
    results.push(ctx.wait_for_callback(|_, _: String| Ok(()), Some(callback)).await?);
    let item = async |child: DurableContext, item: u64, index: usize| {
        let value: u64 = child.step(move |_| Ok(item), named(&format!("item{index}"))).await?;
        child.wait(Duration::from_seconds(item), None).await?;
        Ok(value + 1)
    };
    let mapped = ctx.map(vec![10, 20, 30], item, Some(MapConfig::default())).await?;
    results.extend(mapped.get_results()?.into_iter().copied());
    let grown = WaitForConditionConfig::new(0_u64, |state, _| match state {
        3.. => WaitDecision::Done,
        _ => WaitDecision::Continue(Duration::from_seconds(4)),
    });
    results.push(ctx.wait_for_condition(|state, _| Ok(state + 1), grown).await?);
    results.push(ctx.invoke("double", 4_u64, None).await?);
    Ok(results)
}

async fn double(number: u64, ctx: DurableContext) -> Result<u64, DurableError> {
    ctx.step(|_| Ok(number * 2), named("double")).await
}

fn kit() -> Kit {
    let kit = Kit::new().handler("everything", everything).handler("double", double);
    kit.on_callback_after("approve", std::time::Duration::from_secs(100), Answer::succeed(&3))
}

const GOOD: [u64; 8] = [1, 2, 3, 11, 21, 31, 3, 8];

fn same(outcome: &Outcome, what: &str) {
    assert_eq!(outcome.value::<Vec<u64>>(), GOOD, "{what}");
    assert_eq!(outcome.reruns, Vec::<String>::new(), "{what}");
}

#[test]
fn without_faults_every_body_runs_once_for_each_attempt() {
    let outcome = kit().run("everything", 1);
    same(&outcome, "no fault");
    assert!(outcome.attempts.values().all(|count| *count == 1), "{:?}", outcome.attempts);
    assert!(outcome.checkpoints > 8, "worth a crash: {} checkpoints", outcome.checkpoints);
}

/// DX-050, DX-100: a crash at any checkpoint changes no result, and what is recorded does not run again.
#[test]
fn a_crash_anywhere_changes_nothing() {
    let outcomes = kit().run_with_every_crash("everything", 1);
    assert!(outcomes.len() > 16);
    for (n, when, outcome) in outcomes {
        same(&outcome, &format!("{when:?} {n}"));
        assert_eq!(outcome.crashes, 1);
    }
}

/// DX-100: the other faults, at every checkpoint.
#[test]
fn calls_that_go_wrong_change_nothing() {
    let kinds: BTreeMap<&str, fn(Kit, usize) -> Kit> = BTreeMap::from([
        ("lost", Kit::lose_response as fn(Kit, usize) -> Kit),
        ("twice", Kit::duplicate_request),
        ("stale", Kit::stale_token),
    ]);
    let calls = kit().run("everything", 1).checkpoints;
    for (name, fault) in kinds {
        for n in 1..=calls {
            let outcome = fault(kit(), n).run("everything", 1);
            same(&outcome, &format!("{name} {n}"));
            assert_eq!(outcome.crashes, 0);
        }
    }
}

/// The control: bodies do run again where nothing was recorded, so the tests above could fail.
#[test]
fn a_lost_outcome_runs_the_body_again() {
    let outcome = kit().crash_at_checkpoint(1, Crash::Before).run("everything", 1);
    assert_eq!((outcome.runs_of("first"), outcome.crashes), (2, 1));
    assert!(outcome.reruns.is_empty());
}
