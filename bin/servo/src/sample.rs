//! A small run and the demo on the first start of an empty store, so that there is something to see.

use serde_json::json;
use serde_json::value::RawValue;
use servo_entrypoint::RestRuntime;
use servo_model::ids::Name;
use servo_model::plan::TriggerSource;
use servo_model::{Invalid, PlanId, PlanRef, RunContext, TenantId};
use servo_runtime::Runtime;
use servo_runtime::engine::StartRequest;
use servo_store::Scope;
use servo_store::runs::RunQuery;

pub(crate) async fn start_on_empty_store(runtime: &Runtime, serverless: &dyn RestRuntime) {
    let query = RunQuery { limit: 1, ..RunQuery::default() };
    match runtime.engine().store().list_runs(&Scope::System, &query).await {
        Ok(runs) if runs.is_empty() => {}
        _ => return,
    }
    let started = match request() {
        Ok(request) => runtime.engine().start(request).await.map(|_| ()),
        Err(invalid) => Err(invalid.into()),
    };
    if let Err(error) = started {
        tracing::warn!(%error, "the sample run did not start");
    }
    let engine = runtime.engine();
    crate::demo::begin(serverless, engine.ids().event_id(engine.clock().now()).to_string()).await;
}

/// Four steps in a diamond: one fails once and is retried, one takes a while, one leaves an artifact.
fn request() -> Result<StartRequest, Invalid> {
    let plan = json!({
        "planId": "sample", "planVersion": "1", "schemaVersion": "v1", "engineType": "mock",
        "steps": [
            {"stepId": "fetch", "with": {"sleepMs": 200}},
            {"stepId": "check", "dependsOn": ["fetch"], "with": {"failAttempts": 1},
             "retry": {"maxAttempts": 3, "delayMs": 500}},
            {"stepId": "load", "dependsOn": ["fetch"], "with": {"sleepMs": 1000}},
            {"stepId": "publish", "dependsOn": ["check", "load"],
             "with": {"artifacts": [{"uri": "file:///dev/null", "kind": "report"}]}},
        ],
    });
    let invalid = |error: String| Invalid::new("plan", error);
    Ok(StartRequest {
        plan_ref: PlanRef {
            uri: "inline:plan".to_owned(),
            sha256: servo_canon::fingerprint(&plan).map_err(|error| invalid(error.to_string()))?,
            schema_version: "v1".to_owned(),
            plan_id: PlanId::parse("sample")?,
            plan_version: "1".to_owned(),
        },
        plan: RawValue::from_string(plan.to_string()).map_err(|error| invalid(error.to_string()))?,
        context: RunContext {
            tenant_id: TenantId::default_tenant(),
            project_id: Name::parse("default")?,
            environment_id: Name::parse("dev")?,
            triggered_by: Some("servo dev".to_owned()),
            trigger_source: Some(TriggerSource::Manual),
        },
        run_request_id: Some("sample".to_owned()),
        approval_required: false,
        not_before: None,
        subject: "dev".to_owned(),
    })
}
