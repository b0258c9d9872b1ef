//! Durable functions in Rust: ordinary async code whose progress is recorded, on Servo or on AWS Lambda.

mod batch;
mod clock;
mod config;
mod context;
mod duration;
mod entry;
mod error;
mod future;
mod handler;
mod helpers;
mod logger;
mod op;
mod ops;
mod options;
mod panic;
mod plugin;
mod pump;
mod serdes;
mod service;
mod state;

pub use batch::{BatchItem, BatchItemStatus, BatchResult, CompletionReason};
pub use clock::{Clock, SystemClock};
pub use config::{
    Backoff, CallbackConfig, CheckpointBatcherConfig, CheckpointingMode, CompletionConfig, ContextConfig, InvokeConfig,
    ItemBatcher, MapConfig, ParallelConfig, StepConfig, StepSemantics, WaitDecision, WaitForCallbackConfig,
    WaitForConditionConfig,
};
pub use context::DurableContext;
pub use duration::Duration;
pub use entry::handle;
pub use error::{AwsError, BoxError, DurableError, InvocationError, TerminationReason};
pub use future::DurableFuture;
pub use handler::{Handler, Outcome};
pub use helpers::ReplaySafeHelpers;
pub use logger::{LogContext, LogLevel, Logger, ScopedLogger, TracingLogger};
pub use ops::{Branch, Callback, StepContext, WaitForConditionContext, branch};
pub use options::Options;
pub use plugin::{AttemptInfo, InvocationEnd, InvocationInfo, OperationInfo, Plugin};
pub use serdes::{JsonSerDes, SerDes, SerDesContext, SerDesError, ValueSerDes};
pub use service::{DurableServiceClient, ServiceError, Verdict};
pub use servo_replay::{Failure, Jitter, RetryContext, RetryDecision, RetryStrategy};
pub use servo_sdk_macros::durable_execution;
pub use servo_wire::lambda::{
    DurableExecutionInvocationInput, DurableExecutionInvocationOutput, ErrorObject, InitialExecutionState,
    InvocationStatus, OperationAction, OperationStatus, OperationType, OperationUpdate,
};
pub use state::ExecutionState;
