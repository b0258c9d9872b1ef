//! How long a stop may take: one period for all of it, which begins when the stop does. Work in flight has most of it; the last
//! part is for what comes after the work, so that the store is closed in order within the period as well.

use std::time::Duration;

use super::Engine;

/// Which part of the period is kept for the end.
const END_PART: u32 = 10;

impl Engine {
    /// Takes no more work. The period begins with the first call; a later one changes nothing.
    pub fn begin_stop(&self) {
        self.begin_stop_within(Duration::from_millis(self.inner.config.shutdown_grace_ms));
    }

    /// The same with another period.
    pub fn begin_stop_within(&self, period: Duration) {
        let now = self.inner.clock.elapsed();
        let _ = self.inner.stop_by.set((now + period - period / END_PART, now + period));
        self.inner.shutdown.trigger();
    }

    /// What is left of the period for work in flight.
    pub fn work_left(&self) -> Duration {
        self.until(|(work, _)| work)
    }

    /// What is left of all of it.
    pub fn stop_left(&self) -> Duration {
        self.until(|(_, end)| end)
    }

    fn until(&self, which: impl Fn((Duration, Duration)) -> Duration) -> Duration {
        let period = Duration::from_millis(self.inner.config.shutdown_grace_ms);
        let now = self.inner.clock.elapsed();
        self.inner.stop_by.get().map_or(period, |by| which(*by).saturating_sub(now))
    }
}
