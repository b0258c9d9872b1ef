//! The simulator: the real runtime under a seeded executor with virtual time.
//!
//! One thread runs every task of every simulated node. Which ready task goes next is drawn from the seed; time moves only
//! when nothing is ready, to the next sleeper. The same seed therefore gives the same trace, and a failing seed is a
//! bug report.
//!
//! ```text
//! exec · clock    tasks in seeded order, virtual time
//! store · faults  a connection to the shared store: delays, lost answers, late writes
//! cluster         nodes over it: start, kill, pause, skewed clocks
//! workers         handlers of executions, outside the nodes
//! campaign        one seed: random load and faults, then calm
//! check           what must hold afterwards
//! ```

pub mod campaign;
pub mod check;
pub mod clock;
pub mod cluster;
pub mod dice;
pub mod exec;
pub mod faults;
pub mod journal;
pub mod recorder;
pub mod store;
pub mod workers;

pub use clock::SimClock;
pub use cluster::{Cluster, Node};
pub use exec::{NodeId, Sim};
pub use faults::{Fault, FaultPlan};
pub use store::{Sabotage, SimStore};
