//! The runtime under the simulator's executor: real loops, virtual time, the reference store.

mod budget;
mod contract;
mod pause;
mod poison;
mod projector;
mod queue;
mod relay;
mod retention;
mod shutdown;
mod smoke;
mod sweep;
mod transfer;
mod world;
