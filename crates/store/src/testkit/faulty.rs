//! A store whose calls fail on demand: the n-th of all, or the n-th of one method. It also counts and records calls.
//!
//! A sweep fails call 1, then call 2, and so on until a run of the scenario has fewer calls than that; after each, the
//! scenario must have come out as if nothing had happened. What is *not* simulated here is damage to stored data.

mod held;
mod plan;

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use servo_model::{RunId, TenantId, Timestamp};

use crate::Store;
use crate::error::{Error, Result};
use crate::log::{Append, Appended, Expected, LogPage, LogStore, RunPage, StoredRun, StoredSnapshot};
use crate::position::Position;
use crate::runs::Scope;

pub use held::Held;
pub use plan::{Fired, Plan};

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Not performed. `append` answers that somebody was faster, `move_cursor` that the cursor moved; calls that can
    /// meet neither are `Unavailable`.
    Conflict,
    /// Not performed, and the caller can know it: the connection was never made.
    Unavailable,
    /// Not performed, but the caller cannot know it.
    Timeout,
    /// Performed, but the caller cannot know it: the answer was lost.
    ExecuteThenUnavailable,
    /// Not performed: no space left.
    Full,
}

impl Fault {
    pub const ALL: [Fault; 5] =
        [Fault::Conflict, Fault::Unavailable, Fault::Timeout, Fault::ExecuteThenUnavailable, Fault::Full];

    fn error(self) -> Error {
        let unavailable = |detail: &str, maybe_written| Error::Unavailable { detail: detail.to_owned(), maybe_written };
        match self {
            Fault::Conflict | Fault::Unavailable => unavailable("injected: no connection", false),
            Fault::Timeout => unavailable("injected: no answer in time", true),
            Fault::ExecuteThenUnavailable => unavailable("injected: the connection broke", true),
            Fault::Full => Error::Full { detail: "injected".to_owned() },
        }
    }
}

/// Wraps a store, a concrete one or `dyn Store`. Clones of the plan steer it from outside.
pub struct FaultyStore<S: ?Sized> {
    plan: Plan,
    inner: Arc<S>,
}

impl<S: ?Sized> std::fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyStore").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl<S: Store + ?Sized> FaultyStore<S> {
    pub fn new(inner: Arc<S>, plan: Plan) -> Self {
        Self { plan, inner }
    }

    fn inner(&self) -> &S {
        &self.inner
    }

    async fn around<T: Send>(&self, method: &'static str, call: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let conflict = (method == "move_cursor").then(|| Error::CursorMoved { name: "injected".to_owned() });
        self.perform(method, conflict, call).await
    }

    /// `conflict` is how this call tells that somebody was faster.
    async fn perform<T: Send>(
        &self,
        method: &'static str,
        conflict: Option<Error>,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        match self.plan.count(method) {
            None => {
                let answer = call.await;
                if let Some(held) = self.plan.take_hold(method) {
                    held.wait().await;
                }
                answer
            }
            Some(Fault::ExecuteThenUnavailable) => {
                let _lost = call.await;
                Err(Fault::ExecuteThenUnavailable.error())
            }
            Some(Fault::Conflict) => Err(conflict.unwrap_or_else(|| Fault::Conflict.error())),
            Some(fault) => Err(fault.error()),
        }
    }
}

/// The first stream that can lose a race, having lost it by one event.
fn conflict_of(append: &Append) -> Option<Error> {
    append.streams.iter().find_map(|stream| match stream.expected {
        Expected::Seq(expected) => {
            Some(Error::Conflict { run_id: stream.run_id.clone(), expected, actual: expected + 1 })
        }
        Expected::New | Expected::Any => None,
    })
}

#[async_trait]
impl<S: Store + ?Sized> LogStore for FaultyStore<S> {
    async fn now(&self) -> Result<Timestamp> {
        self.around("now", self.inner().now()).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        let conflict = conflict_of(&append);
        self.perform("append", conflict, self.inner().append(append)).await
    }

    async fn read_run(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage> {
        self.around("read_run", self.inner().read_run(scope, run_id, after, limit)).await
    }

    async fn load_run(&self, scope: &Scope, run_id: &RunId, limit: u32) -> Result<StoredRun> {
        self.around("load_run", self.inner().load_run(scope, run_id, limit)).await
    }

    async fn snapshot_at(&self, scope: &Scope, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>> {
        self.around("snapshot_at", self.inner().snapshot_at(scope, run_id, seq_max)).await
    }

    async fn put_snapshot(&self, run_id: &RunId, tenant: &TenantId, snapshot: StoredSnapshot) -> Result<()> {
        self.around("put_snapshot", self.inner().put_snapshot(run_id, tenant, snapshot)).await
    }

    async fn read_log(&self, after: Position, limit: u32) -> Result<LogPage> {
        self.around("read_log", self.inner().read_log(after, limit)).await
    }

    async fn log_head(&self) -> Result<Position> {
        self.around("log_head", self.inner().log_head()).await
    }

    async fn count_log(&self, after: Position, until: Position, most: u64) -> Result<u64> {
        self.around("count_log", self.inner().count_log(after, until, most)).await
    }
}

crate::wrap_store!([S: Store + ?Sized] FaultyStore<S>);
