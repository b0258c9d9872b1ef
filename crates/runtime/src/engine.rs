//! Commands on runs. Load the state, let the machine decide, append with the sequence it was decided on, wake the loops.
//!
//! Commands on one run are ordered inside a node by the run's slot, and between nodes by the sequence check of the
//! append: who comes second reloads and decides again.

mod actions;
mod admission;
mod cache;
mod callers;
mod commit;
mod endings;
mod error;
mod families;
mod folded;
mod function;
mod now;
mod outcome;
mod prepare;
mod quotas;
mod read;
mod sabotage;
mod spawn;
mod start;
mod stopping;
mod withdraw;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use servo_canon::Digest;
use servo_machine::Command;
use servo_model::{RunId, RunState, TenantId, Timestamp};
use servo_store::{Fence, Scope, Store};

use crate::clock::Clock;
use crate::config::RuntimeConfig;
use crate::ids::Ids;
use crate::loops::direct::Direct;
use crate::loops::inflight::InFlight;
use crate::spans::SpanSink;
use crate::wake::Wake;

use admission::Admissions;
pub(crate) use admission::BELIEVED;
use cache::Cache;
use callers::Callers;
use endings::Endings;
pub use error::Error;
use families::Families;
pub(crate) use families::Places;
use folded::Folded;
pub use outcome::Outcome;
pub(crate) use quotas::{Entered, Quotas};
use sabotage::Broken;
pub use start::{StartRequest, Started};

/// How long to go on when the store does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// A caller waits: a few quick tries, then the error.
    Request,
    /// A loop's own work, which must not be dropped: until the store answers or the runtime stops.
    Background,
}

/// One command with its circumstances.
#[derive(Debug, Clone)]
pub struct Order {
    pub scope: Scope,
    pub run_id: RunId,
    /// Decided one after the other and recorded together.
    pub commands: Vec<Command>,
    pub emitted_by: Arc<str>,
    pub fence: Option<Fence>,
    /// The queue lease under which a run is begun.
    pub queue_lease: Option<String>,
    /// Only with the first command of a new run.
    pub request_key: Option<Digest>,
    /// Decide on what every node has recorded, also if nothing comes of it.
    pub fresh: bool,
    /// When the store's clock called a timer due.
    pub due_at: Option<Timestamp>,
    pub patience: Patience,
}

impl Order {
    pub fn new(scope: Scope, run_id: RunId, command: Command, emitted_by: impl Into<Arc<str>>) -> Self {
        Self {
            scope,
            run_id,
            commands: vec![command],
            emitted_by: emitted_by.into(),
            fence: None,
            queue_lease: None,
            request_key: None,
            due_at: None,
            fresh: false,
            patience: Patience::Request,
        }
    }
}

/// A handle: cheap to clone, shared by server and loops.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<Ids>,
    pub config: Arc<RuntimeConfig>,
    pub wake: Arc<Wake>,
    pub in_flight: InFlight,
    /// Only this process writes to the store.
    pub single_process: bool,
    pub endings: Endings,
    pub shutdown: crate::Shutdown,
    /// When work in flight must have ended, and when all must have; in the clock's elapsed time.
    stop_by: OnceLock<(Duration, Duration)>,
    cache: Cache,
    folded: Folded,
    offset: now::Offset,
    admissions: Admissions,
    quotas: Quotas,
    /// The engine types that plans may name.
    engines: Vec<String>,
    families: Families,
    /// The way of new runs past the backlog.
    direct: Direct,
    broken: Broken,
    spans: Option<Arc<dyn SpanSink>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<Ids>,
        config: Arc<RuntimeConfig>,
        shutdown: crate::Shutdown,
        single_process: bool,
    ) -> Self {
        let cache = Cache::new(config.cache_bytes_max);
        let broken = Broken::of(&config);
        let inner = Inner {
            store,
            clock,
            ids,
            config,
            wake: Arc::default(),
            in_flight: InFlight::default(),
            single_process,
            endings: Endings::default(),
            shutdown,
            stop_by: OnceLock::new(),
            cache,
            folded: Folded::default(),
            offset: now::Offset::default(),
            admissions: Admissions::default(),
            quotas: Quotas::default(),
            engines: Vec::new(),
            families: Families::default(),
            direct: Direct::default(),
            broken,
            spans: None,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Only before the engine is shared.
    #[must_use]
    pub(crate) fn with_spans(mut self, spans: Option<Arc<dyn SpanSink>>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.spans = spans;
        }
        self
    }

    /// Only before the engine is shared.
    #[must_use]
    pub(crate) fn with_engines(mut self, engines: Vec<String>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.engines = engines;
        }
        self
    }

    /// Where spans go. `None` when nobody wants them: then nothing is done for them.
    pub fn spans(&self) -> Option<&dyn SpanSink> {
        self.inner.spans.as_deref()
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    pub fn ids(&self) -> &Ids {
        &self.inner.ids
    }

    pub fn config(&self) -> &RuntimeConfig {
        &self.inner.config
    }

    pub fn wake(&self) -> &Wake {
        &self.inner.wake
    }

    pub(crate) fn wake_handle(&self) -> Arc<Wake> {
        self.inner.wake.clone()
    }

    pub fn shutdown(&self) -> &crate::Shutdown {
        &self.inner.shutdown
    }

    pub(crate) fn quotas(&self) -> &Quotas {
        &self.inner.quotas
    }

    /// Only this process writes to the store.
    pub(crate) fn is_alone(&self) -> bool {
        self.inner.single_process
    }

    pub(crate) fn direct(&self) -> &Direct {
        &self.inner.direct
    }

    pub(crate) fn folded(&self) -> &Folded {
        &self.inner.folded
    }

    pub(crate) fn callers(&self) -> &Callers {
        self.inner.admissions.callers()
    }

    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.inner.in_flight
    }

    pub(crate) fn listen_for_end(&self, run_id: &RunId) -> endings::Listener {
        self.inner.endings.listen(run_id)
    }

    /// Whether a caller on this node waits for the run.
    pub(crate) fn is_listened_for(&self, run_id: &RunId) -> bool {
        self.inner.endings.has_listener(run_id)
    }

    /// Forgets runs that have ended, after retention has removed some.
    pub(crate) fn forget_ended(&self) {
        self.inner.cache.remove_ended();
    }

    /// Forgets a run's folded state, after it was removed or set aside.
    pub(crate) fn forget(&self, run_id: &RunId) {
        self.inner.cache.remove(run_id);
    }
}

/// The state of a run as a node holds it, with the timer row that belongs to it.
#[derive(Debug)]
pub(crate) struct Hot {
    /// In a box: it goes from hand to hand, and is large.
    pub state: Box<RunState>,
    /// Whose run it is, by its row: an imported run's events name the tenant that they came from.
    pub tenant: TenantId,
    /// `None` when this node has not written the timer row itself and so does not know it.
    pub timer: Option<Option<Timestamp>>,
    /// Dispatches that turned out not to be there, as those of an imported run are not: nothing is to be ended then.
    pub absent: Vec<String>,
}

impl Hot {
    fn new(state: Box<RunState>, tenant: TenantId) -> Self {
        Self { state, tenant, timer: None, absent: Vec::new() }
    }
}
