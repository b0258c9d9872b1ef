//! Handlers of functions, reached over real sockets and as real processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they report")]

mod broken;
mod guard;
mod in_process;
mod lines;
mod pull;
mod push;
mod supervise;
mod support;
#[path = "../../../egress/tests/it/vectors.rs"]
mod vectors;
mod versions;
mod watch;
