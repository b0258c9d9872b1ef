//! The registry of functions, and the lines that their code wrote.

use axum::Json as Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{AliasName, FunctionName, Invalid, codes};
use servo_store::registry::FunctionVersion;
use servo_wire::v1::{
    AliasItem, AliasRequest, FunctionItem, FunctionList, FunctionView, LineItem, LineList, VersionItem,
};

use super::scope;
use crate::app::App;
use crate::auth::{Admin, Caller, Developer, Operator, Viewer};
use crate::body::Json;
use crate::error::{Answer, ApiError};
use crate::params::{Params, RunPath};

/// Versions shown with a function.
const VERSIONS_SHOWN: u32 = 100;

/// The function that a path names.
#[derive(Debug)]
pub(crate) struct FunctionPath(FunctionName);

impl FromRequestParts<App> for FunctionPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        let Path(text) = path.map_err(|_| ApiError::parameter("name", "is not UTF-8"))?;
        FunctionName::parse(&text).map(Self).map_err(|invalid| ApiError::parameter("name", &invalid.reason))
    }
}

fn not_found(name: &FunctionName) -> ApiError {
    ApiError::new(codes::FUNCTION_NOT_FOUND).detail(format!("no function `{name}` is registered"))
}

fn item(found: &FunctionVersion) -> Answer<FunctionItem> {
    let spec: FunctionSpec = serde_json::from_str(&found.document)
        .map_err(|error| ApiError::new(codes::INTERNAL).cause(format!("registration of {}: {error}", found.name)))?;
    Ok(FunctionItem {
        name: found.name.to_string(),
        version: found.version,
        spec,
        digest: found.digest.to_string(),
        created_at: found.created_at,
        worker_address: None,
        workers: None,
    })
}

/// Publishes the next version; the same registration again is the same version.
pub(crate) async fn register(
    State(app): State<App>,
    Developer(principal): Developer,
    FunctionPath(name): FunctionPath,
    Json(spec): Json<FunctionSpec>,
) -> Answer<Body<FunctionItem>> {
    spec.check()?;
    if let Some(reason) = app.host.unreachable(&spec) {
        return Err(Invalid::new("reach/kind", reason).into());
    }
    let document = serde_json::to_string(&spec).map_err(|error| Invalid::new("", error.to_string()))?;
    let stored = app.runtime.engine().store().put_function(&principal.tenant, &name, &document).await?;
    principal.audit.done(&format!("{name}:{}", stored.version));
    let worker_address = app.host.worker_address(&principal.tenant, &name, &spec).await;
    Ok(Body(FunctionItem { worker_address, ..item(&stored)? }))
}

pub(crate) async fn list(
    State(app): State<App>,
    Viewer(principal): Viewer,
    mut params: Params,
) -> Answer<Body<FunctionList>> {
    let limit = params.limit()?;
    let after = params.take("after", |text| FunctionName::parse(text).map_err(|invalid| invalid.reason))?;
    params.done()?;
    let after = after.map(|name| (principal.tenant.clone(), name));
    let found = app.runtime.engine().store().list_functions(&scope(&principal), after, limit).await?;
    let last = found.last().map(|function| function.name.to_string());
    let items = found.iter().map(|function| {
        let item = item(function)?;
        Ok(FunctionItem { workers: app.host.workers(&principal.tenant, &function.name, &item.spec), ..item })
    });
    let items = items.collect::<Answer<Vec<_>>>()?;
    let after = last.filter(|_| items.len() == limit as usize);
    Ok(Body(FunctionList { items, after }))
}

pub(crate) async fn show(
    State(app): State<App>,
    Viewer(principal): Viewer,
    FunctionPath(name): FunctionPath,
) -> Answer<Body<FunctionView>> {
    let (store, tenant) = (app.runtime.engine().store(), &principal.tenant);
    let latest = store.get_function(tenant, &name, None).await?.ok_or_else(|| not_found(&name))?;
    let item = item(&latest)?;
    let spec = item.spec.clone();
    let open = store.count_open(tenant, name.as_str()).await?;
    let versions = store.list_versions(tenant, &name, None, VERSIONS_SHOWN).await?;
    let versions = versions.iter().map(|version| {
        let number = version.version.to_string();
        let open_runs = open.iter().find(|(version, _)| *version == number).map_or(0, |(_, runs)| *runs);
        VersionItem { version: version.version, created_at: version.created_at, open_runs }
    });
    let aliases = store.list_aliases(tenant, &name).await?;
    Ok(Body(FunctionView {
        latest: FunctionItem {
            worker_address: app.host.worker_address(tenant, &name, &spec).await,
            workers: app.host.workers(tenant, &name, &spec),
            ..item
        },
        versions: versions.collect(),
        aliases: aliases
            .into_iter()
            .map(|row| AliasItem { alias: row.alias.to_string(), version: row.version })
            .collect(),
    }))
}

/// One version, and where workers ask that are to get its runs only.
pub(crate) async fn version(
    State(app): State<App>,
    Viewer(principal): Viewer,
    Path((name, version)): Path<(String, String)>,
) -> Answer<Body<FunctionItem>> {
    let name = FunctionName::parse(&name).map_err(|invalid| ApiError::parameter("name", &invalid.reason))?;
    let number: u64 = version.parse().map_err(|_| ApiError::parameter("version", "is a number, such as 3"))?;
    let (store, tenant) = (app.runtime.engine().store(), &principal.tenant);
    let found = store.get_function(tenant, &name, Some(number)).await?.ok_or_else(|| {
        ApiError::new(codes::FUNCTION_NOT_FOUND).detail(format!("no version {number} of `{name}` is registered"))
    })?;
    let item = item(&found)?;
    let worker_address = match item.spec.reach {
        Reach::Pull => app.host.version_address(tenant, &name, number).await,
        _ => None,
    };
    Ok(Body(FunctionItem { worker_address, ..item }))
}

/// Only what no entrypoint that can be called refers to: its starts would fail from then on.
async fn expect_unneeded(app: &App, principal: &Caller, name: &FunctionName, alias: Option<&AliasName>) -> Answer<()> {
    let found = app.sight.referring(principal, name, alias).await?;
    if found.count == 0 {
        return Ok(());
    }
    let shown = alias.map_or_else(|| name.to_string(), |alias| format!("{name}:{alias}"));
    let others = match found.count - found.named.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let named: Vec<String> = found.named.iter().map(|address| format!("`{address}`")).collect();
    let named = if named.is_empty() { "entrypoints of others".to_owned() } else { named.join(", ") + &others };
    let detail = format!("`{shown}` is needed by {named}; disable what needs it first");
    Err(ApiError::new(codes::FUNCTION_IN_USE).detail(detail))
}

/// Only a function that no run and no entrypoint needs any more.
pub(crate) async fn remove(
    State(app): State<App>,
    Admin(principal): Admin,
    FunctionPath(name): FunctionPath,
) -> Answer<StatusCode> {
    let store = app.runtime.engine().store();
    let own: u64 = store.count_open(&principal.tenant, name.as_str()).await?.iter().map(|(_, runs)| runs).sum();
    let open = own + app.sight.open_referring(&principal.tenant, &name).await?;
    if open > 0 {
        let detail = format!("{open} runs of `{name}` have not ended; stop them, or wait until they have");
        return Err(ApiError::new(codes::FUNCTION_IN_USE).detail(detail));
    }
    expect_unneeded(&app, &principal, &name, None).await?;
    store.remove_function(&principal.tenant, &name).await.map_err(|error| match error {
        servo_store::Error::NotFound => not_found(&name),
        other => other.into(),
    })?;
    Ok(StatusCode::NO_CONTENT)
}

fn alias_path((name, alias): (String, String)) -> Answer<(FunctionName, AliasName)> {
    let name = FunctionName::parse(&name).map_err(|invalid| ApiError::parameter("name", &invalid.reason))?;
    let alias = AliasName::parse(&alias).map_err(|invalid| ApiError::parameter("alias", &invalid.reason))?;
    Ok((name, alias))
}

pub(crate) async fn alias(
    State(app): State<App>,
    Developer(principal): Developer,
    Path(path): Path<(String, String)>,
    Json(request): Json<AliasRequest>,
) -> Answer<Body<AliasItem>> {
    let (name, alias) = alias_path(path)?;
    let store = app.runtime.engine().store();
    let stored = match store.put_alias(&principal.tenant, &name, &alias, request.version).await {
        Err(servo_store::Error::NotFound) => {
            let newest = store.get_function(&principal.tenant, &name, None).await?.ok_or_else(|| not_found(&name))?;
            let (version, newest) = (request.version, newest.version);
            let detail = format!("no version {version} of `{name}` is registered, its newest is {newest}");
            return Err(ApiError::new(codes::FUNCTION_NOT_FOUND).detail(detail));
        }
        stored => stored?,
    };
    principal.audit.done(&format!("{name}:{alias}={}", stored.version));
    Ok(Body(AliasItem { alias: stored.alias.to_string(), version: stored.version }))
}

pub(crate) async fn remove_alias(
    State(app): State<App>,
    Developer(principal): Developer,
    Path(path): Path<(String, String)>,
) -> Answer<StatusCode> {
    let (name, alias) = alias_path(path)?;
    expect_unneeded(&app, &principal, &name, Some(&alias)).await?;
    let store = app.runtime.engine().store();
    match store.remove_alias(&principal.tenant, &name, &alias).await {
        Err(servo_store::Error::NotFound) => {
            store.get_function(&principal.tenant, &name, None).await?.ok_or_else(|| not_found(&name))?;
            let detail = format!("`{name}` has no alias `{alias}`");
            return Err(ApiError::new(codes::FUNCTION_NOT_FOUND).detail(detail));
        }
        removed => removed?,
    }
    principal.audit.done(&format!("{name}:{alias}"));
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn logs(
    State(app): State<App>,
    Operator(principal): Operator,
    run: RunPath,
    mut params: Params,
) -> Answer<Body<LineList>> {
    let run = run.seen(&app, &principal).await?;
    let (after, limit) = (params.number("after")?.unwrap_or(0), params.limit()?);
    params.done()?;
    let lines = app.runtime.engine().store().read_lines(&scope(&principal), &run, after, limit).await?;
    let items = lines.into_iter().map(|(number, line)| LineItem {
        number,
        at: line.at,
        request_id: line.request_id,
        source: line.source.as_str().to_owned(),
        text: line.text,
    });
    Ok(Body(LineList { items: items.collect() }))
}
