//! Tables for what is expected of the order, properties for the bounds that it keeps.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod bounds;
mod counter;
mod order;
