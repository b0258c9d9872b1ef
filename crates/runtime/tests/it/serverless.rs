//! Entrypoints and their invocations under the simulator: the real engine and its loops, virtual time, handlers of the test.

mod adapters;
mod bulk;
mod caching;
mod calls;
mod compensation;
mod crashes;
mod endings;
mod functions;
mod lifecycle;
mod overload;
mod owners;
mod published;
mod records;
mod starts;
pub(crate) mod support;
mod waits;
mod workflows;
