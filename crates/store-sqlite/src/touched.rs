//! Which record of the redo file changed a run last, about: so that whoever reads one run waits for the database only where
//! that run is ahead of it, and not whenever anything is.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

/// A power of two. Some thousand runs are ahead of the database at most times, so that a place is taken by one of them once in
/// twenty times, and both places of a run by others once in four hundred.
const PLACES: usize = 1 << 16;

/// Every run has two places and shares each with others. A place has the number of the last record that changed any of
/// them, so that the lower of a run's two is at least its own.
#[derive(Debug)]
pub(crate) struct Touched {
    places: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Default for Touched {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(), hasher: RandomState::default() }
    }
}

impl Touched {
    /// Numbers only grow, and only the writer calls this.
    pub(crate) fn touch(&self, what: &(impl Hash + ?Sized), lsn: u64) {
        for place in self.places_of(what) {
            place.store(lsn, Ordering::Release);
        }
    }

    /// No record behind this one has changed it.
    pub(crate) fn last(&self, what: &(impl Hash + ?Sized)) -> u64 {
        let [one, other] = self.places_of(what).map(|place| place.load(Ordering::Acquire));
        one.min(other)
    }

    fn places_of(&self, what: &(impl Hash + ?Sized)) -> [&AtomicU64; 2] {
        let hash = self.hasher.hash_one(what);
        // Two parts of the hash that have no bit in common; what they are too large for is cut off.
        #[expect(clippy::cast_possible_truncation, reason = "the lower bits are wanted")]
        [hash, hash >> 32].map(|part| &self.places[part as usize % PLACES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_never_said_to_be_older_than_it_is() {
        let touched = Touched::default();
        let runs = 4 * PLACES as u64;
        for run in 0..runs {
            assert!(touched.last(&run) <= run);
            touched.touch(&run, run + 1);
            assert_eq!(touched.last(&run), run + 1);
        }
        assert!((0..runs).all(|run| touched.last(&run) > run), "whoever came later has left it as it was or later");
    }

    #[test]
    fn few_runs_are_taken_for_others() {
        let touched = Touched::default();
        (0..4_000_u64).for_each(|run| touched.touch(&run, 1));
        let taken = (4_000..104_000_u64).filter(|run| touched.last(run) > 0).count();
        assert!(taken < 5_000, "{taken} of 100,000");
    }
}
