//! Suite 8: parallel branches.

use serde_json::{Value, json};
use servo_sdk::{
    BatchResult, Branch, CompletionConfig, DurableContext, DurableError, Duration, ParallelConfig, branch,
};

use super::common::{Out, boom, projection, results, serdes, text};

cases! {
    "8-1" => two_steps,
    "8-2" => without_name,
    "8-3" => named_branches,
    "8-5" => empty,
    "8-6" => fail_fast,
    "8-7" => rethrown,
    "8-9" => tolerated,
    "8-10" => count_exceeded,
    "8-11" => concurrent,
    "8-13" => percentage_exceeded,
    "8-14" => one_waits,
    "8-15" => item_serdes,
    "8-17" => min_not_reached,
    "8-18" => both_limits,
    "8-19" => no_concurrency,
    "8-21" => nested,
    "8-22" => percentage_equal,
}

/// One after the other, so that the order of events is fixed.
fn config(name: &str) -> ParallelConfig {
    ParallelConfig { name: Some(name.to_owned()), max_concurrency: Some(1), ..ParallelConfig::default() }
}

fn rule(name: &str, completion_config: CompletionConfig) -> ParallelConfig {
    ParallelConfig { completion_config, ..config(name) }
}

fn tolerating(count: usize) -> CompletionConfig {
    CompletionConfig { tolerated_failure_count: Some(count), ..CompletionConfig::default() }
}

fn tolerating_part(percentage: f64) -> CompletionConfig {
    CompletionConfig { tolerated_failure_percentage: Some(percentage), ..CompletionConfig::default() }
}

fn constant(value: &'static str) -> Branch<'static, Value> {
    branch(move |_| Ok(value.into()))
}

fn step(value: &'static str) -> Branch<'static, Value> {
    branch(move |ctx: DurableContext| async move { Ok(ctx.step(move |_| Ok(value.into()), None).await?) })
}

/// `ok` succeeds, anything else fails.
async fn outcomes(
    ctx: &DurableContext,
    branches: &[&'static str],
    config: ParallelConfig,
) -> Result<BatchResult<Value>, DurableError> {
    let make = |name: &&'static str| if *name == "ok" { constant("ok") } else { branch(|_| boom()) };
    ctx.parallel(branches.iter().map(make).collect(), Some(config)).await
}

async fn two_steps(_: Value, ctx: DurableContext) -> Out {
    Ok(results(&ctx.parallel(vec![step("task-1"), step("task-2")], Some(config("parallel"))).await?))
}

async fn without_name(_: Value, ctx: DurableContext) -> Out {
    let config = ParallelConfig { max_concurrency: Some(1), ..ParallelConfig::default() };
    Ok(results(&ctx.parallel(vec![constant("alpha"), constant("beta")], Some(config)).await?))
}

async fn named_branches(_: Value, ctx: DurableContext) -> Out {
    let branch_names = vec!["first".to_owned(), "second".to_owned()];
    let config = ParallelConfig { branch_names, ..config("named") };
    Ok(results(&ctx.parallel(vec![constant("one"), constant("two")], Some(config)).await?))
}

async fn empty(_: Value, ctx: DurableContext) -> Out {
    let none: Vec<Branch<'_, Value>> = Vec::new();
    Ok(results(&ctx.parallel(none, Some(config("empty"))).await?))
}

async fn fail_fast(_: Value, ctx: DurableContext) -> Out {
    Ok(projection(&outcomes(&ctx, &["ok", "fail", "ok"], rule("failfast", tolerating(0))).await?))
}

async fn rethrown(_: Value, ctx: DurableContext) -> Out {
    let batch = outcomes(&ctx, &["fail", "ok"], rule("throwing", tolerating(0))).await?;
    batch.throw_if_errors()?;
    Ok(Value::Null)
}

async fn tolerated(_: Value, ctx: DurableContext) -> Out {
    Ok(projection(&outcomes(&ctx, &["ok", "fail", "ok"], rule("tolerated", tolerating(1))).await?))
}

async fn count_exceeded(_: Value, ctx: DurableContext) -> Out {
    Ok(projection(&outcomes(&ctx, &["fail", "fail", "ok"], rule("tolerated-exceeded", tolerating(1))).await?))
}

async fn concurrent(_: Value, ctx: DurableContext) -> Out {
    let config = ParallelConfig { max_concurrency: Some(2), ..config("concurrent") };
    Ok(results(&ctx.parallel(vec![constant("r0"), constant("r1"), constant("r2")], Some(config)).await?))
}

async fn percentage_exceeded(_: Value, ctx: DurableContext) -> Out {
    let config = rule("tolerated-pct", tolerating_part(25.0));
    Ok(projection(&outcomes(&ctx, &["fail", "fail", "ok", "ok"], config).await?))
}

async fn one_waits(_: Value, ctx: DurableContext) -> Out {
    let waits = branch(|ctx: DurableContext| async move {
        ctx.wait(Duration::from_seconds(2), None).await?;
        Ok("b1".into())
    });
    Ok(results(&ctx.parallel(vec![step("b0"), waits], Some(config("replay"))).await?))
}

async fn item_serdes(_: Value, ctx: DurableContext) -> Out {
    let wrapped = serdes(
        |value| json!({"wrapped": value}).to_string(),
        |data| serde_json::from_str::<Value>(data).unwrap()["wrapped"].clone(),
    );
    let config = ParallelConfig { item_serdes: Some(wrapped), ..config("serde") };
    Ok(results(&ctx.parallel(vec![constant("x"), constant("y")], Some(config)).await?))
}

async fn min_not_reached(_: Value, ctx: DurableContext) -> Out {
    let three = CompletionConfig { min_successful: Some(3), ..CompletionConfig::default() };
    Ok(projection(&outcomes(&ctx, &["ok", "fail", "ok"], rule("min-not-reached", three)).await?))
}

async fn both_limits(_: Value, ctx: DurableContext) -> Out {
    let both = CompletionConfig { min_successful: Some(3), ..tolerating(1) };
    Ok(projection(&outcomes(&ctx, &["fail", "fail", "ok", "ok"], rule("combined", both)).await?))
}

async fn no_concurrency(_: Value, ctx: DurableContext) -> Out {
    let config = ParallelConfig { max_concurrency: Some(0), ..config("bad-concurrency") };
    Ok(projection(&outcomes(&ctx, &["ok", "ok"], config).await?))
}

async fn nested(_: Value, ctx: DurableContext) -> Out {
    let inner = branch(|ctx: DurableContext| async move {
        let batch = ctx.parallel(vec![step("i1"), step("i2")], Some(config("inner"))).await?;
        let texts: Vec<String> = batch.get_results()?.into_iter().map(text).collect();
        Ok(texts)
    });
    Ok(results(&ctx.parallel(vec![inner], Some(config("outer"))).await?))
}

async fn percentage_equal(_: Value, ctx: DurableContext) -> Out {
    let config = rule("pct-boundary", tolerating_part(25.0));
    Ok(projection(&outcomes(&ctx, &["fail", "ok", "ok", "ok"], config).await?))
}
