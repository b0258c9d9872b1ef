//! Durable executions: every rule of the published API that the service side decides.

mod callbacks;
mod chained;
mod handler;
mod lifecycle;
mod random;
mod refusals;
mod steps;
mod world;
