//! The registry and log lines through a connection.

use async_trait::async_trait;
use servo_model::{AliasName, FunctionName, RunId, TenantId};
use servo_store::lines::LogLine;
use servo_store::registry::{AliasRow, FunctionVersion};
use servo_store::{LineStore, RegistryStore, Result, Scope};

use super::SimStore;

/// One call: clones what it borrows, and has the store do it.
macro_rules! passed_on {
    ($self:ident.$how:ident($method:ident($($borrowed:ident),*; $($owned:ident),*))) => {{
        $(let $borrowed = $borrowed.to_owned();)*
        $self
            .$how(stringify!($method), move |store| {
                Box::pin(async move { store.$method($(&$borrowed,)* $($owned),*).await })
            })
            .await
    }};
}
pub(super) use passed_on;

#[async_trait]
impl RegistryStore for SimStore {
    async fn put_function(&self, tenant: &TenantId, name: &FunctionName, document: &str) -> Result<FunctionVersion> {
        passed_on!(self.write(put_function(tenant, name, document;)))
    }

    async fn get_function(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        version: Option<u64>,
    ) -> Result<Option<FunctionVersion>> {
        passed_on!(self.read(get_function(tenant, name; version)))
    }

    async fn list_functions(
        &self,
        scope: &Scope,
        after: Option<(TenantId, FunctionName)>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>> {
        passed_on!(self.read(list_functions(scope; after, limit)))
    }

    async fn list_versions(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>> {
        passed_on!(self.read(list_versions(tenant, name; before, limit)))
    }

    async fn remove_function(&self, tenant: &TenantId, name: &FunctionName) -> Result<()> {
        passed_on!(self.write(remove_function(tenant, name;)))
    }

    async fn put_alias(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        alias: &AliasName,
        version: u64,
    ) -> Result<AliasRow> {
        passed_on!(self.write(put_alias(tenant, name, alias; version)))
    }

    async fn get_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<Option<AliasRow>> {
        passed_on!(self.read(get_alias(tenant, name, alias;)))
    }

    async fn list_aliases(&self, tenant: &TenantId, name: &FunctionName) -> Result<Vec<AliasRow>> {
        passed_on!(self.read(list_aliases(tenant, name;)))
    }

    async fn remove_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<()> {
        passed_on!(self.write(remove_alias(tenant, name, alias;)))
    }
}

#[async_trait]
impl LineStore for SimStore {
    async fn put_lines(&self, run_id: &RunId, tenant: &TenantId, lines: Vec<LogLine>) -> Result<()> {
        passed_on!(self.write(put_lines(run_id, tenant; lines)))
    }

    async fn read_lines(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<Vec<(u64, LogLine)>> {
        passed_on!(self.read(read_lines(scope, run_id; after, limit)))
    }
}
