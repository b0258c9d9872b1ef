//! Timers: one row per run, due by the store's clock. Firing one is a command; its append sets or clears the row.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use servo_machine::Command;
use servo_model::RunState;
use servo_store::Scope;
use servo_store::dispatch::DueTimer;

use crate::engine::{Engine, Error, Order};

const BATCH: u32 = 256;
/// After timers could not be read.
const AGAIN_MIN: Duration = Duration::from_millis(50);
/// Timers fired at the same time.
const TOGETHER: usize = 64;

pub(crate) async fn run(engine: Engine) {
    let mut wait = Duration::ZERO;
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &engine.wake().timers, wait).await {
        wait = match fire_due(&engine).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(%error, "timers could not be read");
                let now = engine.now();
                let next = engine.wake().timers_next(now.plus(engine.config().poll()));
                next.since(now).max(AGAIN_MIN)
            }
        };
    }
}

/// Fires what is due and says how long nothing else will be.
async fn fire_due(engine: &Engine) -> Result<Duration, servo_store::Error> {
    loop {
        engine.wake().timers_unknown();
        let timers = engine.store().due_timers(BATCH).await?;
        let full = timers.due.len() == BATCH as usize;
        // Together, so that they share their commits.
        let mut fired = stream::iter(timers.due).map(|timer| fire(engine, timer)).buffer_unordered(TOGETHER);
        let mut progressed = false;
        while let Some(done) = fired.next().await {
            progressed |= done;
        }
        drop(fired);
        if !full || !progressed || engine.shutdown().is_triggered() {
            let now = engine.store_now().await?;
            let wait = timers.next_at.map_or(Duration::MAX, |at| at.since(now)).min(engine.config().poll());
            return Ok(engine.wake().timers_next(now.plus(wait)).since(now));
        }
    }
}

async fn fire(engine: &Engine, timer: DueTimer) -> bool {
    let mut order = Order::new(Scope::System, timer.run_id.clone(), Command::Tick, "timer");
    order.due_at = Some(timer.due_at);
    let began_at = engine.now_nanos();
    let seen =
        |state: &RunState| engine.spans().and_then(|_| Some((state.tenant()?.clone(), trace(state)?, state.status)));
    match engine.execute_with(order, seen).await {
        Ok(outcome) => {
            // A look that found nothing to do tells nothing.
            if let Some((tenant, trace, status)) = outcome.view.filter(|_| outcome.recorded > 0)
                && let Some(mut span) = engine.span_in_run(&timer.run_id, &tenant, Some(&trace), "timer")
            {
                span.began_at(began_at);
                let late = engine.now().since(timer.due_at).as_millis();
                span.set("servo.timer.late_ms", i64::try_from(late).unwrap_or(i64::MAX));
                span.set("servo.run.status", status.as_str());
            }
            true
        }
        Err(Error::Quarantined(_)) => true,
        Err(error) => {
            tracing::warn!(run_id = %timer.run_id, %error, "timer not fired");
            false
        }
    }
}

fn trace(state: &RunState) -> Option<String> {
    state.execution.as_ref()?.head.start.trace.clone()
}
