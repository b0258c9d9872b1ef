//! Which runs there are for a caller: those of the entrypoints that it sees. To everybody else they do not exist.

use std::collections::BTreeSet;

use servo_entrypoint::{DefinitionStatus, InvocationRecord, StatusCount};
use servo_model::{Permission, RunId, RunState, SecurityContext};
use servo_store::entrypoints::{EntrypointQuery, OWNER_USER};
use servo_store::runs::{RunField, RunFilter, RunValue};

use super::list::ENTRYPOINTS_READ;
use super::{Answer, Serverless, engine_error, no_invocation, record, store_error};

/// Entrypoints that one query leaves out; runs of any more are left out of its answer.
const LEFT_OUT_MAX: usize = 100;

/// Entrypoints of the tenant whose runs the caller does not see.
#[derive(Debug, Default)]
pub(super) struct Hidden(BTreeSet<String>);

impl Hidden {
    /// The condition with what is hidden left out of it.
    pub(super) fn narrow(&self, filter: Option<RunFilter>) -> Option<RunFilter> {
        if self.0.is_empty() {
            return filter;
        }
        let values = self.0.iter().take(LEFT_OUT_MAX).map(|id| RunValue::Text(id.clone())).collect();
        let others = RunFilter::Not(Box::new(RunFilter::In { field: RunField::PlanId, values }));
        Some(RunFilter::And(filter.into_iter().chain([others]).collect()))
    }

    pub(super) fn holds(&self, entrypoint: &str) -> bool {
        self.0.contains(entrypoint)
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
        let look = |state: &RunState| Some((state.entrypoint()?.id.clone(), record(state)?));
        let found = self.engine().view(&Self::scope(ctx), run_id, look).await.map_err(engine_error)?;
        let (entrypoint, record) = found.ok_or_else(no_invocation)?;
        self.check_run_of(ctx, &entrypoint).await.map(|()| record)
    }

    /// The same, of a run whose entrypoint is known.
    pub(super) async fn check_run_of(&self, ctx: &SecurityContext, entrypoint: &str) -> Answer<()> {
        if ctx.may(Permission::Platform) {
            return Ok(());
        }
        // A run that was brought from elsewhere has no entrypoint here, and no owner but its tenant.
        let Some(loaded) = self.entrypoints().current(entrypoint).await.map_err(store_error)? else { return Ok(()) };
        self.seen(ctx, Some(loaded)).await.map(|_| ()).ok_or_else(no_invocation)
    }

    pub(super) async fn hidden(&self, ctx: &SecurityContext) -> Answer<Hidden> {
        let mut hidden = Hidden::default();
        if ctx.may(Permission::Platform) {
            return Ok(hidden);
        }
        // A draft has no runs.
        let others = DefinitionStatus::ALL.into_iter().filter(|status| *status != DefinitionStatus::Draft);
        let mut query = EntrypointQuery {
            statuses: others.map(|status| status.as_str().to_owned()).collect(),
            owner_type: Some(OWNER_USER.to_owned()),
            limit: ENTRYPOINTS_READ,
            ..EntrypointQuery::default()
        };
        loop {
            let rows = self.engine().store().list_entrypoints(&Self::scope(ctx), &query).await.map_err(store_error)?;
            let Some(last) = rows.last() else { return Ok(hidden) };
            query.after = Some(query.order.key(last));
            for row in rows {
                let id = row.id.clone();
                if self.shown(ctx, row).await?.is_none() {
                    hidden.0.insert(id);
                }
            }
        }
    }

    /// Takes the runs that are hidden out of the tenant's counts.
    pub(super) async fn without_hidden(
        &self,
        ctx: &SecurityContext,
        mut counts: Vec<StatusCount>,
    ) -> Answer<Vec<StatusCount>> {
        for id in self.hidden(ctx).await?.0 {
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
