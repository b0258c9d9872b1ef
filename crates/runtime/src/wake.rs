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
    /// When the timers are looked at next, by the store's clock: whatever is due later needs no wake-up. While they are being
    /// read nothing does.
    timers_at: AtomicI64,
    /// The earliest that was set since the timers began to be read. Looking again for every one of them would mean to read
    /// without a pause wherever runs with a timeout start all the time.
    timers_set: AtomicI64,
    pub authority: Notify,
    pub replay: Notify,
    /// The store's clock was set.
    pub clock: Notify,
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
            timers_set: AtomicI64::new(i64::MAX),
            authority: Notify::new(),
            replay: Notify::new(),
            clock: Notify::new(),
            log: watch::channel(0).0,
        }
    }
}

impl Wake {
    /// After the timer is in the store.
    pub fn timer_set(&self, due: Timestamp) {
        // First noted, then looked: who reads the timers does it the other way round, so one of the two sees the other.
        self.timers_set.fetch_min(due.as_millis(), Ordering::SeqCst);
        if due.as_millis() < self.timers_at.load(Ordering::SeqCst) {
            self.timers.notify_one();
        }
    }

    /// The timers are about to be read: any that is set from now on may be missed by that.
    pub(crate) fn timers_unknown(&self) {
        self.timers_set.store(i64::MAX, Ordering::SeqCst);
        self.timers_at.store(i64::MIN, Ordering::SeqCst);
    }

    /// They were read, and are to be looked at again at this time, or when one is due that was set meanwhile: gives the earlier
    /// of the two.
    pub(crate) fn timers_next(&self, at: Timestamp) -> Timestamp {
        self.timers_at.store(at.as_millis(), Ordering::SeqCst);
        let at = at.as_millis().min(self.timers_set.load(Ordering::SeqCst));
        self.timers_at.store(at, Ordering::SeqCst);
        Timestamp::from_millis(at)
    }

    pub fn log_grew(&self) {
        self.log.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub fn watch_log(&self) -> watch::Receiver<u64> {
        self.log.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_timer_wakes_only_where_it_is_due_before_the_next_look() {
        let (wake, at) = (Wake::default(), Timestamp::from_millis);
        let is_woken = || wake.timers.notified().now_or_never().is_some();
        wake.timer_set(at(1_000_000));
        assert!(is_woken(), "nobody has looked yet");
        wake.timers_unknown();
        [5_000, 3_000, 9_000].into_iter().for_each(|due| wake.timer_set(at(due)));
        assert!(!is_woken(), "they are being read");
        assert_eq!(wake.timers_next(at(4_000)), at(3_000), "one that may have been missed comes first");
        wake.timer_set(at(3_000));
        assert!(!is_woken(), "it is looked at by then");
        wake.timer_set(at(2_999));
        assert!(is_woken());
        wake.timers_unknown();
        assert_eq!(wake.timers_next(at(4_000)), at(4_000), "what was set before the look is in it");
    }
}
