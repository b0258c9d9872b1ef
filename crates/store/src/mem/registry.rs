//! Functions, versions and aliases.

use async_trait::async_trait;
use servo_model::limits::ALIASES_PER_FUNCTION_MAX;
use servo_model::{AliasName, FunctionName, TenantId};

use super::{Function, MemStore};
use crate::error::{Error, Result};
use crate::page::PageBytes;
use crate::registry::{AliasRow, FunctionVersion, Publication, RegistryStore};
use crate::runs::Scope;

impl MemStore {
    /// As many as a page holds.
    fn page<'a>(&self, versions: impl Iterator<Item = &'a FunctionVersion>, limit: u32) -> Vec<FunctionVersion> {
        let mut page = PageBytes::new(self.limits.page_bytes_max);
        versions.take(limit as usize).take_while(|version| page.takes(version.document.len())).cloned().collect()
    }
}

#[async_trait]
impl RegistryStore for MemStore {
    async fn put_function(&self, tenant: &TenantId, name: &FunctionName, document: &str) -> Result<FunctionVersion> {
        let publication = Publication::of(document)?;
        let now = (self.time)();
        let mut inner = self.lock()?;
        let function = inner.functions.get(&(tenant.clone(), name.clone()));
        let latest = function.and_then(|function| function.versions.values().next_back());
        let Some(version) = publication.version(latest.map(|latest| (latest.version, latest.digest)))? else {
            return latest.cloned().ok_or(Error::NotFound);
        };
        let Publication { digest, document } = publication;
        let (tenant, name) = (tenant.clone(), name.clone());
        let published = FunctionVersion { tenant, name, version, digest, document, created_at: now };
        let slot = (published.tenant.clone(), published.name.clone());
        inner.functions.entry(slot).or_default().versions.insert(version, published.clone());
        Ok(published)
    }

    async fn get_function(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        version: Option<u64>,
    ) -> Result<Option<FunctionVersion>> {
        let inner = self.lock()?;
        let Some(Function { versions, .. }) = inner.functions.get(&(tenant.clone(), name.clone())) else {
            return Ok(None);
        };
        let found = match version {
            Some(version) => versions.get(&version),
            None => versions.values().next_back(),
        };
        Ok(found.cloned())
    }

    async fn list_functions(
        &self,
        scope: &Scope,
        after: Option<(TenantId, FunctionName)>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>> {
        let inner = self.lock()?;
        let functions = inner
            .functions
            .iter()
            .filter(|(slot, _)| scope.covers(&slot.0) && after.as_ref().is_none_or(|after| *slot > after));
        Ok(self.page(functions.filter_map(|(_, function)| function.versions.values().next_back()), limit))
    }

    async fn list_versions(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>> {
        let inner = self.lock()?;
        let Some(function) = inner.functions.get(&(tenant.clone(), name.clone())) else { return Ok(Vec::new()) };
        let versions = function.versions.values().rev();
        Ok(self.page(versions.filter(|version| before.is_none_or(|before| version.version < before)), limit))
    }

    async fn remove_function(&self, tenant: &TenantId, name: &FunctionName) -> Result<()> {
        self.lock()?.functions.remove(&(tenant.clone(), name.clone())).map(|_| ()).ok_or(Error::NotFound)
    }

    async fn put_alias(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        alias: &AliasName,
        version: u64,
    ) -> Result<AliasRow> {
        let now = (self.time)();
        let mut inner = self.lock()?;
        let function = inner.functions.get_mut(&(tenant.clone(), name.clone())).ok_or(Error::NotFound)?;
        if !function.versions.contains_key(&version) {
            return Err(Error::NotFound);
        }
        if !function.aliases.contains_key(alias) && function.aliases.len() >= ALIASES_PER_FUNCTION_MAX {
            return Err(Error::Limit { what: "the aliases of one function", limit: ALIASES_PER_FUNCTION_MAX as u64 });
        }
        let row = AliasRow { alias: alias.clone(), version, changed_at: now };
        function.aliases.insert(alias.clone(), row.clone());
        Ok(row)
    }

    async fn get_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<Option<AliasRow>> {
        let inner = self.lock()?;
        Ok(inner
            .functions
            .get(&(tenant.clone(), name.clone()))
            .and_then(|function| function.aliases.get(alias).cloned()))
    }

    async fn list_aliases(&self, tenant: &TenantId, name: &FunctionName) -> Result<Vec<AliasRow>> {
        let inner = self.lock()?;
        let function = inner.functions.get(&(tenant.clone(), name.clone()));
        Ok(function.map(|function| function.aliases.values().cloned().collect()).unwrap_or_default())
    }

    async fn remove_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<()> {
        let mut inner = self.lock()?;
        let function = inner.functions.get_mut(&(tenant.clone(), name.clone()));
        function.and_then(|function| function.aliases.remove(alias)).map(|_| ()).ok_or(Error::NotFound)
    }
}
