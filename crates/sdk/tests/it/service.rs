//! A small service in memory that follows the published rules, with a clock that jumps. Tests run whole executions on it,
//! crash them at any call, and read what was recorded.

mod clock;
mod rules;
mod run;
mod store;

pub(crate) use run::World;
pub(crate) use store::Fault;
