//! Remote commands, one file per noun: ask the server, print the answer, give back the exit code.

pub(crate) mod alerts;
pub(crate) mod completions;
pub(crate) mod dead_letters;
pub mod doctor;
mod each;
pub(crate) mod entrypoints;
pub(crate) mod explain;
pub(crate) mod functions;
mod ids;
pub(crate) mod invocations;
pub(crate) mod keys;
pub(crate) mod profiles;
pub(crate) mod runs;
pub(crate) mod runtime;
pub(crate) mod store;
pub(crate) mod types;
pub(crate) mod version;
pub(crate) mod whoami;
