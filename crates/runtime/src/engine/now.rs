//! The store's clock as this node knows it.
//!
//! Delays, timers, leases and queue times are judged by the store's clock, so decisions are made by it as well: a node
//! whose wall clock is an hour ahead, or is set while it works, must not hand out a delayed attempt an hour early. Asking
//! the store before every decision would cost a round trip; instead every answer that carries the store's time corrects
//! what the node believes, and between answers the node counts on with a clock that nobody sets.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use servo_model::Timestamp;
use servo_store::Appended;

use super::Engine;

/// The store's clock minus the node's elapsed time, in milliseconds: at most the true difference.
#[derive(Debug, Default)]
pub(super) struct Offset {
    millis: AtomicI64,
    is_known: AtomicBool,
    /// Steps that nobody has taken note of yet, added up.
    stepped: AtomicI64,
}

/// A clock that runs only a little too fast or too slow, or is slewed, does not move so far between two answers.
const STEP_MIN_MAX: Duration = Duration::from_secs(10);

impl Offset {
    /// The store said `store` between `sent` and `received` of the node's elapsed time.
    /// True if the store's clock was set by more than `step_min` since its last answer, against the node's counting.
    fn observe(&self, sent: Duration, store: Timestamp, received: Duration, step_min: Duration) -> bool {
        // Rounded so that what is believed is never ahead.
        let least = store.as_millis() - millis(received + Duration::from_micros(999));
        let most = store.as_millis() - millis(sent);
        // Inside the interval there is nothing to learn. Outside it, the cautious end: late is better than early.
        let believed = self.millis.load(Ordering::Relaxed);
        let was_known = self.is_known.swap(true, Ordering::Relaxed);
        if (least..=most).contains(&believed) {
            return false;
        }
        self.millis.store(least, Ordering::Relaxed);
        let step = if least > believed { least - believed } else { most - believed };
        if !was_known || step.unsigned_abs() < step_min.as_millis() as u64 {
            return false;
        }
        self.stepped.fetch_add(step, Ordering::Relaxed);
        true
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Engine {
    /// The time that decisions are made by: the store's, and never ahead of it.
    pub fn now(&self) -> Timestamp {
        let offset = self.inner.offset.millis.load(Ordering::Relaxed);
        Timestamp::from_millis(millis(self.inner.clock.elapsed()).saturating_add(offset))
    }

    /// The same in nanoseconds, for what is measured rather than decided.
    pub(crate) fn now_nanos(&self) -> u64 {
        let offset = i128::from(self.inner.offset.millis.load(Ordering::Relaxed)) * 1_000_000;
        let elapsed = i128::try_from(self.inner.clock.elapsed().as_nanos()).unwrap_or(i128::MAX);
        u64::try_from(elapsed.saturating_add(offset)).unwrap_or(0)
    }

    /// Asks the store for its time, and learns from the answer.
    pub async fn store_now(&self) -> Result<Timestamp, servo_store::Error> {
        let sent = self.inner.clock.elapsed();
        let store = self.inner.store.now().await?;
        self.observe(sent, store);
        Ok(store)
    }

    fn observe(&self, sent: Duration, store: Timestamp) {
        let step_min = Duration::from_millis(self.inner.config.authority.lease_ms).min(STEP_MIN_MAX);
        if self.inner.offset.observe(sent, store, self.inner.clock.elapsed(), step_min) {
            self.wake().clock.notify_one();
        }
    }

    /// By how many milliseconds the store's clock was set since this was asked last: forwards, or backwards.
    pub(crate) fn take_step(&self) -> Option<i64> {
        Some(self.inner.offset.stepped.swap(0, Ordering::Relaxed)).filter(|step| *step != 0)
    }

    pub(super) fn learn_time(&self, sent: Duration, appended: &Appended) {
        // Only what this append wrote has its time; an adopted event is older.
        let written = appended.streams.iter().flat_map(|stream| &stream.events).rfind(|event| event.inserted);
        if let Some(event) = written {
            self.observe(sent, event.emitted_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_MIN: Duration = Duration::from_secs(3);

    /// R16
    #[test]
    fn what_is_believed_is_never_ahead() {
        let ms = Duration::from_millis;
        let at = Timestamp::from_millis;
        let offset = Offset::default();
        let believed = || offset.millis.load(Ordering::Relaxed);
        let observe = |sent, store, received| offset.observe(ms(sent), at(store), ms(received), STEP_MIN);
        // The store is 1,000 ms behind; the answer took 40 ms, and the store read its clock somewhere in between.
        observe(10_000, 9_010, 10_040);
        assert_eq!(believed(), -1_030);
        // A slow answer teaches nothing.
        observe(20_000, 20_500, 23_000);
        assert_eq!(believed(), -1_030);
        // A quick one does.
        observe(30_000, 29_000, 30_000);
        assert_eq!(believed(), -1_000);
        // The store's own clock was set back.
        observe(40_000, 38_000, 40_001);
        assert_eq!(believed(), -2_001);
    }

    /// R16
    #[test]
    fn a_step_is_told_with_its_size_and_what_is_none_is_not() {
        let ms = Duration::from_millis;
        let offset = Offset::default();
        let observe = |sent, store, received| {
            offset.observe(ms(sent), Timestamp::from_millis(store), ms(received), STEP_MIN);
            offset.stepped.swap(0, Ordering::Relaxed)
        };
        assert_eq!(observe(1_000, 1_767_225_601_000, 1_000), 0, "the first answer is compared with nothing");
        assert_eq!(observe(2_000, 1_767_225_602_400, 2_000), 0, "slewed");
        assert_eq!(observe(3_000, 1_767_225_610_000, 10_000), 0, "an answer that took its time");
        assert_eq!(observe(11_000, 1_767_229_211_400, 11_000), 3_600_000, "an hour forwards");
        assert_eq!(observe(12_000, 1_767_225_612_400, 12_000), -3_600_000, "and back");
        assert_eq!(observe(13_000, 0, 13_000), -1_767_225_613_400, "to 1970");
        assert_eq!(observe(14_000, 4_102_444_800_000, 14_000), 4_102_444_799_000, "and to 2100");
    }
}
