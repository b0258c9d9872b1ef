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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ExecutionStatus {
    Running,
    Succeeded,
    Failed,
    TimedOut,
    Stopped,
}

impl ExecutionStatus {
    pub const ALL: [ExecutionStatus; 5] = [
        ExecutionStatus::Running,
        ExecutionStatus::Succeeded,
        ExecutionStatus::Failed,
        ExecutionStatus::TimedOut,
        ExecutionStatus::Stopped,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionStatus::Running => "RUNNING",
            ExecutionStatus::Succeeded => "SUCCEEDED",
            ExecutionStatus::Failed => "FAILED",
            ExecutionStatus::TimedOut => "TIMED_OUT",
            ExecutionStatus::Stopped => "STOPPED",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
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

/// What a handler asks the service to record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct OperationUpdate {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(rename = "Type")]
    pub operation_type: OperationType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    pub action: OperationAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_options: Option<ContextOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_options: Option<StepOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_options: Option<WaitOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_options: Option<CallbackOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chained_invoke_options: Option<ChainedInvokeOptions>,
}

impl OperationUpdate {
    /// Whether its sender knows all about an operation that it has begun in the same call.
    pub fn says_all(&self) -> bool {
        matches!(self.operation_type, OperationType::Step | OperationType::Context)
            && matches!(self.action, OperationAction::Succeed | OperationAction::Fail)
    }

    /// An update that carries nothing but what every update has.
    pub fn new(id: impl Into<String>, operation_type: OperationType, action: OperationAction) -> Self {
        Self {
            id: id.into(),
            parent_id: None,
            name: None,
            operation_type,
            sub_type: None,
            action,
            payload: None,
            error: None,
            context_options: None,
            step_options: None,
            wait_options: None,
            callback_options: None,
            chained_invoke_options: None,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ContextOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_children: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StepOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_delay_seconds: Option<u64>,
    /// Beside the seconds, and ours alone: the API knows only whole seconds of at least one. These are the milliseconds that were
    /// rounded up to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_delay_millis: Option<u64>,
}

impl StepOptions {
    /// As the API says it.
    pub fn after_seconds(seconds: u64) -> Self {
        Self { next_attempt_delay_seconds: Some(seconds), next_attempt_delay_millis: None }
    }

    /// To the millisecond, for a service that knows them; for others rounded up.
    pub fn after_millis(millis: u64) -> Self {
        let seconds = millis.div_ceil(1_000).max(1);
        let exact = (seconds.checked_mul(1_000) != Some(millis)).then_some(millis);
        Self { next_attempt_delay_seconds: Some(seconds), next_attempt_delay_millis: exact }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WaitOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CallbackOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_seconds: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ChainedInvokeOptions {
    pub function_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(rename = "XAmznTraceId", default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}
