//! Executions: what their handlers call, and what people look at.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_model::{Role, Timestamp};
use servo_runtime::executions::{Executions, ListQuery, PageQuery, Refused};
use servo_wire::lambda::{
    CheckpointRequest, CheckpointResponse, GetExecutionResponse, GetStateResponse, HistoryResponse,
    ListExecutionsResponse, StopResponse,
};

use super::{Call, LambdaAnswer, LambdaError, read};
use crate::app::App;
use crate::payloads::Payloads;

pub(super) async fn checkpoint(State(app): State<App>, request: Request) -> LambdaAnswer<Json<CheckpointResponse>> {
    let call = read(&app, request, Role::Operator).await?;
    let request: CheckpointRequest = call.json()?;
    let executions = app.runtime.executions();
    Ok(Json(executions.checkpoint(&call.principal.tenant, &call.subject, request).await?))
}

pub(super) async fn state(State(app): State<App>, request: Request) -> LambdaAnswer<Json<GetStateResponse>> {
    let call = read(&app, request, Role::Operator).await?;
    let token = call.text("CheckpointToken").ok_or_else(|| LambdaError::invalid("CheckpointToken is missing"))?;
    let (marker, items) = (call.text("Marker"), call.number("MaxItems")?);
    let executions = app.runtime.executions();
    Ok(Json(executions.state(&call.principal.tenant, &call.subject, token, marker, items).await?))
}

pub(super) async fn get(State(app): State<App>, request: Request) -> LambdaAnswer<Json<GetExecutionResponse>> {
    let call = read(&app, request, Role::Viewer).await?;
    let with_data = with_data(&call)?;
    expect_seen(&app, &call).await?;
    Ok(Json(app.runtime.executions().get(&call.principal.tenant, &call.subject, with_data).await?))
}

pub(super) async fn history(State(app): State<App>, request: Request) -> LambdaAnswer<Json<HistoryResponse>> {
    let call = read(&app, request, Role::Viewer).await?;
    let with_data = with_data(&call)?;
    expect_seen(&app, &call).await?;
    let history = app.runtime.executions().history(&call.principal.tenant, &call.subject, with_data, page(&call)?);
    Ok(Json(history.await?))
}

/// An execution that is kept from the caller is answered like one that is not there. What a handler calls is not asked about: its token
/// is of that execution, and the key that its worker calls with is seldom the owner's.
async fn expect_seen(app: &App, call: &Call) -> LambdaAnswer<()> {
    let Some(run) = Executions::run_id_in(&call.subject) else { return Ok(()) };
    if app.sight.hides(&call.principal, &run).await.map_err(Refused::from)? {
        return Err(Refused::no_execution().into());
    }
    Ok(())
}

/// Those who may not read payloads get an answer as if they had asked for none.
fn with_data(call: &Call) -> LambdaAnswer<bool> {
    Ok(call.flag("IncludeExecutionData", true)? && Payloads::of(&call.principal) == Payloads::Shown)
}

fn page(call: &Call) -> LambdaAnswer<PageQuery<'_>> {
    Ok(PageQuery {
        marker: call.text("Marker"),
        max_items: call.number("MaxItems")?,
        reverse: call.flag("ReverseOrder", false)?,
    })
}

pub(super) async fn list(State(app): State<App>, request: Request) -> LambdaAnswer<Json<ListExecutionsResponse>> {
    let call = read(&app, request, Role::Viewer).await?;
    let statuses = call.all("Statuses").map(|text| {
        ExecutionStatus::parse(text).ok_or_else(|| LambdaError::invalid(format!("Statuses: `{text}` is no status")))
    });
    let executions = app.runtime.executions();
    let entrypoints = match executions.function_in(&call.subject) {
        Some(function) => app.sight.ids_referring(&call.principal, &function).await.map_err(Refused::from)?,
        None => Vec::new(),
    };
    let query = ListQuery {
        entrypoints,
        qualifier: call.text("Qualifier").map(str::to_owned),
        name: call.text("DurableExecutionName").map(str::to_owned),
        statuses: statuses.collect::<Result<_, _>>()?,
        started_after: time(&call, "StartedAfter")?,
        started_before: time(&call, "StartedBefore")?,
    };
    if query.statuses.len() > 10 {
        return Err(LambdaError::invalid("Statuses has at most 10 values"));
    }
    Ok(Json(executions.list(&call.principal.tenant, &call.subject, &query, page(&call)?).await?))
}

fn time(call: &Call, name: &str) -> LambdaAnswer<Option<Timestamp>> {
    let wrong = |_| LambdaError::invalid(format!("{name} is a time such as 2026-01-31T12:00:00Z"));
    call.text(name).map(Timestamp::parse).transpose().map_err(wrong)
}

pub(super) async fn stop(State(app): State<App>, request: Request) -> LambdaAnswer<Response> {
    let call = read(&app, request, Role::Operator).await?;
    let error: ErrorObject = if call.body.trim().is_empty() { ErrorObject::default() } else { call.json()? };
    let principal = &call.principal;
    expect_seen(&app, &call).await?;
    let stopped = app.runtime.executions().stop(&principal.tenant, &call.subject, error, &principal.subject).await?;
    // As people and the other APIs name it.
    principal.audit.object(call.subject.rsplit('/').next().unwrap_or_default());
    Ok(Json(StopResponse { stop_timestamp: stopped.into() }).into_response())
}
