//! Starting, reading and listing runs.

use axum::Json as Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use servo_model::invocation::InvocationStatus;
use servo_model::plan::TriggerSource;
use servo_model::snapshot::BlockedBy;
use servo_model::{Invalid, PlanId, RunContext, RunSnapshot, SecurityContext};
use servo_runtime::engine::StartRequest;
use servo_runtime::serverless::Hidden;
use servo_store::RunRow;
use servo_store::runs::RunQuery;
use servo_wire::v1::{RunItem, RunList, StartRunRequest, StartedRun};

use super::scope;
use crate::app::App;
use crate::auth::{Operator, Viewer};
use crate::body::Json;
use crate::cursor::Binding;
use crate::error::{Answer, ApiError};
use crate::params::{Params, RunPath};

pub(crate) async fn start(
    State(app): State<App>,
    Operator(principal): Operator,
    Json(request): Json<StartRunRequest>,
) -> Answer<Response> {
    let request = start_request(&app, &principal, request).await?;
    let started = app.runtime.engine().start(request).await?;
    let status = if started.created { StatusCode::CREATED } else { StatusCode::OK };
    principal.audit.object(started.run_id.as_str());
    if !started.created {
        principal.audit.unchanged();
    }
    let location = [(LOCATION, format!("/v1/runs/{}", started.run_id))];
    let answer = StartedRun { created: started.created, snapshot: started.snapshot };
    Ok((status, location, Body(answer)).into_response())
}

/// The request in the engine's words. The tenant is the principal's, never the body's.
async fn start_request(app: &App, principal: &SecurityContext, request: StartRunRequest) -> Answer<StartRequest> {
    let plan = match (request.plan, &request.plan_ref.uri) {
        (Some(plan), _) => plan,
        (None, Some(uri)) => {
            let plan = app.plan_sources.fetch(uri).await?;
            crate::body::check_digits(plan.get())?;
            plan
        }
        (None, None) => {
            return Err(Invalid::new("plan", "is missing, and there is no planRef.uri to read it from").into());
        }
    };
    Ok(StartRequest {
        plan_ref: request.plan_ref.into(),
        plan,
        context: RunContext {
            tenant_id: principal.tenant.clone(),
            project_id: request.project_id,
            environment_id: request.environment_id,
            triggered_by: Some(principal.subject.clone()),
            trigger_source: Some(request.trigger_source.unwrap_or(TriggerSource::Api)),
        },
        run_request_id: request.run_request_id,
        approval_required: request.approval_required,
        not_before: request.not_before,
        subject: principal.subject.clone(),
    })
}

pub(crate) async fn show(State(app): State<App>, Viewer(principal): Viewer, run: RunPath) -> Answer<Body<RunSnapshot>> {
    let run_id = run.seen(&app, &principal).await?;
    let mut snapshot = app.runtime.engine().snapshot(&scope(&principal), &run_id).await?;
    if let Some(worker) = app.host.awaited_worker(&principal.tenant, &run_id) {
        snapshot.blocked_by.push(BlockedBy { name: Some(worker.clone()), ..BlockedBy::cause("worker", None) });
        snapshot.message.get_or_insert_with(|| format!("Waiting for a worker of {worker}."));
    }
    Ok(Body(snapshot))
}

pub(crate) async fn list(
    State(app): State<App>,
    Viewer(principal): Viewer,
    mut params: Params,
) -> Answer<Body<RunList>> {
    let visible = params.take("status", |text| InvocationStatus::parse(text).ok_or_else(statuses))?;
    let plan_id = params.take("planId", |text| PlanId::parse(text).map_err(|invalid| invalid.reason))?;
    let limit = params.limit()?;
    let cursor = params.take("cursor", |text| Ok(text.to_owned()))?;
    params.done()?;
    let filters = [("status", visible.map(InvocationStatus::as_str)), ("planId", plan_id.as_ref().map(PlanId::as_str))];
    let binding = Binding { tenant: &principal.tenant, filters: &filters };
    let after = cursor.map(|cursor| app.cursors.open(binding, &cursor)).transpose()?;
    // One more than asked for says whether there is another page.
    let plan = plan_id.as_ref().map(|plan| plan.as_str().to_owned());
    let hidden = match &plan {
        // Of one plan all runs are hidden, or none.
        Some(plan) if app.sight.hides_runs_of(&principal, plan).await? => return Ok(Body(RunList::default())),
        Some(_) => Hidden::default(),
        None => app.sight.hidden(&principal).await?,
    };
    let query = RunQuery {
        visible: visible.into_iter().collect(),
        plan_id: plan,
        after,
        filter: hidden.narrow(None),
        limit: limit + 1,
        ..RunQuery::default()
    };
    let mut rows = app.runtime.engine().store().list_runs(&scope(&principal), &query).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_cursor = rows.last().filter(|_| more).map(|last| app.cursors.seal(binding, &last.run_id));
    rows.retain(|row| !hidden.holds(&row.plan_id));
    Ok(Body(RunList { items: rows.into_iter().map(item).collect(), next_cursor }))
}

fn statuses() -> String {
    format!("is one of {}", InvocationStatus::ALL.map(InvocationStatus::as_str).join(", "))
}

fn item(row: RunRow) -> RunItem {
    RunItem {
        run_id: row.run_id,
        tenant_id: row.tenant,
        project_id: row.project.to_string(),
        environment_id: row.environment.to_string(),
        plan_id: row.plan_id.to_string(),
        plan_version: row.plan_version,
        status: row.status,
        visible: row.visible,
        created_at: row.created_at,
        finished_at: row.finished_at,
        quarantined: row.quarantined,
    }
}

/// Whether a run is there for a principal, for handlers that answer with something else than its state.
pub(super) async fn expect_run(app: &App, principal: &SecurityContext, run_id: &servo_model::RunId) -> Answer<RunRow> {
    let row = app.runtime.engine().store().get_run(&scope(principal), run_id).await?;
    row.ok_or_else(|| ApiError::from(servo_store::Error::NotFound))
}
