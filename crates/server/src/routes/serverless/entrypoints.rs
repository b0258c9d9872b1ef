//! The registry of entrypoints.

use axum::Json as Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use servo_entrypoint::odata::ENTRYPOINTS;
use servo_entrypoint::validate::requests;
use servo_entrypoint::{DefinitionStatus, Entrypoint, EntrypointListFilter, EntrypointStatusAction, OwnerType};
use servo_model::TenantId;

use super::action::Action;
use super::refused::{Answer, Refused};
use super::{query, shown};
use crate::app::App;
use crate::auth::{Admin, Caller, Developer, Viewer};
use crate::body::Json;
use crate::failures::PREFIX;
use crate::params::Params;

type Document = Json<Map<String, Value>>;

pub(super) async fn register(
    State(app): State<App>,
    Developer(ctx): Developer,
    Json(document): Document,
) -> Answer<Response> {
    let entrypoint = app.serverless.register_document(&ctx, Value::Object(document)).await?;
    let id = entrypoint.id.clone().unwrap_or_default();
    ctx.audit.object(&id);
    let location = [(LOCATION, format!("{PREFIX}/entrypoints/{id}"))];
    Ok((StatusCode::CREATED, location, Body(entrypoint)).into_response())
}

pub(super) async fn validate(
    State(app): State<App>,
    Developer(ctx): Developer,
    Json(document): Document,
) -> Answer<Body<Entrypoint>> {
    Ok(Body(app.serverless.validate_document(&ctx, Value::Object(document)).await?))
}

pub(super) async fn list(State(app): State<App>, Viewer(ctx): Viewer, mut params: Params) -> Answer<Body<Value>> {
    let filter = EntrypointListFilter {
        tenant_id: query::text(&mut params, "tenant_id")?,
        entrypoint_id_prefix: query::text(&mut params, "entrypoint_id_prefix")?,
        status: query::word(&mut params, "status", &ENTRYPOINTS, DefinitionStatus::parse)?,
        owner_type: query::word(&mut params, "owner_type", &ENTRYPOINTS, OwnerType::parse)?,
        runtime: query::text(&mut params, "runtime")?,
        tags: query::text(&mut params, "tags")?
            .map(|tags| tags.split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect())
            .unwrap_or_default(),
        page: query::page(&mut params, &ENTRYPOINTS)?,
    };
    params.done()?;
    if filter.entrypoint_id_prefix.as_deref().is_some_and(|prefix| prefix.trim_end_matches('*').contains('*')) {
        return Err(Refused::bad_request("entrypoint_id_prefix: a `*` stands at the end or nowhere"));
    }
    let page = app.serverless.page_entrypoints(&ctx, filter).await?;
    Ok(Body(shown::page(&page, |entrypoint| serde_json::to_value(entrypoint).unwrap_or_default())))
}

pub(super) async fn show(
    State(app): State<App>,
    Viewer(ctx): Viewer,
    Path(id): Path<String>,
    params: Params,
) -> Answer<Body<Entrypoint>> {
    params.done()?;
    Ok(Body(app.serverless.get_registration(&ctx, &id).await?))
}

pub(super) async fn update(
    State(app): State<App>,
    Developer(ctx): Developer,
    Path(id): Path<String>,
    Json(document): Document,
) -> Answer<Body<Entrypoint>> {
    Ok(Body(noted(&ctx, app.serverless.update_registration(&ctx, &id, Value::Object(document)).await?)))
}

pub(super) async fn remove(State(app): State<App>, Admin(ctx): Admin, Path(id): Path<String>) -> Answer<StatusCode> {
    noted(&ctx, app.serverless.delete_registration(&ctx, &id).await?);
    Ok(StatusCode::NO_CONTENT)
}

/// Who runs the platform changes what belongs to tenants, whose admins see it in their own log.
fn noted(ctx: &Caller, entrypoint: Entrypoint) -> Entrypoint {
    // Not the name that the caller has for it.
    if let Some(id) = &entrypoint.id {
        ctx.audit.object(id);
    }
    let definition = &entrypoint.definition;
    if definition.owner.owner_type != OwnerType::System
        && let Ok(tenant) = TenantId::parse(&definition.tenant_id)
    {
        ctx.audit.tenant(&tenant);
    }
    entrypoint
}

/// `{id}:status`
pub(super) async fn act(
    State(app): State<App>,
    Developer(ctx): Developer,
    Action { id, .. }: Action,
    Json(document): Document,
) -> Answer<Body<Entrypoint>> {
    let action = requests::status_action(&Value::Object(document))?;
    ctx.audit.object(&id);
    ctx.audit.action(action_name(action));
    Ok(Body(noted(&ctx, app.serverless.update_registration_status(&ctx, &id, action).await?)))
}

/// What the audit log calls it.
fn action_name(action: EntrypointStatusAction) -> &'static str {
    match action {
        EntrypointStatusAction::Activate => "entrypoint.activate",
        EntrypointStatusAction::Deprecate => "entrypoint.deprecate",
        EntrypointStatusAction::Disable => "entrypoint.disable",
        EntrypointStatusAction::Enable => "entrypoint.enable",
        EntrypointStatusAction::Archive => "entrypoint.archive",
    }
}
