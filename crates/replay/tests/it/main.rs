//! Tests of the replay rules from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod batch;
mod completion;
mod ids;
mod journal;
mod retry;
