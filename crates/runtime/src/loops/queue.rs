//! The run-queue reconciler: claims queued runs with a lease and begins them. Stateless and idempotent; any number may
//! run at once, and each run is begun once, because the lease is atomic and the append checks lease and sequence.

use std::time::Duration;

use servo_machine::Command;
use servo_model::RunId;
use servo_store::dispatch::QueuedRun;
use servo_store::log::QueueChange;
use servo_store::{Append, Expected, Scope, StreamAppend};

use crate::engine::{Engine, Error, Order};

/// Runs claimed at a time.
const BATCH: u32 = 64;
/// How long a run waits that found its tenant at the limit, unless a run ends before.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// What became of a queued run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOutcome {
    Started,
    /// The store did not take it; tried again when the lease ends.
    Failed,
    /// Not to be started now: no room, or it no longer waits.
    Skipped,
}

pub(crate) async fn run(engine: Engine, owner: String) {
    let poll = engine.config().poll();
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &engine.wake().queue, poll).await {
        loop {
            match dequeue_and_start(&engine, &owner).await {
                Ok(outcomes) => {
                    let started = outcomes.iter().any(|(_, outcome)| *outcome == QueueOutcome::Started);
                    if outcomes.len() < BATCH as usize || !started || engine.shutdown().is_triggered() {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the run queue could not be read");
                    break;
                }
            }
        }
    }
}

/// One round of the reconciler.
pub async fn dequeue_and_start(
    engine: &Engine,
    owner: &str,
) -> Result<Vec<(RunId, QueueOutcome)>, servo_store::Error> {
    let lease_ms = engine.config().dispatch.queue_lease_ms;
    let claimed = engine.store().claim_queue(owner, lease_ms, BATCH).await?;
    let mut outcomes = Vec::with_capacity(claimed.len());
    for queued in claimed {
        let outcome = begin(engine, owner, &queued).await;
        outcomes.push((queued.run_id, outcome));
    }
    Ok(outcomes)
}

async fn begin(engine: &Engine, owner: &str, queued: &QueuedRun) -> QueueOutcome {
    match has_room(engine, queued).await {
        Ok(true) => {}
        Ok(false) => {
            let later = engine.clock().now().plus(RETRY_AFTER);
            if let Err(error) = engine.store().release_queue(&queued.run_id, owner, later).await {
                tracing::debug!(run_id = %queued.run_id, %error, "queue lease not returned; it will expire");
            }
            return QueueOutcome::Skipped;
        }
        Err(error) => {
            tracing::warn!(run_id = %queued.run_id, %error, "queued run not started");
            return QueueOutcome::Failed;
        }
    }
    let mut order = Order::new(Scope::System, queued.run_id.clone(), Command::Begin, "engine");
    order.queue_lease = Some(owner.to_owned());
    match engine.execute(order).await {
        Ok(_) => QueueOutcome::Started,
        Err(Error::Refused(_)) => {
            remove(engine, owner, queued).await;
            QueueOutcome::Skipped
        }
        // Somebody else has the lease by now, or the run is gone or set aside.
        Err(Error::Store(servo_store::Error::LeaseLost { .. } | servo_store::Error::NotFound))
        | Err(Error::Quarantined(_)) => QueueOutcome::Skipped,
        Err(error) => {
            tracing::warn!(run_id = %queued.run_id, %error, "queued run not started");
            QueueOutcome::Failed
        }
    }
}

async fn has_room(engine: &Engine, queued: &QueuedRun) -> Result<bool, servo_store::Error> {
    let Some(row) = engine.store().get_run(&Scope::System, &queued.run_id).await? else { return Ok(true) };
    let rule = engine.config().overload_for(queued.tenant.as_str(), &row.plan_id);
    let active = engine.store().count_active(&queued.tenant, rule.active_runs_max).await?;
    Ok(active < rule.active_runs_max)
}

/// A queue row whose run no longer waits.
async fn remove(engine: &Engine, owner: &str, queued: &QueuedRun) {
    let mut stream = StreamAppend::new(queued.run_id.clone(), queued.tenant.clone(), Expected::Any);
    stream.queue = QueueChange::Remove { leased_by: Some(owner.to_owned()) };
    if let Err(error) = engine.store().append(Append::one(stream)).await {
        tracing::debug!(run_id = %queued.run_id, %error, "queue row not removed");
    }
}
