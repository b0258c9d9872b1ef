//! What is registered, in Lambda's words: read only, since functions are published over `/v1/functions` or by `servo functions register`.
//! Deployment tools and the waiters of AWS's SDKs ask here first.

use axum::Json;
use axum::extract::{Request, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use servo_model::function::{FunctionSpec, Place};
use servo_model::{AliasName, FunctionName, Role};
use servo_runtime::executions::Refused;
use servo_store::Scope;
use servo_store::registry::{AliasRow, FunctionVersion};
use servo_wire::lambda::{
    AliasConfiguration, DurableConfig, ErrorName, FunctionCode, FunctionConcurrency, FunctionConfiguration,
    GetFunctionResponse, ListAliasesResponse, ListFunctionsResponse, ListVersionsResponse,
};

use super::{Call, LambdaAnswer, LambdaError, read};
use crate::app::App;

const LATEST: &str = "$LATEST";
/// As the service gives at most.
const PAGE_MAX: usize = 50;

pub(super) async fn list(State(app): State<App>, request: Request) -> LambdaAnswer<Json<ListFunctionsResponse>> {
    let call = read(&app, request, Role::Viewer).await?;
    let tenant = &call.principal.tenant;
    let limit = limit(&call)?;
    let marker = call.text("Marker").map(FunctionName::parse).transpose().map_err(|_| no_marker())?;
    let after = marker.map(|name| (tenant.clone(), name));
    let scope = Scope::Tenant(tenant.clone());
    let found = app.runtime.engine().store().list_functions(&scope, after, limit).await.map_err(Refused::from)?;
    // Pages are limited in bytes, too: only an empty one is the end.
    let next_marker = found.last().map(|last| last.name.to_string());
    let functions = found.iter().map(|row| Ok(configuration(&app, row, LATEST, None)?.0));
    Ok(Json(ListFunctionsResponse { functions: functions.collect::<LambdaAnswer<_>>()?, next_marker }))
}

pub(super) async fn get(State(app): State<App>, request: Request) -> LambdaAnswer<Json<GetFunctionResponse>> {
    let call = read(&app, request, Role::Viewer).await?;
    let (configuration, spec) = found(&app, &call).await?;
    let concurrency = spec.max_concurrent.map(|most| FunctionConcurrency { reserved_concurrent_executions: most });
    let code = FunctionCode { repository_type: "Servo".to_owned() };
    Ok(Json(GetFunctionResponse { configuration, code, concurrency }))
}

pub(super) async fn get_configuration(
    State(app): State<App>,
    request: Request,
) -> LambdaAnswer<Json<FunctionConfiguration>> {
    let call = read(&app, request, Role::Viewer).await?;
    Ok(Json(found(&app, &call).await?.0))
}

/// Newest first; `$LATEST` before them.
pub(super) async fn versions(State(app): State<App>, request: Request) -> LambdaAnswer<Json<ListVersionsResponse>> {
    let call = read(&app, request, Role::Viewer).await?;
    let tenant = &call.principal.tenant;
    let name = app.runtime.executions().resolve(tenant, &call.subject, None).await?.name;
    let before = call.text("Marker").map(str::parse::<u64>).transpose().map_err(|_| no_marker())?;
    let store = app.runtime.engine().store();
    let found = store.list_versions(tenant, &name, before, limit(&call)?).await.map_err(Refused::from)?;
    let next_marker = found.last().map(|last| last.version.to_string());
    let mut versions = Vec::new();
    if let (None, Some(newest)) = (before, found.first()) {
        versions.push(configuration(&app, newest, LATEST, Some(LATEST))?.0);
    }
    for row in &found {
        let version = row.version.to_string();
        versions.push(configuration(&app, row, &version, Some(&version))?.0);
    }
    Ok(Json(ListVersionsResponse { versions, next_marker }))
}

pub(super) async fn aliases(State(app): State<App>, request: Request) -> LambdaAnswer<Json<ListAliasesResponse>> {
    let call = read(&app, request, Role::Viewer).await?;
    let tenant = &call.principal.tenant;
    let name = app.runtime.executions().resolve(tenant, &call.subject, None).await?.name;
    let only = call.text("FunctionVersion");
    let rows = app.runtime.engine().store().list_aliases(tenant, &name).await.map_err(Refused::from)?;
    let rows = rows.iter().filter(|row| only.is_none_or(|only| row.version.to_string() == only));
    Ok(Json(ListAliasesResponse { aliases: rows.map(|row| alias_of(place(&app), &name, row)).collect() }))
}

pub(super) async fn alias(State(app): State<App>, request: Request) -> LambdaAnswer<Json<AliasConfiguration>> {
    let call = read(&app, request, Role::Viewer).await?;
    let tenant = &call.principal.tenant;
    let name = app.runtime.executions().resolve(tenant, &call.subject, None).await?.name;
    let wanted = call.second.as_deref().unwrap_or_default();
    let missing = || {
        let message = format!("Alias not found: {}", place(&app).function_arn(name.as_str(), wanted));
        LambdaError::new(ErrorName::ResourceNotFound, message)
    };
    let alias = AliasName::parse(wanted).map_err(|invalid| LambdaError::invalid(invalid.reason))?;
    let row = app.runtime.engine().store().get_alias(tenant, &name, &alias).await.map_err(Refused::from)?;
    Ok(Json(alias_of(place(&app), &name, &row.ok_or_else(missing)?)))
}

/// The function that a call names, with a qualifier in its name or beside it.
async fn found(app: &App, call: &Call) -> LambdaAnswer<(FunctionConfiguration, FunctionSpec)> {
    let tenant = &call.principal.tenant;
    let qualifier = call.text("Qualifier");
    let resolved = app.runtime.executions().resolve(tenant, &call.subject, qualifier).await?;
    let row = app.runtime.engine().store().get_function(tenant, &resolved.name, Some(resolved.version)).await;
    let gone = || LambdaError::new(ErrorName::ResourceNotFound, format!("Function not found: {}", resolved.name));
    let row = row.map_err(Refused::from)?.ok_or_else(gone)?;
    let in_name = call.subject.rsplit_once(&format!("{}:", resolved.name)).map(|(_, qualifier)| qualifier);
    let qualifier = qualifier.or(in_name.filter(|qualifier| !qualifier.is_empty()));
    let version = match qualifier {
        None | Some(LATEST) => LATEST.to_owned(),
        Some(_) => resolved.version.to_string(),
    };
    configuration(app, &row, &version, qualifier)
}

fn configuration(
    app: &App,
    row: &FunctionVersion,
    version: &str,
    qualifier: Option<&str>,
) -> LambdaAnswer<(FunctionConfiguration, FunctionSpec)> {
    let spec: FunctionSpec = serde_json::from_str(&row.document).map_err(|error| {
        tracing::error!(function = %row.name, %error, "a registration cannot be read");
        LambdaError::new(ErrorName::Service, "the function's registration cannot be read")
    })?;
    let arn = place(app).function_arn(row.name.as_str(), qualifier.unwrap_or_default());
    let created = row.created_at.to_string();
    let durable_config = spec.durable.then_some(DurableConfig {
        execution_timeout: Some(spec.execution_timeout_seconds),
        retention_period_in_days: None,
    });
    let configuration = FunctionConfiguration {
        function_name: row.name.to_string(),
        // Without a qualifier nothing follows the name.
        function_arn: arn.trim_end_matches(':').to_owned(),
        version: version.to_owned(),
        last_modified: format!("{}+0000", created.trim_end_matches('Z')),
        code_sha256: STANDARD.encode(row.digest.as_bytes()),
        timeout: spec.invocation_timeout_seconds,
        state: "Active".to_owned(),
        last_update_status: "Successful".to_owned(),
        durable_config,
    };
    Ok((configuration, spec))
}

fn alias_of(place: &Place, name: &FunctionName, row: &AliasRow) -> AliasConfiguration {
    AliasConfiguration {
        alias_arn: place.function_arn(name.as_str(), row.alias.as_str()),
        name: row.alias.to_string(),
        function_version: row.version.to_string(),
    }
}

fn place(app: &App) -> &Place {
    &app.runtime.engine().config().place
}

fn limit(call: &Call) -> LambdaAnswer<u32> {
    let asked = call.number("MaxItems")?.unwrap_or(PAGE_MAX);
    if !(1..=10_000).contains(&asked) {
        return Err(LambdaError::invalid("MaxItems is from 1 to 10000"));
    }
    Ok(u32::try_from(asked.min(PAGE_MAX)).unwrap_or(1))
}

fn no_marker() -> LambdaError {
    LambdaError::invalid("Marker is the NextMarker of an earlier answer")
}
