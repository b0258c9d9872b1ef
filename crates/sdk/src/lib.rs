//! Durable functions in Rust: ordinary async code whose progress is recorded, on Servo or on AWS Lambda.
//!
//! A handler is an async function from an event and a [`DurableContext`]. What it does through the context is recorded;
//! when the process dies, or the handler waits for an hour or a year, it is invoked again and walks through the record:
//! operations that are done return what they returned before, and the first one that is not goes on. Code between
//! operations therefore does the same on every run: clocks, random numbers and the outside world belong in steps.
//!
//! ```
//! use std::sync::Arc;
//!
//! use servo_sdk::{
//!     CheckpointRequest, CheckpointResponse, DurableContext, DurableError, DurableServiceClient, GetStateResponse,
//!     InvocationStatus, NewExecutionState, Options, ServiceError, async_trait, durable_execution, handle,
//! };
//!
//! #[durable_execution]
//! async fn greet(name: String, ctx: DurableContext) -> Result<String, DurableError> {
//!     // The closure may borrow, and may be async. Its result is recorded before the handler goes on.
//!     let letters: usize = ctx.step(|_| Ok(name.len()), None).await?;
//!     let greeting: String = ctx.step(async |_| Ok(format!("Hello {name}, {letters} letters")), None).await?;
//!     Ok(greeting)
//! }
//!
//! /// In production this is [`ServoClient`], or the engine in the same process.
//! struct Accepting;
//!
//! #[async_trait]
//! impl DurableServiceClient for Accepting {
//!     async fn checkpoint(&self, _: &str, _: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
//!         let new_execution_state = NewExecutionState::default();
//!         Ok(CheckpointResponse { checkpoint_token: Some("next".to_owned()), new_execution_state })
//!     }
//!
//!     async fn get_state(&self, _: &str, _: &str, _: &str) -> Result<GetStateResponse, ServiceError> {
//!         Ok(GetStateResponse::default())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // What the service invokes a handler with.
//! let input = serde_json::from_str(r#"{
//!     "DurableExecutionArn": "arn:aws:lambda:eu-west-1:123456789012:function:greet:1/durable-execution/a/exec",
//!     "CheckpointToken": "first",
//!     "InitialExecutionState": { "Operations": [{
//!         "Id": "exec", "Type": "EXECUTION", "Status": "STARTED", "StartTimestamp": 1790000000000,
//!         "ExecutionDetails": { "InputPayload": "\"Ada\"" }
//!     }] }
//! }"#)?;
//! let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! let answer = runtime.block_on(handle(greet, input, Arc::new(Accepting), Options::default()))?;
//! assert_eq!(answer.status, InvocationStatus::Succeeded);
//! assert_eq!(answer.result.as_deref(), Some("\"Hello Ada, 3 letters\""));
//! # Ok(())
//! # }
//! ```
//!
//! # What to know
//!
//! - **Waiting is free.** A handler that waits ends its invocation; it cannot notice or prevent that.
//! - **Await IO inside steps.** While only waits are left, an await of something else does not keep the invocation alive.
//! - **Combine with the context.** `map`, `parallel`, `all`, `race` and friends record who came first; spawned tasks do not,
//!   and end with the invocation.
//! - **Closures of `map` are not `async move`** when they capture: leave out `move`, they borrow from the handler.
//! - **A step that failed in this invocation is tried again in the next one**, because its closure is used up.
//!
//! Features: `http` (default) has [`ServoClient`], the client of a Servo server or,
//! with signed requests, of AWS Lambda; `lambda` has `run`, which serves
//! invocations of a Lambda Runtime API; `aws` has `AwsLambdaClient`, the client over AWS's crate `aws-sdk-lambda`, for programs that
//! already have its settings. Handlers run the same over each of them.

#[cfg(feature = "aws")]
mod aws;
mod batch;
mod builders;
#[cfg(feature = "http")]
mod channel;
mod clock;
mod config;
mod context;
mod duration;
mod entry;
#[cfg(feature = "http")]
mod environment;
mod error;
mod future;
mod handler;
mod helpers;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "lambda")]
mod lambda;
mod logger;
mod op;
mod ops;
mod options;
mod panic;
mod plugin;
mod pump;
mod serdes;
mod service;
#[cfg(feature = "http")]
mod sigv4;
mod state;

pub use async_trait::async_trait;
#[cfg(feature = "aws")]
pub use aws::AwsLambdaClient;
/// The version that [`AwsLambdaClient`] is made for.
#[cfg(feature = "aws")]
pub use aws_sdk_lambda;
pub use batch::{BatchItem, BatchItemStatus, BatchResult, CompletionReason};
pub use clock::{Clock, SystemClock};
pub use config::{
    Backoff, CallbackConfig, CheckpointBatcherConfig, CheckpointingMode, CompletionConfig, ContextConfig, InvokeConfig,
    ItemBatcher, ItemNamer, MapConfig, Nesting, ParallelConfig, StepConfig, StepSemantics, WaitDecision,
    WaitForCallbackConfig, WaitForConditionConfig,
};
pub use context::DurableContext;
pub use duration::Duration;
pub use entry::handle;
pub use error::{AwsError, BoxError, DurableError, InvocationError, TerminationReason};
pub use future::DurableFuture;
pub use handler::{Handler, Outcome};
pub use helpers::ReplaySafeHelpers;
#[cfg(feature = "http")]
pub use http::ServoClient;
#[cfg(feature = "lambda")]
pub use lambda::{run, run_with};
pub use logger::{LogContext, LogLevel, Logger, ScopedLogger, TracingLogger};
pub use ops::{Branch, Callback, Saga, SagaStep, StepContext, WaitForConditionContext, branch};
pub use options::Options;
pub use plugin::{AttemptInfo, Interceptor, InvocationEnd, InvocationInfo, OperationInfo, Plugin};
pub use serdes::{JsonSerDes, SerDes, SerDesContext, SerDesError, ValueSerDes};
pub use service::{DurableServiceClient, ServiceError, Verdict};
pub use servo_replay::{Failure, Jitter, RetryContext, RetryDecision, RetryStrategy};
pub use servo_sdk_macros::durable_execution;
pub use servo_wire::lambda::{
    CallbackDetails, CallbackOptions, ChainedInvokeDetails, ChainedInvokeOptions, CheckpointRequest,
    CheckpointResponse, ContextDetails, ContextOptions, DurableExecutionInvocationInput,
    DurableExecutionInvocationOutput, ErrorObject, ExecutionDetails, GetStateResponse, InitialExecutionState,
    InvocationStatus, Millis, NewExecutionState, Operation, OperationAction, OperationStatus, OperationType,
    OperationUpdate, Seconds, StepDetails, StepOptions, WaitDetails, WaitOptions,
};
#[cfg(feature = "http")]
pub use sigv4::AwsCredentials;
pub use state::ExecutionState;
