//! Requests and answers of the calls under `/2025-12-01/`.

use serde::{Deserialize, Serialize};

use servo_model::operation::{ErrorObject, ExecutionStatus, OperationUpdate};

use super::{Operation, Seconds};

/// Updates in one checkpoint call.
pub const UPDATES_MAX: usize = 250;
/// Bytes of one checkpoint call's updates, as every SDK batches them.
pub const CHECKPOINT_BYTES_MAX: usize = 750 * 1024;
/// The stale-token refusal begins exactly so; SDKs compare the text.
pub const INVALID_TOKEN: &str = "Invalid checkpoint token";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CheckpointRequest {
    pub checkpoint_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<Vec<OperationUpdate>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_token: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CheckpointResponse {
    /// Absent when the execution is over, or when the service has withdrawn the right to checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_token: Option<String>,
    pub new_execution_state: NewExecutionState,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct NewExecutionState {
    #[serde(default)]
    pub operations: Vec<Operation<Seconds>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_marker: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetStateResponse {
    #[serde(default)]
    pub operations: Vec<Operation<Seconds>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_marker: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct GetExecutionResponse {
    pub durable_execution_arn: String,
    pub durable_execution_name: String,
    pub function_arn: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub status: ExecutionStatus,
    pub start_timestamp: Seconds,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_timestamp: Option<Seconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_payload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_header: Option<TraceHeader>,
    #[serde(default)]
    pub execution_data_included: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_config: Option<DurableConfig>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    #[serde(rename = "XAmznTraceId", default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DurableConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_period_in_days: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExecutionSummary {
    pub durable_execution_arn: String,
    pub durable_execution_name: String,
    pub function_arn: String,
    pub status: ExecutionStatus,
    pub start_timestamp: Seconds,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_timestamp: Option<Seconds>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ListExecutionsResponse {
    #[serde(default)]
    pub durable_executions: Vec<ExecutionSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_marker: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StopResponse {
    pub stop_timestamp: Seconds,
}
