//! The scheduler's hand-over: takes open dispatches from the backlog, fairly by tenant, and runs each as an attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use servo_adapter::{Adapter, Handlers};
use servo_model::RunState;
use servo_model::execution::{COMPENSATE, DESCENDANTS, HANDLER, JOIN};
use servo_store::{DispatchRow, Fence, Scope};
use tokio::sync::oneshot;

use super::attempt::{self, Attempt};
use super::authority::Authority;
use super::compensation;
use super::concurrency::{Concurrency, Place, target_unless};
use super::descendants;
use super::direct::Quiet;
use super::inflight::Registered;
use super::invocation::{self, Invocation};
use super::join;
use super::slots::{Slot, Slots};
use super::waiting::Waiting;
use crate::engine::{Engine, Error};
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
    place: Option<Place>,
}

/// What a function's run says about its invocations.
#[derive(Debug, Clone)]
struct Function {
    /// How many may run at the same time.
    max_concurrent: Option<u32>,
    /// Whether it was started by a caller who waits.
    synchronous: bool,
    /// Whose places they take, if the dispatch says something else.
    target: Option<String>,
}

impl Workshop {
    /// A step goes to its adapter, an invocation to its handler, an end to whoever waits for it. Tells
    /// whether it is an invocation that nobody waits for, as soon as that is known.
    async fn hand_out(self, work: Handed, tasks: &Tasks, slot: Slot, is_behind: oneshot::Sender<bool>) {
        let Handed { row, fence, registered, place } = work;
        let engine = self.executions.engine().clone();
        let step = row.step.as_ref().map(|step| (step.step_id.as_str(), step.logical_attempt));
        // A plan may have a step of the same name.
        let function = match step {
            Some((HANDLER | JOIN | COMPENSATE | DESCENDANTS, _)) => match function_of(&engine, &row).await {
                Ok(function) => function,
                Err(error) => {
                    // The dispatch stays open, and is found again. Taken for a plan's step it would be withdrawn.
                    tracing::warn!(request_id = %row.request_id, %error, "a run could not be read");
                    return;
                }
            },
            _ => None,
        };
        match (step, function) {
            (Some((HANDLER, invocation)), Some(Function { max_concurrent, synchronous, target })) => {
                // A function that has all it may have leaves its dispatches where they are, and the slots to others.
                let place = match target {
                    Some(target) => {
                        if place.is_some_and(Place::leave) {
                            self.executions.engine().wake().dispatch.notify_one();
                        }
                        self.concurrency.take(&row.tenant, &target, false)
                    }
                    None => place,
                };
                let Some(mut place) = place else { return };
                if !place.enter(max_concurrent) {
                    return;
                }
                let Self { executions, authority, handlers, .. } = self;
                // Who has begun the run may not listen yet, and may have been answered when it came to wait for something.
                let is_awaited = (synchronous && invocation == 1) || engine.is_listened_for(&row.run_id);
                let work =
                    Invocation { executions, authority, handlers, row, invocation, fence, registered, is_awaited };
                let further = engine.clone();
                let work = async move {
                    invocation::run(work).await;
                    drop(slot);
                    if place.leave() {
                        further.wake().dispatch.notify_one();
                    }
                };
                // The dispatcher may not want to know.
                let _ = is_behind.send(!is_awaited);
                if is_awaited { work.await } else { engine.spawn_behind(tasks, work) }
            }
            (Some((COMPENSATE, _)), Some(_)) => {
                drop(is_behind);
                let owner = self.authority.owner().to_string();
                compensation::run(self.executions, row, fence, owner, registered).await;
            }
            (Some((JOIN, _)), Some(_)) => {
                drop(is_behind);
                join::run(engine, row, fence, self.authority.owner().to_string(), registered).await;
            }
            (Some((DESCENDANTS, _)), Some(_)) => {
                drop(is_behind);
                descendants::run(engine, row, fence, self.authority.owner().to_string(), registered).await;
            }
            _ => {
                drop(is_behind);
                let Self { authority, adapters, .. } = self;
                attempt::run(Attempt { engine, authority, adapters, row, fence, registered }).await;
            }
        }
    }
}

/// About the function that a run executes, if it executes one.
async fn function_of(engine: &Engine, row: &DispatchRow) -> Result<Option<Function>, Error> {
    let look = |state: &RunState| {
        let start = &state.execution.as_ref()?.head.start;
        let target = target_unless(start, &row.target);
        Some(Function { max_concurrent: start.max_concurrent, synchronous: start.synchronous, target })
    };
    // It came with the run's start and stays, so that a state which is not the newest will do.
    if let Some(Some(function)) = engine.remembered(&Scope::System, &row.run_id, look).await {
        return Ok(Some(function));
    }
    match engine.view(&Scope::System, &row.run_id, look).await {
        // Its dispatch goes the way of those whose run is gone.
        Err(Error::Store(servo_store::Error::NotFound)) => Ok(None),
        answer => answer,
    }
}

pub(crate) async fn run(workshop: Workshop, tasks: Tasks) {
    let engine = workshop.executions.engine().clone();
    let slots = Slots::new(&engine.config().dispatch);
    let mut waiting = Waiting::new(engine.clone(), slots.clone(), workshop.concurrency.clone());
    let (poll, hint) = (engine.config().poll(), &engine.wake().dispatch);
    let quiet = Quiet::open(workshop.clone(), slots.clone(), tasks.clone());
    while !engine.shutdown().is_triggered() {
        match turn(&workshop, &mut waiting, &slots).await {
            Ok(Some(work)) => {
                quiet.set(false);
                let is_behind = hand_out(&workshop, &tasks, work);
                if engine.callers().stand_in_line() {
                    let is_behind = is_behind.map(|told| told.unwrap_or(false));
                    engine.callers().give_way(engine.clock().as_ref(), is_behind).await;
                }
            }
            // More is to be read before it is known whether there is anything.
            Ok(None) if waiting.is_unfinished() => quiet.set(false),
            Ok(None) => {
                quiet.set(!waiting.wants_slots());
                let is_asked = tokio::select! {
                    biased;
                    () = engine.shutdown().triggered() => return,
                    () = hint.notified() => {
                        waiting.hint();
                        true
                    }
                    () = slots.freed(), if waiting.wants_slots() => true,
                    () = engine.clock().sleep(poll) => {
                        waiting.hint();
                        false
                    }
                };
                // A look that nobody asked for finds nothing, nearly always. Starts that found the way past the backlog closed
                // for it would fill the backlog, and what fills it keeps the way closed. But where something was passed over, the
                // look forgets that until it has found it again.
                if is_asked || workshop.concurrency.passes_over() {
                    quiet.set(false);
                }
            }
            Err(error) => {
                quiet.set(false);
                tracing::warn!(%error, "open dispatches could not be read");
                if !super::pause(engine.clock().as_ref(), engine.shutdown(), hint, poll).await {
                    return;
                }
            }
        }
        if hint.notified().now_or_never().is_some() {
            quiet.set(false);
            waiting.hint();
        }
    }
}

/// The dispatch whose turn it is, if there is one, a slot for it, and this node has the authority.
async fn turn(
    workshop: &Workshop,
    waiting: &mut Waiting,
    slots: &Slots,
) -> Result<Option<(Handed, Slot)>, servo_store::Error> {
    let engine = workshop.executions.engine();
    let Some(fence) = workshop.authority.fence(engine.clock().elapsed()) else {
        waiting.forget();
        return Ok(None);
    };
    if !slots.lock().has_slot() {
        waiting.count(fence.epoch).await?;
        return Ok(None);
    }
    waiting.fill(fence.epoch).await?;
    loop {
        let now = engine.now();
        // Reading took its time.
        let still = workshop.authority.fence(engine.clock().elapsed()).filter(|still| still.epoch == fence.epoch);
        let Some(fence) = still else { return Ok(None) };
        let Some((row, slot, place)) = waiting.take() else { return Ok(None) };
        if let Some(registered) = engine.in_flight().register(&row.request_id, &row.run_id, now) {
            crate::metrics::handed_out(now.since(row.queued_at));
            return Ok(Some((Handed { row, fence, registered, place }, slot)));
        }
    }
}

fn hand_out(workshop: &Workshop, tasks: &Tasks, (work, slot): (Handed, Slot)) -> oneshot::Receiver<bool> {
    let (doing, further) = (workshop.clone(), tasks.clone());
    let (tell, is_behind) = oneshot::channel();
    tasks.spawn("attempt", async move { doing.hand_out(work, &further, slot, tell).await });
    is_behind
}
