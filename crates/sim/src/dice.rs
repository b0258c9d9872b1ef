//! Random choices of a story, from a seed of their own: the executor's choices do not move them.

use std::hash::{BuildHasher, Hasher, RandomState};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

#[derive(Debug)]
pub struct Dice {
    rng: StdRng,
    /// Adds randomness that no seed has: a control, to show that the trace would notice it.
    leak: bool,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed ^ 0xd1ce), leak: false }
    }

    #[must_use]
    pub fn leaking(self, leak: bool) -> Self {
        Self { leak, ..self }
    }

    /// From 0 up to, and not, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        let drawn = self.rng.random_range(0..end.max(1));
        if self.leak { (drawn ^ RandomState::new().build_hasher().finish()) % end.max(1) } else { drawn }
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        &from[index]
    }
}
