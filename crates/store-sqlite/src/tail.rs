//! The end of the log, in memory. Whoever follows the log reads what was committed a moment ago; this spares the database
//! from reading back what it has just written.
//!
//! It holds committed events only, without a gap up to the last one. When events go, or come in another way than by an
//! append, it is emptied, and readers ask the database until there are new ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use servo_store::log::LogPage;
use servo_store::page::PageBytes;
use servo_store::{Position, StoredEvent};

/// Followers look several times in the time that fills this, even at the full rate of the writer.
const EVENTS_MAX: usize = 8_192;
const BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    events: VecDeque<Arc<StoredEvent>>,
    bytes: usize,
}

impl Tail {
    /// After the commit, and before anybody is told of it.
    pub(crate) fn grow(&self, events: Vec<Arc<StoredEvent>>) {
        let mut held = self.lock();
        for event in events {
            held.push(event);
        }
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// `None` if the database has to be asked.
    pub(crate) fn read(&self, after: Position, limit: u32, bytes_max: usize) -> Option<LogPage> {
        let mut page = PageBytes::new(bytes_max);
        let mut found = Vec::new();
        {
            let held = self.lock();
            let first = held.events.front()?.position.id;
            let skip = usize::try_from(after.id.checked_add(1)?.checked_sub(first)?).ok()?;
            for event in held.events.iter().skip(skip).take(limit as usize) {
                if !page.takes(event.payload.len()) {
                    break;
                }
                found.push(event.clone());
            }
        }
        Some(LogPage::new(found, after))
    }

    /// The last position of the log. `None` if the database has to be asked.
    pub(crate) fn head(&self) -> Option<Position> {
        self.lock().events.back().map(|last| last.position)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn push(&mut self, event: Arc<StoredEvent>) {
        if self.events.back().is_some_and(|last| last.position.id + 1 != event.position.id) {
            self.clear();
        }
        self.bytes += event.payload.len();
        self.events.push_back(event);
        while self.events.len() > EVENTS_MAX || self.bytes > BYTES_MAX {
            let Some(gone) = self.events.pop_front() else { break };
            self.bytes -= gone.payload.len();
        }
    }

    fn clear(&mut self) {
        self.events.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use servo_canon::Digest;
    use servo_model::event::FORMAT;
    use servo_model::{EventId, RunId, TenantId, Timestamp};

    use super::*;

    fn event(id: u64, bytes: usize) -> StoredEvent {
        StoredEvent {
            position: Position::of_id(id),
            format: FORMAT,
            run_id: RunId::parse("run").unwrap(),
            tenant: TenantId::default_tenant(),
            run_seq: id,
            event_id: EventId::from_bytes([0; 16]),
            event_type: "RunStarted".into(),
            idempotency_key: Digest::of(&id.to_le_bytes()),
            emitted_at: Timestamp::from_millis(0),
            emitted_by: "engine".into(),
            occurred_at: None,
            payload: "x".repeat(bytes),
        }
    }

    fn grow(tail: &Tail, ids: std::ops::Range<u64>) {
        tail.grow(ids.map(|id| Arc::new(event(id, 10))).collect());
    }

    fn ids(page: &LogPage) -> Vec<u64> {
        page.events.iter().map(|event| event.position.id).collect()
    }

    #[test]
    fn readers_get_what_is_held_and_are_sent_to_the_database_for_the_rest() {
        let tail = Tail::default();
        let read = |after, limit| tail.read(Position::of_id(after), limit, 1_000);
        assert_eq!((read(0, 10), tail.head()), (None, None), "nothing is held yet");
        grow(&tail, 5..9);
        assert_eq!(tail.head(), Some(Position::of_id(8)));
        assert_eq!(read(3, 10), None, "the event at 4 is not held");
        let page = read(4, 3).unwrap();
        assert_eq!((ids(&page), page.next), (vec![5, 6, 7], Position::of_id(7)));
        assert_eq!(ids(&read(7, 3).unwrap()), [8]);
        let end = read(8, 3).unwrap();
        assert_eq!((ids(&end), end.next), (vec![], Position::of_id(8)), "the end of the log is known");
        assert_eq!(ids(&tail.read(Position::of_id(4), 10, 25).unwrap()), [5, 6], "a page has its bytes");
        assert_eq!(read(u64::MAX, 3), None, "a cursor that nobody was given");
    }

    #[test]
    fn a_gap_or_a_deletion_empties_it() {
        let tail = Tail::default();
        grow(&tail, 1..4);
        grow(&tail, 5..7);
        assert_eq!(tail.read(Position::of_id(3), 10, 1_000), None, "the event at 4 came in another way");
        assert_eq!(ids(&tail.read(Position::of_id(4), 10, 1_000).unwrap()), [5, 6]);
        tail.clear();
        assert_eq!(tail.read(Position::of_id(4), 10, 1_000), None);
    }

    #[test]
    fn it_is_bounded_in_number_and_bytes() {
        let tail = Tail::default();
        grow(&tail, 1..3 * EVENTS_MAX as u64);
        assert_eq!(tail.lock().events.len(), EVENTS_MAX);
        let next = 3 * EVENTS_MAX as u64;
        tail.grow(vec![Arc::new(event(next, BYTES_MAX + 1))]);
        assert_eq!(tail.lock().bytes, 0);
        assert_eq!(tail.lock().events.len(), 0);
        grow(&tail, next + 1..next + 2);
        assert_eq!(tail.lock().events.len(), 1);
    }
}
