//! The store's clock as this node knows it.
//!
//! Delays, timers, leases and queue times are judged by the store's clock, so decisions are made by it as well: a node
//! whose wall clock is an hour ahead, or is set while it works, must not hand out a delayed attempt an hour early. Asking
//! the store before every decision would cost a round trip; instead every answer that carries the store's time corrects
//! what the node believes, and between answers the node counts on with a clock that nobody sets.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use servo_model::Timestamp;
use servo_store::Appended;

use super::Engine;

/// The store's clock minus the node's elapsed time, in milliseconds: at most the true difference.
#[derive(Debug, Default)]
pub(super) struct Offset(AtomicI64);

impl Offset {
    /// The store said `store` between `sent` and `received` of the node's elapsed time.
    fn observe(&self, sent: Duration, store: Timestamp, received: Duration) {
        // Rounded so that what is believed is never ahead.
        let least = store.as_millis() - millis(received + Duration::from_micros(999));
        let most = store.as_millis() - millis(sent);
        // Inside the interval there is nothing to learn. Outside it, the cautious end: late is better than early.
        if !(least..=most).contains(&self.0.load(Ordering::Relaxed)) {
            self.0.store(least, Ordering::Relaxed);
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Engine {
    /// The time that decisions are made by: the store's, and never ahead of it.
    pub fn now(&self) -> Timestamp {
        let offset = self.inner.offset.0.load(Ordering::Relaxed);
        Timestamp::from_millis(millis(self.inner.clock.elapsed()).saturating_add(offset))
    }

    /// The same in nanoseconds, for what is measured rather than decided.
    pub(crate) fn now_nanos(&self) -> u64 {
        let offset = i128::from(self.inner.offset.0.load(Ordering::Relaxed)) * 1_000_000;
        let elapsed = i128::try_from(self.inner.clock.elapsed().as_nanos()).unwrap_or(i128::MAX);
        u64::try_from(elapsed.saturating_add(offset)).unwrap_or(0)
    }

    /// Asks the store for its time, and learns from the answer.
    pub async fn store_now(&self) -> Result<Timestamp, servo_store::Error> {
        let sent = self.inner.clock.elapsed();
        let store = self.inner.store.now().await?;
        self.inner.offset.observe(sent, store, self.inner.clock.elapsed());
        Ok(store)
    }

    pub(super) fn learn_time(&self, sent: Duration, appended: &Appended) {
        // Only what this append wrote has its time; an adopted event is older.
        let written = appended.streams.iter().flat_map(|stream| &stream.events).rfind(|event| event.inserted);
        if let Some(event) = written {
            self.inner.offset.observe(sent, event.emitted_at, self.inner.clock.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R16
    #[test]
    fn what_is_believed_is_never_ahead() {
        let ms = Duration::from_millis;
        let at = Timestamp::from_millis;
        let offset = Offset::default();
        let believed = || offset.0.load(Ordering::Relaxed);
        // The store is 1,000 ms behind; the answer took 40 ms, and the store read its clock somewhere in between.
        offset.observe(ms(10_000), at(9_010), ms(10_040));
        assert_eq!(believed(), -1_030);
        // A slow answer teaches nothing.
        offset.observe(ms(20_000), at(20_500), ms(23_000));
        assert_eq!(believed(), -1_030);
        // A quick one does.
        offset.observe(ms(30_000), at(29_000), ms(30_000));
        assert_eq!(believed(), -1_000);
        // The store's own clock was set back.
        offset.observe(ms(40_000), at(38_000), ms(40_001));
        assert_eq!(believed(), -2_001);
    }
}
