//! What `ctx` can do, one file for each kind of operation. Each asks the journal first and records afterwards, in the same
//! way as the Rust SDK.

pub(super) mod branches;
pub(super) mod context;
pub(super) mod http;
pub(super) mod numbers;
pub(super) mod settle;
pub(super) mod step;
pub(super) mod wait;
