//! Configurations in every way they can be written: none, in `Some`, as they are, by name or as a literal.

use std::time::Duration as Time;

use servo_sdk::{
    CallbackConfig, CompletionConfig, ContextConfig, DurableContext, DurableError, Duration, InvokeConfig, MapConfig,
    OperationStatus, ParallelConfig, StepConfig, WaitForCallbackConfig, branch,
};
use servo_sdk_testkit::{Answer, Kit};

async fn handler(fancy: bool, ctx: DurableContext) -> Result<Vec<u32>, DurableError> {
    let mut seen: Vec<u32> = vec![ctx.step(|_| Ok(1), None).await?];
    seen.push(ctx.step(|_| Ok(2), Some(StepConfig { name: Some("literal".into()), ..StepConfig::default() })).await?);
    seen.push(ctx.step(|_| Ok(3), Some(StepConfig::named("some"))).await?);
    seen.push(ctx.step(|_| Ok(4), StepConfig::named("plain").at_most_once()).await?);
    seen.push(ctx.step(async |_| Ok(5), fancy.then(|| StepConfig::named("sometimes"))).await?);
    seen.push(ctx.invoke("next", 5_u32, None).await?);
    seen.push(ctx.invoke("next", 6_u32, InvokeConfig::named("next")).await?);
    seen.push(ctx.run_in_child_context(async |_| Ok(8), None).await?);
    seen.push(ctx.run_in_child_context(|_| Ok(9), ContextConfig::named("child").replay_children()).await?);
    let half = MapConfig::named("half").completion(CompletionConfig::first_successful()).max_concurrency(1);
    let mapped = ctx.map(vec![10, 20], |_, item: u32, _| Ok(item), half.item_names(|item, _| item.to_string())).await?;
    seen.extend(mapped.into_results()?);
    let branches = vec![branch(|_| Ok(11)), branch(async |_| Ok(12))];
    let both = ctx.parallel(branches, ParallelConfig::named("both").branch_names(["left", "right"])).await?;
    seen.extend(both.into_results()?);
    seen.push(ctx.wait_for_callback(|_, _| Ok(()), WaitForCallbackConfig::named("answered").no_retry()).await?);
    Ok(seen)
}

async fn next(number: u32, _: DurableContext) -> Result<u32, DurableError> {
    Ok(number + 1)
}

#[test]
fn every_form_of_a_configuration_is_taken() {
    let kit = Kit::new().handler("handler", handler).handler("next", next);
    let outcome = kit.on_callback("answered", Answer::succeed(&13)).run("handler", true);
    assert_eq!(outcome.value::<Vec<u32>>(), (1..=13).collect::<Vec<u32>>());
    for name in ["literal", "some", "plain", "sometimes", "next", "child", "half", "10", "both", "left", "right"] {
        assert_eq!(outcome.operation(name).status, OperationStatus::Succeeded, "{name}");
    }
    assert_eq!(outcome.operations_named("20").count(), 0);
}

#[test]
fn retries_and_timeouts_take_durations() {
    async fn asks(_: (), ctx: DurableContext) -> Result<u32, DurableError> {
        let twice = StepConfig::named("twice").retry_every(2, Time::from_secs(100));
        let () = ctx.step(|_| Ok(()), twice).await?;
        let silent = CallbackConfig::named("silent").heartbeat_timeout(Duration::from_minutes(5));
        let silent = ctx.create_callback::<u32>(silent.timeout(Duration::from_hours(1))).await?;
        silent.result().await
    }
    let kit = Kit::new().handler("asks", asks).fail_step("twice", 1, "once");
    let outcome = kit.clone().run("asks", ());
    assert_eq!(outcome.operation("silent").status, OperationStatus::TimedOut);
    assert_eq!(outcome.elapsed.as_secs(), 400);
    let beats = kit.clone().heartbeat_after("silent", Time::from_secs(290)).run("asks", ());
    assert_eq!(beats.elapsed.as_secs(), 690);
    let outcome = kit.fail_step("twice", 2, "again").run("asks", ());
    assert_eq!(outcome.operation("twice").status, OperationStatus::Failed);
}
