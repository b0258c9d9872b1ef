//! The runtime under the simulator's executor: real loops, virtual time, the reference store.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they report")]

mod attempts;
mod budget;
mod clocks;
mod contract;
mod executions;
mod fair;
mod limits;
mod pause;
mod poison;
mod projector;
mod queue;
mod reads;
mod recovery;
mod relay;
mod retention;
mod serverless;
mod shutdown;
mod smoke;
mod storm;
mod sweep;
mod timers;
mod transfer;
mod world;
