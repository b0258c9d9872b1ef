//! Each operation on its own: what it returns, what it records, what it costs.

use std::sync::atomic::{AtomicUsize, Ordering};

use servo_sdk::{DurableContext, DurableError, Duration, InvocationStatus, StepConfig};

use crate::service::World;

/// DX-003: a closure that returns a result, one that returns a future, and an async closure; all may borrow.
#[test]
fn a_step_takes_sync_and_async_closures() {
    async fn handler(name: String, ctx: DurableContext) -> Result<String, DurableError> {
        let one: String = ctx.step(|_| Ok(name.clone() + "1"), None).await?;
        let two: String = ctx.step(|_| async { Ok(one.clone() + "2") }, None).await?;
        let three: String = ctx.step(async |_| Ok(two.clone() + "3"), None).await?;
        let number: u32 = ctx.step(|_| Ok("7".parse::<u32>()?), None).await?;
        Ok(format!("{three}-{number}"))
    }
    let report = World::new("\"a\"").run(handler);
    assert_eq!(report.result.as_deref(), Some("\"a123-7\""));
}

/// One call for each sequential step: its START travels with its outcome. DX-081: each call needs the token of the last,
/// and the service refuses a second one at a time.
#[test]
fn twenty_steps_cost_twenty_calls() {
    async fn handler(_: (), ctx: DurableContext) -> Result<u32, DurableError> {
        let mut sum = 0;
        for number in 0..20 {
            sum += ctx.step(|_| Ok(number), None).await?;
        }
        Ok(sum)
    }
    let world = World::new("null");
    let report = world.run(handler);
    assert_eq!(report.result.as_deref(), Some("190"));
    assert_eq!(report.invocations, 1);
    assert_eq!(world.calls().len(), 20);
    assert!(world.calls().iter().all(|call| call.updates.len() == 2));
}

/// DX-004: a wait ends the invocation; the next one goes on behind it.
#[test]
fn a_wait_suspends() {
    let world = World::new("null");
    let runs = AtomicUsize::new(0);
    let report = world.run(async |_: (), ctx: DurableContext| {
        ctx.step(
            |_| {
                runs.fetch_add(1, Ordering::SeqCst);
                Ok(())
            },
            Some(StepConfig { name: Some("before".into()), ..StepConfig::default() }),
        )
        .await?;
        let started = world.clock.millis();
        ctx.wait(Duration::from_days(300), Some("long")).await?;
        Ok(world.clock.millis() - started)
    });
    assert_eq!((report.status, report.invocations), (InvocationStatus::Succeeded, 2));
    assert_eq!(report.result.as_deref(), Some("0"));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// DX-001: the published example runs to its end, with one suspension for its wait.
#[test]
fn the_usage_example_runs() {
    let world = World::new(r#"{"order_id":"o-1","amount":12.5}"#);
    let report = world.run(crate::usage_example::on_json);
    assert_eq!((report.status, report.invocations), (InvocationStatus::Succeeded, 2));
    let result: serde_json::Value = serde_json::from_str(&report.result.unwrap()).unwrap();
    let expected = serde_json::json!({
        "status": "completed", "order_id": "o-1", "transaction_id": "txn_123", "tracking_number": "TRK123456",
    });
    assert_eq!(result, expected);
    assert_eq!(world.named("payment_confirmation").sub_type.as_deref(), Some("Wait"));
}
