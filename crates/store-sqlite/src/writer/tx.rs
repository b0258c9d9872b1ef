//! What a job sees of the transaction it runs in.

use rusqlite::Connection;
use servo_model::contract::DispatchState;
use servo_model::limits::Limits;
use servo_model::{RunId, Timestamp};

use crate::error::Fault;
use crate::sabotage::Sabotage;
use crate::sql::log;
use crate::tail::Grown;
use crate::writer::counts::Counts;
use crate::writer::heads::{Head, Heads};

/// The open transaction, for one job.
pub(crate) struct Tx<'w> {
    pub(crate) conn: &'w Connection,
    /// The store's time, read once per job.
    pub(crate) now: Timestamp,
    pub(crate) limits: &'w Limits,
    pub(crate) sabotage: Sabotage,
    heads: &'w mut Heads,
    touched: Vec<RunId>,
    pub(crate) counts: Counts,
    pub(crate) grown: Grown,
    leftovers: bool,
}

impl<'w> Tx<'w> {
    pub(crate) fn new(
        conn: &'w Connection,
        heads: &'w mut Heads,
        now: Timestamp,
        limits: &'w Limits,
        sabotage: Sabotage,
    ) -> Self {
        Self {
            conn,
            now,
            limits,
            sabotage,
            heads,
            touched: Vec::new(),
            counts: Counts::default(),
            grown: Grown::default(),
            leftovers: false,
        }
    }

    /// The run's tenant and last sequence; `None` if there is no such run.
    pub(crate) fn head(&mut self, run_id: &RunId) -> Result<Option<Head>, Fault> {
        if let Some(head) = self.heads.get(run_id) {
            return Ok(Some(head));
        }
        let found = log::head(self.conn, run_id)?;
        if let Some(head) = &found {
            self.heads.set(run_id.clone(), head.clone());
        }
        Ok(found)
    }

    pub(crate) fn advance_head(&mut self, run_id: &RunId, head: Head) {
        self.heads.set(run_id.clone(), head);
        self.touched.push(run_id.clone());
    }

    /// For runs that go, or come in by another way than an append.
    pub(crate) fn forget_head(&mut self, run_id: &RunId) {
        self.heads.forget(run_id);
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

    /// The job's work stays: hands over what it changed in the counts, and at the end of the log.
    pub(crate) fn keep(self) -> (Counts, Grown) {
        (self.counts, self.grown)
    }

    /// The job's work is taken back: so is what was remembered of it.
    pub(crate) fn take_back(self) {
        for run_id in &self.touched {
            self.heads.forget(run_id);
        }
    }
}
