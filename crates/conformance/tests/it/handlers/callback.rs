//! Suite 4: callbacks.

use serde_json::{Value, json};
use servo_model::Timestamp;
use servo_sdk::{Callback, CallbackConfig, DurableContext, DurableError, Duration};

use super::common::{Out, serdes, text};

cases! {
    "4-1" => basic,
    "4-2" => named,
    "4-3" => times_out,
    "4-5" => heartbeat,
    "4-6" => basic,
    "4-7" => step_between,
    "4-9" => wait_between,
    "4-10" => wait_between,
    "4-11" => times_out_while_waiting,
    "4-13" => caught,
    "4-14" => timeout_caught,
    "4-15" => custom_serdes,
    "4-17" => one_after_the_other,
    "4-18" => in_order,
    "4-19" => in_reverse,
}

fn config(name: &Value) -> CallbackConfig {
    CallbackConfig { name: Some(text(name)), ..CallbackConfig::default() }
}

async fn create(ctx: &DurableContext, config: CallbackConfig) -> Result<Callback<Value>, DurableError> {
    ctx.create_callback(Some(config)).await
}

async fn basic(event: Value, ctx: DurableContext) -> Out {
    create(&ctx, config(&event)).await?.result().await
}

async fn named(_: Value, ctx: DurableContext) -> Out {
    create(&ctx, config(&"approval".into())).await?.result().await
}

async fn times_out(event: Value, ctx: DurableContext) -> Out {
    create(&ctx, CallbackConfig { timeout_seconds: Some(5), ..config(&event) }).await?.result().await
}

async fn heartbeat(event: Value, ctx: DurableContext) -> Out {
    create(&ctx, CallbackConfig { heartbeat_timeout_seconds: Some(10), ..config(&event) }).await?.result().await
}

async fn step_between(event: Value, ctx: DurableContext) -> Out {
    let callback = create(&ctx, config(&event)).await?;
    let () = ctx.step(|_| Ok(()), None).await?;
    callback.result().await
}

async fn wait_between(event: Value, ctx: DurableContext) -> Out {
    let callback = create(&ctx, config(&event)).await?;
    ctx.wait(Duration::from_seconds(5), None).await?;
    callback.result().await
}

async fn times_out_while_waiting(event: Value, ctx: DurableContext) -> Out {
    let callback = create(&ctx, CallbackConfig { timeout_seconds: Some(3), ..config(&event) }).await?;
    ctx.wait(Duration::from_seconds(6), None).await?;
    callback.result().await
}

/// The error's message, after a wait.
async fn message_later(ctx: &DurableContext, config: CallbackConfig) -> Out {
    let message = match create(ctx, config).await?.result().await {
        Ok(value) => value,
        Err(error) => error.message().into(),
    };
    ctx.wait(Duration::from_seconds(2), None).await?;
    Ok(message)
}

async fn caught(event: Value, ctx: DurableContext) -> Out {
    message_later(&ctx, config(&event)).await
}

async fn timeout_caught(event: Value, ctx: DurableContext) -> Out {
    message_later(&ctx, CallbackConfig { timeout_seconds: Some(3), ..config(&event) }).await
}

async fn custom_serdes(event: Value, ctx: DurableContext) -> Out {
    let dated = serdes(
        |value| value.to_string(),
        |data| {
            let mut value: Value = serde_json::from_str(data).unwrap();
            let time = Timestamp::parse(&text(&value["timestamp"])).unwrap();
            value["timestamp"] = (time.as_millis() / 1000).into();
            value
        },
    );
    let received = create(&ctx, CallbackConfig { serdes: Some(dated), ..config(&event) }).await?.result().await?;
    Ok(json!({"received": received}))
}

async fn one_after_the_other(event: Value, ctx: DurableContext) -> Out {
    let first = create(&ctx, config(&event[0])).await?.result().await?;
    let second = create(&ctx, config(&event[1])).await?.result().await?;
    Ok(json!([first, second]))
}

async fn in_order(event: Value, ctx: DurableContext) -> Out {
    let first = create(&ctx, config(&event[0])).await?;
    let second = create(&ctx, config(&event[1])).await?;
    Ok(json!([first.result().await?, second.result().await?]))
}

async fn in_reverse(event: Value, ctx: DurableContext) -> Out {
    let first = create(&ctx, config(&event[0])).await?;
    let second = create(&ctx, config(&event[1])).await?;
    let second = second.result().await?;
    Ok(json!([first.result().await?, second]))
}
