//! Suite 9: maps.

use std::sync::Arc;

use serde_json::{Value, json};
use servo_sdk::{BatchResult, CompletionConfig, DurableContext, DurableError, Duration, JsonSerDes, MapConfig};

use super::common::{Out, boom, projection, results, serdes, text};

cases! {
    "9-1" => greetings,
    "9-2" => without_name,
    "9-3" => indexed,
    "9-5" => fail_fast,
    "9-6" => rethrown,
    "9-7" => min_successful,
    "9-9" => count_exceeded,
    "9-10" => percentage_exceeded,
    "9-11" => concurrent,
    "9-13" => named_items,
    "9-14" => item_serdes,
    "9-15" => suspends_inside,
    "9-17" => then_wait,
    "9-18" => failed_then_wait,
    "9-19" => whole_serdes,
}

/// One after the other, so that the order of events is fixed.
fn config(name: &str) -> MapConfig {
    MapConfig { name: Some(name.to_owned()), max_concurrency: Some(1), ..MapConfig::default() }
}

fn rule(name: &str, completion_config: CompletionConfig) -> MapConfig {
    MapConfig { completion_config, ..config(name) }
}

fn tolerating(count: usize) -> CompletionConfig {
    CompletionConfig { tolerated_failure_count: Some(count), ..CompletionConfig::default() }
}

fn owned(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn numbers(event: &Value) -> Vec<i64> {
    event.as_array().unwrap().iter().map(|item| item.as_i64().unwrap()).collect()
}

/// Items that are returned, and fail if they say so.
async fn outcomes(
    ctx: &DurableContext,
    items: &[&str],
    config: MapConfig,
) -> Result<BatchResult<String>, DurableError> {
    ctx.map(owned(items), |_, item, _| if item == "fail" { boom() } else { Ok(item) }, Some(config)).await
}

async fn uppercased(ctx: &DurableContext, items: &[&str], config: MapConfig) -> Out {
    let batch = ctx.map(owned(items), |_, item: String, _| Ok(item.to_uppercase()), Some(config)).await?;
    Ok(results(&batch))
}

async fn greetings(event: Value, ctx: DurableContext) -> Out {
    let items: Vec<String> = event.as_array().unwrap().iter().map(text).collect();
    let greet = async |child: DurableContext, item: String, _| {
        let greeting: String = child.step(|_| Ok(format!("Hello, {item}!")), None).await?;
        Ok(greeting)
    };
    Ok(results(&ctx.map(items, greet, Some(config("map"))).await?))
}

async fn without_name(event: Value, ctx: DurableContext) -> Out {
    let config = MapConfig { max_concurrency: Some(1), ..MapConfig::default() };
    Ok(results(&ctx.map(numbers(&event), |_, item, _| Ok(item * 2), Some(config)).await?))
}

async fn indexed(event: Value, ctx: DurableContext) -> Out {
    let add = |_, item: i64, index: usize| Ok(item + i64::try_from(index)?);
    Ok(results(&ctx.map(numbers(&event), add, Some(config("indexed"))).await?))
}

async fn fail_fast(_: Value, ctx: DurableContext) -> Out {
    Ok(projection(&outcomes(&ctx, &["ok", "fail", "ok"], rule("failfast", tolerating(0))).await?))
}

async fn rethrown(_: Value, ctx: DurableContext) -> Out {
    let batch = outcomes(&ctx, &["fail", "ok"], rule("throwing", tolerating(0))).await?;
    batch.throw_if_errors()?;
    Ok(Value::Null)
}

async fn min_successful(_: Value, ctx: DurableContext) -> Out {
    let two = CompletionConfig { min_successful: Some(2), ..CompletionConfig::default() };
    Ok(projection(&outcomes(&ctx, &["a", "b", "c", "d"], rule("min-successful", two)).await?))
}

async fn count_exceeded(_: Value, ctx: DurableContext) -> Out {
    Ok(projection(&outcomes(&ctx, &["fail", "fail", "ok"], rule("tolerated-exceeded", tolerating(1))).await?))
}

async fn percentage_exceeded(_: Value, ctx: DurableContext) -> Out {
    let quarter = CompletionConfig { tolerated_failure_percentage: Some(25.0), ..CompletionConfig::default() };
    Ok(projection(&outcomes(&ctx, &["fail", "fail", "ok", "ok"], rule("tolerated-pct", quarter)).await?))
}

async fn concurrent(_: Value, ctx: DurableContext) -> Out {
    let config = MapConfig { max_concurrency: Some(2), ..config("concurrent") };
    Ok(results(&outcomes(&ctx, &["r0", "r1", "r2"], config).await?))
}

async fn named_items(event: Value, ctx: DurableContext) -> Out {
    let item_namer = Some(Arc::new(|item: &Value, _: usize| format!("item-{item}")) as _);
    let config = MapConfig { item_namer, ..config("named-items") };
    Ok(results(&ctx.map(numbers(&event), |_, item, _| Ok(item * 10), Some(config)).await?))
}

async fn item_serdes(_: Value, ctx: DurableContext) -> Out {
    let wrapped =
        serdes(|value| format!("wrapped:{}", text(value)), |data| data.strip_prefix("wrapped:").unwrap().into());
    uppercased(&ctx, &["x", "y"], MapConfig { item_serdes: Some(wrapped), ..config("serdes") }).await
}

async fn suspends_inside(_: Value, ctx: DurableContext) -> Out {
    let body = async |child: DurableContext, item: String, index| {
        if index == 1 {
            child.wait(Duration::from_seconds(1), None).await?;
        }
        let result: String = child.step(|_| Ok(item), None).await?;
        Ok(result)
    };
    Ok(results(&ctx.map(owned(&["r0", "r1"]), body, Some(config("suspend"))).await?))
}

async fn then_wait(_: Value, ctx: DurableContext) -> Out {
    let results = uppercased(&ctx, &["a", "b"], config("then-wait")).await?;
    ctx.wait(Duration::from_seconds(1), None).await?;
    Ok(results)
}

async fn failed_then_wait(_: Value, ctx: DurableContext) -> Out {
    let batch = outcomes(&ctx, &["ok", "fail"], rule("fail-then-wait", tolerating(1))).await?;
    ctx.wait(Duration::from_seconds(1), None).await?;
    Ok(projection(&batch))
}

async fn whole_serdes(_: Value, ctx: DurableContext) -> Out {
    let joined = serdes(
        |batch| {
            let items = batch["all"].as_array().unwrap();
            let results: Vec<String> = items.iter().map(|item| text(&item["result"])).collect();
            format!("OPSERDE:{}", results.join(","))
        },
        |data| {
            let results = data.strip_prefix("OPSERDE:").unwrap().split(',').enumerate();
            let item = |(index, result)| json!({"index": index, "status": "SUCCEEDED", "result": result});
            let all: Vec<Value> = results.map(item).collect();
            json!({"all": all, "completionReason": "ALL_COMPLETED"})
        },
    );
    let item_serdes = Some(Arc::new(JsonSerDes::<Value>::new()) as _);
    uppercased(&ctx, &["x", "y"], MapConfig { serdes: Some(joined), item_serdes, ..config("op-serde") }).await
}
