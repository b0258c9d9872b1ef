//! Starting, reading and listing runs.

use axum::Json as Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use servo_model::invocation::InvocationStatus;
use servo_model::plan::TriggerSource;
use servo_model::snapshot::BlockedBy;
use servo_model::{Invalid, PlanId, RunContext, RunId, RunSnapshot, SecurityContext};
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
    if let Some(letters) = params.take("id", letters)? {
        params.done()?;
        return Ok(Body(RunList { items: by_letters(&app, &principal, &letters).await?, next_cursor: None }));
    }
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

/// Letters of an id that may stand for all of it.
const ID_LETTERS_MIN: usize = 4;
/// Runs that letters are answered with: who meant one sees that it is several.
const ID_FOUND_MAX: u32 = 10;
/// Newest runs whose last letters are compared. No index is by them, and they are what people have just seen.
const ID_ENDS_MAX: u32 = 2_000;
const ID_PREFIX: &str = "inv_";

fn letters(text: &str) -> Result<String, String> {
    let own = text.strip_prefix(ID_PREFIX).unwrap_or(text);
    match own.chars().count() >= ID_LETTERS_MIN && RunId::parse(text).is_ok() {
        true => Ok(text.to_owned()),
        false => Err(format!("is the beginning or the end of an id, of {ID_LETTERS_MIN} letters or more")),
    }
}

/// The runs whose ids begin with these letters, with or without `inv_` before them, and the newest whose ids end with them.
async fn by_letters(app: &App, principal: &SecurityContext, letters: &str) -> Answer<Vec<RunItem>> {
    let (store, scope) = (app.runtime.engine().store(), scope(principal));
    let hidden = app.sight.hidden(principal).await?;
    let mut found: Vec<RunRow> = Vec::new();
    for beginning in [letters.to_owned(), format!("{ID_PREFIX}{letters}")] {
        let Ok(first) = RunId::parse(&beginning) else { continue };
        found.extend(store.get_run(&scope, &first).await?);
        let query = RunQuery {
            after: Some(first),
            oldest_first: true,
            filter: hidden.narrow(None),
            limit: ID_FOUND_MAX,
            ..RunQuery::default()
        };
        let rows = store.list_runs(&scope, &query).await?.into_iter();
        found.extend(rows.take_while(|row| row.run_id.as_str().starts_with(&beginning)));
    }
    if !letters.starts_with(ID_PREFIX) {
        let query = RunQuery { filter: hidden.narrow(None), limit: ID_ENDS_MAX, ..RunQuery::default() };
        let rows = store.list_runs(&scope, &query).await?.into_iter();
        found.extend(rows.filter(|row| row.run_id.as_str().ends_with(letters)));
    }
    found.retain(|row| !hidden.holds(&row.plan_id));
    found.sort_by(|one, other| other.run_id.cmp(&one.run_id));
    found.dedup_by(|one, other| one.run_id == other.run_id);
    // An id as it stands is what is meant, whatever else begins with it.
    found.sort_by_key(|row| row.run_id.as_str() != letters);
    found.truncate(ID_FOUND_MAX as usize);
    Ok(found.into_iter().map(item).collect())
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
pub(super) async fn expect_run(app: &App, principal: &SecurityContext, run_id: &RunId) -> Answer<RunRow> {
    let row = app.runtime.engine().store().get_run(&scope(principal), run_id).await?;
    row.ok_or_else(|| ApiError::from(servo_store::Error::NotFound))
}
