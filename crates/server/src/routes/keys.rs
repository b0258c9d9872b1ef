//! Keys of the store. Who makes one can give no more than it has, and only inside its tenant; those who run the platform
//! reach every tenant.

use std::time::Duration;

use axum::Json as Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use servo_model::limits::ID_CHARS_MAX;
use servo_model::{Invalid, KeyId, Role, SecurityContext, TenantId, Timestamp, codes};
use servo_store::Scope;
use servo_store::identity::KeyRow;
use servo_wire::v1::{CreateKeyRequest, CreatedKey, KeyItem, KeyKind, KeyList, KeyStatus};

use super::scope;
use crate::app::App;
use crate::auth::Admin;
use crate::body::Json;
use crate::error::{Answer, ApiError};
use crate::identity::{DEV_KEY_NAME, NewKey};
use crate::params::Params;

/// Ten years.
pub(crate) const LIFE_SECONDS_MAX: u64 = 10 * 365 * 24 * 60 * 60;

/// The key that a path names.
#[derive(Debug)]
pub(crate) struct KeyPath(KeyId);

impl FromRequestParts<App> for KeyPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        let Path(text) = path.map_err(|_| ApiError::parameter("id", "is not UTF-8"))?;
        KeyId::parse(&text).map(Self).map_err(|invalid| ApiError::parameter("id", &invalid.reason))
    }
}

pub(crate) async fn create(
    State(app): State<App>,
    Admin(principal): Admin,
    Json(request): Json<CreateKeyRequest>,
) -> Answer<Response> {
    let engine = app.runtime.engine();
    let now = engine.clock().now();
    check(&request)?;
    let tenant = request.tenant_id.unwrap_or_else(|| principal.tenant.clone());
    if tenant != principal.tenant && !principal.allows(Role::PlatformAdmin) {
        return Err(ApiError::forbidden("keys of other tenants need the role platform-admin"));
    }
    principal.audit.tenant(&tenant);
    expect_no_more(&principal, &request.roles)?;
    let new = NewKey {
        tenant,
        name: request.name,
        roles: request.roles,
        created_by: principal.subject.clone(),
        expires_at: request.expires_in_seconds.map(|seconds| now.plus(Duration::from_secs(seconds))),
        access: request.kind == KeyKind::Access,
    };
    let id = engine.ids().key_id(now);
    principal.audit.object(id.as_str());
    let (row, secret) = app.keys.create_as(id, engine.ids(), now, new).await?;
    principal.audit.done(row.id.as_str());
    Ok((StatusCode::CREATED, Body(CreatedKey { key: item(row, now), secret })).into_response())
}

fn check(request: &CreateKeyRequest) -> Result<(), Invalid> {
    let name = &request.name;
    if name.trim() != name
        || name.is_empty()
        || name.chars().count() > ID_CHARS_MAX
        || name.chars().any(char::is_control)
    {
        let reason = format!("has 1 to {ID_CHARS_MAX} characters, no control characters and no outer white space");
        return Err(Invalid::new("name", reason));
    }
    if name == DEV_KEY_NAME {
        return Err(Invalid::new("name", "is that of the key of `servo dev`, which is of no use elsewhere"));
    }
    if request.roles.is_empty() {
        return Err(Invalid::new("roles", "has at least one of viewer, operator, developer, admin, platform-admin"));
    }
    if request.tenant_id.as_ref().is_some_and(is_reserved) {
        return Err(Invalid::new("tenantId", "names that begin with `_` belong to the system"));
    }
    if request.expires_in_seconds.is_some_and(|seconds| !(1..=LIFE_SECONDS_MAX).contains(&seconds)) {
        return Err(Invalid::new("expiresInSeconds", format!("is 1 to {LIFE_SECONDS_MAX}")));
    }
    Ok(())
}

fn is_reserved(tenant: &TenantId) -> bool {
    tenant.as_str().starts_with('_')
}

/// Nobody gives, or takes away, what is above it.
fn expect_no_more(principal: &SecurityContext, roles: &[Role]) -> Answer<()> {
    if roles.iter().all(|role| principal.allows(*role)) {
        return Ok(());
    }
    Err(ApiError::forbidden("a key has no higher role than the one who makes or revokes it"))
}

pub(crate) async fn list(State(app): State<App>, Admin(principal): Admin, mut params: Params) -> Answer<Body<KeyList>> {
    let limit = params.limit()?;
    let before = params.take("after", |text| KeyId::parse(text).map_err(|invalid| invalid.reason))?;
    let tenant = params.take("tenantId", |text| TenantId::parse(text).map_err(|invalid| invalid.reason))?;
    params.done()?;
    let scope = within(&principal, tenant)?;
    let engine = app.runtime.engine();
    let mut rows = engine.store().list_keys(&scope, before, limit + 1).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let after = rows.last().filter(|_| more).map(|last| last.id.clone());
    let now = engine.clock().now();
    Ok(Body(KeyList { items: rows.into_iter().map(|row| item(row, now)).collect(), after }))
}

/// The caller's tenant, or the one that it asks for and may see.
pub(super) fn within(principal: &SecurityContext, asked: Option<TenantId>) -> Answer<Scope> {
    match asked {
        Some(tenant) if tenant != principal.tenant && !principal.allows(Role::PlatformAdmin) => {
            Err(ApiError::forbidden("other tenants need the role platform-admin"))
        }
        Some(tenant) => Ok(Scope::Tenant(tenant)),
        None => Ok(scope(principal)),
    }
}

/// Again is the same: a key that was revoked stays so.
pub(crate) async fn revoke(
    State(app): State<App>,
    Admin(principal): Admin,
    KeyPath(id): KeyPath,
) -> Answer<Body<KeyItem>> {
    let scope = if principal.allows(Role::PlatformAdmin) { Scope::System } else { scope(&principal) };
    let engine = app.runtime.engine();
    let row = engine.store().get_key(&scope, &id).await?.ok_or_else(not_found)?;
    principal.audit.tenant(&row.tenant);
    expect_no_more(&principal, &row.roles)?;
    let now = engine.clock().now();
    let row = app.keys.revoke(&scope, &id, now).await.map_err(|error| match error {
        servo_store::Error::NotFound => not_found(),
        other => other.into(),
    })?;
    Ok(Body(item(row, now)))
}

fn not_found() -> ApiError {
    ApiError::new(codes::KEY_NOT_FOUND)
}

fn item(row: KeyRow, now: Timestamp) -> KeyItem {
    let status = match (row.revoked_at, row.is_live(now)) {
        (Some(_), _) => KeyStatus::Revoked,
        (None, true) => KeyStatus::Active,
        (None, false) => KeyStatus::Expired,
    };
    KeyItem {
        id: row.id,
        tenant_id: row.tenant,
        name: row.name,
        roles: row.roles,
        kind: if row.sealed.is_some() { KeyKind::Access } else { KeyKind::Api },
        status,
        prefix: row.prefix,
        created_at: row.created_at,
        created_by: row.created_by,
        expires_at: row.expires_at,
        revoked_at: row.revoked_at,
        last_used_at: row.last_used_at,
    }
}
