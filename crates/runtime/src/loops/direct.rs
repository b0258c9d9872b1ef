//! Where nothing waits, a new run of a function does not go through the backlog: its start and its first invocation are one
//! append, and the node that recorded them calls the handler.
//!
//! Its dispatch is a row like any other, notified from the first moment on: after a crash the next holder of the authority
//! finds it and goes on. Whoever could be overtaken sends everybody through the backlog: as soon as one dispatch waits,
//! nothing is begun here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_machine::{Command, ExecutionCommand, StartExecution};
use servo_model::contract::DispatchState;
use servo_model::execution::HANDLER;
use servo_model::{RunId, RunState, StepId, TenantId};
use servo_store::dispatch::DispatchStep;
use servo_store::{DispatchRow, Fence};

use super::authority;
use super::concurrency::{Place, target_of};
use super::dispatcher::Workshop;
use super::invocation::{Invocation, Prepared};
use super::slots::{Slot, Slots};
use crate::engine::{Engine, Error};
use crate::tasks::Tasks;

/// How often a run is looked for that may have been recorded: some seconds in all.
const LOOKS: u32 = 8;

/// The way past the backlog; closed until the dispatcher runs and after it has ended.
#[derive(Default)]
pub(crate) struct Direct(Mutex<Option<Arc<Open>>>);

struct Open {
    workshop: Workshop,
    slots: Slots,
    tasks: Tasks,
    /// Whether the dispatcher knows of nothing that waits.
    is_quiet: AtomicBool,
}

/// The dispatcher's end of it. Closes the way when the dispatcher ends, however it ends.
pub(crate) struct Quiet {
    engine: Engine,
    open: Arc<Open>,
}

/// A slot and all else that the first invocation of a run needs; given back when dropped.
pub(crate) struct Reserved {
    open: Arc<Open>,
    slot: Slot,
    place: Place,
    target: String,
    fence: Fence,
    is_awaited: bool,
}

/// The first invocation of a run, while it is being recorded. Whoever records it says how that went.
pub(crate) struct First {
    tasks: Tasks,
    invocation: Invocation,
    request_id: String,
    held: (Slot, Place),
}

/// The first invocation of a run, once it is recorded.
pub(crate) struct Begun {
    first: First,
    prepared: Option<Prepared>,
}

impl Direct {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the dispatcher starts its tasks; `None` before it runs and after it has ended.
    pub(crate) fn tasks(&self) -> Option<Tasks> {
        self.lock().as_ref().map(|open| open.tasks.clone())
    }

    /// `None` where the run has to take its turn.
    pub(crate) fn reserve(&self, start: &StartExecution) -> Option<Reserved> {
        let open = self.lock().clone()?;
        if !open.is_quiet.load(Ordering::Acquire) {
            return None;
        }
        let engine = open.workshop.executions.engine();
        let fence = open.workshop.authority.fence(engine.clock().elapsed())?;
        let tenant = &start.context.tenant_id;
        let slot = open.slots.occupy(tenant)?;
        let target = target_of(&start.start);
        let place = open.workshop.concurrency.begin(tenant, &target, start.start.max_concurrent)?;
        Some(Reserved { open, slot, place, target, fence, is_awaited: start.start.synchronous })
    }
}

impl Quiet {
    /// An engine has one dispatcher.
    pub(crate) fn open(workshop: Workshop, slots: Slots, tasks: Tasks) -> Self {
        let engine = workshop.executions.engine().clone();
        let open = Arc::new(Open { workshop, slots, tasks, is_quiet: AtomicBool::new(false) });
        *engine.direct().lock() = Some(open.clone());
        Self { engine, open }
    }

    pub(crate) fn set(&self, is_quiet: bool) {
        self.open.is_quiet.store(is_quiet, Ordering::Release);
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        *self.engine.direct().lock() = None;
    }
}

impl Reserved {
    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    pub(crate) fn owner(&self) -> Arc<str> {
        self.open.workshop.authority.owner().clone()
    }

    pub(crate) fn tasks(&self) -> Tasks {
        self.open.tasks.clone()
    }

    /// The invocation to record behind the run's start. `None` if the dispatch is in flight, which a new one never is.
    pub(crate) fn first(self, run_id: &RunId, tenant: &TenantId) -> Option<(First, Command)> {
        let Self { open, slot, place, target, fence, is_awaited } = self;
        let Workshop { executions, authority, handlers, .. } = open.workshop.clone();
        let engine = executions.engine().clone();
        let now = engine.now();
        let step = DispatchStep { step_id: StepId::parse(HANDLER).ok()?, logical_attempt: 1 };
        let row = DispatchRow {
            request_id: step.request_id(run_id),
            run_id: run_id.clone(),
            tenant: tenant.clone(),
            target,
            step: Some(step),
            state: DispatchState::Notified,
            channel: Some(authority.owner().to_string()),
            reason: None,
            epoch: fence.epoch,
            queued_at: now,
            changed_at: now,
        };
        let registered = engine.in_flight().register(&row.request_id, run_id, now)?;
        let invocation =
            Invocation { executions, authority, handlers, row, invocation: 1, fence, registered, is_awaited };
        let request_id = invocation.request_id();
        let invoke = ExecutionCommand::Invoke { invocation: 1, request_id: request_id.clone() };
        let first = First { tasks: open.tasks.clone(), invocation, request_id, held: (slot, place) };
        Some((first, Command::Execution(Box::new(invoke))))
    }
}

impl First {
    /// It is recorded, and this is the state. The handler is still to be called.
    pub(crate) fn begin(self, state: &RunState) -> Begun {
        crate::metrics::handed_out(Duration::ZERO);
        let prepared = self.invocation.prepare(state);
        Begun { first: self, prepared }
    }

    /// It may be recorded, or be so soon.
    pub(crate) fn doubt(self) {
        let tasks = self.tasks.clone();
        tasks.spawn("attempt", self.run(None));
    }

    /// It was refused, because another node has the authority.
    pub(crate) fn lose(self) {
        self.invocation.authority.lost(self.invocation.fence.epoch);
    }

    async fn run(self, prepared: Option<Prepared>) {
        let Self { invocation, request_id, held, .. } = self;
        let prepared = match prepared {
            Some(prepared) => Some(prepared),
            None => look(&invocation, &request_id).await,
        };
        if let Some(prepared) = prepared {
            invocation.go_on(&request_id, prepared).await;
        }
        let (slot, place) = held;
        drop(slot);
        if place.leave() {
            invocation.executions.engine().wake().dispatch.notify_one();
        }
    }
}

impl Begun {
    /// Calls the handler and records its answer, here if a caller waits for it.
    pub(crate) async fn run(self) {
        let Self { first, prepared } = self;
        if first.invocation.is_awaited {
            return first.run(prepared).await;
        }
        let (engine, tasks) = (first.invocation.executions.engine().clone(), first.tasks.clone());
        engine.spawn_behind(&tasks, first.run(prepared));
    }
}

/// Looks for an invocation of which nobody knows whether it is recorded. If it is not there after a while, it still may come,
/// by a write that is on its way. So the authority is given up and asked for again: that write is refused from then on, or
/// what it wrote is found by its epoch.
async fn look(invocation: &Invocation, request_id: &str) -> Option<Prepared> {
    let engine = invocation.executions.engine();
    for looks in 1..=LOOKS {
        match invocation.recorded(request_id).await {
            Ok(prepared) => return prepared,
            Err(Error::Store(servo_store::Error::NotFound)) => engine.back_off(looks).await.ok()?,
            Err(Error::ShuttingDown) => return None,
            Err(_) => break,
        }
    }
    tracing::warn!(run_id = %invocation.row.run_id, "nobody knows whether a run was recorded; the authority is asked for again");
    authority::resign(engine, &invocation.authority, Some(invocation.fence.epoch)).await;
    engine.wake().authority.notify_one();
    None
}
