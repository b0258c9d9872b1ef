//! A clock that stands still until a test advances it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use servo_model::Timestamp;

use crate::TimeSource;

/// 2026-02-11T10:30:00.000Z
const START_MS: i64 = 1_770_805_800_000;

/// Clones share the time, so a test advances the clock of a store it has already opened.
#[derive(Debug, Clone)]
pub struct ManualClock {
    millis: Arc<AtomicI64>,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualClock {
    pub fn new() -> Self {
        Self { millis: Arc::new(AtomicI64::new(START_MS)) }
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst))
    }

    pub fn advance(&self, ms: i64) {
        self.millis.fetch_add(ms, Ordering::SeqCst);
    }

    /// The time a while from now, for leases and timers. The clock stays.
    pub fn after(&self, ms: u64) -> Timestamp {
        self.now().plus(Duration::from_millis(ms))
    }

    pub fn time_source(&self) -> TimeSource {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}
