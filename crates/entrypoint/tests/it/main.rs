//! Tests of entrypoints from outside: the published types and examples, validation, limiters, keys, queries.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod anything;
mod cache;
mod check;
mod definitions;
mod hostile;
mod odata;
mod params;
mod rate;
mod requests;
mod schemas;
mod support;
mod types;
