//! Tests of the wire types from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod document;
mod lambda;
