//! Reading the audit log: of the caller's tenant, or of any for those who run the platform.

use axum::Json as Body;
use axum::extract::State;
use servo_model::limits::LABEL_CHARS_MAX;
use servo_model::{AuditOutcome, Role, TenantId, Timestamp};
use servo_store::Scope;
use servo_store::audit::AuditQuery;
use servo_wire::v1::AuditList;

use super::keys::within;
use crate::app::App;
use crate::auth::Admin;
use crate::cursor::Binding;
use crate::error::Answer;
use crate::params::Params;

pub(crate) async fn list(
    State(app): State<App>,
    Admin(principal): Admin,
    mut params: Params,
) -> Answer<Body<AuditList>> {
    let mut text = |name: &str| params.take(name, plain);
    let (actor, action, object_id) = (text("actor")?, text("action")?, text("object")?);
    let outcome = params.take("outcome", |text| AuditOutcome::parse(text).ok_or_else(outcomes))?;
    let (from, until) = (params.take("from", time)?, params.take("to", time)?);
    let tenant = params.take("tenantId", |text| TenantId::parse(text).map_err(|invalid| invalid.reason))?;
    let limit = params.limit()?;
    let cursor = params.take("cursor", |text| Ok(text.to_owned()))?;
    params.done()?;
    // Without a tenant, those who run the platform see all of them.
    let everything = tenant.is_none() && principal.allows(Role::PlatformAdmin);
    let scope = if everything { Scope::System } else { within(&principal, tenant.clone())? };
    let (from_text, until_text) = (from.map(|at| at.to_string()), until.map(|at| at.to_string()));
    let filters = [
        ("actor", actor.as_deref()),
        ("action", action.as_deref()),
        ("object", object_id.as_deref()),
        ("outcome", outcome.map(AuditOutcome::as_str)),
        ("from", from_text.as_deref()),
        ("to", until_text.as_deref()),
        ("tenantId", tenant.as_ref().map(TenantId::as_str)),
        ("everything", everything.then_some("yes")),
    ];
    let binding = Binding { tenant: &principal.tenant, filters: &filters };
    let after = cursor.map(|cursor| app.cursors.open_audit(binding, &cursor)).transpose()?;
    let query = AuditQuery {
        actor: actor.clone(),
        action: action.clone(),
        object_id: object_id.clone(),
        outcome,
        from,
        until,
        after,
        limit: limit + 1,
    };
    let mut items = app.runtime.engine().store().read_audit(&scope, &query).await?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next_cursor = items.last().filter(|_| more).map(|last| app.cursors.seal_audit(binding, last.id));
    Ok(Body(AuditList { items, next_cursor }))
}

fn plain(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > LABEL_CHARS_MAX || text.contains('\0') {
        return Err(format!("has 1 to {LABEL_CHARS_MAX} characters"));
    }
    Ok(text.to_owned())
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).map_err(|_| "is a time such as 2026-01-31T12:00:00Z".to_owned())
}

fn outcomes() -> String {
    format!("is one of {}", AuditOutcome::ALL.map(AuditOutcome::as_str).join(", "))
}
