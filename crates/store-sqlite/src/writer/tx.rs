//! What a job sees that works in the database itself.

use rusqlite::Connection;
use servo_model::Timestamp;
use servo_model::contract::DispatchState;

use crate::writer::counts::Counts;

/// The open transaction, for one job.
pub(crate) struct Tx<'w> {
    pub(crate) conn: &'w Connection,
    /// The store's time, read once per job.
    pub(crate) now: Timestamp,
    pub(crate) counts: Counts,
    /// Events went, or came in another way than by an append.
    pub(crate) breaks_log: bool,
    /// What the writer remembers of runs is not so any more.
    pub(crate) changes_runs: bool,
    leftovers: bool,
}

impl<'w> Tx<'w> {
    pub(crate) fn new(conn: &'w Connection, now: Timestamp) -> Self {
        let counts = Counts::default();
        Self { conn, now, counts, breaks_log: false, changes_runs: false, leftovers: false }
    }

    pub(crate) fn count(&mut self, state: DispatchState, change: i64) {
        self.counts.add_dispatches(state, change);
    }

    /// A run was deleted and some of its events are still there.
    pub(crate) fn leave_leftovers(&mut self) {
        self.leftovers = true;
    }

    pub(crate) fn leaves_leftovers(&self) -> bool {
        self.leftovers
    }
}
