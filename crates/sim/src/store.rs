//! A node's connection to the shared store: calls take virtual time, and fail as a plan says.
//!
//! A call that has reached the store is finished by the store, whether its caller waits, has given up or is gone: that is
//! how a database behaves, and it is where most trouble comes from. The store's own rules are `MemStore`'s.

mod admin;
mod entrypoints;
mod functions;
mod identity;
mod log;
mod relay;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use servo_model::RunId;
use servo_runtime::{Clock, Tasks};
use servo_store::mem::MemStore;
use servo_store::{Error, Result};
use tokio::sync::oneshot;

use crate::clock::SimClock;
use crate::exec::NodeId;
use crate::faults::{Call, Fate, Fault, FaultPlan};
use crate::journal::Journal;

/// A store that is wrong on purpose, for tests that must notice it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sabotage {
    #[default]
    None,
    /// Scheduler writes are not fenced.
    StripFence,
    /// A lost answer is reported as a write that did not happen.
    DenyMaybeWritten,
    /// Dispatches of steps whose id ends so are not stored.
    LoseDispatch(&'static str),
    /// Timers are not stored.
    LoseTimers,
    /// Runs that are set aside are not marked.
    ForgetQuarantine,
}

/// One node's connection.
#[derive(Clone)]
pub struct SimStore {
    shared: Arc<Shared>,
}

struct Shared {
    inner: MemStore,
    node: NodeId,
    clock: SimClock,
    /// Tasks of the store itself: they outlive the node that asked.
    server: Tasks,
    plan: Arc<dyn FaultPlan>,
    journal: Journal,
    sabotage: Sabotage,
    closed: AtomicBool,
}

impl std::fmt::Debug for SimStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimStore").field("node", &self.shared.node).finish_non_exhaustive()
    }
}

/// What connections have in common.
#[derive(Clone)]
pub struct Server {
    pub inner: MemStore,
    pub clock: SimClock,
    pub tasks: Tasks,
    pub plan: Arc<dyn FaultPlan>,
    pub journal: Journal,
    pub sabotage: Sabotage,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("sabotage", &self.sabotage).finish_non_exhaustive()
    }
}

/// How long after a lost answer the store may still do what it was asked.
const LATE: Duration = Duration::from_millis(700);

impl SimStore {
    pub fn connect(server: &Server, node: NodeId) -> Self {
        let Server { inner, clock, tasks, plan, journal, sabotage } = server.clone();
        let closed = AtomicBool::new(false);
        Self { shared: Arc::new(Shared { inner, node, clock, server: tasks, plan, journal, sabotage, closed }) }
    }

    fn check_damage(&self, run_id: &RunId) -> Result<()> {
        let detail = || format!("an event of {run_id} has lost its payload");
        if self.shared.plan.is_damaged(run_id) { Err(Error::Corrupt { detail: detail() }) } else { Ok(()) }
    }

    fn sabotage(&self) -> Sabotage {
        self.shared.sabotage
    }

    async fn read<T, W>(&self, name: &'static str, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(MemStore) -> BoxFuture<'static, Result<T>> + Send,
    {
        self.call(Call { name, writes: false, can_conflict: false }, None, work).await
    }

    async fn write<T, W>(&self, name: &'static str, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(MemStore) -> BoxFuture<'static, Result<T>> + Send,
    {
        self.call(Call { name, writes: true, can_conflict: false }, None, work).await
    }

    /// `conflict` is what the call answers when a plan says that somebody else was first.
    async fn call<T, W>(&self, call: Call, conflict: Option<Error>, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(MemStore) -> BoxFuture<'static, Result<T>> + Send,
    {
        let shared = &self.shared;
        if shared.closed.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        let Fate { before_ms, after_ms, fault } = shared.plan.fate(call);
        let (before, after) = (Duration::from_millis(before_ms), Duration::from_millis(after_ms));
        let future = work(shared.inner.clone());
        match fault {
            None if before_ms + after_ms == 0 => future.await,
            None => self.serve(before, after, future).await,
            Some(Fault::ExecuteThenUnavailable) => {
                // The outcome is thrown away: that is the fault.
                let _ = self.serve(before, after, future).await;
                Err(self.lost(call))
            }
            Some(Fault::UnavailableThenExecute) => {
                let clock = shared.clock.clone();
                shared.server.spawn("late call", async move {
                    clock.sleep(before + LATE).await;
                    let _ = future.await;
                });
                self.pause(after).await;
                Err(self.lost(call))
            }
            Some(fault @ (Fault::Unavailable | Fault::Conflict | Fault::Full)) => {
                self.pause(before).await;
                Err(match fault {
                    Fault::Full => Error::Full { detail: format!("{}: the plan says so", call.name) },
                    Fault::Conflict if conflict.is_some() => conflict.unwrap_or(Error::NotFound),
                    _ => {
                        Error::Unavailable { detail: format!("{}: the plan says so", call.name), maybe_written: false }
                    }
                })
            }
        }
    }

    fn lost(&self, call: Call) -> Error {
        let honest = self.shared.sabotage != Sabotage::DenyMaybeWritten;
        Error::Unavailable {
            detail: format!("{}: the answer is lost", call.name),
            maybe_written: call.writes && honest,
        }
    }

    async fn pause(&self, duration: Duration) {
        if !duration.is_zero() {
            self.shared.clock.sleep(duration).await;
        }
    }

    /// Done by the store's own task: giving up on it does not take it back.
    async fn serve<T: Send + 'static>(
        &self,
        before: Duration,
        after: Duration,
        future: BoxFuture<'static, Result<T>>,
    ) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        let clock = self.shared.clock.clone();
        self.shared.server.spawn("call", async move {
            if !before.is_zero() {
                clock.sleep(before).await;
            }
            let result = future.await;
            if !after.is_zero() {
                clock.sleep(after).await;
            }
            // The caller may have given up.
            let _ = sender.send(result);
        });
        match receiver.await {
            Ok(result) => result,
            Err(_) => Err(Error::Unavailable { detail: "the store is gone".to_owned(), maybe_written: true }),
        }
    }
}
