//! Entrypoints.

use async_trait::async_trait;
use servo_model::TenantId;

use super::{Inner, MemStore};
use crate::entrypoints::{ARCHIVED, EntrypointQuery, EntrypointRow, EntrypointStore};
use crate::error::{Error, Result};
use crate::page::PageBytes;
use crate::runs::Scope;

impl Inner {
    /// The entrypoint, other than `but`, that keeps a tenant from using an address.
    fn holder(&self, tenant: &TenantId, address: &str, but: Option<&str>) -> Option<&EntrypointRow> {
        let others = || self.entrypoints.values().filter(|row| row.address == address);
        let own = others().find(|row| row.tenant == *tenant && but != Some(row.id.as_str()));
        own.or_else(|| others().find(|row| row.is_shared() && row.tenant != *tenant))
    }

    fn at_revision(&self, tenant: &TenantId, id: &str, expected: u64) -> Result<&EntrypointRow> {
        let row = self.entrypoints.get(&(tenant.clone(), id.to_owned())).ok_or(Error::NotFound)?;
        if row.revision != expected {
            return Err(Error::RevisionMoved { id: id.to_owned(), expected, actual: row.revision });
        }
        Ok(row)
    }
}

fn taken(row: &EntrypointRow) -> Error {
    Error::EntrypointExists { id: row.id.clone() }
}

#[async_trait]
impl EntrypointStore for MemStore {
    async fn put_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow> {
        row.check()?;
        let mut inner = self.lock()?;
        let slot = (row.tenant.clone(), row.id.clone());
        let earlier = inner.entrypoints.get(&slot).or_else(|| inner.holder(&row.tenant, &row.address, None));
        if let Some(earlier) = earlier {
            return Err(taken(earlier));
        }
        let row = EntrypointRow { revision: 1, ..row };
        inner.entrypoints.insert(slot, row.clone());
        Ok(row)
    }

    async fn get_entrypoint(&self, scope: &Scope, id: &str) -> Result<Option<EntrypointRow>> {
        let inner = self.lock()?;
        let found = || inner.entrypoints.values().filter(|row| row.id == id);
        let own = found().find(|row| scope.covers(&row.tenant));
        Ok(own.or_else(|| found().find(|row| row.is_shared())).cloned())
    }

    async fn find_entrypoint(&self, tenant: &TenantId, address: &str) -> Result<Option<EntrypointRow>> {
        Ok(self.lock()?.holder(tenant, address, None).cloned())
    }

    async fn update_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow> {
        row.check()?;
        let mut inner = self.lock()?;
        let old = inner.at_revision(&row.tenant, &row.id, row.revision)?;
        if row.address != old.address
            && let Some(other) = inner.holder(&row.tenant, &row.address, Some(&row.id))
        {
            return Err(taken(other));
        }
        let row = old.changed(row);
        inner.entrypoints.insert((row.tenant.clone(), row.id.clone()), row.clone());
        Ok(row)
    }

    async fn remove_entrypoint(&self, tenant: &TenantId, id: &str, expected_revision: u64) -> Result<()> {
        let mut inner = self.lock()?;
        inner.at_revision(tenant, id, expected_revision)?;
        inner.entrypoints.remove(&(tenant.clone(), id.to_owned()));
        Ok(())
    }

    async fn list_entrypoints(&self, scope: &Scope, query: &EntrypointQuery) -> Result<Vec<EntrypointRow>> {
        query.check()?;
        let inner = self.lock()?;
        let asked = |row: &&EntrypointRow| {
            row.is_readable(scope) && query.matches(row) && query.is_ahead(&query.order.key(row))
        };
        let mut rows: Vec<_> = inner.entrypoints.values().filter(asked).cloned().collect();
        query.sort(&mut rows);
        let mut page = PageBytes::new(self.limits.page_bytes_max);
        Ok(rows.into_iter().take(query.limit as usize).take_while(|row| page.takes(row.document.len())).collect())
    }

    async fn count_entrypoints(&self, tenant: &TenantId) -> Result<u64> {
        let inner = self.lock()?;
        let own = inner.entrypoints.values().filter(|row| row.tenant == *tenant && row.status != ARCHIVED);
        Ok(own.count() as u64)
    }
}
