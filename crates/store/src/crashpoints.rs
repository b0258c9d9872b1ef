//! Places where a test ends the process, to see what is left. Each backend has its own list of them, and a macro that is empty
//! without its feature `sabotage`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The crash points of a backend. One is armed at a time, for the whole process.
#[derive(Debug)]
pub struct CrashPoints {
    all: &'static [&'static str],
    /// The index of the armed one.
    armed: AtomicUsize,
    left: AtomicU64,
}

impl CrashPoints {
    pub const fn new(all: &'static [&'static str]) -> Self {
        Self { all, armed: AtomicUsize::new(usize::MAX), left: AtomicU64::new(0) }
    }

    /// Every point. A campaign that never reaches one of them has not tested it.
    pub fn all(&self) -> &'static [&'static str] {
        self.all
    }

    /// The process aborts when the point is reached for the `nth` time from now on, counted from 1. Says whether there
    /// is such a point.
    pub fn arm(&self, name: &str, nth: u64) -> bool {
        let Some(index) = self.all.iter().position(|point| *point == name) else { return false };
        self.left.store(nth.max(1), Ordering::SeqCst);
        self.armed.store(index, Ordering::SeqCst);
        true
    }

    /// The process is there.
    pub fn hit(&self, name: &'static str) {
        let index = self.all.iter().position(|point| *point == name).expect("every crash point is in the list");
        if self.armed.load(Ordering::SeqCst) == index && self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
    }
}
