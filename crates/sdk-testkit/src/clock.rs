//! Virtual time. It moves only when nothing else can.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use servo_model::Timestamp;
use servo_store::TimeSource;

/// 2026-01-01T00:00:00Z: a fixed beginning, so that two runs of a test are alike.
const BEGINNING: i64 = 1_767_225_600_000;
/// Longer sleeps are cut to this, far beyond what an execution may take.
const SLEEP_MS_MAX: i64 = 100 * 366 * 86_400_000;

#[derive(Debug, Clone)]
pub(crate) struct VirtualClock(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    now: i64,
    next: u64,
    sleepers: BTreeMap<(i64, u64), Option<Waker>>,
}

impl VirtualClock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Inner { now: BEGINNING, next: 0, sleepers: BTreeMap::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.lock().now)
    }

    /// Since the beginning.
    pub(crate) fn passed(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.lock().now - BEGINNING).unwrap_or(0))
    }

    pub(crate) fn time_source(&self) -> TimeSource {
        let clock = self.clone();
        Arc::new(move || clock.time())
    }

    /// Moves to the earliest sleeper and wakes everybody who is due. False if nobody sleeps.
    pub(crate) fn advance(&self) -> bool {
        let mut inner = self.lock();
        let Some((&(due, _), _)) = inner.sleepers.first_key_value() else { return false };
        inner.now = inner.now.max(due);
        let later = (inner.now + 1, 0);
        let later = inner.sleepers.split_off(&later);
        let woken = std::mem::replace(&mut inner.sleepers, later);
        drop(inner);
        woken.into_values().flatten().for_each(Waker::wake);
        true
    }

    pub(crate) fn wait(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(SLEEP_MS_MAX).clamp(1, SLEEP_MS_MAX);
        let mut inner = self.lock();
        inner.next += 1;
        let key = (inner.now + millis, inner.next);
        inner.sleepers.insert(key, None);
        drop(inner);
        Box::pin(Sleep { clock: self.clone(), key })
    }
}

impl servo_runtime::Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.time()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.wait(duration)
    }
}

impl servo_sdk::Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.time()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.wait(duration)
    }
}

struct Sleep {
    clock: VirtualClock,
    key: (i64, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.clock.lock();
        if inner.now >= self.key.0 {
            return Poll::Ready(());
        }
        inner.sleepers.insert(self.key, Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.lock().sleepers.remove(&self.key);
    }
}
