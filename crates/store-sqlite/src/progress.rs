//! How far the database is behind what was answered. Readers look here before they read.

use std::sync::atomic::{AtomicU64, Ordering};

use servo_canon::Digest;
use servo_model::{RunId, TenantId};

use crate::ahead::change::Change;
use crate::touched::Touched;

/// Records of the redo file, by number.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    answered: AtomicU64,
    /// The last one that changed which dispatches are open for the newest epoch that was handed out under.
    opened: AtomicU64,
    epoch: AtomicU64,
    applied: AtomicU64,
    touched: Touched,
}

impl Progress {
    /// A store that was just opened: the database has everything.
    pub(crate) fn at(lsn: u64) -> Self {
        Self {
            answered: AtomicU64::new(lsn),
            opened: AtomicU64::new(lsn),
            applied: AtomicU64::new(lsn),
            ..Self::default()
        }
    }

    /// Before anybody is told of the record. With the epoch, if it changed which dispatches are open.
    pub(crate) fn set_answered(&self, lsn: u64, opening: Option<u64>) {
        if let Some(epoch) = opening {
            self.opened.store(lsn, Ordering::Release);
            self.epoch.store(epoch, Ordering::Release);
        }
        self.answered.store(lsn, Ordering::Release);
    }

    /// After the database has the record.
    pub(crate) fn set_applied(&self, lsn: u64) {
        self.applied.store(lsn, Ordering::Release);
    }

    pub(crate) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Whether the database has all that was answered until now.
    pub(crate) fn is_settled(&self) -> bool {
        self.applied() >= self.answered.load(Ordering::Acquire)
    }

    /// Notes what a change is of. Before the record is answered.
    pub(crate) fn touch(&self, change: &Change, lsn: u64) {
        match change {
            Change::Run { row, is_new, .. } => {
                self.touched.touch(&row.run_id, lsn);
                if let Some(key) = row.request_key.filter(|_| *is_new) {
                    self.touched.touch(&(&row.tenant, key), lsn);
                }
            }
            Change::Event { event, .. } => self.touched.touch(&event.run_id, lsn),
            Change::Number { run_id, .. }
            | Change::Timer { run_id, .. }
            | Change::Queue { run_id, .. }
            | Change::Snapshot { run_id, .. }
            | Change::Lines { run_id, .. } => self.touched.touch(run_id, lsn),
            Change::Dispatch { .. } | Change::Cursor(_) | Change::Authority(_) | Change::Audit(_) => {}
        }
    }

    /// Whether the database has all that was answered of a run.
    pub(crate) fn is_settled_for_run(&self, run_id: &RunId) -> bool {
        self.applied() >= self.touched.last(run_id)
    }

    /// Whether it has the run of a request, if one was answered.
    pub(crate) fn is_settled_for_request(&self, tenant: &TenantId, key: Digest) -> bool {
        self.applied() >= self.touched.last(&(tenant, key))
    }

    /// Whether it has all that says which dispatches are open for an epoch.
    pub(crate) fn is_settled_for_dispatches(&self, epoch: u64) -> bool {
        let is_newest = self.epoch.load(Ordering::Acquire) == epoch;
        (is_newest && self.applied() >= self.opened.load(Ordering::Acquire)) || self.is_settled()
    }
}
