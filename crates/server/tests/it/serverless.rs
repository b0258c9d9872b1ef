//! The serverless runtime API over HTTP. Entrypoints refer to handlers of the test itself.

mod control;
mod executions;
mod lists;
mod metrics;
mod private;
mod refusals;
mod registry;
mod starts;
pub(crate) mod support;
mod tenancy;
mod timeline;
mod types;
mod whole;
