//! The same workflows on every store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use servo_embedded::{Builder, Error, Servo, Start};
use servo_sdk::{Backoff, DurableContext, DurableError, Duration, MapConfig, StepConfig};

/// Steps, a retry, a wait and branches.
async fn everything(seed: u64, ctx: DurableContext) -> Result<u64, DurableError> {
    let first: u64 = ctx.step(|_| Ok(seed + 1), None).await?;
    let retry = Backoff::fixed(3, std::time::Duration::from_secs(1));
    let config = StepConfig { retry_strategy: Some(Box::new(retry)), ..StepConfig::default() };
    let flaky = |step: servo_sdk::StepContext| if step.attempt() < 2 { Err("not yet".into()) } else { Ok(first + 1) };
    let second: u64 = ctx.step(flaky, Some(config)).await?;
    ctx.wait(Duration::from_seconds(1), Some("pause")).await?;
    let item = async |child: DurableContext, item: u64, _: usize| {
        let value: u64 = child.step(move |_| Ok(item * 10), None).await?;
        Ok(value)
    };
    let mapped = ctx.map(vec![1, 2, 3], item, Some(MapConfig::default())).await?;
    Ok(second + mapped.get_results()?.into_iter().sum::<u64>())
}

async fn ten_steps(seed: u64, ctx: DurableContext) -> Result<u64, DurableError> {
    let mut sum = seed;
    for number in 0..10 {
        sum += ctx.step(|_| Ok(number), None).await?;
    }
    Ok(sum)
}

async fn works_on(builder: Builder) {
    let servo = builder.function("everything", everything).function("ten-steps", ten_steps).start().await.unwrap();
    assert_eq!(servo.call::<u64>("everything", &5).await.unwrap(), 67);
    let many = join_all((0..64_u64).map(|seed| {
        let servo = servo.clone();
        async move { servo.call::<u64>("ten-steps", &seed).await.unwrap() }
    }));
    assert_eq!(many.await, (45..45 + 64).collect::<Vec<u64>>());
    servo.shutdown().await;
}

#[tokio::test]
async fn on_memory() {
    works_on(Servo::builder().in_memory()).await;
}

#[tokio::test]
async fn on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    works_on(Servo::builder().sqlite(folder.path())).await;
}

/// The database is this test's own: no other test of the workspace uses the one that the server was made with.
#[tokio::test]
async fn on_postgres() {
    #[expect(clippy::disallowed_methods, reason = "the address of the server comes from whoever started it")]
    let url = std::env::var("SERVO_TEST_POSTGRES_URL");
    let url = url.expect("SERVO_TEST_POSTGRES_URL is not set: run `cargo xtask with -- cargo nextest run`");
    works_on(Servo::builder().postgres(url)).await;
}

#[tokio::test]
async fn two_programs_on_one_folder_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let first = Servo::builder().sqlite(folder.path()).function("ten-steps", ten_steps).start().await.unwrap();
    let error = Servo::builder().sqlite(folder.path()).function("ten-steps", ten_steps).start().await.unwrap_err();
    assert!(matches!(error, Error::Store { error: servo_store::Error::InUse { .. }, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("in use by process") && text.contains("use another folder"), "{text}");
    first.shutdown().await;
    let again = Servo::builder().sqlite(folder.path()).function("ten-steps", ten_steps).start().await.unwrap();
    assert_eq!(again.call::<u64>("ten-steps", &0).await.unwrap(), 45);
    again.shutdown().await;
}

/// A mistake in the functions leaves the folder free.
#[tokio::test]
async fn a_failed_start_lets_go_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    Servo::builder().sqlite(folder.path()).function("not a name", ten_steps).start().await.unwrap_err();
    let servo = Servo::builder().sqlite(folder.path()).function("ten-steps", ten_steps).start().await.unwrap();
    servo.shutdown().await;
}

/// Handlers run beside each other, not one after the other: each waits for all.
#[tokio::test]
async fn handlers_run_concurrently() {
    let barrier = Arc::new(tokio::sync::Barrier::new(8));
    let passed = Arc::new(AtomicUsize::new(0));
    let (gate, count) = (barrier.clone(), passed.clone());
    let meet = move |_: (), ctx: DurableContext| {
        let (gate, count) = (gate.clone(), count.clone());
        async move {
            let together = async |_| {
                gate.wait().await;
                Ok(count.fetch_add(1, Ordering::SeqCst))
            };
            ctx.step(together, None).await.map(|_: usize| ())
        }
    };
    let servo = Servo::builder().in_memory().function("meet", meet).start().await.unwrap();
    let mut started = Vec::new();
    for _ in 0..8 {
        started.push(servo.start("meet", Start::default()).await.unwrap());
    }
    for execution in started {
        execution.result::<()>().await.unwrap();
    }
    assert_eq!(passed.load(Ordering::SeqCst), 8);
    servo.shutdown().await;
}
