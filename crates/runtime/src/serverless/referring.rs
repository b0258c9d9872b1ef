//! Which entrypoints need a function.

use servo_entrypoint::DefinitionStatus;
use servo_entrypoint::ImplementationPayload;
use servo_model::function::FunctionRef;
use servo_model::{AliasName, FunctionName, SecurityContext, TenantId};
use servo_store::Scope;
use servo_store::entrypoints::{EntrypointOrder, EntrypointQuery, EntrypointRow};

use super::visible::begun;
use super::{LAMBDA, Sight};
use crate::entrypoints::entrypoint_of;

/// Entrypoints that are read together.
const PAGE: u32 = 200;
/// Addresses that are named; the others are counted.
const NAMED_MAX: usize = 5;

/// Entrypoints that can be called and would not find their function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Referring {
    pub count: usize,
    /// Some of those that the caller may see.
    pub named: Vec<String>,
}

impl Sight {
    /// Those that refer to a function of the caller's tenant; with an alias, those that refer to the alias.
    pub async fn referring(
        &self,
        ctx: &SecurityContext,
        function: &FunctionName,
        alias: Option<&AliasName>,
    ) -> Result<Referring, servo_store::Error> {
        let callable = [DefinitionStatus::Active, DefinitionStatus::Deprecated];
        let mut found = Referring::default();
        for row in self.rows_referring(&ctx.tenant, &callable, function, alias).await? {
            found.count += 1;
            if found.named.len() < NAMED_MAX
                && let Some(row) = self.shown(ctx, row).await?
            {
                found.named.push(row.address);
            }
        }
        Ok(found)
    }

    /// The ids of those that the caller sees and that may have runs. What they have started are executions of the function, too.
    pub async fn ids_referring(
        &self,
        ctx: &SecurityContext,
        function: &FunctionName,
    ) -> Result<Vec<String>, servo_store::Error> {
        let mut ids = Vec::new();
        for row in self.rows_referring(&ctx.tenant, &begun(), function, None).await? {
            ids.extend(self.shown(ctx, row).await?.map(|row| row.id));
        }
        Ok(ids)
    }

    /// Runs of a tenant's function that entrypoints have started and that have not ended, whoever may see them.
    pub async fn open_referring(&self, tenant: &TenantId, function: &FunctionName) -> Result<u64, servo_store::Error> {
        let mut open = 0;
        for row in self.rows_referring(tenant, &begun(), function, None).await? {
            let runs = self.executions.engine().store().count_open(tenant, &row.id).await?;
            open += runs.iter().map(|(_, runs)| runs).sum::<u64>();
        }
        Ok(open)
    }

    async fn rows_referring(
        &self,
        tenant: &TenantId,
        statuses: &[DefinitionStatus],
        function: &FunctionName,
        alias: Option<&AliasName>,
    ) -> Result<Vec<EntrypointRow>, servo_store::Error> {
        let mut query = EntrypointQuery {
            adapter: Some(LAMBDA.to_owned()),
            statuses: statuses.iter().map(|status| status.as_str().to_owned()).collect(),
            order: EntrypointOrder::Created,
            limit: PAGE,
            ..EntrypointQuery::default()
        };
        let (store, scope) = (self.executions.engine().store(), Scope::Tenant(tenant.clone()));
        let mut found = Vec::new();
        loop {
            // As many as the tenant's quota of definitions allows.
            let rows = store.list_entrypoints(&scope, &query).await?;
            let Some(last) = rows.last() else { return Ok(found) };
            query.after = Some(query.order.key(last));
            for row in rows {
                // What the platform provides refers to functions of its own tenant.
                if row.tenant == *tenant && refers(&row, function, alias)? {
                    found.push(row);
                }
            }
        }
    }
}

fn refers(row: &EntrypointRow, function: &FunctionName, alias: Option<&AliasName>) -> Result<bool, servo_store::Error> {
    // Most refer to another one, which is seen without reading all of the definition.
    if !row.document.contains(function.as_str()) {
        return Ok(false);
    }
    let entrypoint = entrypoint_of(row)?;
    let ImplementationPayload::AdapterRef { definition_id } = &entrypoint.definition.implementation.payload else {
        return Ok(false);
    };
    let Ok(reference) = FunctionRef::parse(definition_id) else { return Ok(false) };
    let is_named = alias.is_none_or(|alias| reference.qualifier.as_deref() == Some(alias.as_str()));
    Ok(reference.name == function.as_str() && is_named)
}
