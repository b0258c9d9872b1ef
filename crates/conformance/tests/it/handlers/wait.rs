//! Suite 2: waits.

use serde_json::{Value, json};
use servo_sdk::{DurableContext, Duration};

use super::common::Out;

cases! {
    "2-1" => basic,
    "2-2" => named,
    "2-3" => two,
    "2-5" => an_hour,
}

async fn basic(_: Value, ctx: DurableContext) -> Out {
    ctx.wait(Duration::from_seconds(2), None).await?;
    Ok(Value::Null)
}

async fn named(_: Value, ctx: DurableContext) -> Out {
    ctx.wait(Duration::from_seconds(2), Some("custom_wait_name")).await?;
    Ok(Value::Null)
}

async fn two(_: Value, ctx: DurableContext) -> Out {
    ctx.wait(Duration::from_seconds(2), Some("wait-1")).await?;
    ctx.wait(Duration::from_seconds(2), Some("wait-2")).await?;
    Ok(json!({"completedWaits": 2}))
}

async fn an_hour(_: Value, ctx: DurableContext) -> Out {
    ctx.wait(Duration::from_hours(1), None).await?;
    Ok(Value::Null)
}
