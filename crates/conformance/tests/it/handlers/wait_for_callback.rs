//! Suite 7: waiting for callbacks.

use serde_json::Value;
use servo_sdk::{BoxError, DurableContext, Duration, WaitForCallbackConfig};

use super::common::{Out, attempts, boom, text};

cases! {
    "7-1" => basic,
    "7-2" => named,
    "7-3" => without_name,
    "7-5" => times_out,
    "7-6" => caught,
    "7-7" => submitter_fails,
    "7-9" => two,
    "7-10" => after_wait_and_step,
    "7-11" => structured,
    "7-13" => heartbeat,
    "7-14" => timeout_caught,
    "7-15" => basic,
}

fn config(name: &str) -> WaitForCallbackConfig {
    WaitForCallbackConfig { name: Some(name.to_owned()), ..WaitForCallbackConfig::default() }
}

async fn wait(ctx: &DurableContext, config: WaitForCallbackConfig) -> Out {
    ctx.wait_for_callback(|_, _| Ok::<_, BoxError>(()), Some(config)).await
}

async fn basic(event: Value, ctx: DurableContext) -> Out {
    wait(&ctx, config(&text(&event))).await
}

async fn named(_: Value, ctx: DurableContext) -> Out {
    wait(&ctx, config("approval")).await
}

async fn without_name(_: Value, ctx: DurableContext) -> Out {
    wait(&ctx, WaitForCallbackConfig::default()).await
}

async fn times_out(event: Value, ctx: DurableContext) -> Out {
    wait(&ctx, WaitForCallbackConfig { timeout_seconds: Some(3), ..config(&text(&event)) }).await
}

async fn caught(event: Value, ctx: DurableContext) -> Out {
    Ok(wait(&ctx, config(&text(&event))).await.unwrap_or_else(|_| "recovered".into()))
}

async fn submitter_fails(event: Value, ctx: DurableContext) -> Out {
    let config = WaitForCallbackConfig { retry_strategy: attempts(2), ..config(&text(&event)) };
    ctx.wait_for_callback(|_, _| boom(), Some(config)).await
}

async fn two(_: Value, ctx: DurableContext) -> Out {
    wait(&ctx, config("first")).await?;
    wait(&ctx, config("second")).await
}

async fn after_wait_and_step(event: Value, ctx: DurableContext) -> Out {
    ctx.wait(Duration::from_seconds(1), None).await?;
    ctx.step(|_| Ok("data".to_owned()), None).await?;
    wait(&ctx, config(&text(&event))).await
}

async fn structured(event: Value, ctx: DurableContext) -> Out {
    let answer = wait(&ctx, config(&text(&event))).await?;
    Ok(answer["status"].clone())
}

async fn heartbeat(event: Value, ctx: DurableContext) -> Out {
    wait(&ctx, WaitForCallbackConfig { heartbeat_timeout_seconds: Some(10), ..config(&text(&event)) }).await
}

async fn timeout_caught(event: Value, ctx: DurableContext) -> Out {
    let config = WaitForCallbackConfig { timeout_seconds: Some(3), ..config(&text(&event)) };
    Ok(wait(&ctx, config).await.unwrap_or_else(|_| "timed-out-handled".into()))
}
