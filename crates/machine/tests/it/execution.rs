//! Durable executions: every rule of the published API that the service side decides.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they report")]

mod callbacks;
mod chained;
mod descendants;
mod entrypoint;
mod full;
mod handler;
mod lifecycle;
mod random;
mod refusals;
mod sizes;
mod steps;
mod transitions;
mod unreached;
mod world;
