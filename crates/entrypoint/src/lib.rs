//! Entrypoints of the serverless runtime API: their types, what makes a definition valid, and every rule about them and their
//! invocations that can be decided without looking anything up.
//!
//! Pure: no clock, no IO, no store. What a run does next is decided in `servo-machine`; who may ask is decided above.

pub mod access;
pub mod cache;
pub mod control;
mod depth;
pub mod errors;
pub mod gts;
pub mod names;
pub mod odata;
pub mod pin;
pub mod rate;
pub mod runtime;
pub mod schemas;
pub mod status;
pub mod types;
pub mod validate;

pub use runtime::{Created, RestRuntime, ServerlessRuntime, TimelineTail};
pub use schemas::Types;
pub use types::*;
pub use validate::{CompiledEntrypoint, Validated, Validation};
