//! The runtime under the simulator's executor: real loops, virtual time, the reference store.

mod contract;
mod outbox;
mod slow_store;
mod smoke;
mod sweep;
mod world;
