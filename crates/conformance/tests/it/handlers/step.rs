//! Suite 1: steps.

use std::time::Duration;

use serde_json::{Value, json};
use servo_sdk::{
    Backoff, BoxError, DurableContext, DurableError, Jitter, RetryContext, RetryDecision, StepConfig, StepContext,
    StepSemantics,
};

use super::common::{Out, attempts, boom, no_retry, text, uppercase};
use crate::worker::Crash;

cases! {
    "1-1" => basic,
    "1-2" => named,
    "1-3" => sequential,
    "1-5" => null,
    "1-6" => custom_serdes,
    "1-7" => logs,
    "1-9" => replay_skips,
    "1-10" => replay_throws,
    "1-11" => retried,
    "1-13" => default_retry,
    "1-14" => custom_retry,
    "1-15" => retried_by_type,
    "1-19" => fails,
    ;
    "1-17" => crashes,
    "1-18" => crashes_once,
}

async fn basic(event: Value, ctx: DurableContext) -> Out {
    let greeting: String = ctx.step(|_| Ok(format!("Hello, {}!", text(&event))), None).await?;
    Ok(greeting.into())
}

async fn named(event: Value, ctx: DurableContext) -> Out {
    let config = StepConfig { name: Some("custom_step_name".to_owned()), ..StepConfig::default() };
    let greeting: String = ctx.step(|_| Ok(format!("Hello, {}!", text(&event))), Some(config)).await?;
    Ok(greeting.into())
}

async fn sequential(_: Value, ctx: DurableContext) -> Out {
    let first: String = ctx.step(|_| Ok("first".to_owned()), None).await?;
    let second: String = ctx.step(|_| Ok(format!("{first}_second")), None).await?;
    Ok(second.into())
}

async fn null(_: Value, ctx: DurableContext) -> Out {
    let () = ctx.step(|_| Ok(()), None).await?;
    Ok(Value::Null)
}

async fn custom_serdes(event: Value, ctx: DurableContext) -> Out {
    let config = StepConfig { serdes: Some(uppercase()), ..StepConfig::default() };
    ctx.step(|_| Ok(event), Some(config)).await
}

async fn logs(event: Value, ctx: DurableContext) -> Out {
    let greet = |step: StepContext| {
        let name = text(&event);
        step.logger().info(format!("Greeting step started for: {name}"));
        let greeting = format!("Hello, {name}!");
        step.logger().info(format!("Greeting step completed with: {greeting}"));
        Ok(greeting)
    };
    let greeting: String = ctx.step(greet, None).await?;
    Ok(greeting.into())
}

async fn replay_skips(_: Value, ctx: DurableContext) -> Out {
    let cached: String = ctx.step(|_| Ok("cached_value".to_owned()), None).await?;
    ctx.wait(servo_sdk::Duration::from_seconds(1), None).await?;
    Ok(cached.into())
}

async fn replay_throws(_: Value, ctx: DurableContext) -> Out {
    let failed: Result<Value, _> = ctx.step(|_| boom(), no_retry()).await;
    ctx.wait(servo_sdk::Duration::from_seconds(1), None).await?;
    Ok(json!({"caught": failed.is_err()}))
}

/// Fails before the `nth` attempt.
fn from_attempt(nth: u32, step: &StepContext) -> Result<String, BoxError> {
    if step.attempt() < nth { boom() } else { Ok("Operation succeeded".to_owned()) }
}

async fn retried(_: Value, ctx: DurableContext) -> Out {
    let config = StepConfig { retry_strategy: attempts(3), ..StepConfig::default() };
    let result: String = ctx.step(|step: StepContext| from_attempt(2, &step), Some(config)).await?;
    Ok(result.into())
}

async fn default_retry(_: Value, ctx: DurableContext) -> Out {
    let result: String = ctx.step(|step: StepContext| from_attempt(3, &step), None).await?;
    Ok(result.into())
}

async fn custom_retry(_: Value, ctx: DurableContext) -> Out {
    let backoff = Backoff {
        max_attempts: 5,
        initial: Duration::from_secs(2),
        factor: 3.0,
        jitter: Jitter::None,
        ..Backoff::default()
    };
    let config = StepConfig { retry_strategy: Some(Box::new(backoff)), ..StepConfig::default() };
    let result: String = ctx.step(|step: StepContext| from_attempt(3, &step), Some(config)).await?;
    Ok(result.into())
}

async fn retried_by_type(_: Value, ctx: DurableContext) -> Out {
    let transient = |context: &RetryContext<'_>| match context.failure.error_type {
        "TransientError" => RetryDecision::Retry(Duration::from_secs(1)),
        _ => RetryDecision::GiveUp,
    };
    let config = StepConfig { retry_strategy: Some(Box::new(transient)), ..StepConfig::default() };
    let body = |step: StepContext| match step.attempt() {
        1 => Err(DurableError::user("TransientError", "not now").into()),
        _ => Ok("done".to_owned()),
    };
    let result: String = ctx.step(body, Some(config)).await?;
    Ok(result.into())
}

async fn fails(_: Value, ctx: DurableContext) -> Out {
    ctx.step(|_| boom(), no_retry()).await
}

async fn crashes(event: Value, ctx: DurableContext, crash: Crash) -> Out {
    let config = StepConfig {
        name: Some("at_most_once_flaky_step".to_owned()),
        step_semantics: StepSemantics::AtMostOncePerRetry,
        retry_strategy: attempts(1),
        ..StepConfig::default()
    };
    let body = async |step: StepContext| {
        step.logger().info(text(&event));
        crash.exit().await
    };
    ctx.step(body, Some(config)).await
}

async fn crashes_once(event: Value, ctx: DurableContext, crash: Crash) -> Out {
    let config = StepConfig {
        step_semantics: StepSemantics::AtMostOncePerRetry,
        retry_strategy: attempts(3),
        ..StepConfig::default()
    };
    let body = async |step: StepContext| {
        step.logger().info(text(&event));
        if step.attempt() == 1 { crash.exit().await } else { Ok("succeeded on second attempt".into()) }
    };
    ctx.step(body, Some(config)).await
}
