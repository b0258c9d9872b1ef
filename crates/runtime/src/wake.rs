//! Wake-ups between the engine and its loops. Hints only: every loop also looks by itself from time to time, so a lost
//! wake-up costs a moment and never a run.

use std::sync::atomic::{AtomicI64, Ordering};

use servo_model::Timestamp;
use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub struct Wake {
    pub dispatch: Notify,
    pub queue: Notify,
    pub timers: Notify,
    /// When the timers are looked at next, by the store's clock: whatever is due later needs no wake-up.
    timers_at: AtomicI64,
    pub authority: Notify,
    pub replay: Notify,
    /// Counts appends seen by this node; projector, relay and live readers wait on it.
    log: watch::Sender<u64>,
}

impl Default for Wake {
    fn default() -> Self {
        Self {
            dispatch: Notify::new(),
            queue: Notify::new(),
            timers: Notify::new(),
            timers_at: AtomicI64::new(i64::MAX),
            authority: Notify::new(),
            replay: Notify::new(),
            log: watch::channel(0).0,
        }
    }
}

impl Wake {
    pub fn timer_set(&self, due: Timestamp) {
        if due.as_millis() < self.timers_at.load(Ordering::SeqCst) {
            self.timers.notify_one();
        }
    }

    /// The timers are about to be read: any that is set from now on may be missed by that, and has to say so.
    pub(crate) fn timers_unknown(&self) {
        self.timers_at.store(i64::MAX, Ordering::SeqCst);
    }

    pub(crate) fn timers_next(&self, at: Timestamp) {
        self.timers_at.store(at.as_millis(), Ordering::SeqCst);
    }

    pub fn log_grew(&self) {
        self.log.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub fn watch_log(&self) -> watch::Receiver<u64> {
        self.log.subscribe()
    }
}
