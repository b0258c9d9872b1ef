//! Replay: reads the log again from a durable cursor and brings every run's row in line with its events.
//!
//! The cursor moves with the work, so a restart goes on where it stopped and each event is applied once.

use std::collections::BTreeSet;

use servo_model::{RunId, TenantId};
use servo_store::relay::CursorRow;
use servo_store::resync::load_state;
use servo_store::{Append, Expected, Fence, RunRow, Scope, StreamAppend};

use super::authority::Authority;
use crate::engine::Engine;

pub const CURSOR: &str = "replay";
const BATCH: u32 = 500;

pub(crate) async fn run(engine: Engine, authority: Authority) {
    let slow = engine.config().poll() * 5;
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &engine.wake().replay, slow).await {
        while let Some(fence) = authority.fence(engine.clock().elapsed()) {
            match step(&engine, Some(fence)).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::debug!(%error, "replay interrupted");
                    break;
                }
            }
        }
    }
}

/// Applies one batch. False when nothing is left.
pub async fn step(engine: &Engine, fence: Option<Fence>) -> Result<bool, servo_store::Error> {
    let Some(cursor) = engine.store().cursor(CURSOR).await? else { return Ok(false) };
    let Some(target) = cursor.target.filter(|target| cursor.position < *target) else {
        if cursor.deferred {
            let noticed = CursorRow { deferred: false, ..cursor.clone() };
            engine.store().move_cursor(Some(cursor.position), noticed, fence).await?;
        }
        return Ok(false);
    };
    let page = engine.store().read_log(cursor.position, BATCH).await?;
    engine.set_aside_unreadable(&page.unreadable).await?;
    let events: Vec<_> = page.events.iter().take_while(|event| event.position <= target).collect();
    let runs: BTreeSet<_> = events.iter().filter(|e| !e.run_id.is_system()).map(|e| (&e.run_id, &e.tenant)).collect();
    for (run_id, tenant) in runs {
        repair(engine, run_id, tenant).await?;
    }
    // What cannot be read may be all of a page, or its end.
    let is_passed = !page.unreadable.is_empty() && events.len() == page.events.len();
    let position = events.last().map_or(target, |event| event.position);
    let next = CursorRow {
        name: CURSOR.to_owned(),
        position: if is_passed { page.next.min(target) } else { position },
        last_event_id: events.last().map(|event| event.event_id).or(cursor.last_event_id),
        target: Some(target),
        deferred: false,
    };
    engine.store().move_cursor(Some(cursor.position), next, fence).await?;
    Ok(true)
}

/// Rewrites a run's row if it does not say what the events say.
async fn repair(engine: &Engine, run_id: &RunId, tenant: &TenantId) -> Result<(), servo_store::Error> {
    let row = match engine.store().get_run(&Scope::System, run_id).await {
        Ok(Some(row)) => row,
        Ok(None) => return Ok(()),
        Err(servo_store::Error::Corrupt { detail }) => {
            tracing::error!(run_id = %run_id, detail, "the run's row cannot be read, and stays as it is");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let state = match load_state(engine.store().as_ref(), &Scope::System, run_id).await {
        Ok(state) => state,
        Err(servo_store::Error::NotFound) => return Ok(()),
        Err(servo_store::Error::Corrupt { detail }) => {
            engine.quarantine(run_id, tenant, &detail).await;
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if row.agrees_with(&state) {
        return Ok(());
    }
    tracing::warn!(run_id = %run_id, "the run's row did not agree with its events; rewritten");
    let expected = Expected::Seq(state.last_event_seq);
    let mut stream = StreamAppend::new(run_id.clone(), tenant.clone(), expected);
    let rewritten = RunRow::of(&state, row.request_key, row.created_at);
    stream.row = Some(RunRow { tenant: tenant.clone(), ..rewritten });
    match engine.store().append(Append::one(stream)).await {
        // The run moved on: its own append wrote a newer row.
        Ok(_) | Err(servo_store::Error::Conflict { .. } | servo_store::Error::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}
