//! The execution's history: one numbered event per transition.

use serde::{Deserialize, Serialize};

use super::{ErrorObject, Seconds};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct HistoryResponse {
    #[serde(default)]
    pub events: Vec<HistoryEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_marker: Option<String>,
}

/// One event. The details stand under `<EventType>Details`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct HistoryEvent {
    #[serde(flatten)]
    pub details: HistoryDetails,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<String>,
    /// 1, 2, 3 … and never changed again.
    pub event_id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub event_timestamp: Seconds,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
}

/// `EventType` and its details, as the service lays them out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "EventType", rename_all_fields = "PascalCase")]
pub enum HistoryDetails {
    ExecutionStarted { execution_started_details: ExecutionStartedDetails },
    ExecutionSucceeded { execution_succeeded_details: ResultDetails },
    ExecutionFailed { execution_failed_details: ErrorDetails },
    ExecutionTimedOut { execution_timed_out_details: ErrorDetails },
    ExecutionStopped { execution_stopped_details: ErrorDetails },
    ContextStarted { context_started_details: NoDetails },
    ContextSucceeded { context_succeeded_details: ResultDetails },
    ContextFailed { context_failed_details: ErrorDetails },
    WaitStarted { wait_started_details: WaitStartedDetails },
    WaitSucceeded { wait_succeeded_details: WaitSucceededDetails },
    WaitCancelled { wait_cancelled_details: ErrorDetails },
    StepStarted { step_started_details: NoDetails },
    StepSucceeded { step_succeeded_details: StepResultDetails },
    StepFailed { step_failed_details: StepErrorDetails },
    ChainedInvokeStarted { chained_invoke_started_details: ChainedInvokeStartedDetails },
    ChainedInvokeSucceeded { chained_invoke_succeeded_details: ResultDetails },
    ChainedInvokeFailed { chained_invoke_failed_details: ErrorDetails },
    ChainedInvokeTimedOut { chained_invoke_timed_out_details: ErrorDetails },
    ChainedInvokeStopped { chained_invoke_stopped_details: ErrorDetails },
    CallbackStarted { callback_started_details: CallbackStartedDetails },
    CallbackSucceeded { callback_succeeded_details: ResultDetails },
    CallbackFailed { callback_failed_details: ErrorDetails },
    CallbackTimedOut { callback_timed_out_details: ErrorDetails },
    InvocationCompleted { invocation_completed_details: InvocationCompletedDetails },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoDetails {}

/// A payload, or the note that it was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct EventPayload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    #[serde(default)]
    pub truncated: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct EventError {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<ErrorObject>,
    #[serde(default)]
    pub truncated: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ResultDetails {
    pub result: EventPayload,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ErrorDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventError>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExecutionStartedDetails {
    pub input: EventPayload,
    pub execution_timeout: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WaitStartedDetails {
    pub duration: u64,
    pub scheduled_end_timestamp: Seconds,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WaitSucceededDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RetryDetails {
    pub current_attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_delay_seconds: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StepResultDetails {
    pub result: EventPayload,
    pub retry_details: RetryDetails,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StepErrorDetails {
    pub error: EventError,
    pub retry_details: RetryDetails,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ChainedInvokeStartedDetails {
    pub function_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<EventPayload>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_execution_arn: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CallbackStartedDetails {
    pub callback_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct InvocationCompletedDetails {
    pub start_timestamp: Seconds,
    pub end_timestamp: Seconds,
    pub request_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventError>,
}
