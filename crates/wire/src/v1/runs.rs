//! Starting and listing runs.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use servo_canon::Digest;
use servo_model::ids::Name;
use servo_model::invocation::InvocationStatus;
use servo_model::plan::TriggerSource;
use servo_model::{PlanId, PlanRef, RunId, RunSnapshot, RunStatus, TenantId, Timestamp};

/// `planRef.uri` of a plan that came inside its request.
pub const INLINE_PLAN_URI: &str = "inline:plan";

/// `POST /v1/runs`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartRunRequest {
    #[serde(deserialize_with = "crate::object::read")]
    pub plan_ref: PlanRefRequest,
    /// The plan itself; absent when it is to be read from `planRef.uri`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<RawValue>>,
    #[serde(default = "Name::default_name")]
    pub project_id: Name,
    #[serde(default = "Name::default_name")]
    pub environment_id: Name,
    /// The same id again gets the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_request_id: Option<String>,
    #[serde(default)]
    pub approval_required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_source: Option<TriggerSource>,
}

/// A plan's reference as it is asked for: the URI may be left out when the plan is in the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanRefRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    pub sha256: Digest,
    pub schema_version: String,
    pub plan_id: PlanId,
    pub plan_version: String,
}

impl StartRunRequest {
    /// A request for an inline plan, with every option at its default.
    pub fn inline(plan_ref: PlanRefRequest, plan: Box<RawValue>) -> Self {
        Self {
            plan_ref,
            plan: Some(plan),
            project_id: Name::default_name(),
            environment_id: Name::default_name(),
            run_request_id: None,
            approval_required: false,
            not_before: None,
            trigger_source: None,
        }
    }
}

impl From<PlanRefRequest> for PlanRef {
    fn from(request: PlanRefRequest) -> Self {
        Self {
            uri: request.uri.unwrap_or_else(|| INLINE_PLAN_URI.to_owned()),
            sha256: request.sha256,
            schema_version: request.schema_version,
            plan_id: request.plan_id,
            plan_version: request.plan_version,
        }
    }
}

/// The answer to a start: the run, and whether this request made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedRun {
    pub created: bool,
    #[serde(flatten)]
    pub snapshot: RunSnapshot,
}

/// One run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunItem {
    pub run_id: RunId,
    pub tenant_id: TenantId,
    pub project_id: String,
    pub environment_id: String,
    pub plan_id: String,
    pub plan_version: String,
    pub status: RunStatus,
    /// The status that people filter lists by.
    pub visible: InvocationStatus,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Why the run is set aside, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
}

/// `GET /v1/runs`, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunList {
    pub items: Vec<RunItem>,
    /// Where the next page begins; absent on the last one. Valid for the same query and tenant only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_keeps_the_plan_as_it_was_written() {
        let text = format!(
            r#"{{"planRef":{{"sha256":"{}","schemaVersion":"1","planId":"p","planVersion":"1"}},"plan":{{"b": 1.50,"a":2}}}}"#,
            Digest::of(b"")
        );
        let request: StartRunRequest = serde_json::from_str(&text).unwrap();
        assert_eq!(request.plan.unwrap().get(), r#"{"b": 1.50,"a":2}"#);
        assert_eq!(request.project_id.as_str(), "default");
        assert_eq!(PlanRef::from(request.plan_ref).uri, INLINE_PLAN_URI);
    }

    #[test]
    fn misspelt_fields_are_refused() {
        let plan_ref = json!({"sha256": Digest::of(b""), "schemaVersion": "1", "planId": "p", "planVersion": "1"});
        let request = json!({"planRef": plan_ref, "aprovalRequired": true});
        let error = serde_json::from_value::<StartRunRequest>(request).unwrap_err().to_string();
        assert!(error.contains("aprovalRequired"), "{error}");
    }

    #[test]
    fn lists_are_no_objects() {
        let request = json!({"planRef": [null, Digest::of(b""), "1", "p", "1"]});
        let error = serde_json::from_value::<StartRunRequest>(request).unwrap_err().to_string();
        assert!(error.contains("expected an object"), "{error}");
    }
}
