//! What there is for a caller: the entrypoints that it sees, and their runs. To everybody else they do not exist.
//!
//! One rule for every API that shows runs (ADR 21): a run of an entrypoint is as private as the entrypoint. Whether a role allows the
//! call at all is checked before this.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_entrypoint::access::{self, Access, AccessControl};
use servo_entrypoint::{DefinitionStatus, InvocationRecord, OwnerRef, StatusCount};
use servo_model::{Permission, RunId, RunState, SecurityContext, TenantId};
use servo_store::Scope;
use servo_store::entrypoints::{EntrypointQuery, EntrypointRow, OWNER_USER};
use servo_store::runs::{RunField, RunFilter, RunValue};

use super::catalog::ENTRYPOINTS_READ;
use super::record::whole;
use super::{Answer, Serverless, engine_error, no_invocation, store_error};
use crate::entrypoints::{Loaded, owner_of};
use crate::executions::Executions;

/// Entrypoints that one query leaves out; runs of any more are left out of its answer.
const LEFT_OUT_MAX: usize = 100;

/// Entrypoints of the tenant whose runs the caller does not see.
#[derive(Debug, Clone, Default)]
pub struct Hidden(BTreeSet<String>);

impl Hidden {
    /// The condition with what is hidden left out of it. Of very many some are not: a list also asks `holds` of what it has found.
    pub fn narrow(&self, filter: Option<RunFilter>) -> Option<RunFilter> {
        if self.0.is_empty() {
            return filter;
        }
        let values = self.0.iter().take(LEFT_OUT_MAX).map(|id| RunValue::Text(id.clone())).collect();
        let others = RunFilter::Not(Box::new(RunFilter::In { field: RunField::PlanId, values }));
        Some(RunFilter::And(filter.into_iter().chain([others]).collect()))
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub fn holds(&self, entrypoint: &str) -> bool {
        self.0.contains(entrypoint)
    }
}

/// The statuses in which an entrypoint may have runs: a draft has none.
pub(super) fn begun() -> Vec<DefinitionStatus> {
    DefinitionStatus::ALL.into_iter().filter(|status| *status != DefinitionStatus::Draft).collect()
}

/// Calls within calls that are followed to where they began.
const PARENTS_MAX: usize = 32;

/// What a run was started by.
#[derive(Debug, Default)]
struct Origin {
    entrypoint: Option<String>,
    parent: Option<RunId>,
}

/// A handle: cheap to clone. Every API that shows runs has one.
#[derive(Clone)]
pub struct Sight {
    pub(super) executions: Executions,
    access: Arc<dyn AccessControl>,
}

impl std::fmt::Debug for Sight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sight").finish_non_exhaustive()
    }
}

impl Sight {
    pub(super) fn new(executions: Executions, access: Arc<dyn AccessControl>) -> Self {
        Self { executions, access }
    }

    /// By its owner, or by what the access control shares beyond that.
    pub(super) async fn is_allowed(
        &self,
        ctx: &SecurityContext,
        access: Access,
        address: &str,
        owner: &OwnerRef,
    ) -> bool {
        access::is_allowed(self.access.as_ref(), ctx, access, address, owner).await
    }

    /// The same row, if the caller may see it.
    pub(super) async fn shown(
        &self,
        ctx: &SecurityContext,
        row: EntrypointRow,
    ) -> Result<Option<EntrypointRow>, servo_store::Error> {
        let owner = owner_of(&row)?;
        Ok(self.is_allowed(ctx, Access::See, &row.address, &owner).await.then_some(row))
    }

    /// The same entrypoint, if the caller may see it.
    pub(super) async fn seen(&self, ctx: &SecurityContext, found: Option<Arc<Loaded>>) -> Option<Arc<Loaded>> {
        let loaded = found?;
        self.is_allowed(ctx, Access::See, &loaded.entrypoint.entrypoint_id, &loaded.owner).await.then_some(loaded)
    }

    /// Whether a run of the caller's tenant is kept from it. One that is not there is kept from nobody.
    pub async fn hides(&self, ctx: &SecurityContext, run_id: &RunId) -> Result<bool, servo_store::Error> {
        if ctx.may(Permission::Platform) {
            return Ok(false);
        }
        let mut next = Some(run_id.clone());
        // What a private run calls got its input from there.
        for _ in 0..PARENTS_MAX {
            let Some(run_id) = next else { return Ok(false) };
            let origin = self.origin(ctx, &run_id).await?;
            if let Some(entrypoint) = &origin.entrypoint
                && self.hides_runs_of(ctx, entrypoint).await?
            {
                return Ok(true);
            }
            next = origin.parent;
        }
        Ok(false)
    }

    async fn origin(&self, ctx: &SecurityContext, run_id: &RunId) -> Result<Origin, servo_store::Error> {
        let (engine, scope) = (self.executions.engine(), Scope::Tenant(ctx.tenant.clone()));
        let look = |state: &RunState| {
            let start = state.execution.as_ref().map(|execution| &execution.head.start);
            Origin {
                entrypoint: state.entrypoint().map(|pin| pin.id.clone()),
                parent: start.and_then(|start| Some(start.parent.as_ref()?.run_id.clone())),
            }
        };
        // It belongs to a run's start, so what this node remembers of it is true.
        if let Some(origin) = engine.remembered(&scope, run_id, look).await {
            return Ok(origin);
        }
        match engine.view(&scope, run_id, look).await {
            Ok(origin) => Ok(origin),
            // The row says whose it is as well, and is there for runs whose log cannot be read.
            Err(_) => {
                let row = engine.store().get_run(&scope, run_id).await?;
                let entrypoint = row.filter(|row| row.invocation).map(|row| row.plan_id.to_string());
                Ok(Origin { entrypoint, parent: None })
            }
        }
    }

    /// The same, of all runs of an entrypoint.
    pub async fn hides_runs_of(&self, ctx: &SecurityContext, entrypoint: &str) -> Result<bool, servo_store::Error> {
        if ctx.may(Permission::Platform) {
            return Ok(false);
        }
        // A run that was brought from elsewhere has no entrypoint here, and no owner but its tenant.
        let Some(loaded) = self.executions.entrypoints().current(entrypoint).await? else { return Ok(false) };
        Ok(self.seen(ctx, Some(loaded)).await.is_none())
    }

    /// For lists and counts.
    pub async fn hidden(&self, ctx: &SecurityContext) -> Result<Hidden, servo_store::Error> {
        let mut hidden = Hidden::default();
        if ctx.may(Permission::Platform) {
            return Ok(hidden);
        }
        for row in self.private(&ctx.tenant).await? {
            let id = row.id.clone();
            if self.shown(ctx, row).await?.is_none() {
                hidden.0.insert(id);
            }
        }
        Ok(hidden)
    }

    /// The ids of a tenant's entrypoints that are one user's, and may have runs.
    pub async fn private_ids(&self, tenant: &TenantId) -> Result<Vec<String>, servo_store::Error> {
        Ok(self.private(tenant).await?.into_iter().map(|row| row.id).collect())
    }

    /// Ids and addresses of a tenant's newest entrypoints that the caller sees and that may have runs.
    pub async fn newest(
        &self,
        ctx: &SecurityContext,
        tenant: &TenantId,
        most: usize,
    ) -> Result<Vec<(String, String)>, servo_store::Error> {
        let mut query = EntrypointQuery {
            statuses: begun().iter().map(|status| status.as_str().to_owned()).collect(),
            limit: ENTRYPOINTS_READ,
            ..EntrypointQuery::default()
        };
        let (store, scope) = (self.executions.engine().store(), Scope::Tenant(tenant.clone()));
        let mut found = Vec::new();
        while found.len() < most {
            let rows = store.list_entrypoints(&scope, &query).await?;
            let Some(last) = rows.last() else { break };
            query.after = Some(query.order.key(last));
            for row in rows {
                found.extend(self.shown(ctx, row).await?.map(|row| (row.id, row.address)));
            }
        }
        found.truncate(most);
        Ok(found)
    }

    async fn private(&self, tenant: &TenantId) -> Result<Vec<EntrypointRow>, servo_store::Error> {
        let mut query = EntrypointQuery {
            statuses: begun().iter().map(|status| status.as_str().to_owned()).collect(),
            owner_type: Some(OWNER_USER.to_owned()),
            limit: ENTRYPOINTS_READ,
            ..EntrypointQuery::default()
        };
        let (store, scope) = (self.executions.engine().store(), Scope::Tenant(tenant.clone()));
        let mut all = Vec::new();
        loop {
            let rows = store.list_entrypoints(&scope, &query).await?;
            let Some(last) = rows.last() else { return Ok(all) };
            query.after = Some(query.order.key(last));
            all.extend(rows);
        }
    }
}

impl Serverless {
    /// Refuses what the caller does not see.
    pub(super) async fn check_run(&self, ctx: &SecurityContext, run_id: &RunId) -> Answer<()> {
        let look = |state: &RunState| state.entrypoint().map(|pin| pin.id.clone());
        let found = self.engine().view(&Self::scope(ctx), run_id, look).await.map_err(engine_error)?;
        self.check_run_of(ctx, &found.ok_or_else(no_invocation)?).await
    }

    /// The record of a run, if the caller sees it.
    pub(super) async fn read_seen(&self, ctx: &SecurityContext, run_id: &RunId) -> Answer<InvocationRecord> {
        let look = |state: &RunState| Some((state.entrypoint()?.id.clone(), whole(state)?));
        let found = self.engine().view(&Self::scope(ctx), run_id, look).await.map_err(engine_error)?;
        let (entrypoint, record) = found.ok_or_else(no_invocation)?;
        self.check_run_of(ctx, &entrypoint).await.map(|()| record)
    }

    /// The same, of a run whose entrypoint is known.
    pub(super) async fn check_run_of(&self, ctx: &SecurityContext, entrypoint: &str) -> Answer<()> {
        let is_hidden = self.sight.hides_runs_of(ctx, entrypoint).await.map_err(store_error)?;
        if is_hidden { Err(no_invocation()) } else { Ok(()) }
    }

    /// Takes the runs that are hidden out of the tenant's counts.
    pub(super) async fn without_hidden(
        &self,
        ctx: &SecurityContext,
        mut counts: Vec<StatusCount>,
    ) -> Answer<Vec<StatusCount>> {
        for id in self.sight.hidden(ctx).await.map_err(store_error)?.0 {
            let own = self.engine().store().count_by_visible(&ctx.tenant, Some(&id)).await.map_err(store_error)?;
            for (status, count) in own {
                for total in counts.iter_mut().filter(|total| total.status == status) {
                    total.count = total.count.saturating_sub(count);
                }
            }
        }
        counts.retain(|total| total.count > 0);
        Ok(counts)
    }
}
