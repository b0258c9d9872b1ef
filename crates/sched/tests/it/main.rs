//! Tables for what is expected of the order, properties for the bounds that it keeps.

mod bounds;
mod order;
