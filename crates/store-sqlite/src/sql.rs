//! The statements, a file per role. Functions that take a `Tx` write and run on the writer's thread inside its
//! transaction; functions that take a `Connection` only read. One function is one unit of work: none of them begins or
//! commits.

pub(crate) mod admin;
pub(crate) mod audit;
pub(crate) mod dispatch;
pub(crate) mod entrypoints;
pub(crate) mod events;
pub(crate) mod identity;
pub(crate) mod lease;
pub(crate) mod lines;
pub(crate) mod log;
pub(crate) mod queue;
pub(crate) mod registry;
pub(crate) mod relay;
pub(crate) mod runs;
pub(crate) mod timer;
