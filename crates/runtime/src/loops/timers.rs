//! Timers: one row per run, due by the store's clock. Firing one is a command; its append sets or clears the row.

use std::time::Duration;

use servo_machine::Command;
use servo_store::Scope;
use servo_store::dispatch::DueTimer;

use crate::engine::{Engine, Error, Order};

const BATCH: u32 = 256;

pub(crate) async fn run(engine: Engine) {
    let mut wait = Duration::ZERO;
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &engine.wake().timers, wait).await {
        wait = match fire_due(&engine).await {
            Ok(wait) => wait.min(engine.config().poll()),
            Err(error) => {
                tracing::warn!(%error, "timers could not be read");
                engine.config().poll()
            }
        };
    }
}

/// Fires what is due and says how long nothing else will be.
async fn fire_due(engine: &Engine) -> Result<Duration, servo_store::Error> {
    loop {
        let timers = engine.store().due_timers(BATCH).await?;
        let full = timers.due.len() == BATCH as usize;
        let mut progressed = false;
        for timer in timers.due {
            progressed |= fire(engine, timer).await;
        }
        if !full || !progressed || engine.shutdown().is_triggered() {
            let now = engine.store_now().await?;
            return Ok(timers.next_at.map_or(Duration::MAX, |at| at.since(now)));
        }
    }
}

async fn fire(engine: &Engine, timer: DueTimer) -> bool {
    let mut order = Order::new(Scope::System, timer.run_id.clone(), Command::Tick, "timer");
    order.due_at = Some(timer.due_at);
    match engine.execute(order).await {
        Ok(_) => true,
        Err(Error::Quarantined(_)) => true,
        Err(error) => {
            tracing::warn!(run_id = %timer.run_id, %error, "timer not fired");
            false
        }
    }
}
