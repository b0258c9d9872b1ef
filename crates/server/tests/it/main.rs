//! The HTTP surface, tested over real connections against a runtime on the memory store, and for the
//! serverless API on each store. Every answer passes the linter
//! in `harness`.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they report")]

mod audit;
mod away;
mod backend;
mod bad_input;
mod channel;
mod console;
mod exhaustion;
mod functions;
mod gate;
mod guard;
mod harness;
mod health;
mod keys;
mod lambda;
mod limits;
mod lint;
mod openapi;
mod plan_sources;
mod roles;
mod rooms;
mod runs;
mod runtime;
mod serverless;
mod signals;
mod store;
mod stream;
mod tenancy;
mod tls;
mod traces;
