//! Suite 3: child contexts.

use serde_json::Value;
use servo_sdk::{BoxError, ContextConfig, DurableContext, Duration, StepConfig, StepContext};

use super::common::{Out, attempts, boom, no_retry, text, uppercase};

cases! {
    "3-1" => basic,
    "3-2" => named_by_input,
    "3-3" => two_steps,
    "3-5" => caught,
    "3-6" => nested,
    "3-7" => retried,
    "3-9" => replayed,
    "3-10" => step_and_wait,
    "3-11" => large,
    "3-13" => wait_inside,
    "3-14" => custom_serdes,
    "3-15" => fails,
    "3-17" => logs,
    "3-18" => inside_and_after,
}

fn named(name: &str) -> Option<ContextConfig> {
    Some(ContextConfig { name: Some(name.to_owned()), ..ContextConfig::default() })
}

async fn echo(ctx: &DurableContext, value: &Value) -> Result<Value, BoxError> {
    Ok(ctx.step(|_| Ok(value.clone()), None).await?)
}

async fn second(ctx: &DurableContext) -> Result<(), BoxError> {
    Ok(ctx.wait(Duration::from_seconds(1), None).await?)
}

async fn basic(event: Value, ctx: DurableContext) -> Out {
    ctx.run_in_child_context(async |child: DurableContext| echo(&child, &event).await, None).await
}

async fn named_by_input(event: Value, ctx: DurableContext) -> Out {
    let name = text(&event["name"]);
    let body = async |child: DurableContext| echo(&child, &event["value"]).await;
    ctx.run_in_child_context(body, named(&name)).await
}

async fn two_steps(event: Value, ctx: DurableContext) -> Out {
    let body = async |child: DurableContext| {
        let first = echo(&child, &event).await?;
        echo(&child, &first).await
    };
    ctx.run_in_child_context(body, named("child")).await
}

async fn caught(event: Value, ctx: DurableContext) -> Out {
    let body = async |child: DurableContext| Ok(child.step(|_| boom::<Value>(), no_retry()).await?);
    let failed = ctx.run_in_child_context(body, None).await;
    assert!(failed.is_err());
    ctx.step(|_| Ok(event), None).await
}

async fn nested(event: Value, ctx: DurableContext) -> Out {
    let event = &event;
    let body = async |outer: DurableContext| {
        echo(&outer, event).await?;
        let inner = async |inner: DurableContext| echo(&inner, event).await;
        Ok(outer.run_in_child_context(inner, named("inner")).await?)
    };
    ctx.run_in_child_context(body, named("outer")).await
}

async fn retried(event: Value, ctx: DurableContext) -> Out {
    let body = async |child: DurableContext| {
        let config = StepConfig { retry_strategy: attempts(3), ..StepConfig::default() };
        let flaky = |step: StepContext| if step.attempt() == 1 { boom() } else { Ok(event.clone()) };
        Ok(child.step(flaky, Some(config)).await?)
    };
    ctx.run_in_child_context(body, named("child")).await
}

async fn replayed(event: Value, ctx: DurableContext) -> Out {
    let body = async |child: DurableContext| echo(&child, &event).await;
    let result = ctx.run_in_child_context(body, None).await?;
    ctx.wait(Duration::from_seconds(1), None).await?;
    Ok(result)
}

async fn step_and_wait(event: Value, ctx: DurableContext) -> Out {
    let body = async |child: DurableContext| {
        let result = echo(&child, &event).await?;
        second(&child).await?;
        Ok(result)
    };
    ctx.run_in_child_context(body, named("child")).await
}

async fn large(event: Value, ctx: DurableContext) -> Out {
    let body = async |child: DurableContext| {
        child.logger().info(text(&event));
        let small = child.step(|_| Ok("small".to_owned()), None).await?;
        Ok(small.repeat(100_000))
    };
    let result: String = ctx.run_in_child_context(body, named("large")).await?;
    ctx.wait(Duration::from_seconds(1), None).await?;
    assert_eq!(result.len(), 500_000);
    Ok(result.len().into())
}

async fn wait_inside(event: Value, ctx: DurableContext) -> Out {
    let body = async |child: DurableContext| {
        second(&child).await?;
        Ok(event)
    };
    let result: Value = ctx.run_in_child_context(body, named("child")).await?;
    ctx.step(|_| Ok(result), None).await
}

async fn custom_serdes(event: Value, ctx: DurableContext) -> Out {
    let config =
        ContextConfig { name: Some("child".to_owned()), serdes: Some(uppercase()), ..ContextConfig::default() };
    ctx.run_in_child_context(async |child: DurableContext| echo(&child, &event).await, Some(config)).await
}

async fn fails(_: Value, ctx: DurableContext) -> Out {
    ctx.run_in_child_context(|_| boom(), named("child")).await
}

async fn logs(event: Value, ctx: DurableContext) -> Out {
    let body = |child: DurableContext| {
        child.logger().info(text(&event));
        Ok(event)
    };
    let result = ctx.run_in_child_context(body, named("child")).await?;
    ctx.wait(Duration::from_seconds(1), None).await?;
    Ok(result)
}

async fn inside_and_after(event: Value, ctx: DurableContext) -> Out {
    let body = async |child: DurableContext| {
        let result = echo(&child, &event).await?;
        second(&child).await?;
        Ok(result)
    };
    let inner: Value = ctx.run_in_child_context(body, named("child")).await?;
    let result = ctx.step(|_| Ok(inner), None).await?;
    ctx.wait(Duration::from_seconds(1), None).await?;
    Ok(result)
}
