//! How the store stands: good, without room, or stopped. Known from what writes met, so that telling it needs no disk, and
//! said in the log once and then once a minute: a log on the same disk must not take the room that is missing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use servo_store::admin::Condition;
use servo_store::{Error, TimeSource};
use tokio::sync::watch;

/// How often the log says that room is missing, while it is.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// A store that refused a large write and took a small one has no room yet. It has, once it took something and has refused
/// nothing for so long.
const CALM: Duration = Duration::from_secs(1);

pub(crate) struct Health {
    time: TimeSource,
    condition: watch::Sender<Condition>,
    /// For a look without the lock, at every commit.
    is_full: AtomicBool,
    full: Mutex<Option<Full>>,
}

#[derive(Debug)]
struct Full {
    refused: u64,
    /// Those that were not said yet.
    unsaid: u64,
    said_at: Instant,
    refused_at: Instant,
}

impl Health {
    pub(crate) fn new(time: TimeSource) -> Self {
        Self { time, condition: watch::Sender::default(), is_full: AtomicBool::new(false), full: Mutex::default() }
    }

    pub(crate) fn condition(&self) -> Condition {
        self.condition.borrow().clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(*self.condition.borrow(), Condition::Stopped { .. })
    }

    /// So many writes were refused with this error, which counts only if it is about room.
    pub(crate) fn refused(&self, error: &Error, writes: usize) {
        let Error::Full { detail } = error else { return };
        let (now, writes) = (Instant::now(), writes as u64);
        let mut full = self.lock();
        let said = full.as_ref().map(|full| full.said_at);
        let full = full.get_or_insert(Full { refused: 0, unsaid: 0, said_at: now, refused_at: now });
        full.refused += writes;
        full.unsaid += writes;
        full.refused_at = now;
        if said.is_none_or(|said| now.duration_since(said) >= SAY_EVERY) {
            tracing::error!(
                %detail,
                writes_refused = full.unsaid,
                "the store has no room: what needs some is refused and reads are answered, until there is room"
            );
            (full.unsaid, full.said_at) = (0, now);
        }
        self.is_full.store(true, Ordering::Release);
        self.condition.send_if_modified(|condition| {
            let becomes_full = *condition == Condition::Good;
            if becomes_full {
                *condition = Condition::Full { detail: detail.clone(), since: (self.time)() };
            }
            becomes_full
        });
    }

    /// A write was taken.
    pub(crate) fn took(&self) {
        if self.is_full.load(Ordering::Acquire) {
            self.calm_down();
        }
    }

    #[cold]
    fn calm_down(&self) {
        let mut full = self.lock();
        let Some(gone) = full.take_if(|full| full.refused_at.elapsed() >= CALM) else { return };
        tracing::info!(writes_refused = gone.refused, "there is room again: the store takes writes");
        self.is_full.store(false, Ordering::Release);
        self.condition.send_if_modified(|condition| {
            let was_full = matches!(condition, Condition::Full { .. });
            if was_full {
                *condition = Condition::Good;
            }
            was_full
        });
    }

    /// An error of the disk. Only the first is told; what follows comes of it.
    pub(crate) fn stop(&self, error: &Error) {
        self.condition.send_if_modified(|condition| {
            let is_first = !matches!(condition, Condition::Stopped { .. });
            if is_first {
                let detail = error.to_string();
                tracing::error!(%detail, "the disk reported an error: nothing more is written until the store is opened again");
                *condition = Condition::Stopped { detail, since: (self.time)() };
            }
            is_first
        });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Full>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::unavailable;

    fn health() -> Health {
        Health::new(std::sync::Arc::new(|| servo_model::Timestamp::EPOCH))
    }

    fn full() -> Error {
        Error::Full { detail: "the disk is full".to_owned() }
    }

    /// As if the last refusal were so long ago.
    fn age(health: &Health, by: Duration) {
        if let Some(full) = health.lock().as_mut() {
            full.refused_at = full.refused_at.checked_sub(by).unwrap();
        }
    }

    #[test]
    fn a_write_that_fits_does_not_end_it_while_others_are_refused() {
        let health = health();
        health.took();
        assert_eq!(health.condition(), Condition::Good);
        health.refused(&full(), 2);
        health.took();
        assert!(matches!(health.condition(), Condition::Full { .. }));
        age(&health, CALM);
        health.refused(&full(), 1);
        health.took();
        assert!(matches!(health.condition(), Condition::Full { .. }));
        age(&health, CALM);
        health.took();
        assert_eq!(health.condition(), Condition::Good);
    }

    #[test]
    fn only_room_counts_and_a_stop_is_for_good() {
        let health = health();
        health.refused(&unavailable("busy"), 1);
        assert_eq!(health.condition(), Condition::Good);
        health.refused(&full(), 1);
        health.stop(&unavailable("EIO"));
        health.stop(&unavailable("what came of it"));
        age(&health, CALM);
        health.took();
        health.refused(&full(), 1);
        assert!(matches!(health.condition(), Condition::Stopped { detail, .. } if detail.contains("EIO")));
    }
}
