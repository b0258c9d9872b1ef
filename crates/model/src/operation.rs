//! Durable operations in the words of the published API, which are also the words of our events.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OperationType {
    Execution,
    Context,
    Step,
    Wait,
    Callback,
    ChainedInvoke,
}

impl OperationType {
    pub fn as_str(self) -> &'static str {
        match self {
            OperationType::Execution => "EXECUTION",
            OperationType::Context => "CONTEXT",
            OperationType::Step => "STEP",
            OperationType::Wait => "WAIT",
            OperationType::Callback => "CALLBACK",
            OperationType::ChainedInvoke => "CHAINED_INVOKE",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OperationStatus {
    Started,
    Pending,
    Ready,
    Succeeded,
    Failed,
    Cancelled,
    TimedOut,
    Stopped,
}

impl OperationStatus {
    pub fn is_terminal(self) -> bool {
        match self {
            OperationStatus::Started | OperationStatus::Pending | OperationStatus::Ready => false,
            OperationStatus::Succeeded
            | OperationStatus::Failed
            | OperationStatus::Cancelled
            | OperationStatus::TimedOut
            | OperationStatus::Stopped => true,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            OperationStatus::Started => "STARTED",
            OperationStatus::Pending => "PENDING",
            OperationStatus::Ready => "READY",
            OperationStatus::Succeeded => "SUCCEEDED",
            OperationStatus::Failed => "FAILED",
            OperationStatus::Cancelled => "CANCELLED",
            OperationStatus::TimedOut => "TIMED_OUT",
            OperationStatus::Stopped => "STOPPED",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OperationAction {
    Start,
    Succeed,
    Fail,
    Retry,
    Cancel,
}

impl OperationAction {
    pub fn as_str(self) -> &'static str {
        match self {
            OperationAction::Start => "START",
            OperationAction::Succeed => "SUCCEED",
            OperationAction::Fail => "FAIL",
            OperationAction::Retry => "RETRY",
            OperationAction::Cancel => "CANCEL",
        }
    }
}

/// An error of user code. Every field is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ErrorObject {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_trace: Option<Vec<String>>,
}

impl ErrorObject {
    pub fn new(error_type: impl Into<String>, message: impl Into<String>) -> Self {
        Self { error_type: Some(error_type.into()), error_message: Some(message.into()), ..Self::default() }
    }

    /// Bytes of all fields together, which the service limits.
    pub fn len(&self) -> usize {
        let text = |field: &Option<String>| field.as_ref().map_or(0, String::len);
        let trace: usize = self.stack_trace.iter().flatten().map(String::len).sum();
        text(&self.error_message) + text(&self.error_type) + text(&self.error_data) + trace
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
