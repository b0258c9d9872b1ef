//! Changes survive the redo file as they are, damage to them is found, and what is ahead of the database collapses.

mod absorb;
mod codec;
pub(crate) mod samples;
