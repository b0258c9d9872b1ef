//! The store's clock as this node knows it.
//!
//! Delays, timers and queue times are judged by the store's clock, so decisions are made by it as well: a node whose own
//! clock is an hour ahead must not hand out a delayed attempt an hour early. Asking the store before every decision would
//! cost a round trip; instead every answer that carries the store's time corrects what the node believes.

use std::sync::atomic::{AtomicI64, Ordering};

use servo_model::Timestamp;
use servo_store::Appended;

use super::Engine;

/// The store's clock minus the node's, in milliseconds: at most the true difference.
#[derive(Debug, Default)]
pub(super) struct Offset(AtomicI64);

impl Offset {
    /// The store said `store` between `sent` and `received` on the node's clock.
    fn observe(&self, sent: Timestamp, store: Timestamp, received: Timestamp) {
        let least = store.as_millis() - received.as_millis();
        let most = store.as_millis() - sent.as_millis();
        // Inside the interval there is nothing to learn. Outside it, the cautious end: late is better than early.
        if !(least..=most).contains(&self.0.load(Ordering::Relaxed)) {
            self.0.store(least, Ordering::Relaxed);
        }
    }
}

impl Engine {
    /// The time that decisions are made by: the store's, never ahead of it while the node's clock runs evenly.
    pub fn now(&self) -> Timestamp {
        let offset = self.inner.offset.0.load(Ordering::Relaxed);
        Timestamp::from_millis(self.inner.clock.now().as_millis().saturating_add(offset))
    }

    /// Asks the store for its time, and learns from the answer.
    pub async fn store_now(&self) -> Result<Timestamp, servo_store::Error> {
        let sent = self.inner.clock.now();
        let store = self.inner.store.now().await?;
        self.inner.offset.observe(sent, store, self.inner.clock.now());
        Ok(store)
    }

    pub(super) fn learn_time(&self, sent: Timestamp, appended: &Appended) {
        // Only what this append wrote has its time; an adopted event is older.
        let written = appended.streams.iter().flat_map(|stream| &stream.events).rfind(|event| event.inserted);
        if let Some(event) = written {
            self.inner.offset.observe(sent, event.emitted_at, self.inner.clock.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// R16
    #[test]
    fn the_offset_is_never_above_the_true_one() {
        let offset = Offset::default();
        // The node is 1,000 ms ahead; the answer took 40 ms, and the store read its clock somewhere in between.
        offset.observe(at(10_000), at(9_010), at(10_040));
        assert_eq!(offset.0.load(Ordering::Relaxed), -1_030);
        // A slow answer teaches nothing.
        offset.observe(at(20_000), at(20_500), at(23_000));
        assert_eq!(offset.0.load(Ordering::Relaxed), -1_030);
        // A quick one does.
        offset.observe(at(30_000), at(29_000), at(30_000));
        assert_eq!(offset.0.load(Ordering::Relaxed), -1_000);
        // Somebody sets the node's clock an hour ahead.
        offset.observe(at(3_640_000), at(39_000), at(3_640_001));
        assert_eq!(offset.0.load(Ordering::Relaxed), 39_000 - 3_640_001);
    }
}
