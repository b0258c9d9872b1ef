//! Children that are kept for the next call of the same source by the same tenant, and some that have seen nothing yet.
//!
//! A child never changes its tenant or its source: what one tenant's code may have done to a child is met only by itself.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use servo_canon::Digest;
use servo_model::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::child::Child;
use crate::settings::Settings;
use crate::spawner::Spawner;
use crate::tasks;

pub(crate) type Key = (TenantId, Digest);

#[derive(Debug)]
pub(crate) struct Pool {
    settings: Settings,
    spawner: Spawner,
    /// One for each child that works.
    working: Arc<Semaphore>,
    /// One for each call that has just begun: see [`Lease::turn`]. Those that a caller waits for have their own.
    awaited: Arc<Semaphore>,
    others: Arc<Semaphore>,
    alive: Arc<AtomicUsize>,
    kept: Mutex<Kept>,
    /// For tasks that must not keep the pool alive.
    own: Weak<Pool>,
}

#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "a child leaves in the box that it came in")]
struct Kept {
    idle: HashMap<Key, Vec<Idle>>,
    spare: Vec<Box<Child>>,
    /// Spares that are being started.
    coming: usize,
    is_tended: bool,
}

#[derive(Debug)]
struct Idle {
    child: Box<Child>,
    since: Instant,
}

/// A child that works on a call. Dropped, it is killed; given back, it is kept.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) child: Box<Child>,
    /// Of a call, for its first moments. Most calls end within them, and of those only so many run at once as processors
    /// have use for: the same few children serve all of them, with what they need in the processors' caches. Whoever takes longer
    /// gives it up, so nobody waits for a program that computes or waits for long.
    pub(crate) turn: Option<OwnedSemaphorePermit>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn new(settings: Settings) -> io::Result<Arc<Self>> {
        let spawner = Spawner::start(&settings)?;
        let working = Arc::new(Semaphore::new(settings.children_max.max(1)));
        let turns = || Arc::new(Semaphore::new(settings.turns.max(1)));
        let (awaited, others) = (turns(), turns());
        Ok(Arc::new_cyclic(|own| Self {
            settings,
            spawner,
            working,
            awaited,
            others,
            alive: Arc::default(),
            kept: Mutex::default(),
            own: own.clone(),
        }))
    }

    /// A child for a call. Waits while all of them work.
    pub(crate) async fn take(&self, key: &Key, is_awaited: bool) -> io::Result<Lease> {
        let permit = self.working.clone().acquire_owned().await.map_err(io::Error::other)?;
        let turns = if is_awaited { &self.awaited } else { &self.others };
        let turn = turns.clone().acquire_owned().await.map_err(io::Error::other)?;
        let warm = self.lock().take(key);
        if let Some(child) = warm {
            return Ok(Lease { child, turn: Some(turn), _permit: permit });
        }
        // Starting a process takes longer than a turn.
        drop(turn);
        Box::pin(self.fresh(permit)).await
    }

    /// A child that has seen nothing.
    pub(crate) async fn take_fresh(&self) -> io::Result<Lease> {
        let permit = self.working.clone().acquire_owned().await.map_err(io::Error::other)?;
        self.fresh(permit).await
    }

    async fn fresh(&self, permit: OwnedSemaphorePermit) -> io::Result<Lease> {
        let spare = self.lock().spare.pop();
        self.refill();
        let child = match spare {
            Some(child) => child,
            None => {
                self.make_room();
                Child::start(&self.spawner, &self.alive).await?
            }
        };
        Ok(Lease { child, turn: None, _permit: permit })
    }

    /// Takes a child back whose call went well.
    pub(crate) fn give_back(&self, key: Key, lease: Lease, memory_mb: u64) {
        let Lease { child, turn, _permit } = lease;
        if child.calls >= self.settings.calls_per_child_max || child.has_grown(memory_mb) {
            return;
        }
        let mut kept = self.lock();
        kept.idle.entry(key).or_default().push(Idle { child, since: Instant::now() });
        // The next one finds this child.
        drop(turn);
        if !kept.is_tended
            && let Some(own) = self.own.upgrade()
        {
            kept.is_tended = true;
            tasks::spawn(tend(Arc::downgrade(&own), self.settings.idle));
        }
    }

    /// Starts spares, so that the next fresh child is there already.
    pub(crate) fn refill(&self) {
        let Some(own) = self.own.upgrade() else { return };
        {
            let mut kept = self.lock();
            let full = self.alive.load(Ordering::Relaxed) >= self.settings.children_max;
            if full || kept.spare.len() + kept.coming >= self.settings.spare {
                return;
            }
            kept.coming += 1;
        }
        tasks::spawn(async move {
            let started = Child::start(&own.spawner, &own.alive).await;
            let mut kept = own.lock();
            kept.coming -= 1;
            match started {
                Ok(child) => kept.spare.push(child),
                Err(error) => tracing::warn!(%error, "a spare child could not be started"),
            }
        });
    }

    /// At the limit somebody who idles makes room; the longest idle one goes first.
    fn make_room(&self) {
        while self.alive.load(Ordering::Relaxed) >= self.settings.children_max {
            let evicted = self.lock().evict_oldest();
            if evicted.is_none() {
                return;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// The one that worked last: its memory is the warmest.
    fn take(&mut self, key: &Key) -> Option<Box<Child>> {
        let idle = self.idle.get_mut(key)?;
        let child = idle.pop().map(|idle| idle.child);
        if idle.is_empty() {
            self.idle.remove(key);
        }
        child
    }

    fn evict_oldest(&mut self) -> Option<Box<Child>> {
        // Those of one key are in the order in which they came back.
        let oldest = |idle: &Vec<Idle>| idle.first().map(|idle| idle.since);
        let key = self.idle.iter().min_by_key(|(_, idle)| oldest(idle)).map(|(key, _)| key.clone());
        let Some(key) = key else { return self.spare.pop() };
        let idle = self.idle.get_mut(&key)?;
        let child = (!idle.is_empty()).then(|| idle.remove(0).child);
        if idle.is_empty() {
            self.idle.remove(&key);
        }
        child
    }

    #[expect(clippy::vec_box, reason = "as in `Kept`")]
    fn evict_idle_since(&mut self, before: Instant) -> Vec<Box<Child>> {
        let mut evicted = Vec::new();
        self.idle.retain(|_, idle| {
            while idle.first().is_some_and(|idle| idle.since <= before) {
                evicted.push(idle.remove(0).child);
            }
            !idle.is_empty()
        });
        evicted
    }
}

/// Ends children that nobody wants any more, for as long as there are idle ones.
async fn tend(pool: Weak<Pool>, idle: std::time::Duration) {
    loop {
        tasks::sleep(idle).await;
        let Some(pool) = pool.upgrade() else { return };
        let Some(before) = Instant::now().checked_sub(idle) else { continue };
        let mut kept = pool.lock();
        let evicted = kept.evict_idle_since(before);
        if kept.idle.is_empty() {
            kept.is_tended = false;
            return;
        }
        drop(kept);
        drop(evicted);
    }
}
