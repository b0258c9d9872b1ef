//! The guard as clients meet it, judged by what servers accepted.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they report")]

mod names;
mod proxy;
mod support;
mod vectors;
mod weaker;
