//! Virtual time, and an executor that jumps to the next sleeper when nothing else can happen.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use servo_model::Timestamp;
use servo_sdk::Clock;

#[derive(Clone)]
pub(crate) struct VirtualClock(Arc<Mutex<Inner>>);

struct Inner {
    now: i64,
    next: u64,
    sleepers: Vec<(i64, u64, Waker)>,
}

impl VirtualClock {
    pub(crate) fn at(millis: i64) -> Self {
        Self(Arc::new(Mutex::new(Inner { now: millis, next: 0, sleepers: Vec::new() })))
    }

    pub(crate) fn millis(&self) -> i64 {
        self.0.lock().unwrap().now
    }

    pub(crate) fn advance_to(&self, millis: i64) {
        let mut inner = self.0.lock().unwrap();
        inner.now = inner.now.max(millis);
        let now = inner.now;
        let (due, rest) = inner.sleepers.drain(..).partition(|(at, _, _)| *at <= now);
        inner.sleepers = rest;
        let due: Vec<(i64, u64, Waker)> = due;
        drop(inner);
        due.into_iter().for_each(|(_, _, waker)| waker.wake());
    }

    fn next_sleeper(&self) -> Option<i64> {
        self.0.lock().unwrap().sleepers.iter().map(|(at, _, _)| *at).min()
    }

    /// Runs a future to its end, or until `stop` says so. Time passes only while nothing can go on.
    pub(crate) fn drive<F: Future>(&self, future: F, stop: impl Fn() -> bool) -> Option<F::Output> {
        let mut future = pin!(future);
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(woken.clone());
        loop {
            if stop() {
                return None;
            }
            if woken.0.swap(false, Ordering::SeqCst) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Some(output);
                }
                continue;
            }
            let at = self.next_sleeper().expect("the handler waits for nothing that can happen");
            self.advance_to(at);
        }
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let at = self.millis() + i64::try_from(duration.as_millis()).unwrap();
        let key = {
            let mut inner = self.0.lock().unwrap();
            inner.next += 1;
            inner.next
        };
        Box::pin(Sleep { clock: self.clone(), at, key })
    }
}

struct Sleep {
    clock: VirtualClock,
    at: i64,
    key: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.clock.0.lock().unwrap();
        if inner.now >= self.at {
            return Poll::Ready(());
        }
        let key = self.key;
        inner.sleepers.retain(|(_, other, _)| *other != key);
        inner.sleepers.push((self.at, key, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let key = self.key;
        self.clock.0.lock().unwrap().sleepers.retain(|(_, other, _)| *other != key);
    }
}
