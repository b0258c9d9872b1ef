//! Room for the bodies that are being read, each of which may be large: so much for all of them, and a share of it for each caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

/// A caller has one of so many shares: with slow and large bodies it gets in nobody's way but its own. Workers often have one key
/// together, so the shares are large.
const SHARES: usize = 4;
/// Shares that nobody uses any more are forgotten when there are so many.
const KEPT_MAX: usize = 1_024;

pub(crate) struct Rooms {
    /// In KiB, like the shares.
    pub(crate) all: Semaphore,
    share: usize,
    shares: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Rooms {
    pub(crate) fn new(kib: usize) -> Self {
        Self { all: Semaphore::new(kib), share: kib / SHARES, shares: Mutex::default() }
    }

    /// The share of a caller, or of whom a request claims to come from.
    pub(crate) fn of(&self, caller: &str) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(caller).and_then(Weak::upgrade) {
            return share;
        }
        if shares.len() >= KEPT_MAX {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.share));
        shares.insert(caller.to_owned(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_a_share_while_it_reads() {
        let rooms = Rooms::new(80);
        let (one, other) = (rooms.of("a"), rooms.of("b"));
        let held = one.try_acquire_many(20).unwrap();
        assert!(rooms.of("a").try_acquire().is_err() && other.try_acquire().is_ok());
        drop(held);
        assert!(rooms.of("a").try_acquire().is_ok());
        drop((one, other));
        for number in 0..3 * KEPT_MAX {
            drop(rooms.of(&number.to_string()));
        }
        assert!(rooms.shares.lock().unwrap().len() <= KEPT_MAX);
    }
}
