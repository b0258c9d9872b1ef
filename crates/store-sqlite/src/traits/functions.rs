//! The registry and the log lines of runs.

use async_trait::async_trait;
use servo_model::{AliasName, FunctionName, RunId, TenantId};
use servo_store::lines::{LineStore, LogLine, prepare};
use servo_store::registry::{AliasRow, FunctionVersion, Publication, RegistryStore};
use servo_store::{Result, Scope};

use crate::sql::{lines, registry};
use crate::store::SqliteStore;
use crate::writer::append;
use crate::writer::job::Nature;

#[async_trait]
impl RegistryStore for SqliteStore {
    async fn put_function(&self, tenant: &TenantId, name: &FunctionName, document: &str) -> Result<FunctionVersion> {
        let publication = Publication::of(document)?;
        let (tenant, name) = (tenant.clone(), name.clone());
        let nature = Nature { bytes: publication.document.len(), may_fail_late: false };
        let kept = self.inner.kept.clone();
        self.write(nature, move |tx| {
            kept.change();
            registry::put(tx, tenant, name, publication)
        })
        .await
    }

    async fn get_function(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        version: Option<u64>,
    ) -> Result<Option<FunctionVersion>> {
        let key = (tenant.clone(), name.clone(), version);
        let generation = match self.inner.kept.get(&key) {
            Ok(found) => return self.check_open().map(|()| Some(found)),
            Err(generation) => generation,
        };
        let (tenant, name) = (tenant.clone(), name.clone());
        let found = self.read_direct(move |conn| registry::get(conn, &tenant, &name, version)).await?;
        if let Some(found) = &found {
            self.inner.kept.keep(key, found, generation);
        }
        Ok(found)
    }

    async fn list_functions(
        &self,
        scope: &Scope,
        after: Option<(TenantId, FunctionName)>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>> {
        let (scope, bytes_max) = (scope.clone(), self.inner.limits.page_bytes_max);
        self.read_direct(move |conn| registry::list(conn, &scope, after.as_ref(), limit, bytes_max)).await
    }

    async fn list_versions(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>> {
        let (tenant, name, bytes_max) = (tenant.clone(), name.clone(), self.inner.limits.page_bytes_max);
        self.read_direct(move |conn| registry::versions(conn, &tenant, &name, before, limit, bytes_max)).await
    }

    async fn remove_function(&self, tenant: &TenantId, name: &FunctionName) -> Result<()> {
        let (tenant, name) = (tenant.clone(), name.clone());
        let kept = self.inner.kept.clone();
        self.write(Nature::SMALL, move |tx| {
            kept.change();
            registry::remove(tx.conn, &tenant, &name)
        })
        .await
    }

    async fn put_alias(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        alias: &AliasName,
        version: u64,
    ) -> Result<AliasRow> {
        let (tenant, name, alias) = (tenant.clone(), name.clone(), alias.clone());
        self.write(Nature::SMALL_CHECKED, move |tx| registry::put_alias(tx, &tenant, &name, alias, version)).await
    }

    async fn get_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<Option<AliasRow>> {
        let (tenant, name, alias) = (tenant.clone(), name.clone(), alias.clone());
        let found = self.read_direct(move |conn| registry::aliases(conn, &tenant, &name, Some(&alias))).await?;
        Ok(found.into_iter().next())
    }

    async fn list_aliases(&self, tenant: &TenantId, name: &FunctionName) -> Result<Vec<AliasRow>> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.read_direct(move |conn| registry::aliases(conn, &tenant, &name, None)).await
    }

    async fn remove_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<()> {
        let (tenant, name, alias) = (tenant.clone(), name.clone(), alias.clone());
        self.write(Nature::SMALL_CHECKED, move |tx| registry::remove_alias(tx.conn, &tenant, &name, &alias)).await
    }
}

#[async_trait]
impl LineStore for SqliteStore {
    async fn put_lines(&self, run_id: &RunId, tenant: &TenantId, lines: Vec<LogLine>) -> Result<()> {
        let lines = prepare(lines, &self.inner.limits)?;
        let (run_id, tenant) = (run_id.clone(), tenant.clone());
        let bytes = lines.iter().map(|line| line.text.len()).sum();
        self.ahead(bytes, move |view| append::put_lines(view, run_id, tenant, lines)).await
    }

    async fn read_lines(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<Vec<(u64, LogLine)>> {
        let (scope, id) = (scope.clone(), run_id.clone());
        self.read_of_run(run_id, move |conn| lines::read(conn, &scope, &id, after, limit)).await
    }
}
