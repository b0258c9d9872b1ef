//! Errors of durable operations, and their form on the wire. An error that was recorded reads back as the same variant, so
//! a handler sees the same error on the first run and on every replay.

use serde::{Deserialize, Serialize};
use servo_replay::{Divergence, Orphan};
use servo_wire::lambda::{ErrorObject, OperationStatus};

/// What user code may fail with: anything that `?` turns into a boxed error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DurableError {
    /// Ends the execution as failed; the service does not try again.
    #[error("Execution error: {message}")]
    Execution { message: String, termination_reason: TerminationReason },
    /// Ends this invocation; the service invokes the handler again.
    #[error("Invocation error: {message}")]
    Invocation { message: String, termination_reason: TerminationReason },
    #[error("Checkpoint error: {message}")]
    Checkpoint { message: String, is_retriable: bool, aws_error: Option<AwsError> },
    #[error("Callback error: {message}")]
    Callback { message: String, callback_id: Option<String>, status: Option<OperationStatus> },
    #[error("Non-deterministic execution: {message}")]
    NonDeterministic { message: String, operation_id: Option<String> },
    #[error("Validation error: {message}")]
    Validation { message: String },
    #[error("Serialization error: {message}")]
    SerDes { message: String },
    /// Seen only by tasks that outlive the invocation: the handler itself is dropped at its last await.
    #[error("Suspend execution")]
    Suspend { scheduled_timestamp: Option<f64> },
    #[error("Orphaned child: {message}")]
    OrphanedChild { message: String, operation_id: String },
    #[error("User code error: {message}")]
    UserCode { message: String, error_type: String, stack_trace: Option<String> },
    #[error("Size limit exceeded: {message}")]
    SizeLimit { message: String },
    #[error("Throttling: {message}")]
    Throttling { message: String },
    #[error("Resource not found: {message}")]
    ResourceNotFound { message: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TerminationReason {
    UnhandledError,
    InvocationError,
    ExecutionError,
    CheckpointFailed,
    NonDeterministicExecution,
    StepInterrupted,
    CallbackError,
    SerializationError,
    SizeLimitExceeded,
}

/// What the service said when it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsError {
    pub code: String,
    pub message: String,
    pub status: Option<u16>,
}

/// The invocation failed and the execution did not: the service is to invoke the handler again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct InvocationError(pub DurableError);

/// Details that the wire has no field for, kept in `ErrorData`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Details {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<TerminationReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    callback_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<OperationStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retriable: Option<bool>,
}

impl DurableError {
    /// An error with a type of its own, which retry strategies and readers of the history can tell apart.
    pub fn user(error_type: impl Into<String>, message: impl Into<String>) -> Self {
        Self::UserCode { message: message.into(), error_type: error_type.into(), stack_trace: None }
    }

    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::Validation { message: message.into() }
    }

    /// The name under which it is recorded.
    pub fn error_type(&self) -> &str {
        match self {
            Self::Execution { termination_reason: TerminationReason::StepInterrupted, .. } => "StepInterruptedError",
            Self::Execution { .. } => "ExecutionError",
            Self::Invocation { .. } => "InvocationError",
            Self::Checkpoint { .. } => "CheckpointError",
            Self::Callback { .. } => "CallbackError",
            Self::NonDeterministic { .. } => "NonDeterministicExecutionError",
            Self::Validation { .. } => "ValidationError",
            Self::SerDes { .. } => "SerDesError",
            Self::Suspend { .. } => "SuspendExecution",
            Self::OrphanedChild { .. } => "OrphanedChildError",
            Self::UserCode { error_type, .. } => error_type,
            Self::SizeLimit { .. } => "SizeLimitError",
            Self::Throttling { .. } => "ThrottlingError",
            Self::ResourceNotFound { .. } => "ResourceNotFoundError",
        }
    }

    /// Without the variant's name in front.
    pub fn message(&self) -> &str {
        match self {
            Self::Execution { message, .. }
            | Self::Invocation { message, .. }
            | Self::Checkpoint { message, .. }
            | Self::Callback { message, .. }
            | Self::NonDeterministic { message, .. }
            | Self::Validation { message }
            | Self::SerDes { message }
            | Self::OrphanedChild { message, .. }
            | Self::UserCode { message, .. }
            | Self::SizeLimit { message }
            | Self::Throttling { message }
            | Self::ResourceNotFound { message } => message,
            Self::Suspend { .. } => "the execution is suspended",
        }
    }

    pub fn to_error_object(&self) -> ErrorObject {
        let mut object = ErrorObject::new(self.error_type(), self.message());
        let details = match self {
            Self::Execution { termination_reason, .. } | Self::Invocation { termination_reason, .. } => {
                Details { reason: Some(*termination_reason), ..Details::default() }
            }
            Self::Callback { callback_id, status, .. } => {
                Details { callback_id: callback_id.clone(), status: *status, ..Details::default() }
            }
            Self::NonDeterministic { operation_id, .. } => {
                Details { operation_id: operation_id.clone(), ..Details::default() }
            }
            Self::OrphanedChild { operation_id, .. } => {
                Details { operation_id: Some(operation_id.clone()), ..Details::default() }
            }
            Self::Checkpoint { is_retriable, .. } => Details { retriable: Some(*is_retriable), ..Details::default() },
            Self::UserCode { stack_trace, .. } => {
                object.stack_trace = stack_trace.as_ref().map(|trace| trace.lines().map(str::to_owned).collect());
                return object;
            }
            Self::Validation { .. }
            | Self::SerDes { .. }
            | Self::Suspend { .. }
            | Self::SizeLimit { .. }
            | Self::Throttling { .. }
            | Self::ResourceNotFound { .. } => return object,
        };
        object.error_data = serde_json::to_string(&details).ok();
        object
    }

    /// The error that was recorded. What no SDK error is called is an error of user code.
    pub fn from_error_object(object: &ErrorObject) -> Self {
        let message = object.error_message.clone().unwrap_or_default();
        let error_type = object.error_type.clone().unwrap_or_else(|| "Error".to_owned());
        let details: Details =
            object.error_data.as_deref().and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
        let reason = |default| details.reason.unwrap_or(default);
        match error_type.as_str() {
            "StepInterruptedError" => {
                Self::Execution { message, termination_reason: TerminationReason::StepInterrupted }
            }
            "ExecutionError" => {
                Self::Execution { message, termination_reason: reason(TerminationReason::ExecutionError) }
            }
            "InvocationError" => {
                Self::Invocation { message, termination_reason: reason(TerminationReason::InvocationError) }
            }
            "CheckpointError" => {
                Self::Checkpoint { message, is_retriable: details.retriable.unwrap_or(false), aws_error: None }
            }
            "CallbackError" => Self::Callback { message, callback_id: details.callback_id, status: details.status },
            "NonDeterministicExecutionError" => Self::NonDeterministic { message, operation_id: details.operation_id },
            "ValidationError" => Self::Validation { message },
            "SerDesError" => Self::SerDes { message },
            "OrphanedChildError" => {
                Self::OrphanedChild { message, operation_id: details.operation_id.unwrap_or_default() }
            }
            "SizeLimitError" => Self::SizeLimit { message },
            "ThrottlingError" => Self::Throttling { message },
            "ResourceNotFoundError" => Self::ResourceNotFound { message },
            _ => Self::UserCode {
                message,
                error_type,
                stack_trace: object.stack_trace.as_ref().map(|lines| lines.join("\n")),
            },
        }
    }

    /// What user code returned. An error of the SDK that `?` passed on stays what it was.
    pub(crate) fn from_user(error: BoxError) -> Self {
        match error.downcast::<DurableError>() {
            Ok(error) => *error,
            Err(error) => {
                let mut causes = Vec::new();
                let mut cause = error.source();
                while let Some(error) = cause {
                    causes.push(format!("caused by: {error}"));
                    cause = error.source();
                }
                let stack_trace = (!causes.is_empty()).then(|| causes.join("\n"));
                Self::UserCode { message: error.to_string(), error_type: "Error".to_owned(), stack_trace }
            }
        }
    }
}

impl From<Divergence> for DurableError {
    fn from(divergence: Divergence) -> Self {
        let message = divergence.to_string();
        Self::NonDeterministic { message, operation_id: Some(divergence.operation_id) }
    }
}

impl From<Orphan> for DurableError {
    fn from(orphan: Orphan) -> Self {
        let message = orphan.to_string();
        Self::OrphanedChild { message, operation_id: orphan.operation_id }
    }
}
