//! The simulator: the real runtime under a seeded executor with virtual time.
//!
//! One thread runs every task of every simulated node. Which ready task goes next is drawn from the seed; time moves only
//! when nothing is ready, to the next sleeper. The same seed therefore gives the same trace, and a failing seed is a
//! bug report.

pub mod clock;
pub mod exec;

pub use clock::SimClock;
pub use exec::{NodeId, Sim};
