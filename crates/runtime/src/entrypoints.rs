//! Registered entrypoints, read and compiled once per revision.
//!
//! Where only this process writes the store, what it has read stays true until it writes again; elsewhere the row is read
//! each time and only the compiling is saved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use servo_canon::Digest;
use servo_entrypoint::access::{Access, AccessControl, NothingShared};
use servo_entrypoint::rate::{Limiters, RateLimitDecision};
use servo_entrypoint::{
    CompiledEntrypoint, DefinitionStatus, Entrypoint, EntrypointType, ImplementationPayload, OwnerRef, OwnerType,
    Types, access, errors, status,
};
use servo_model::function::{Code, EXECUTION_SECONDS_MAX, FunctionSpec, Reach};
use servo_model::invocation::Failure;
use servo_model::{PlanId, PlanRef, SecurityContext, TenantId};
use servo_store::entrypoints::EntrypointRow;
use servo_store::{Scope, Store};

/// Entrypoints that are kept ready; the rest is read again when it is needed.
const KEPT_MAX: usize = 10_000;

/// One registration, ready to run.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub id: String,
    pub revision: u64,
    pub tenant: TenantId,
    pub entrypoint: Entrypoint,
    pub kind: EntrypointType,
    pub owner: OwnerRef,
    pub compiled: CompiledEntrypoint,
    /// Of the stored definition.
    pub digest: Digest,
    /// What its runs say they run.
    pub plan_ref: Arc<PlanRef>,
    /// How its own code is run; `None` when it refers to something that an adapter knows.
    pub code: Option<FunctionSpec>,
}

impl Loaded {
    pub(crate) fn status(&self) -> DefinitionStatus {
        self.entrypoint.definition.status
    }

    pub(crate) fn check_callable(&self) -> Result<(), Failure> {
        if status::is_callable(self.status()) {
            return Ok(());
        }
        let (address, status) = (&self.entrypoint.entrypoint_id, self.status());
        let (is, way) = (status.as_str(), status::way_to_be_called(status));
        Err(errors::not_active(format!("the entrypoint `{address}` is `{is}` and cannot be called; {way}")))
    }

    /// The function that it refers to, if it does.
    pub(crate) fn refers_to(&self) -> Option<&str> {
        match &self.entrypoint.definition.implementation.payload {
            ImplementationPayload::AdapterRef { definition_id } => Some(definition_id),
            ImplementationPayload::Code { .. } | ImplementationPayload::WorkflowSpec { .. } => None,
        }
    }

    fn new(row: EntrypointRow, types: &Types) -> Result<Self, servo_store::Error> {
        let corrupt = |what: String| servo_store::Error::Corrupt { detail: format!("entrypoint `{}`: {what}", row.id) };
        let entrypoint = entrypoint_of(&row)?;
        let kind = entrypoint.entrypoint_type().ok_or_else(|| corrupt("its address has no kind".to_owned()))?;
        let definition = &entrypoint.definition;
        let compiled = CompiledEntrypoint::compile(types, &definition.schema)
            .map_err(|fault| corrupt(format!("its schema does not compile: {fault}")))?;
        let owner = owner_of(&row)?;
        let code = match &definition.implementation.payload {
            ImplementationPayload::Code { language, source } => Some(code_spec(&entrypoint, kind, language, source)),
            ImplementationPayload::WorkflowSpec { .. } | ImplementationPayload::AdapterRef { .. } => None,
        };
        let digest = Digest::of(row.document.as_bytes());
        let plan_ref = PlanRef {
            uri: format!("entrypoint:{}", row.id),
            sha256: digest,
            schema_version: "entrypoint/v1".to_owned(),
            plan_id: PlanId::parse(&row.id).map_err(|invalid| corrupt(invalid.to_string()))?,
            plan_version: definition.version.clone(),
        };
        Ok(Self {
            digest,
            plan_ref: Arc::new(plan_ref),
            id: row.id,
            revision: row.revision,
            tenant: row.tenant,
            owner,
            entrypoint,
            kind,
            compiled,
            code,
        })
    }
}

/// The definition that a row holds, with what the registry keeps beside it.
pub(crate) fn entrypoint_of(row: &EntrypointRow) -> Result<Entrypoint, servo_store::Error> {
    let mut entrypoint: Entrypoint = serde_json::from_str(&row.document).map_err(|error| {
        servo_store::Error::Corrupt { detail: format!("entrypoint `{}` cannot be read: {error}", row.id) }
    })?;
    entrypoint.id = Some(row.id.clone());
    entrypoint.definition.status = DefinitionStatus::parse(&row.status)
        .ok_or_else(|| servo_store::Error::Corrupt { detail: format!("entrypoint `{}`: its status", row.id) })?;
    entrypoint.definition.created_at = Some(row.created_at);
    entrypoint.definition.updated_at = Some(row.updated_at);
    Ok(entrypoint)
}

/// Whose it is. The registry decides, not the document.
pub(crate) fn owner_of(row: &EntrypointRow) -> Result<OwnerRef, servo_store::Error> {
    let owner_type = OwnerType::parse(&row.owner_type)
        .ok_or_else(|| servo_store::Error::Corrupt { detail: format!("entrypoint `{}`: its owner", row.id) })?;
    Ok(OwnerRef { owner_type, id: row.owner_id.clone(), tenant_id: row.tenant.to_string() })
}

fn code_spec(entrypoint: &Entrypoint, kind: EntrypointType, language: &str, source: &str) -> FunctionSpec {
    let traits = &entrypoint.definition.traits;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a core in thousandths")]
    let cpu_milli = (traits.limits.cpu().unwrap_or(1.0) * 1_000.0).round().clamp(1.0, 1_000_000.0) as u64;
    FunctionSpec {
        reach: Reach::Code(Code {
            language: language.to_owned(),
            source: source.into(),
            memory_mb: traits.limits.memory_mb(),
            cpu_milli,
            retry: traits.retry.rule(),
            checkpointing: traits.workflow.as_ref().map(|own| own.checkpointing.strategy).unwrap_or_default(),
        }),
        durable: kind == EntrypointType::Workflow,
        execution_timeout_seconds: EXECUTION_SECONDS_MAX,
        invocation_timeout_seconds: traits.limits.timeout_seconds,
        max_concurrent: u32::try_from(traits.limits.max_concurrent).ok(),
    }
}

#[derive(Debug, Default)]
struct Kept {
    by_id: HashMap<String, Arc<Loaded>>,
    /// Only where this process alone writes.
    by_address: HashMap<(TenantId, String), String>,
    /// Counts what was forgotten: a row that was read before is not kept after.
    generation: u64,
}

impl Kept {
    fn make_room(&mut self) {
        if self.by_id.len() >= KEPT_MAX || self.by_address.len() >= KEPT_MAX {
            self.by_id.clear();
            self.by_address.clear();
        }
    }
}

/// A handle: cheap to clone.
#[derive(Clone)]
pub(crate) struct Entrypoints {
    store: Arc<dyn Store>,
    types: Types,
    single_process: bool,
    kept: Arc<Mutex<Kept>>,
    rules: Arc<OnceLock<Rules>>,
}

/// What the platform adds to the word of owners: who else may call an entrypoint, and how often.
pub(crate) struct Rules {
    pub access: Arc<dyn AccessControl>,
    pub limiters: Limiters,
}

/// Whoever started a run calls on from inside it, as itself and without the roles that it had.
pub(crate) fn from_inside(tenant: &TenantId, subject: &str, correlation_id: &str) -> SecurityContext {
    SecurityContext {
        subject: subject.to_owned(),
        tenant: tenant.clone(),
        roles: Vec::new(),
        correlation_id: correlation_id.to_owned(),
        trace: None,
        trace_state: None,
    }
}

impl std::fmt::Debug for Entrypoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entrypoints").finish_non_exhaustive()
    }
}

impl Entrypoints {
    pub(crate) fn new(store: Arc<dyn Store>, types: Types, single_process: bool) -> Self {
        Self { store, types, single_process, kept: Arc::default(), rules: Arc::default() }
    }

    pub(crate) fn types(&self) -> &Types {
        &self.types
    }

    /// Said once, by whoever serves the API; before that nothing is shared and nothing limited.
    pub(crate) fn set_rules(&self, rules: Rules) {
        let _ = self.rules.set(rules);
    }

    /// Whether another start is within the entrypoint's rate.
    pub(crate) async fn check_rate(&self, ctx: &SecurityContext, loaded: &Loaded) -> Result<(), Failure> {
        let Some(rate) = &loaded.entrypoint.definition.traits.rate_limit else { return Ok(()) };
        // Without rules nobody has brought limiters, so there is none that could be missing.
        let Some(rules) = self.rules.get() else { return Ok(()) };
        let Some(limiter) = rules.limiters.find(&rate.strategy) else {
            return Err(errors::internal(
                "the entrypoint's rate limiter is not there any more; register its next version with another one",
            ));
        };
        match limiter.check(ctx, &loaded.entrypoint.entrypoint_id, &rate.config).await {
            RateLimitDecision::Allow => Ok(()),
            RateLimitDecision::Reject { retry_after_seconds } => {
                Err(errors::rate_limited(ctx.tenant.as_str(), retry_after_seconds))
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The one that a run is pinned to. What was kept may be a draft from before its last change, so the content decides.
    pub(crate) async fn pinned(&self, id: &str, digest: Digest) -> Result<Option<Arc<Loaded>>, servo_store::Error> {
        if let Some(loaded) = self.kept().by_id.get(id).filter(|loaded| loaded.digest == digest) {
            return Ok(Some(loaded.clone()));
        }
        Ok(Box::pin(self.read(id)).await?.filter(|loaded| loaded.digest == digest))
    }

    /// By its id, as it is now.
    pub(crate) async fn current(&self, id: &str) -> Result<Option<Arc<Loaded>>, servo_store::Error> {
        if self.single_process
            && let Some(loaded) = self.kept().by_id.get(id)
        {
            return Ok(Some(loaded.clone()));
        }
        self.read(id).await
    }

    async fn read(&self, id: &str) -> Result<Option<Arc<Loaded>>, servo_store::Error> {
        let generation = self.kept().generation;
        match self.store.get_entrypoint(&Scope::System, id).await? {
            Some(row) => self.keep(row, None, generation).map(Some),
            None => Ok(None),
        }
    }

    /// By its address, as a tenant sees it: its own, or the platform's.
    pub(crate) async fn find(
        &self,
        tenant: &TenantId,
        address: &str,
    ) -> Result<Option<Arc<Loaded>>, servo_store::Error> {
        let generation = {
            let kept = self.kept();
            let id = kept.by_address.get(&(tenant.clone(), address.to_owned()));
            if let Some(loaded) = id.and_then(|id| kept.by_id.get(id)) {
                return Ok(Some(loaded.clone()));
            }
            kept.generation
        };
        match self.store.find_entrypoint(tenant, address).await? {
            Some(row) => self.keep(row, Some(tenant), generation).map(Some),
            None => Ok(None),
        }
    }

    /// What this caller may call under an address from inside a run, or why it may not.
    pub(crate) async fn callable(
        &self,
        ctx: &SecurityContext,
        address: &str,
    ) -> Result<Result<Arc<Loaded>, Failure>, servo_store::Error> {
        let none = || errors::not_found(format!("there is no entrypoint `{address}`"));
        let Some(loaded) = self.find(&ctx.tenant, address).await? else { return Ok(Err(none())) };
        let access = self.rules.get().map_or(&NothingShared as &dyn AccessControl, |rules| rules.access.as_ref());
        if !access::is_allowed(access, ctx, Access::See, address, &loaded.owner).await {
            return Ok(Err(none()));
        }
        Ok(loaded.check_callable().map(|()| loaded))
    }

    fn keep(
        &self,
        row: EntrypointRow,
        seen_by: Option<&TenantId>,
        generation: u64,
    ) -> Result<Arc<Loaded>, servo_store::Error> {
        let address = row.address.clone();
        let known = self.kept().by_id.get(&row.id).filter(|known| known.revision == row.revision).cloned();
        let loaded = match known {
            Some(loaded) => loaded,
            None => Arc::new(Loaded::new(row, &self.types)?),
        };
        let mut kept = self.kept();
        if kept.generation == generation {
            kept.make_room();
            kept.by_id.insert(loaded.id.clone(), loaded.clone());
            if let Some(tenant) = seen_by.filter(|_| self.single_process) {
                kept.by_address.insert((tenant.clone(), address), loaded.id.clone());
            }
        }
        Ok(loaded)
    }

    /// A registration was made, changed or removed here.
    pub(crate) fn forget(&self, id: &str) {
        let mut kept = self.kept();
        kept.generation += 1;
        kept.by_id.remove(id);
        // An address that now leads elsewhere is found anew; registrations change rarely.
        kept.by_address.clear();
    }
}

#[cfg(test)]
mod tests;
