//! Virtual time. It moves only when nothing else can.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use servo_model::Timestamp;
use servo_runtime::Clock;
use servo_store::TimeSource;

#[derive(Debug, Clone)]
pub struct SimClock {
    inner: Arc<Mutex<Inner>>,
    /// This node's clock minus the world's, in milliseconds. Clones of a node's clock share it.
    skew_ms: Arc<AtomicI64>,
}

#[derive(Debug)]
struct Inner {
    now: i64,
    next: u64,
    sleepers: BTreeMap<(i64, u64), Option<Waker>>,
}

/// 2026-01-01T00:00:00Z: a fixed beginning, so that traces are equal.
const BEGINNING: i64 = 1_767_225_600_000;

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

impl SimClock {
    pub fn new() -> Self {
        let inner = Inner { now: BEGINNING, next: 0, sleepers: BTreeMap::new() };
        Self { inner: Arc::new(Mutex::new(inner)), skew_ms: Arc::default() }
    }

    /// The same time seen by a node whose clock is off.
    #[must_use]
    pub fn skewed(&self, skew_ms: i64) -> Self {
        Self { inner: self.inner.clone(), skew_ms: Arc::new(AtomicI64::new(skew_ms)) }
    }

    /// Somebody sets this node's clock: its time jumps, sleeps that have begun do not.
    pub fn set_skew(&self, skew_ms: i64) {
        self.skew_ms.store(skew_ms, Ordering::Relaxed);
    }

    /// For stores: the world's time.
    pub fn time_source(&self) -> TimeSource {
        let clock = self.skewed(0);
        Arc::new(move || clock.now())
    }

    pub(crate) fn now_shared(&self) -> Timestamp {
        Timestamp::from_millis(self.lock().now)
    }

    /// Moves the world to a later time at once, as if nobody had anything to do until then.
    pub fn jump_to(&self, at: Timestamp) {
        let mut inner = self.lock();
        inner.now = inner.now.max(at.as_millis());
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Moves to the earliest sleeper and wakes everybody who is due. False if nobody sleeps.
    pub(crate) fn advance_to_next(&self) -> bool {
        let mut inner = self.lock();
        let Some((&(due, _), _)) = inner.sleepers.first_key_value() else { return false };
        inner.now = inner.now.max(due);
        let after = (inner.now + 1, 0);
        let later = inner.sleepers.split_off(&after);
        let woken = std::mem::replace(&mut inner.sleepers, later);
        drop(inner);
        for waker in woken.into_values().flatten() {
            waker.wake();
        }
        true
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.lock().now + self.skew_ms.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.lock().now - BEGINNING).unwrap_or(0))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4).clamp(1, i64::MAX / 4);
        let mut inner = self.lock();
        inner.next += 1;
        let key = (inner.now + millis, inner.next);
        inner.sleepers.insert(key, None);
        drop(inner);
        Box::pin(Sleep { clock: self.clone(), key, done: false })
    }
}

struct Sleep {
    clock: SimClock,
    key: (i64, u64),
    done: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.clock.lock();
        if inner.now >= self.key.0 {
            inner.sleepers.remove(&self.key);
            drop(inner);
            self.done = true;
            return Poll::Ready(());
        }
        inner.sleepers.insert(self.key, Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if !self.done {
            self.clock.lock().sleepers.remove(&self.key);
        }
    }
}
