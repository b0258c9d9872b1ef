//! Who is next when many want the same slots. Pure: no clock, no IO, no chance.
//!
//! It decides on the order only. What the work is, where it waits and how it is executed is its caller's business.

mod fair;
mod share;

pub use fair::Fair;
pub use share::{Share, Shares, WEIGHT_MAX};
