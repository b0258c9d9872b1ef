//! Places where a test ends the process, to see what is left. Without the feature `sabotage` the macro is empty.

macro_rules! crashpoint {
    ($name:literal) => {
        #[cfg(feature = "sabotage")]
        $crate::crashpoint::crashpoints::hit($name);
    };
}

/// The registry of crash points. One point is armed at a time, for the whole process.
#[cfg(feature = "sabotage")]
pub mod crashpoints {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    /// Every point. A campaign that never reaches one of them has not tested it.
    pub const ALL: &[&str] = &[
        "sqlite.migration.before_commit",
        "sqlite.migration.after_commit",
        "sqlite.append.before_begin",
        "sqlite.append.before_commit",
        "sqlite.append.after_commit",
        "sqlite.checkpoint.before",
        "sqlite.checkpoint.after",
        "sqlite.retire.hidden",
        "sqlite.retire.purged",
        "sqlite.trim.deleted",
        "sqlite.backup.before_rename",
        "sqlite.restore.before_rename",
        "sqlite.close.before_checkpoint",
    ];

    static HITS: [AtomicU64; ALL.len()] = [const { AtomicU64::new(0) }; ALL.len()];
    static ARMED: AtomicUsize = AtomicUsize::new(usize::MAX);
    static LEFT: AtomicU64 = AtomicU64::new(0);

    /// The process aborts when the point is reached for the `nth` time from now on, counted from 1. Says whether there
    /// is such a point.
    pub fn arm(name: &str, nth: u64) -> bool {
        let Some(index) = ALL.iter().position(|point| *point == name) else { return false };
        LEFT.store(nth.max(1), Ordering::SeqCst);
        ARMED.store(index, Ordering::SeqCst);
        true
    }

    /// How often each point was reached in this process.
    pub fn hits() -> Vec<(&'static str, u64)> {
        ALL.iter().zip(&HITS).map(|(name, hits)| (*name, hits.load(Ordering::SeqCst))).collect()
    }

    pub(crate) fn hit(name: &'static str) {
        let index = ALL.iter().position(|point| *point == name).expect("every crash point is in the list");
        HITS[index].fetch_add(1, Ordering::SeqCst);
        if ARMED.load(Ordering::SeqCst) == index && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
    }
}
