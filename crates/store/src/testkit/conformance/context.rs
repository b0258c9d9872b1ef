//! What a case works with, and the few ways of asking that most cases share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_model::{RunId, TenantId};

use super::{Backend, BlockOn, Damage};
use crate::log::{Append, Appended, StoredEvent, StreamAppend, StreamOutcome};
use crate::position::Position;
use crate::runs::Scope;
use crate::testkit::clock::ManualClock;
use crate::testkit::fixtures;
use crate::{Result, Store};

/// How long a reader of the log may lag behind a commit: other transactions of the same database server hold it back.
const PATIENCE: Duration = Duration::from_secs(60);

/// A fresh store and its clock.
#[derive(Clone)]
pub struct Context {
    pub store: Arc<dyn Store>,
    pub clock: ManualClock,
    pub(super) block_on: BlockOn,
    backend: Arc<dyn Backend>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Context {
    pub async fn open(backend: Arc<dyn Backend>, block_on: BlockOn) -> Self {
        let clock = ManualClock::new();
        let store = backend.open(clock.time_source()).await;
        Self { store, clock, block_on, backend }
    }

    /// Closes the store and opens it again; `None` where nothing outlives the handle.
    pub async fn reopen(&self) -> Option<Self> {
        self.store.close().await.unwrap();
        let store = self.backend.reopen(self.clock.time_source()).await?;
        Some(Self { store, ..self.clone() })
    }

    /// The store after bytes of it have changed.
    pub async fn damaged(&self, damage: &Damage) -> Self {
        let damaged = self.backend.damage(self.store.clone(), self.clock.time_source(), damage).await;
        Self { store: damaged.expect("the backend knows how"), ..self.clone() }
    }

    /// Starts a run with one event.
    pub async fn start(&self, run: &str, tenant: &str) -> (RunId, TenantId) {
        let (run, tenant) = (fixtures::run_id(run), fixtures::tenant(tenant));
        self.store.append(fixtures::start_append(&run, &tenant)).await.unwrap();
        (run, tenant)
    }

    /// Appends one stream and takes its outcome.
    pub async fn put(&self, stream: StreamAppend) -> Result<StreamOutcome> {
        let Appended { mut streams, .. } = self.store.append(Append::one(stream)).await?;
        assert_eq!(streams.len(), 1, "one outcome per stream");
        Ok(streams.remove(0))
    }

    /// All events of a run.
    pub async fn events(&self, run: &RunId) -> Vec<StoredEvent> {
        let mut events: Vec<StoredEvent> = Vec::new();
        loop {
            let after = events.last().map_or(0, |event| event.run_seq);
            let page = self.store.read_run(&Scope::System, run, after, 10_000).await.unwrap();
            if page.events.is_empty() {
                assert!(events.is_empty() || after == page.head_seq, "the pages hold the whole run");
                return events;
            }
            events.extend(page.events);
        }
    }

    pub async fn sequences(&self, run: &RunId) -> Vec<u64> {
        self.events(run).await.iter().map(|event| event.run_seq).collect()
    }

    /// The log after a position, page by page, once at least `count` events can be seen there. Nobody else writes to
    /// the store, but a reader may lag behind a commit.
    pub async fn log(&self, after: Position, page: u32, count: usize) -> Vec<StoredEvent> {
        let until = Instant::now() + PATIENCE;
        let (mut events, mut at) = (Vec::new(), after);
        loop {
            let read = self.store.read_log(at, page).await.unwrap();
            assert!(read.events.len() <= page as usize, "a page of {} events", read.events.len());
            match read.events.last() {
                Some(last) => assert_eq!(read.next, last.position, "the next page starts behind the last event"),
                None => assert_eq!(read.next, at, "an empty page stays where it is"),
            }
            at = read.next;
            let seen_all = read.events.is_empty() && events.len() >= count;
            events.extend(read.events.into_iter().map(Arc::unwrap_or_clone));
            if seen_all {
                return events;
            }
            assert!(Instant::now() < until, "{} of {count} events can be seen", events.len());
            yield_now().await;
        }
    }

    /// Adds an event to the system stream and reads the log up to it: everything before it can be seen then.
    pub async fn settled_log(&self, after: Position) -> Vec<StoredEvent> {
        let marker = fixtures::fresh_event(&RunId::system());
        let id = marker.event_id;
        self.put(fixtures::system_stream(vec![marker])).await.unwrap();
        let (mut events, mut at) = (Vec::new(), after);
        loop {
            let read = self.log(at, 1_000, 1).await;
            at = read.last().unwrap().position;
            events.extend(read);
            if events.last().is_some_and(|event: &StoredEvent| event.event_id == id) {
                events.pop();
                return events;
            }
        }
    }
}

/// Lets other tasks of the thread go on.
pub(in crate::testkit) async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
