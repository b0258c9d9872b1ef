//! The loops: each wakes on a hint or after a while, does what the store says is due, and can be stopped anywhere.
//!
//! None keeps anything that a restart would miss. Those that write as schedulers run only while this node holds the
//! authority, and their writes carry its epoch.

pub mod attempt;
pub mod authority;
pub(crate) mod clock;
pub(crate) mod compensation;
pub(crate) mod concurrency;
pub(crate) mod descendants;
pub(crate) mod direct;
pub mod dispatcher;
pub mod inflight;
pub(crate) mod invocation;
pub(crate) mod join;
pub mod projector;
pub mod queue;
pub mod readers;
pub mod relay;
pub mod replay;
pub mod retention;
pub(crate) mod slots;
pub mod supervise;
pub mod timers;
pub(crate) mod waiting;

use std::time::Duration;

use servo_store::Position;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::shutdown::Shutdown;

/// Waits for a hint, for a while, or for the end. False when it is time to stop.
pub(crate) async fn pause(clock: &dyn Clock, shutdown: &Shutdown, hint: &Notify, at_most: Duration) -> bool {
    if shutdown.is_triggered() {
        return false;
    }
    tokio::select! {
        biased;
        () = shutdown.triggered() => false,
        () = hint.notified() => true,
        () = clock.sleep(at_most) => true,
    }
}

/// How long readers of the log let it grow before they look. They then read many events at once, and their cursors cost
/// one write for all of them; without it every append of a lone caller would wait for the write of two cursors.
const GATHER: Duration = Duration::from_millis(25);

pub(crate) async fn gather(engine: &Engine) {
    tokio::select! {
        biased;
        () = engine.shutdown().triggered() => {}
        () = engine.clock().sleep(GATHER) => {}
    }
}

/// Where a reader of the log goes on: where it stands, or where its stored cursor says when it begins.
pub(crate) async fn resume(
    engine: &Engine,
    cursor: &str,
    position: &mut Option<Position>,
    stored: &mut Option<Position>,
) -> Result<Position, servo_store::Error> {
    if let Some(position) = *position {
        return Ok(position);
    }
    *stored = engine.store().cursor(cursor).await?.map(|row| row.position);
    Ok(*position.insert(stored.unwrap_or(Position::START)))
}
