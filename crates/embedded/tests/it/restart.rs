//! The program ends in the middle, in order or not, and is started again on the same folder.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use servo_embedded::{Servo, Start};
use servo_sdk::{DurableContext, DurableError, Duration};
use tokio::sync::Notify;

#[derive(Clone, Default)]
struct Seen {
    before: Arc<AtomicUsize>,
    after: Arc<AtomicUsize>,
    reached: Arc<Notify>,
}

/// A step, a wait of two seconds, a step.
async fn program(folder: &Path, seen: &Seen) -> Servo {
    let seen = seen.clone();
    let handler = move |number: u64, ctx: DurableContext| {
        let seen = seen.clone();
        async move {
            let before = |_| Ok(number + seen.before.fetch_add(1, Ordering::SeqCst) as u64);
            let first: u64 = ctx.step(before, None).await?;
            seen.reached.notify_one();
            ctx.wait(Duration::from_seconds(2), None).await?;
            let after = |_| {
                seen.after.fetch_add(1, Ordering::SeqCst);
                Ok(first * 10)
            };
            let second: u64 = ctx.step(after, None).await?;
            Ok::<u64, DurableError>(second)
        }
    };
    Servo::builder().sqlite(folder).function("patient", handler).start().await.unwrap()
}

async fn finishes(folder: &Path, seen: &Seen) {
    let servo = program(folder, seen).await;
    // The same name: the execution of before, not a second one.
    let again = servo.start("patient", Start::with(&7).unwrap().named("one")).await.unwrap();
    assert!(!again.is_new());
    assert_eq!(again.result::<u64>().await.unwrap(), 70);
    let runs = (seen.before.load(Ordering::SeqCst), seen.after.load(Ordering::SeqCst));
    assert_eq!(runs, (1, 1), "a recorded step ran again");
    servo.shutdown().await;
}

/// A wait outlives the program; steps do not run twice.
#[tokio::test]
async fn a_wait_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Seen::default();
    let servo = program(folder.path(), &seen).await;
    servo.start("patient", Start::with(&7).unwrap().named("one")).await.unwrap();
    seen.reached.notified().await;
    servo.shutdown().await;
    finishes(folder.path(), &seen).await;
}

/// Nothing was told to stop: every task of the program is dropped where it stands.
#[test]
fn a_wait_goes_on_after_an_abrupt_end() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Seen::default();
    let first = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    first.block_on(async {
        let servo = program(folder.path(), &seen).await;
        servo.start("patient", Start::with(&7).unwrap().named("one")).await.unwrap();
        seen.reached.notified().await;
    });
    drop(first);
    let second = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    second.block_on(finishes(folder.path(), &seen));
}
