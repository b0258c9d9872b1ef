//! Suite 5: invoking other functions.

use serde_json::{Value, json};
use servo_sdk::{DurableContext, DurableError, Duration, InvokeConfig};

use super::common::{Out, serdes, text};
use crate::worker::Body;

cases! {
    "5-1" => echoed,
    "5-2" => named,
    "5-3" => echoed,
    "5-5" => fails,
    "5-6" => caught,
    "5-7" => large,
    "5-9" => then_wait,
    "5-10" => caught_then_wait,
    "5-11" => after_a_step,
    "5-13" => in_child,
    "5-14" => two,
    "5-15" => payload_serdes,
}

/// What the cases invoke.
pub(crate) const TARGETS: &[(&str, Body)] = &[
    ("echo", |event, _, _| Box::pin(async { Ok(event) })),
    ("fail", |_, _, _| Box::pin(async { Err(DurableError::user("TargetError", "the target fails")) })),
];

/// A little under what the service takes.
const LARGE_BYTES: usize = 1_000_000;

async fn echo(ctx: &DurableContext, value: Value) -> Out {
    ctx.invoke("echo", value, None).await
}

async fn echoed(event: Value, ctx: DurableContext) -> Out {
    echo(&ctx, event).await
}

async fn named(event: Value, ctx: DurableContext) -> Out {
    let config = InvokeConfig { name: Some(text(&event["name"])), ..InvokeConfig::default() };
    ctx.invoke("echo", event["payload"].clone(), Some(config)).await
}

async fn fails(event: Value, ctx: DurableContext) -> Out {
    ctx.invoke("fail", event, None).await
}

async fn caught(event: Value, ctx: DurableContext) -> Out {
    let failed: Out = ctx.invoke("fail", event, None).await;
    Ok(failed.unwrap_or_else(|_| "fallback".into()))
}

async fn large(_: Value, ctx: DurableContext) -> Out {
    let echoed = echo(&ctx, "x".repeat(LARGE_BYTES).into()).await?;
    Ok(text(&echoed).len().into())
}

async fn then_wait(event: Value, ctx: DurableContext) -> Out {
    let result = echo(&ctx, event).await?;
    ctx.wait(Duration::from_seconds(1), None).await?;
    Ok(result)
}

async fn caught_then_wait(event: Value, ctx: DurableContext) -> Out {
    let failed: Out = ctx.invoke("fail", event, None).await;
    ctx.wait(Duration::from_seconds(1), None).await?;
    Ok(json!({"caught": failed.is_err()}))
}

async fn after_a_step(_: Value, ctx: DurableContext) -> Out {
    let made = ctx.step(|_| Ok(json!("made")), None).await?;
    echo(&ctx, made).await
}

async fn in_child(event: Value, ctx: DurableContext) -> Out {
    ctx.run_in_child_context(async |child: DurableContext| Ok(echo(&child, event).await?), None).await
}

async fn two(_: Value, ctx: DurableContext) -> Out {
    let first = echo(&ctx, json!(1)).await?;
    let second = echo(&ctx, json!(2)).await?;
    Ok(json!([first, second]))
}

async fn payload_serdes(event: Value, ctx: DurableContext) -> Out {
    let upper = |value: &Value| json!({"data": text(&value["data"]).to_uppercase()}).to_string();
    let custom = serdes(upper, |data| data.into());
    let config = InvokeConfig { serdes_payload: Some(custom), ..InvokeConfig::default() };
    let echoed: Value = ctx.invoke("echo", event, Some(config)).await?;
    assert_eq!(echoed, json!({"data": "HELLO"}));
    Ok(echoed)
}
