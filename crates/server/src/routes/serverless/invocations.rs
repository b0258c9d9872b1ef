//! Starting, listing, reading and controlling invocations.

use axum::Json as Body;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use servo_entrypoint::cache::KEY_CHARS_MAX;
use servo_entrypoint::odata::INVOCATIONS;
use servo_entrypoint::validate::requests;
use servo_entrypoint::{
    BlockedBy, Cause, InvocationControlAction, InvocationListFilter, InvocationMode, InvocationStatus,
};
use servo_model::RunId;

use super::action::Action;
use super::refused::{Answer, Refused};
use super::{query, shown};
use crate::app::App;
use crate::auth::{Caller, Operator, Viewer};
use crate::body::Json;
use crate::failures::PREFIX;
use crate::params::Params;
use crate::request::Untraced;

type Document = Json<Map<String, Value>>;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

pub(super) async fn start(
    State(app): State<App>,
    Operator(ctx): Operator,
    headers: HeaderMap,
    Json(document): Document,
) -> Answer<Response> {
    let mut request = requests::start(&Value::Object(document))?;
    // A dry run does not look at it, not even at whether it is one.
    if !request.dry_run {
        request.idempotency_key = idempotency_key(&headers)?;
    }
    let result = app.serverless.start_heard(&ctx, request, ctx.audit.hears()).await?;
    let answer = Body(shown::result(&ctx, &result));
    if result.dry_run || result.cached || result.repeated {
        ctx.audit.unchanged();
        let mut response = answer.into_response();
        if result.dry_run || result.cached {
            response.extensions_mut().insert(Untraced);
        }
        return Ok(response);
    }
    let id = &result.record.invocation_id;
    Ok((StatusCode::CREATED, [(LOCATION, place(id))], answer).into_response())
}

fn place(id: &str) -> String {
    format!("{PREFIX}/invocations/{id}")
}

fn idempotency_key(headers: &HeaderMap) -> Answer<Option<String>> {
    let wrong = |what: &str| Refused::bad_request(format!("Idempotency-Key: {what}"));
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(wrong("stands twice"));
    }
    let key = value.to_str().map_err(|_| wrong("has characters other than visible ASCII"))?;
    match key.chars().count() {
        1..=KEY_CHARS_MAX => Ok(Some(key.to_owned())),
        _ => Err(wrong(&format!("has 1 to {KEY_CHARS_MAX} characters"))),
    }
}

pub(super) async fn list(State(app): State<App>, Viewer(ctx): Viewer, mut params: Params) -> Answer<Body<Value>> {
    let filter = InvocationListFilter {
        status: query::word(&mut params, "status", &INVOCATIONS, InvocationStatus::parse)?,
        mode: query::word(&mut params, "mode", &INVOCATIONS, InvocationMode::parse)?,
        correlation_id: query::text(&mut params, "correlation_id")?,
        page: query::page(&mut params, &INVOCATIONS)?,
        ..whose(&mut params)?
    };
    params.done()?;
    let page = app.serverless.page_invocations(&ctx, filter).await?;
    Ok(Body(shown::page(&page, |record| shown::record(&ctx, record))))
}

fn whose(params: &mut Params) -> Answer<InvocationListFilter> {
    Ok(InvocationListFilter {
        tenant_id: query::text(params, "tenant_id")?,
        entrypoint_id: query::text(params, "entrypoint_id")?,
        ..InvocationListFilter::default()
    })
}

/// How many there are in each status.
pub(super) async fn counts(State(app): State<App>, Viewer(ctx): Viewer, mut params: Params) -> Answer<Body<Value>> {
    let filter = whose(&mut params)?;
    params.done()?;
    let counts = app.serverless.count_invocations(&ctx, filter).await?;
    Ok(Body(json!({"items": counts})))
}

pub(super) async fn show(
    State(app): State<App>,
    Viewer(ctx): Viewer,
    Path(id): Path<String>,
    params: Params,
) -> Answer<Body<Value>> {
    params.done()?;
    let mut record = app.serverless.get_invocation(&ctx, &id).await?;
    let run = RunId::parse(&id).ok();
    if let Some(worker) = run.and_then(|run| app.host.awaited_worker(&ctx.tenant, &run)) {
        let blocked = BlockedBy {
            cause: Cause::Worker,
            name: Some(worker),
            reason: None,
            invocation_id: None,
            since: None,
            until: None,
        };
        record.blocked_by.push(blocked);
    }
    Ok(Body(shown::record(&ctx, &record)))
}

/// `{id}:control` and `{id}:signal`
pub(super) async fn act(
    State(app): State<App>,
    Operator(ctx): Operator,
    Action { id, name }: Action,
    Json(document): Document,
) -> Answer<Response> {
    match name {
        "signal" => signal(&app, &ctx, &id, document).await,
        _ => control(&app, &ctx, &id, document).await,
    }
}

/// What the audit log calls it.
pub(super) fn action_name(action: &InvocationControlAction) -> &'static str {
    match action {
        InvocationControlAction::Cancel => "invocation.cancel",
        InvocationControlAction::Suspend => "invocation.suspend",
        InvocationControlAction::Resume => "invocation.resume",
        InvocationControlAction::Retry => "invocation.retry",
        InvocationControlAction::Replay => "invocation.replay",
        InvocationControlAction::RetryStep { .. } => "invocation.retry_step",
        InvocationControlAction::SkipStep { .. } => "invocation.skip_step",
    }
}

async fn control(app: &App, ctx: &Caller, id: &str, document: Map<String, Value>) -> Answer<Response> {
    let action = requests::control_action(&Value::Object(document))?;
    let is_new = action == InvocationControlAction::Replay;
    ctx.audit.object(id);
    ctx.audit.action(action_name(&action));
    let record = app.serverless.control_invocation(ctx, &id.to_owned(), action).await?;
    let answer = Body(shown::record(ctx, &record));
    if is_new {
        return Ok((StatusCode::CREATED, [(LOCATION, place(&record.invocation_id))], answer).into_response());
    }
    Ok(answer.into_response())
}

async fn signal(app: &App, ctx: &Caller, id: &str, document: Map<String, Value>) -> Answer<Response> {
    ctx.audit.object(id);
    ctx.audit.action("invocation.signal");
    let signal = requests::signal(&Value::Object(document))?;
    let taken = app.serverless.signal_invocation(ctx, &id.to_owned(), signal).await?;
    let mut answer = shown::record(ctx, &taken.record);
    answer["signal"] = serde_json::to_value(&taken.signal).unwrap_or_default();
    Ok(Body(answer).into_response())
}
