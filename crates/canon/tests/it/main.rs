//! Tests of the canonical form and of digests, from outside the crate.

mod check;
mod digest;
mod errors;
mod hostile;
mod numbers;
mod order;
mod properties;
mod serialise;
mod strings;
mod vectors;
