//! Events that this node folded when it recorded them. The projector, which reads them a moment later, need not do it again.
//!
//! An event is known by its id, which is in the log only if this node's append has put it there. Forgetting one costs the
//! projector a second look.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use foldhash::HashSet;
use servo_model::EventId;

/// More than the projector is ever behind without being in trouble.
const EVENTS_MAX: usize = 8_192;

#[derive(Debug, Default)]
pub(crate) struct Folded(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    ids: HashSet<EventId>,
    /// The oldest first; also those that were taken.
    order: VecDeque<EventId>,
}

impl Folded {
    pub(super) fn note(&self, id: EventId) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.order.len() >= EVENTS_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.ids.remove(&oldest);
        }
        known.order.push_back(id);
        known.ids.insert(id);
    }

    /// Whether the event is known. It is forgotten with that.
    pub(crate) fn take(&self, id: &EventId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ids.remove(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> EventId {
        EventId::from_bytes((number as u128).to_be_bytes())
    }

    #[test]
    fn an_event_is_known_once_and_the_oldest_are_forgotten() {
        let folded = Folded::default();
        for number in 0..=EVENTS_MAX {
            folded.note(id(number));
        }
        assert!(!folded.take(&id(0)), "the oldest had to go");
        assert!(folded.take(&id(1)));
        assert!(!folded.take(&id(1)), "it was taken");
        let known = folded.0.lock().unwrap();
        assert_eq!((known.ids.len(), known.order.len()), (EVENTS_MAX - 1, EVENTS_MAX));
    }
}
