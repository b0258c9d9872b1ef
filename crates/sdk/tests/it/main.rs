//! Tests of the SDK from outside: handlers run to their end on a service in memory, with crashes at every call.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod basics;
mod crash;
mod operations;
mod properties;
mod service;
