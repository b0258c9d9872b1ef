//! Adapters execute attempts. The engine knows only this trait; what runs behind it is the adapter's business.
//!
//! `mock` is the contract's own engine of that name: it does what the step's fields say, and every run it executes says
//! `mock` in its `RunStarted`.

mod context;
pub mod handler;
mod lines;
pub mod mock;
mod right;
mod watch;

use async_trait::async_trait;
use serde_json::Value;
use servo_model::artifact::{SecretRef, StepOutput};
use servo_model::{RunId, StepId, TenantId};

pub use context::AttemptContext;
pub use handler::{DurableService, FailureKind, HandlerCall, HandlerFailure, Handlers, Reply, Usage};
pub use lines::{CapturedLine, LineSink, Source};
pub use right::{Claim, Right, Standing};
pub use watch::WorkerWatch;

/// One attempt to execute.
#[derive(Debug, Clone)]
pub struct AttemptRequest {
    pub tenant: TenantId,
    pub environment: String,
    pub run_id: RunId,
    pub step_id: StepId,
    /// The business attempt: part of idempotency keys towards the outside.
    pub logical_attempt: u32,
    /// The hand-over: grows when an attempt was lost and is handed out again.
    pub engine_attempt: u32,
    pub with: Value,
    pub secrets: Vec<SecretRef>,
}

/// # Crash contract
///
/// `run` may be called again for the same logical attempt with a higher `engine_attempt`, when the process that held the
/// earlier call is gone or lost its authority. Effects are effectively-once if the sink deduplicates by
/// `(run, step, logical_attempt)`.
#[async_trait]
pub trait Adapter: Send + Sync {
    /// The `engineType` of plans that this adapter executes.
    fn engine_type(&self) -> &str;

    /// Executes one attempt and reports. Dropped when the run is cancelled or the step times out.
    async fn run(&self, request: AttemptRequest, context: &AttemptContext) -> StepOutput;
}
