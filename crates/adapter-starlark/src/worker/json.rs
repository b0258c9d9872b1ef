//! JSON to Starlark values and back, without loss: integers of any size stay integers, floats read back as they were.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::{WriteError, write};

/// Deeper JSON is refused in both directions; a value that holds itself would have no end.
const DEPTH_MAX: usize = 128;
