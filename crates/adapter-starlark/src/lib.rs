//! Runs Starlark: functions and durable workflows, in child processes that the operating system limits.
//!
//! Starlark in process is no sandbox: small sources take gigabytes or abort the parser. So sources are parsed and run only
//! in children, one call at a time, each with limits of its own; what a child does wrong ends its own call and names the
//! limit. Children are pooled by tenant and source, and keep nothing between calls but the parsed source (and the block that each takes as its stack).
//!
//! Nothing is decided here about runs: a call brings an answer or says how it failed. Children need Linux; elsewhere the
//! crate compiles and every call says so.

mod adapter;
mod child;
mod conversation;
mod egress;
mod failure;
mod issue;
mod kept_stack;
mod limits;
mod pool;
mod protocol;
mod settings;
mod spawner;
mod tasks;
mod worker;

pub use adapter::{Error, LANGUAGE, Starlark};
pub use egress::{EgressSettings, Net};
pub use issue::SourceIssue;
pub use kept_stack::KeptStack;
pub use settings::{NoSecrets, NowFn, Parts, Secrets, Settings};
pub use worker::worker_main;
