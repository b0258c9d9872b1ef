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
    ///
    /// Before a commit means: locks are held, and the exchange that writes and commits has not been sent.
    pub const ALL: &[&str] = &[
        "postgres.migration.before_commit",
        "postgres.migration.after_commit",
        "postgres.append.before_begin",
        "postgres.append.before_commit",
        "postgres.append.after_commit",
        "postgres.retire.before_commit",
        "postgres.retire.after_commit",
        "postgres.trim.before_commit",
        "postgres.trim.after_commit",
    ];

    /// The index of the armed point.
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

    pub(crate) fn hit(name: &'static str) {
        let index = ALL.iter().position(|point| *point == name).expect("every crash point is in the list");
        if ARMED.load(Ordering::SeqCst) == index && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
    }
}
