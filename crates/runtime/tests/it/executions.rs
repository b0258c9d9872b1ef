//! Durable executions under the simulator: the real engine and its loops, handlers in the test's own process, virtual time.

mod chained;
mod direct;
mod families;
pub(crate) mod handler;
mod history;
mod lifecycle;
mod lost;
mod outage;
