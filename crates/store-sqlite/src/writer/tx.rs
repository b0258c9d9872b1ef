//! What a job sees of the transaction it runs in.

use rusqlite::Connection;
use servo_model::contract::DispatchState;
use servo_model::limits::Limits;
use servo_model::{RunId, TenantId, Timestamp};

use crate::error::Fault;
use crate::sabotage::Sabotage;
use crate::sql::log;
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
    counts: Counts,
    leftovers: bool,
}

/// How the numbers of dispatches by state change. Summed up over a whole group and written once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    by_state: [i64; DispatchState::ALL.len()],
}

impl<'w> Tx<'w> {
    pub(crate) fn new(
        conn: &'w Connection,
        heads: &'w mut Heads,
        now: Timestamp,
        limits: &'w Limits,
        sabotage: Sabotage,
    ) -> Self {
        Self { conn, now, limits, sabotage, heads, touched: Vec::new(), counts: Counts::default(), leftovers: false }
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

    pub(crate) fn advance_head(&mut self, run_id: &RunId, tenant: &TenantId, seq: u64) {
        self.heads.set(run_id.clone(), Head { tenant: tenant.clone(), seq });
        self.touched.push(run_id.clone());
    }

    /// For runs that go, or come in by another way than an append.
    pub(crate) fn forget_head(&mut self, run_id: &RunId) {
        self.heads.forget(run_id);
    }

    pub(crate) fn count(&mut self, state: DispatchState, change: i64) {
        self.counts.add(state, change);
    }

    /// A run was deleted and some of its events are still there.
    pub(crate) fn leave_leftovers(&mut self) {
        self.leftovers = true;
    }

    pub(crate) fn leaves_leftovers(&self) -> bool {
        self.leftovers
    }

    /// The job's work stays: hands over what it changed in the counts.
    pub(crate) fn keep(self) -> Counts {
        self.counts
    }

    /// The job's work is taken back: so is what was remembered of it.
    pub(crate) fn take_back(self) {
        for run_id in &self.touched {
            self.heads.forget(run_id);
        }
    }
}

impl Counts {
    pub(crate) fn add(&mut self, state: DispatchState, change: i64) {
        self.by_state[Self::index(state)] += change;
    }

    pub(crate) fn merge(&mut self, other: Counts) {
        for (own, other) in self.by_state.iter_mut().zip(other.by_state) {
            *own += other;
        }
    }

    /// Writes the sums into the transaction and starts over.
    pub(crate) fn flush(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        for state in DispatchState::ALL {
            let change = std::mem::take(&mut self.by_state[Self::index(state)]);
            if change != 0 {
                let mut update =
                    conn.prepare_cached("UPDATE dispatch_counts SET count = count + ?2 WHERE state = ?1")?;
                update.execute((state.as_str(), change))?;
            }
        }
        Ok(())
    }

    fn index(state: DispatchState) -> usize {
        match state {
            DispatchState::Pending => 0,
            DispatchState::Notified => 1,
            DispatchState::Delivered => 2,
            DispatchState::Failed => 3,
        }
    }
}
