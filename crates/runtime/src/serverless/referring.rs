//! Which entrypoints need a function.

use servo_entrypoint::DefinitionStatus;
use servo_entrypoint::ImplementationPayload;
use servo_model::function::FunctionRef;
use servo_model::{AliasName, FunctionName, TenantId};
use servo_store::Scope;
use servo_store::entrypoints::{EntrypointOrder, EntrypointQuery, EntrypointRow, OWNER_USER};

use super::LAMBDA;
use crate::entrypoints::entrypoint_of;
use crate::executions::Executions;

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

impl Executions {
    /// Those that refer to a function of the tenant; with an alias, those that refer to the alias.
    pub async fn referring(
        &self,
        tenant: &TenantId,
        subject: &str,
        function: &FunctionName,
        alias: Option<&AliasName>,
    ) -> Result<Referring, servo_store::Error> {
        let callable = [DefinitionStatus::Active, DefinitionStatus::Deprecated];
        let mut query = EntrypointQuery {
            adapter: Some(LAMBDA.to_owned()),
            statuses: callable.map(|status| status.as_str().to_owned()).to_vec(),
            order: EntrypointOrder::Created,
            limit: PAGE,
            ..EntrypointQuery::default()
        };
        let mut found = Referring::default();
        loop {
            // As many as the tenant's quota of definitions allows.
            let rows = self.engine().store().list_entrypoints(&Scope::Tenant(tenant.clone()), &query).await?;
            let Some(last) = rows.last() else { return Ok(found) };
            query.after = Some(query.order.key(last));
            for row in rows.iter().filter(|row| row.tenant == *tenant) {
                if refers(row, function, alias)? {
                    found.count += 1;
                    let is_seen = row.owner_type != OWNER_USER || row.owner_id == subject;
                    if is_seen && found.named.len() < NAMED_MAX {
                        found.named.push(row.address.clone());
                    }
                }
            }
        }
    }
}

fn refers(row: &EntrypointRow, function: &FunctionName, alias: Option<&AliasName>) -> Result<bool, servo_store::Error> {
    let entrypoint = entrypoint_of(row)?;
    let ImplementationPayload::AdapterRef { definition_id } = &entrypoint.definition.implementation.payload else {
        return Ok(false);
    };
    let Ok(reference) = FunctionRef::parse(definition_id) else { return Ok(false) };
    let is_named = alias.is_none_or(|alias| reference.qualifier.as_deref() == Some(alias.as_str()));
    Ok(reference.name == function.as_str() && is_named)
}
