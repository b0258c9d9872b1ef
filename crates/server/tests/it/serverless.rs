//! The serverless runtime API over HTTP. Entrypoints refer to handlers of the test itself.

mod assigned;
mod control;
mod executions;
mod hidden;
mod limits;
mod lists;
mod matrix;
mod metrics;
mod names;
mod once;
mod private;
mod refusals;
mod registry;
mod starts;
pub(crate) mod support;
mod tenancy;
mod timeline;
mod twice;
mod types;
mod undone;
mod whole;
