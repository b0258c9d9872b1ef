//! The simulator's own tests: many seeds, the same seed twice, and worlds that are wrong on purpose.

mod controls;
mod determinism;
mod seeds;
