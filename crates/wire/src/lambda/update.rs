//! What a handler asks the service to record.

use serde::{Deserialize, Serialize};

use servo_model::operation::{ErrorObject, OperationAction, OperationType};

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
