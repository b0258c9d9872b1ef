//! Time, injected: nothing below layer 6 asks the operating system otherwise.

use std::time::Duration;

use futures_util::future::BoxFuture;
use servo_model::Timestamp;

/// A clock that can be read and slept on.
pub trait Clock: Send + Sync {
    /// What the wall says. Somebody may set it, forwards or backwards.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment. Nobody sets it, so differences can be trusted. A clock that cannot be set need not
    /// have one of its own.
    fn elapsed(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.now().as_millis()).unwrap_or(0))
    }

    /// Ready once `duration` has passed on this clock.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// The same for somebody outside, whose patience is that of the wall: a clock that jumps does not take it along.
    fn sleep_outside(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep(duration)
    }
}

/// How long somebody outside waits, in several places one after the other.
pub(crate) struct Deadline {
    sleep: BoxFuture<'static, ()>,
    is_over: bool,
}

impl Deadline {
    pub(crate) fn new(clock: &dyn Clock, patience: Duration) -> Self {
        Self { sleep: clock.sleep_outside(patience), is_over: false }
    }

    /// Ready once it is over, and from then on. May be dropped before.
    pub(crate) async fn over(&mut self) {
        if !self.is_over {
            self.sleep.as_mut().await;
            self.is_over = true;
        }
    }
}

/// The operating system's clock, sleeping on tokio's timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system's clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// Also while the machine sleeps: a lease ends in that time, too.
    #[cfg(target_os = "linux")]
    fn elapsed(&self) -> Duration {
        let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::try_from(since_boot).unwrap_or_default()
    }

    #[cfg(not(target_os = "linux"))]
    fn elapsed(&self) -> Duration {
        static BEGINNING: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        BEGINNING.get_or_init(std::time::Instant::now).elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that sleeps on the system's clock")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
