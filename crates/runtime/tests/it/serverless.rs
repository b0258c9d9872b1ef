//! Entrypoints and their invocations under the simulator: the real engine and its loops, virtual time, handlers of the test.

mod adapters;
mod bulk;
mod caching;
mod calls;
mod compensation;
mod crashes;
mod endings;
mod functions;
mod inside;
mod lifecycle;
mod lists;
mod overload;
mod owners;
mod pace;
mod pinned;
mod places;
mod published;
mod records;
mod shared;
mod starts;
pub(crate) mod support;
mod waits;
mod workflows;
