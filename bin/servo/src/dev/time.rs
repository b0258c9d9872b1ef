//! Time that jumps: it passes as usual while something runs, and when nothing can run it moves to the end of the earliest wait.
//!
//! Only what ends by itself pulls time forward: waits, retries, delayed starts. Deadlines do not, because they are for
//! somebody to meet: a callback or a signal that a person has yet to give, the limit of a suspension, the grace of a failed run.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use servo_model::execution::Due;
use servo_model::invocation::InvocationStatus;
use servo_model::{RunState, RunStatus, StepStatus, Timestamp};
use servo_runtime::{Clock, Engine, SystemClock};
use servo_store::Scope;
use servo_store::runs::{RunOrder, RunQuery};
use tokio::sync::watch;

use super::line::took;
use super::printer::{Colour, Printer};

/// Nothing may have happened for so long before time moves: what is about to be recorded must not be overtaken.
const STILL: Duration = Duration::from_millis(40);
/// How often it is looked when nothing says that it is worth it.
const LOOK: Duration = Duration::from_secs(1);
/// Runs that are looked at in one round; the oldest ones move first.
const RUNS_MAX: usize = 5_000;
const PAGE: u32 = 500;

/// The system's clock, and how far ahead of it we are.
#[derive(Debug, Clone)]
pub(crate) struct JumpingClock(Arc<watch::Sender<Duration>>);

impl JumpingClock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::channel(Duration::ZERO).0))
    }

    fn jump(&self, by: Duration) {
        self.0.send_modify(|ahead| *ahead = ahead.saturating_add(by));
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(*self.0.borrow())
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed().saturating_add(*self.0.borrow())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        let until = self.elapsed().saturating_add(duration);
        let mut jumps = self.0.subscribe();
        Box::pin(async move {
            loop {
                let left = until.saturating_sub(clock.elapsed());
                if left.is_zero() {
                    return;
                }
                tokio::select! {
                    () = SystemClock.sleep(left) => {}
                    _ = jumps.changed() => {}
                }
            }
        })
    }

    fn sleep_outside(&self, duration: Duration) -> BoxFuture<'static, ()> {
        SystemClock.sleep(duration)
    }
}

/// Moves the clock whenever nothing else can happen.
pub(super) async fn run(engine: Engine, clock: JumpingClock, printer: Printer) {
    let mut log = engine.wake().watch_log();
    loop {
        log.mark_unchanged();
        let still = tokio::select! {
            biased;
            () = engine.shutdown().triggered() => return,
            changed = log.changed() => if changed.is_err() { return } else { false },
            () = SystemClock.sleep(STILL) => true,
        };
        if !still {
            continue;
        }
        match next(&engine).await {
            Ok(Some(at)) => {
                let by = at.since(clock.now());
                if log.has_changed().unwrap_or(true) || by.is_zero() {
                    continue;
                }
                clock.jump(by);
                printer.line(printer.paint(Colour::Blue, &format!("time jumps {} to {at}", took(by))));
            }
            Ok(None) => {
                tokio::select! {
                    biased;
                    () = engine.shutdown().triggered() => return,
                    changed = log.changed() => if changed.is_err() { return },
                    () = SystemClock.sleep(LOOK) => {}
                }
            }
            Err(error) => tracing::debug!(%error, "virtual time waits for the store"),
        }
    }
}

/// When the next thing happens by itself, if nothing can happen now.
async fn next(engine: &Engine) -> Result<Option<Timestamp>, servo_store::Error> {
    let store = engine.store();
    let backlog = store.backlog().await?;
    if backlog.pending + backlog.notified > 0 {
        return Ok(None);
    }
    let mut query = RunQuery {
        visible: vec![InvocationStatus::Queued, InvocationStatus::Running, InvocationStatus::Suspended],
        order: RunOrder::RunId,
        oldest_first: true,
        limit: PAGE,
        ..RunQuery::default()
    };
    let (mut looked, mut earliest) = (0, None::<Timestamp>);
    while looked < RUNS_MAX {
        let rows = store.list_runs(&Scope::System, &query).await?;
        let Some(last) = rows.last() else { break };
        query.after = Some(last.run_id.clone());
        looked += rows.len();
        for row in &rows {
            // A run that cannot be read holds nobody else up.
            let ends = engine.view(&Scope::System, &row.run_id, ends_by_itself).await.unwrap_or_default();
            earliest = [earliest, ends].into_iter().flatten().min();
        }
    }
    // What is due already is about to happen.
    let now = engine.store_now().await?;
    Ok(earliest.filter(|at| *at > now))
}

/// When a run goes on without anybody's doing.
fn ends_by_itself(state: &RunState) -> Option<Timestamp> {
    match state.status {
        RunStatus::Pending | RunStatus::Approved => state.not_before,
        RunStatus::Running => match &state.execution {
            Some(execution) => {
                let far = Timestamp::from_millis(i64::MAX);
                let waits = execution.due(far).filter(|(due, _)| matches!(due, Due::WaitOver | Due::RetryReady));
                let waits = waits.filter_map(|(_, operation)| Some(operation.due()?.0)).next();
                [waits, execution.head.retry_at].into_iter().flatten().min()
            }
            None => {
                let waiting = state.steps.iter().filter(|step| step.attempt.status == StepStatus::Pending);
                waiting.filter_map(|step| step.attempt.not_before).min()
            }
        },
        RunStatus::Paused | RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleep_ends_when_time_jumps_over_its_end() {
        let clock = JumpingClock::new();
        let (before, day) = (clock.now(), Duration::from_secs(86_400));
        let slept = clock.sleep(day);
        clock.jump(day / 2);
        let mut slept = std::pin::pin!(slept);
        assert!(futures_util::poll!(&mut slept).is_pending(), "half a day is left");
        clock.jump(day / 2);
        slept.await;
        assert!(clock.now().since(before) >= day);
    }

    #[tokio::test]
    async fn who_waits_outside_is_not_taken_along() {
        let clock = JumpingClock::new();
        let day = Duration::from_secs(86_400);
        let mut waited = std::pin::pin!(clock.sleep_outside(day));
        clock.jump(day * 2);
        assert!(futures_util::poll!(&mut waited).is_pending(), "a caller waits by its own time");
    }
}
