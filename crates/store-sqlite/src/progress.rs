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

    /// The last one that somebody was told of.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Acquire)
    }

    /// Notes what a record changes. Before it is answered.
    pub(crate) fn touch(&self, changes: &[Change], lsn: u64) {
        let mut last = None;
        for change in changes {
            // Changes of a run follow each other.
            if let Some(run_id) = change.run_id().filter(|run_id| last != Some(*run_id)) {
                self.touched.touch(run_id, lsn);
                last = Some(run_id);
            }
            if let Change::Run { row, is_new: true, .. } = change
                && let Some(key) = row.request_key
            {
                self.touched.touch(&(&row.tenant, key), lsn);
            }
        }
    }

    /// No record behind this one has changed a run.
    pub(crate) fn last_of_run(&self, run_id: &RunId) -> u64 {
        self.touched.last(run_id)
    }

    /// No record behind this one has begun a run for a request.
    pub(crate) fn last_of_request(&self, tenant: &TenantId, key: Digest) -> u64 {
        self.touched.last(&(tenant, key))
    }

    /// No record behind this one has changed which dispatches are open for an epoch.
    pub(crate) fn last_of_dispatches(&self, epoch: u64) -> u64 {
        // First the epoch, which is set behind the record.
        let is_newest = self.epoch.load(Ordering::Acquire) == epoch;
        if is_newest { self.opened.load(Ordering::Acquire) } else { self.answered() }
    }
}

#[cfg(test)]
mod tests {
    use servo_model::Timestamp;

    use super::*;

    fn timer_of(run_id: &RunId) -> Change {
        Change::Timer { run_id: run_id.clone(), tenant: TenantId::default_tenant(), due_at: Some(Timestamp::EPOCH) }
    }

    #[test]
    fn whoever_reads_one_run_waits_for_no_other() {
        let (progress, run) = (Progress::at(7), |name: &str| RunId::parse(name).unwrap());
        let (ours, others) = (run("ours"), [run("other"), run("another")]);
        progress.touch(&[timer_of(&ours), timer_of(&others[0]), timer_of(&ours)], 8);
        progress.set_answered(8, None);
        progress.set_applied(8);
        progress.touch(&others.each_ref().map(timer_of), 9);
        progress.set_answered(9, None);
        assert!(progress.last_of_run(&ours) <= progress.applied());
        assert_eq!(progress.last_of_run(&others[1]), 9);
        assert_eq!(progress.answered(), 9);
        progress.touch(&[timer_of(&ours)], 10);
        assert_eq!(progress.last_of_run(&ours), 10);
    }
}
