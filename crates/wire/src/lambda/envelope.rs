//! What a handler is invoked with, and what it answers.

use serde::{Deserialize, Serialize};

use super::{ErrorObject, Millis, Operation};

/// Results and errors above this many bytes are checkpointed on the EXECUTION operation and left out of the answer.
pub const ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024 - 50;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DurableExecutionInvocationInput {
    pub durable_execution_arn: String,
    pub checkpoint_token: String,
    pub initial_execution_state: InitialExecutionState,
    /// Operations that changed since the handler last saw the execution.
    #[serde(default)]
    pub updated_operation_ids: Vec<String>,
}

/// The first page of the state. It may be empty although there is more: a large input leaves no room beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct InitialExecutionState {
    pub operations: Vec<Operation<Millis>>,
    /// Empty or absent on the last page.
    #[serde(default)]
    pub next_marker: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum InvocationStatus {
    Succeeded,
    Failed,
    Pending,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DurableExecutionInvocationOutput {
    pub status: InvocationStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

impl DurableExecutionInvocationOutput {
    pub fn succeeded(result: Option<String>) -> Self {
        Self { status: InvocationStatus::Succeeded, result, error: None }
    }

    pub fn failed(error: Option<ErrorObject>) -> Self {
        Self { status: InvocationStatus::Failed, result: None, error }
    }

    pub fn pending() -> Self {
        Self { status: InvocationStatus::Pending, result: None, error: None }
    }
}
