//! The scheduler's hand-over: takes open dispatches from the backlog and runs each as an attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_adapter::Adapter;
use servo_model::Timestamp;
use tokio::sync::Semaphore;

use super::attempt::{self, Attempt};
use super::authority::Authority;
use crate::engine::Engine;
use crate::tasks::Tasks;

pub type Adapters = Arc<BTreeMap<String, Arc<dyn Adapter>>>;

/// Dispatches looked at per query.
const BATCH: u32 = 256;

pub(crate) async fn run(engine: Engine, authority: Authority, adapters: Adapters, tasks: Tasks) {
    let slots = Arc::new(Semaphore::new(engine.config().dispatch.in_flight_max));
    let poll = engine.config().poll();
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &engine.wake().dispatch, poll).await {
        if let Err(error) = drain(&engine, &authority, &adapters, &tasks, &slots).await {
            tracing::warn!(%error, "open dispatches could not be read");
        }
    }
}

/// Hands out everything that is open, as far as there are slots.
async fn drain(
    engine: &Engine,
    authority: &Authority,
    adapters: &Adapters,
    tasks: &Tasks,
    slots: &Arc<Semaphore>,
) -> Result<(), servo_store::Error> {
    let mut after: Option<(Timestamp, String)> = None;
    loop {
        let Some(fence) = authority.fence(engine.now()) else { return Ok(()) };
        let rows = engine.store().open_dispatches(fence.epoch, after.take(), BATCH).await?;
        let full = rows.len() == BATCH as usize;
        let last = rows.last().map(|row| (row.queued_at, row.request_id.clone()));
        for row in rows {
            if engine.in_flight().contains(&row.request_id) {
                continue;
            }
            // Waiting for a slot holds up the loop and nothing else; the rows stay where they are.
            let Ok(slot) = slots.clone().acquire_owned().await else { return Ok(()) };
            if engine.shutdown().is_triggered() {
                return Ok(());
            }
            let now = engine.now();
            let Some(fence) = authority.fence(now) else { return Ok(()) };
            let Some(registered) = engine.in_flight().register(&row.request_id, &row.run_id, now) else { continue };
            let work = Attempt {
                engine: engine.clone(),
                authority: authority.clone(),
                adapters: adapters.clone(),
                row,
                fence,
                registered,
            };
            tasks.spawn("attempt", async move {
                attempt::run(work).await;
                drop(slot);
            });
        }
        if !full {
            return Ok(());
        }
        after = last;
    }
}
