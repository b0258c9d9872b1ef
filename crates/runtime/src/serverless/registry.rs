//! The registry of entrypoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use servo_entrypoint::access::Access;
use servo_entrypoint::names;
use servo_entrypoint::validate::{Handler, Lookup, Outline};
use servo_entrypoint::{
    Entrypoint, EntrypointStatusAction, OwnerType, RuntimeErrorPayload, Validated, Validation, ValidationError,
    ValidationIssue, errors, status,
};
use servo_model::{Permission, SecurityContext, TenantId};
use servo_store::Scope;
use servo_store::entrypoints::EntrypointRow;

use super::names::For;
use super::{Answer, LAMBDA, Serverless, internal, no_entrypoint, store_error};
use crate::entrypoints::{Loaded, entrypoint_of, owner_of};

/// How callers name an entrypoint.
#[derive(Debug, Clone, Copy)]
pub(super) enum Named<'a> {
    /// Of the caller's tenant, or of what is there for everybody.
    Address(&'a str),
    /// The opaque one of its registration, which belongs to one tenant: the platform needs not say to which.
    Id(&'a str),
}

impl<'a> Named<'a> {
    fn text(self) -> &'a str {
        match self {
            Named::Address(text) | Named::Id(text) => text,
        }
    }
}

/// What the registry knows about the entrypoints that a definition names, looked up before it is checked.
struct Known {
    handlers: BTreeMap<String, Handler>,
    taken: bool,
}

impl Lookup for Known {
    fn handler(&self, address: &str) -> Option<Handler> {
        self.handlers.get(address).cloned()
    }

    fn is_taken(&self, _address: &str) -> bool {
        self.taken
    }
}

impl Serverless {
    /// The same entrypoint, if the caller may see it.
    pub(super) async fn seen(&self, ctx: &SecurityContext, found: Option<Arc<Loaded>>) -> Option<Arc<Loaded>> {
        self.sight.seen(ctx, found).await
    }

    /// The same row, if the caller may see it.
    pub(super) async fn shown(&self, ctx: &SecurityContext, row: EntrypointRow) -> Answer<Option<EntrypointRow>> {
        self.sight.shown(ctx, row).await.map_err(store_error)
    }

    pub(super) async fn validate(
        &self,
        ctx: &SecurityContext,
        document: Value,
        own: Option<&str>,
    ) -> Answer<Validated> {
        Self::allow(ctx, Permission::DefinitionsDeploy)?;
        let tenant = owner_tenant(ctx, &document);
        let outline = Outline::of(&document);
        let mut known = Known { handlers: BTreeMap::new(), taken: false };
        for address in outline.handlers() {
            let found = self.entrypoints().find(&tenant, address).await.map_err(store_error)?;
            if let Some(loaded) = self.seen(ctx, found).await {
                let params = loaded.entrypoint.definition.schema.params.clone();
                known.handlers.insert(address.to_owned(), Handler { status: loaded.status(), params });
            }
        }
        if let Some(address) = outline.address {
            let found = self.engine().store().find_entrypoint(&tenant, address).await.map_err(store_error)?;
            known.taken = found.is_some_and(|row| Some(row.id.as_str()) != own);
        }
        let sources = match outline.code {
            Some((language, source)) => self.platform.sources.check(language, source).await,
            None => Vec::new(),
        };
        let referred = self.referred(&tenant, &outline).await?;
        let beside: Vec<_> = referred.into_iter().collect();
        let adapters: Vec<&str> = self.platform.adapters.iter().map(String::as_str).collect();
        let policy = self.policy();
        let validation = Validation {
            ctx,
            policy,
            types: self.entrypoints().types(),
            adapters: &adapters,
            limiters: &self.platform.limiters,
            lookup: &known,
        };
        match validation.check(document, &sources) {
            checked if beside.is_empty() => checked,
            Ok(_) => Err(ValidationError::new(beside).into()),
            Err(failure) => match ValidationError::of(&failure) {
                Some(error) => Err(ValidationError::new(error.issues.into_iter().chain(beside).collect()).into()),
                None => Err(failure),
            },
        }
    }

    /// An entrypoint that refers to a function: its owner has such a function, and it is of the entrypoint's kind.
    async fn referred(&self, tenant: &TenantId, outline: &Outline<'_>) -> Answer<Option<ValidationIssue>> {
        const PATH: &str = "$.implementation.adapter_ref.definition_id";
        let (Some(reference), Some(LAMBDA)) = (outline.definition_id, outline.adapter) else { return Ok(None) };
        match self.executions.resolve(tenant, reference, None).await {
            Err(refused) if refused.is_fault() => Err(super::failure_of(refused)),
            Err(refused) => {
                let issue = ValidationIssue::new("unknown_reference", PATH, refused.message);
                Ok(Some(issue.suggest("register the function first: servo functions register")))
            }
            Ok(function) => {
                let kind = outline.address.and_then(servo_entrypoint::EntrypointType::from_gts_id);
                let workflow = kind == Some(servo_entrypoint::EntrypointType::Workflow);
                Ok((kind.is_some() && workflow != function.spec.durable).then(|| {
                    let (is, as_kind) =
                        if function.spec.durable { ("durable", "workflow") } else { ("plain", "function") };
                    let message = format!("the function is {is}, and registers as a {as_kind}");
                    ValidationIssue::new("incompatible", PATH, message)
                }))
            }
        }
    }

    pub(super) async fn register(&self, ctx: &SecurityContext, document: Value) -> Answer<Entrypoint> {
        let tenant = owner_tenant(ctx, &document);
        let validated = self.validate(ctx, document, None).await?;
        let policy = self.policy();
        let definitions = self.engine().store().count_entrypoints(&tenant).await.map_err(store_error)?;
        if definitions >= policy.quotas.max_definitions {
            return Err(errors::quota_exceeded(format!(
                "the tenant has {definitions} entrypoints, and {} are allowed",
                policy.quotas.max_definitions
            )));
        }
        let engine = self.engine();
        let now = engine.now();
        let id = engine.ids().run_id(now).as_str().replacen("inv_", "ep_", 1);
        let row = self.row(id, tenant, validated.entrypoint, 1)?;
        let address = row.address.clone();
        let stored = engine.store().put_entrypoint(row).await.map_err(|error| match error {
            servo_store::Error::EntrypointExists { .. } => errors::conflict(format!(
                "`{address}` is registered already; register the next version of the address{}",
                names::next_of(&address)
            )),
            other => store_error(other),
        })?;
        self.entrypoints().forget(&stored.id);
        entrypoint_of(&stored).map_err(store_error)
    }

    fn row(&self, id: String, tenant: TenantId, mut entrypoint: Entrypoint, revision: u64) -> Answer<EntrypointRow> {
        entrypoint.id = None;
        let now = self.engine().now();
        let definition = &entrypoint.definition;
        Ok(EntrypointRow {
            id,
            tenant,
            owner_type: definition.owner.owner_type.as_str().to_owned(),
            owner_id: definition.owner.id.clone(),
            address: entrypoint.entrypoint_id.clone(),
            version: definition.version.clone(),
            status: definition.status.as_str().to_owned(),
            adapter: definition.implementation.adapter.clone(),
            title: definition.title.clone(),
            tags: definition.tags.clone(),
            document: serde_json::to_string(&entrypoint).map_err(|error| internal(&error))?,
            created_at: now,
            updated_at: now,
            revision,
        })
    }

    /// The row behind a name, if the caller may see it. What is no id and no address is looked for as a short name; an address is no
    /// name of a registration.
    pub(super) async fn entrypoint_row(
        &self,
        ctx: &SecurityContext,
        named: Named<'_>,
        purpose: For,
    ) -> Answer<EntrypointRow> {
        let (store, name) = (self.engine().store(), named.text());
        let found = match named {
            Named::Address(address) => store.find_entrypoint(&ctx.tenant, address).await,
            Named::Id(id) => match store.get_entrypoint(&Self::scope(ctx), id).await {
                Ok(None) if ctx.may(Permission::Platform) => store.get_entrypoint(&Scope::System, id).await,
                found => found,
            },
        };
        let Some(row) = found.map_err(store_error)? else { return self.named(ctx, name, purpose).await };
        self.shown(ctx, row).await?.ok_or_else(|| no_entrypoint(name))
    }

    pub(super) async fn read_entrypoint(&self, ctx: &SecurityContext, named: Named<'_>) -> Answer<Entrypoint> {
        Self::allow(ctx, Permission::DefinitionsRead)?;
        entrypoint_of(&self.entrypoint_row(ctx, named, For::Reading).await?).map_err(store_error)
    }

    /// Changes belong to the owner; the platform's entrypoints to the platform.
    async fn may_change(&self, ctx: &SecurityContext, row: &EntrypointRow) -> Answer<()> {
        let owner = owner_of(row).map_err(store_error)?;
        if self.sight.is_allowed(ctx, Access::Change, &row.address, &owner).await {
            return Ok(());
        }
        Err(errors::forbidden(match owner.owner_type {
            OwnerType::System => "the platform manages this entrypoint",
            OwnerType::User | OwnerType::Tenant => "the entrypoint is shared with you to be called, not to be changed",
        }))
    }

    pub(super) async fn update(&self, ctx: &SecurityContext, named: Named<'_>, document: Value) -> Answer<Entrypoint> {
        Self::allow(ctx, Permission::DefinitionsDeploy)?;
        let row = self.entrypoint_row(ctx, named, For::Editing).await?;
        self.may_change(ctx, &row).await?;
        let entrypoint = entrypoint_of(&row).map_err(store_error)?;
        if !status::is_editable(entrypoint.definition.status) {
            return Err(errors::conflict(format!(
                "the entrypoint is `{}`, and only a draft is edited; register the next version of the address",
                row.status
            )));
        }
        // The owner is part of what is replaced, and decides who sees it; the tenant is part of what it is.
        if owner_tenant(ctx, &document) != row.tenant {
            let message = "an entrypoint stays in its tenant; register a new one for another";
            let issue =
                ValidationIssue::new("invalid_value", "$.owner.tenant_id", message).suggest(row.tenant.as_str());
            return Err(ValidationError::new(vec![issue]).into());
        }
        let validated = self.validate(ctx, document, Some(&row.id)).await?;
        if validated.entrypoint.entrypoint_id != row.address {
            let message = "an entrypoint keeps its address; register a new one for another";
            let issue = ValidationIssue::new("invalid_value", "$.entrypoint_id", message).suggest(row.address);
            return Err(ValidationError::new(vec![issue]).into());
        }
        let changed = self.row(row.id.clone(), row.tenant.clone(), validated.entrypoint, row.revision)?;
        self.change(EntrypointRow { created_at: row.created_at, ..changed }).await
    }

    /// Compare and set by revision: the loser of a race is told so.
    async fn change(&self, row: EntrypointRow) -> Answer<Entrypoint> {
        let id = row.id.clone();
        let changed = self.engine().store().update_entrypoint(row).await.map_err(moved)?;
        self.entrypoints().forget(&id);
        entrypoint_of(&changed).map_err(store_error)
    }

    pub(super) async fn set_status(
        &self,
        ctx: &SecurityContext,
        named: Named<'_>,
        action: EntrypointStatusAction,
    ) -> Answer<Entrypoint> {
        Self::allow(ctx, Permission::DefinitionsDeploy)?;
        let row = self.entrypoint_row(ctx, named, For::Changing(action)).await?;
        self.may_change(ctx, &row).await?;
        let entrypoint = entrypoint_of(&row).map_err(store_error)?;
        let next = status::apply(entrypoint.definition.status, action)?;
        let updated_at = self.engine().now();
        self.change(EntrypointRow { status: next.as_str().to_owned(), updated_at, ..row }).await
    }

    /// Gives what it was, or what has become of it.
    pub(super) async fn remove(&self, ctx: &SecurityContext, named: Named<'_>) -> Answer<Entrypoint> {
        Self::allow(ctx, Permission::DefinitionsDelete)?;
        let row = self.entrypoint_row(ctx, named, For::Removing).await?;
        self.may_change(ctx, &row).await?;
        let entrypoint = entrypoint_of(&row).map_err(store_error)?;
        match status::remove(entrypoint.definition.status)? {
            status::Removal::Archive => self.set_status(ctx, Named::Id(&row.id), EntrypointStatusAction::Archive).await,
            status::Removal::Delete => {
                let removed = self.engine().store().remove_entrypoint(&row.tenant, &row.id, row.revision).await;
                removed.map_err(moved)?;
                self.entrypoints().forget(&row.id);
                Ok(entrypoint)
            }
        }
    }
}

fn moved(error: servo_store::Error) -> RuntimeErrorPayload {
    match error {
        servo_store::Error::RevisionMoved { .. } => {
            errors::conflict("somebody else changed the entrypoint at the same time; read it again")
        }
        servo_store::Error::NotFound => errors::not_found("the entrypoint is not there any more"),
        other => store_error(other),
    }
}

/// Where a definition belongs: to the caller's tenant, or where the platform puts it. What the platform provides belongs to no
/// tenant.
fn owner_tenant(ctx: &SecurityContext, document: &Value) -> TenantId {
    let owner = |name: &str| document.get("owner").and_then(|owner| owner.get(name)).and_then(Value::as_str);
    if !ctx.may(Permission::Platform) {
        return ctx.tenant.clone();
    }
    if owner("owner_type") == Some(OwnerType::System.as_str()) {
        return TenantId::system();
    }
    // Who names none, or what is no tenant, is told so by the check of the definition.
    owner("tenant_id").and_then(|tenant| TenantId::parse(tenant).ok()).unwrap_or_else(|| ctx.tenant.clone())
}
