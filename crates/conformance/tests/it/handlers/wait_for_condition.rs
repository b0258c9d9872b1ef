//! Suite 6: waiting for conditions.

use serde_json::{Value, json};
use servo_sdk::{BoxError, DurableContext, DurableError, Duration, WaitDecision, WaitForConditionConfig};

use super::common::{Out, boom, serdes, text};

cases! {
    "6-1" => to_threshold,
    "6-2" => at_once,
    "6-3" => named,
    "6-5" => fixed_delay,
    "6-6" => exhausted,
    "6-7" => fails,
    "6-9" => object,
    "6-10" => null,
    "6-11" => custom_serdes,
    "6-13" => two,
}

fn every(seconds: u64, done: bool) -> WaitDecision {
    if done { WaitDecision::Done } else { WaitDecision::Continue(Duration::from_seconds(seconds)) }
}

fn counter(from: i64, to: i64, seconds: u64) -> WaitForConditionConfig<i64> {
    WaitForConditionConfig::new(from, move |state, _| every(seconds, *state >= to))
}

async fn count(ctx: &DurableContext, config: WaitForConditionConfig<i64>) -> Result<i64, DurableError> {
    ctx.wait_for_condition(|state, _| Ok::<_, BoxError>(state + 1), config).await
}

async fn to_threshold(event: Value, ctx: DurableContext) -> Out {
    Ok(count(&ctx, counter(0, event.as_i64().unwrap(), 1)).await?.into())
}

async fn at_once(event: Value, ctx: DurableContext) -> Out {
    let config = counter(event.as_i64().unwrap(), 5, 1);
    Ok(ctx.wait_for_condition(|state, _| Ok::<_, BoxError>(state), config).await?.into())
}

async fn named(event: Value, ctx: DurableContext) -> Out {
    Ok(count(&ctx, counter(0, event.as_i64().unwrap(), 1).named("poll-status")).await?.into())
}

async fn fixed_delay(event: Value, ctx: DurableContext) -> Out {
    Ok(count(&ctx, counter(0, event.as_i64().unwrap(), 2)).await?.into())
}

async fn exhausted(_: Value, ctx: DurableContext) -> Out {
    let config = WaitForConditionConfig { max_checks: 3, ..counter(0, i64::MAX, 1) };
    Ok(count(&ctx, config).await?.into())
}

async fn fails(_: Value, ctx: DurableContext) -> Out {
    Ok(ctx.wait_for_condition(|_, _| boom(), counter(0, 1, 1)).await?.into())
}

async fn object(_: Value, ctx: DurableContext) -> Out {
    let initial = json!({"status": "PENDING", "attempts": 0});
    let config = WaitForConditionConfig::new(initial, |state: &Value, _| every(1, state["status"] == "DONE"));
    let check = |mut state: Value, _| {
        let attempts = state["attempts"].as_i64().unwrap() + 1;
        state["attempts"] = attempts.into();
        if attempts >= 2 {
            state["status"] = "DONE".into();
        }
        Ok::<_, BoxError>(state)
    };
    ctx.wait_for_condition(check, config).await
}

async fn null(_: Value, ctx: DurableContext) -> Out {
    let config = WaitForConditionConfig::new(Value::Null, |_: &Value, _| WaitDecision::Done);
    ctx.wait_for_condition(|_, _| Ok::<_, BoxError>(Value::Null), config).await
}

async fn custom_serdes(_: Value, ctx: DurableContext) -> Out {
    let encoded = serdes(|value| format!("enc:{}", text(value)), |data| data.strip_prefix("enc:").unwrap().into());
    let config = WaitForConditionConfig::new(String::new(), |state: &String, _| every(1, state.len() >= 2));
    let config = WaitForConditionConfig { serdes: Some(encoded), ..config };
    let state: String = ctx.wait_for_condition(|state, _| Ok::<_, BoxError>(state + "x"), config).await?;
    Ok(state.into())
}

async fn two(_: Value, ctx: DurableContext) -> Out {
    let first = count(&ctx, counter(0, 2, 1)).await?;
    Ok(count(&ctx, counter(first, 4, 1)).await?.into())
}
