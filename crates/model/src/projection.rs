//! The projector's pure part: incremental projection with a watermark, gap detection and resync.
//!
//! Gaps in `runSeq` are natural. On seeing one the projection becomes stale and asks for the events after its watermark
//! to be read again; applying the event behind the gap advances the watermark and ends the resync. Only a read that
//! brings nothing new is a stall.

use crate::state::Applied;
use crate::{Event, RunId, RunSnapshot, RunState};

/// How to read a run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resync {
    /// Every event from the beginning.
    Full,
    /// The latest stored snapshot at or before `snapshot_seq`, and the events after it.
    FromSnapshot { snapshot_seq: u64 },
}

/// All events of a run to its snapshot.
pub fn project_run(run_id: &RunId, events: &[Event]) -> RunSnapshot {
    RunSnapshot::from(&RunState::new(run_id.clone()).fold(events))
}

/// Whether `next` does not follow `last` directly. Says nothing about loss.
pub fn detect_non_contiguous(last_seq: u64, next_seq: u64) -> bool {
    next_seq > last_seq.saturating_add(1)
}

/// One run as the projector sees it.
#[derive(Debug, Clone)]
pub struct Projection {
    state: RunState,
    stale: bool,
}

/// What offering an event led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered {
    Applied(Applied),
    /// The event does not follow the watermark: nothing was applied, the projection is stale, read the run again.
    Gap {
        watermark: u64,
        next_seq: u64,
    },
}

/// How a resync ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resynced {
    /// The watermark advanced; the projection is fresh again. Carries what was found on the way.
    Advanced { from: u64, to: u64, findings: Vec<Applied> },
    /// The read brought nothing new; the projection stays stale.
    Stalled { watermark: u64 },
}

impl Projection {
    pub fn new(state: RunState) -> Self {
        Self { state, stale: false }
    }

    pub fn state(&self) -> &RunState {
        &self.state
    }

    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Applies the next event if it follows the watermark; else marks the projection stale.
    pub fn offer(mut self, event: &Event) -> (Self, Offered) {
        let watermark = self.state.last_event_seq;
        if self.stale || detect_non_contiguous(watermark, event.run_seq) {
            self.stale = true;
            return (self, Offered::Gap { watermark, next_seq: event.run_seq });
        }
        let (state, applied) = self.state.apply(event);
        (Self { state, stale: false }, Offered::Applied(applied))
    }

    /// Takes the answer of a resync: a state to start from (the stored snapshot's, or an empty one) and the events
    /// after it. Complete only if the watermark advanced.
    pub fn resync(mut self, base: RunState, events: &[Event]) -> (Self, Resynced) {
        let from = self.state.last_event_seq;
        let mut findings = Vec::new();
        let mut state = base;
        for event in events {
            let (next, applied) = state.apply(event);
            state = next;
            if matches!(applied, Applied::Inverted { .. } | Applied::Illegal(_)) && event.run_seq > from {
                findings.push(applied);
            }
        }
        if state.last_event_seq <= from {
            self.stale = true;
            return (self, Resynced::Stalled { watermark: from });
        }
        let to = state.last_event_seq;
        (Self { state, stale: false }, Resynced::Advanced { from, to, findings })
    }
}
