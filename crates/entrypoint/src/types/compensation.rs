//! What an entrypoint that undoes a run is started with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servo_model::Timestamp;

use super::{CompensationTrigger, EntrypointId, InvocationId, TenantId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompensationContext {
    pub trigger: CompensationTrigger,
    pub original_workflow_invocation_id: InvocationId,
    /// `unknown` when the adapter tracks no steps.
    pub failed_step_id: String,
    /// Only of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_step_error: Option<FailedStepError>,
    /// The last checkpoint, or empty.
    pub workflow_state_snapshot: Map<String, Value>,
    pub timestamp: Timestamp,
    pub invocation_metadata: InvocationMetadata,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedStepError {
    pub error_type: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvocationMetadata {
    pub entrypoint_id: EntrypointId,
    pub original_input: Map<String, Value>,
    pub tenant_id: TenantId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}
