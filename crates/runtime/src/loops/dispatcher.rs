//! The scheduler's hand-over: takes open dispatches from the backlog and runs each as an attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_adapter::{Adapter, Handlers};
use servo_model::execution::{COMPENSATE, HANDLER, JOIN};
use servo_model::{RunState, Timestamp};
use servo_store::{DispatchRow, Fence, Scope};
use tokio::sync::Semaphore;

use super::attempt::{self, Attempt};
use super::authority::Authority;
use super::compensation;
use super::concurrency::Concurrency;
use super::inflight::Registered;
use super::invocation::{self, Invocation};
use super::join;
use crate::engine::Engine;
use crate::executions::Executions;
use crate::tasks::Tasks;

pub type Adapters = Arc<BTreeMap<String, Arc<dyn Adapter>>>;

/// Everything that work is handed to.
#[derive(Clone)]
pub(crate) struct Workshop {
    pub executions: Executions,
    pub authority: Authority,
    pub adapters: Adapters,
    pub handlers: Arc<dyn Handlers>,
    pub concurrency: Concurrency,
}

/// A dispatch that is this node's under this epoch.
struct Handed {
    row: DispatchRow,
    fence: Fence,
    registered: Registered,
}

impl Workshop {
    /// A step goes to its adapter, an invocation to its handler, an end to whoever waits for it.
    async fn hand_out(self, Handed { row, fence, registered }: Handed) {
        let engine = self.executions.engine().clone();
        let step = row.step.as_ref().map(|step| (step.step_id.as_str(), step.logical_attempt));
        // A plan may have a step of the same name.
        let function = match step {
            Some((HANDLER | JOIN | COMPENSATE, _)) => function_of(&engine, &row).await,
            _ => None,
        };
        match (step, function) {
            (Some((HANDLER, invocation)), Some((function, most))) => {
                // A function that has all it may have leaves its dispatches where they are, and the slots to others.
                let Some(place) = self.concurrency.enter(&row.tenant, &function, most) else { return };
                let Self { executions, authority, handlers, .. } = self;
                let work = Invocation { executions, authority, handlers, row, invocation, fence, registered };
                invocation::run(work).await;
                drop(place);
                if most.is_some() {
                    engine.wake().dispatch.notify_one();
                }
            }
            (Some((COMPENSATE, _)), Some(_)) => {
                let owner = self.authority.owner().to_owned();
                compensation::run(self.executions, row, fence, owner, registered).await;
            }
            (Some((JOIN, _)), Some(_)) => {
                join::run(engine, row, fence, self.authority.owner().to_owned(), registered).await;
            }
            _ => {
                let Self { authority, adapters, .. } = self;
                attempt::run(Attempt { engine, authority, adapters, row, fence, registered }).await;
            }
        }
    }
}

/// The function that a run executes, and how often at the same time, if it executes one.
async fn function_of(engine: &Engine, row: &DispatchRow) -> Option<(String, Option<u32>)> {
    let function = |state: &RunState| {
        let start = &state.execution.as_ref()?.head.start;
        Some((start.function.clone(), start.max_concurrent))
    };
    engine.view(&Scope::System, &row.run_id, function).await.ok().flatten()
}

/// Dispatches looked at per query.
const BATCH: u32 = 256;

pub(crate) async fn run(workshop: Workshop, tasks: Tasks) {
    let engine = workshop.executions.engine().clone();
    let slots = Arc::new(Semaphore::new(engine.config().dispatch.in_flight_max));
    let poll = engine.config().poll();
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &engine.wake().dispatch, poll).await {
        if let Err(error) = drain(&workshop, &engine, &tasks, &slots).await {
            tracing::warn!(%error, "open dispatches could not be read");
        }
    }
}

/// Hands out everything that is open, as far as there are slots.
async fn drain(
    workshop: &Workshop,
    engine: &Engine,
    tasks: &Tasks,
    slots: &Arc<Semaphore>,
) -> Result<(), servo_store::Error> {
    let authority = &workshop.authority;
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
            let work = Handed { row, fence, registered };
            let doing = workshop.clone();
            tasks.spawn("attempt", async move {
                doing.hand_out(work).await;
                drop(slot);
            });
        }
        if !full {
            return Ok(());
        }
        after = last;
    }
}
