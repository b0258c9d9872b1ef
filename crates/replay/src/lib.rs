//! The rules by which recorded operations drive user code: which id a call has, what the journal says about it, when a
//! group of branches is done, when a failed attempt is tried again, and which updates travel in one call.
//!
//! Synchronous and free of IO, clock and chance, so that every language on top of it (the Rust SDK, Starlark, the workflow
//! DSL) follows the same rules. It runs no user code and talks to nobody.

mod batch;
mod completion;
mod id;
mod identity;
mod journal;
mod retry;

pub use batch::{BatchLimits, plan, size_of};
pub use completion::{Completion, CompletionConfig, CompletionReason, Progress};
pub use id::{Ids, operation_id};
pub use identity::{Divergence, Identity};
pub use journal::{Journal, Operation, Orphan, SubType};
pub use retry::{
    Backoff, Failure, Jitter, RetryClone, RetryContext, RetryDecision, RetryStrategy, chance, exponential_delay, spread,
};
