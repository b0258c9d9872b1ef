//! Starlark in real children. The program of a child is the example `worker`.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod basics;
mod execution;
mod hostile;
mod support;
mod workflows;
