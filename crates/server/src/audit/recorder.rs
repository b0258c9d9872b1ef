//! Writes entries: before the answer where asked to, else a moment later and many together.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use servo_model::limits::AUDIT_BATCH_MAX;
use servo_model::{AuditEntry, Timestamp};
use servo_runtime::Clock;
use servo_store::Store;
use tokio::sync::{mpsc, oneshot};

use super::throttle::Throttle;

/// Entries that wait to be written. When there are more, whoever acts waits, and whoever is refused is only counted.
const QUEUE_MAX: usize = 4_096;
/// Entries of what was done that found no room in the queue, from those who cannot wait. As they are written with the next of the
/// queue, there are only ever few; more would be a store that takes none.
const SPILL_MAX: usize = 16 * QUEUE_MAX;
/// How often counts of refused requests are looked at.
const DRAIN_EVERY: Duration = Duration::from_secs(10);
/// How long entries gather that nobody waits for, so that they do not cost a commit each, in front of somebody's own.
const GATHER: Duration = Duration::from_millis(20);
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

enum Item {
    Entry(Arc<AuditEntry>),
    /// Answered when everything before it is written.
    Flush(oneshot::Sender<()>),
}

type Spill = Arc<Mutex<Vec<Arc<AuditEntry>>>>;

/// Takes entries. Clones share the queue.
#[derive(Clone)]
pub(crate) struct Recorder {
    store: Arc<dyn Store>,
    queue: mpsc::Sender<Item>,
    throttle: Arc<Throttle>,
    spill: Spill,
    waiting: Arc<Mutex<Option<mpsc::Receiver<Item>>>>,
}

impl Recorder {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        Self {
            store,
            queue,
            throttle: Arc::default(),
            spill: Arc::default(),
            waiting: Arc::new(Mutex::new(Some(waiting))),
        }
    }

    /// Written when this returns. If the store cannot now, it is tried again behind the answer: what was done cannot be taken
    /// back, so the caller is not told that it failed.
    pub(crate) async fn before(&self, entry: Arc<AuditEntry>) {
        if let Err(error) = self.store.put_audit(vec![entry.clone()]).await {
            let AuditEntry { id, tenant_id, actor, action, object_id, .. } = entry.as_ref();
            tracing::error!(%error, %id, %tenant_id, actor, action, object_id, "an audit entry waits to be written");
            self.behind(entry).await;
        }
    }

    /// Puts an entry into the queue. Gives it back if there is no room now.
    pub(crate) fn put(&self, entry: Arc<AuditEntry>) -> Option<Arc<AuditEntry>> {
        match self.queue.try_send(Item::Entry(entry)) {
            Err(mpsc::error::TrySendError::Full(Item::Entry(entry))) => Some(entry),
            // The queue ends with the server, whose store is then closed, too.
            _ => None,
        }
    }

    pub(crate) async fn behind(&self, entry: Arc<AuditEntry>) {
        // The queue ends with the server, whose store is then closed, too.
        let _ = self.queue.send(Item::Entry(entry)).await;
    }

    /// For somebody who cannot wait.
    pub(crate) fn later(&self, entry: Arc<AuditEntry>) {
        let refused = self.queue.try_send(Item::Entry(entry)).err().map(mpsc::error::TrySendError::into_inner);
        if let Some(Item::Entry(entry)) = refused {
            let mut spill = self.spill.lock().unwrap_or_else(PoisonError::into_inner);
            if spill.len() < SPILL_MAX {
                return spill.push(entry);
            }
            let AuditEntry { id, tenant_id, actor, action, object_id, .. } = entry.as_ref();
            tracing::error!(%id, %tenant_id, actor, action, object_id, "an audit entry found no room in the queue");
        }
    }

    /// Of what was refused or failed: nobody waits for these, and there may be many.
    pub(crate) fn denied(&self, entry: AuditEntry) {
        let Some(entry) = self.throttle.admit(entry) else { return };
        if let Err(mpsc::error::TrySendError::Full(Item::Entry(entry))) =
            self.queue.try_send(Item::Entry(Arc::new(entry)))
        {
            self.throttle.count(Arc::unwrap_or_clone(entry));
        }
    }

    /// Returns when everything that was recorded before is written.
    pub(crate) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.send(Item::Flush(done)).await.is_ok() {
            let _ = written.await;
        }
    }

    /// The work behind it; only the first call has it.
    pub(crate) fn work(&self, clock: Arc<dyn Clock>) -> Option<Work> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let Recorder { store, throttle, spill, .. } = self.clone();
        Some(Work { store, throttle, spill, waiting, clock })
    }
}

/// What writes the queue down.
pub(crate) struct Work {
    store: Arc<dyn Store>,
    throttle: Arc<Throttle>,
    spill: Spill,
    waiting: mpsc::Receiver<Item>,
    clock: Arc<dyn Clock>,
}

impl Work {
    pub(crate) async fn run(mut self) {
        let mut items = Vec::new();
        loop {
            tokio::select! {
                biased;
                count = self.waiting.recv_many(&mut items, AUDIT_BATCH_MAX) => {
                    if count == 0 {
                        return;
                    }
                }
                () = self.clock.sleep(DRAIN_EVERY) => {}
            }
            self.gather(&mut items).await;
            let mut flushed = Vec::new();
            let mut entries = Vec::new();
            for item in items.drain(..) {
                match item {
                    Item::Entry(entry) => entries.push(entry),
                    Item::Flush(done) => flushed.push(done),
                }
            }
            let due = if flushed.is_empty() { Some(self.clock.now()) } else { None };
            self.write(entries).await;
            let spilt = std::mem::take(&mut *self.spill.lock().unwrap_or_else(PoisonError::into_inner));
            for spilt in spilt.chunks(AUDIT_BATCH_MAX) {
                self.write(spilt.to_vec()).await;
            }
            self.write_counts(due).await;
            for done in flushed {
                let _ = done.send(());
            }
        }
    }

    /// Takes what comes within a moment, unless somebody waits.
    async fn gather(&mut self, items: &mut Vec<Item>) {
        let mut over = std::pin::pin!(self.clock.sleep(GATHER));
        let mut looked_at = 0;
        while !items[looked_at..].iter().any(|item| matches!(item, Item::Flush(_))) {
            looked_at = items.len();
            let room = AUDIT_BATCH_MAX.saturating_sub(looked_at);
            if items.is_empty() || room == 0 {
                return;
            }
            tokio::select! {
                biased;
                count = self.waiting.recv_many(items, room) => if count == 0 { return },
                () = &mut over => return,
            }
        }
    }

    async fn write_counts(&self, due: Option<Timestamp>) {
        let mut counts: Vec<_> = self.throttle.drain(due).into_iter().map(Arc::new).collect();
        while !counts.is_empty() {
            let rest = counts.split_off(counts.len().min(AUDIT_BATCH_MAX));
            self.write(std::mem::replace(&mut counts, rest)).await;
        }
    }

    /// Until it is written, or the store is closed. An entry has its id already, so writing it twice is writing it once.
    async fn write(&self, entries: Vec<Arc<AuditEntry>>) {
        if entries.is_empty() {
            return;
        }
        let mut pause = RETRY_MIN;
        loop {
            match self.store.put_audit(entries.clone()).await {
                Ok(()) => return,
                Err(servo_store::Error::Closed) => {
                    tracing::error!(entries = entries.len(), "audit entries were not written: the store is closed");
                    return;
                }
                Err(error) => tracing::warn!(%error, entries = entries.len(), "audit entries wait to be written"),
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }
}
