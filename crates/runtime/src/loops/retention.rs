//! Retention: finished runs leave by age, old facts of the system stream and of the audit log with them, a few at a time.

use std::time::Duration;

use servo_model::Timestamp;
use servo_store::Position;
use tokio::sync::Notify;

use super::authority::Authority;
use crate::engine::Engine;

/// Facts of the system stream, or entries of the audit log, removed in one transaction.
const TRIMMED_AT_ONCE: u32 = 1_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) async fn run(engine: Engine, authority: Authority) {
    let every = Duration::from_millis(engine.config().retention.every_ms.max(1));
    let never = Notify::new();
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &never, every).await {
        if authority.fence(engine.clock().elapsed()).is_some()
            && let Err(error) = sweep(&engine).await
        {
            tracing::warn!(%error, "retention could not remove finished runs");
        }
    }
}

/// Removes what is due. Public for tests and for operators who do not want to wait.
pub async fn sweep(engine: &Engine) -> Result<u64, servo_store::Error> {
    let config = &engine.config().retention;
    let now = engine.store().now().await?;
    let mut removed = 0;
    let keep_from = config.finished_runs_days.map(|days| back(now, DAY * days));
    if let Some(before) = keep_from
        && published_until(engine, before).await?
    {
        loop {
            let gone = engine.store().retire(before, config.batch).await?;
            removed += u64::from(gone);
            if gone < config.batch || engine.shutdown().is_triggered() {
                break;
            }
        }
    }
    let before = back(now, Duration::from_secs(3_600) * config.system_stream_hours);
    if published_until(engine, before).await? {
        while engine.store().trim_system(before, TRIMMED_AT_ONCE).await? == TRIMMED_AT_ONCE
            && !engine.shutdown().is_triggered()
        {}
    }
    trim_identity(engine, back(now, DAY * config.audit_log_days)).await?;
    if removed > 0 {
        tracing::info!(runs = removed, "finished runs removed by retention");
        engine.forget_ended();
        crate::metrics::retired(removed);
    }
    Ok(removed)
}

/// Audit entries and ended keys go by age alone: they are on no bus.
async fn trim_identity(engine: &Engine, before: Timestamp) -> Result<(), servo_store::Error> {
    while engine.store().trim_audit(before, TRIMMED_AT_ONCE).await? == TRIMMED_AT_ONCE
        && !engine.shutdown().is_triggered()
    {}
    while engine.store().trim_keys(before, TRIMMED_AT_ONCE).await? == TRIMMED_AT_ONCE
        && !engine.shutdown().is_triggered()
    {}
    Ok(())
}

/// Whether everything older than a time has been published. The log is the outbox: while the bus is behind, or has
/// refused something that is tried again, what it has not seen stays.
async fn published_until(engine: &Engine, before: Timestamp) -> Result<bool, servo_store::Error> {
    if engine.store().outbox_len().await? > 0 {
        tracing::debug!("retention waits: refused events are still tried");
        return Ok(false);
    }
    let position = engine.store().cursor(super::relay::CURSOR).await?.map_or(Position::START, |row| row.position);
    let mut next = engine.store().read_log(position, 1).await?;
    // What cannot be read will not be published either.
    while next.events.is_empty() && !next.is_end() {
        next = engine.store().read_log(next.next, 1).await?;
    }
    let behind = next.events.first().is_some_and(|event| event.emitted_at < before);
    if behind {
        tracing::warn!("retention waits: events older than its limit are not published yet");
    }
    Ok(!behind)
}

fn back(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_millis(now.as_millis().saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}
