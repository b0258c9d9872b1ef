//! Runs of entrypoints, which the REST API calls invocations: their statuses, what they are started with, and how they fail.

mod failure;
mod pin;
mod retry;
mod status;

pub use failure::{ErrorCategory, Failure, errors};
pub use pin::{Checkpointing, Compensates, CompensationTrigger, EntrypointKind, EntrypointPin, InvocationMode};
pub use retry::RetryRule;
pub use status::InvocationStatus;
