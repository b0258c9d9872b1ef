//! Starlark in real children. The program of a child is the example `starlark_worker`.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod basics;
mod branches;
mod checkpointing;
mod egress;
mod engine;
mod execution;
mod generated;
mod guide;
mod hanging;
mod hostile;
mod sandbox;
mod support;
mod workflows;
