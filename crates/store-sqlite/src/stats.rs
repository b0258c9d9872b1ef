//! Counters of the writer, for tests and figures. They are read while it works, so they may be a job apart.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the writer has done since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Logical transactions that were answered, well or not.
    pub jobs: u64,
    /// Physical transactions that were committed.
    pub commits: u64,
    /// Most jobs in one physical transaction.
    pub batch_max: u64,
    pub checkpoints: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    jobs: AtomicU64,
    commits: AtomicU64,
    batch_max: AtomicU64,
    checkpoints: AtomicU64,
}

impl Counters {
    pub(crate) fn answered(&self, jobs: usize) {
        self.jobs.fetch_add(jobs as u64, Ordering::Relaxed);
        self.batch_max.fetch_max(jobs as u64, Ordering::Relaxed);
    }

    pub(crate) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn checkpointed(&self) {
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Stats {
        Stats {
            jobs: self.jobs.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            batch_max: self.batch_max.load(Ordering::Relaxed),
            checkpoints: self.checkpoints.load(Ordering::Relaxed),
        }
    }
}
