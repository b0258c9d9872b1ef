//! Who is next when many want the same slots, and how much each may hold. Pure: no clock, no IO, no chance.
//!
//! It decides on the order and on amounts only. What the work is, where it waits and how it is executed is its caller's business.

mod counter;
mod fair;
mod share;

pub use counter::{Bounds, Counter, Full, Held};
pub use fair::Fair;
pub use share::{Share, Shares, WEIGHT_MAX};
