//! Starlark in real children. The program of a child is the example `starlark_worker`.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod basics;
mod branches;
mod campaign;
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
#[path = "../../../egress/tests/it/vectors.rs"]
mod vectors;
mod workflows;
