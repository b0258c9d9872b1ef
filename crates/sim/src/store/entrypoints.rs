//! Entrypoints, with the faults that everything has.

use async_trait::async_trait;
use servo_model::TenantId;
use servo_store::entrypoints::{EntrypointQuery, EntrypointRow, EntrypointStore};
use servo_store::{Result, Scope};

use super::SimStore;

#[async_trait]
impl EntrypointStore for SimStore {
    async fn put_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow> {
        self.write("put_entrypoint", move |store| Box::pin(async move { store.put_entrypoint(row).await })).await
    }

    async fn get_entrypoint(&self, scope: &Scope, id: &str) -> Result<Option<EntrypointRow>> {
        let (scope, id) = (scope.clone(), id.to_owned());
        self.read("get_entrypoint", move |store| Box::pin(async move { store.get_entrypoint(&scope, &id).await })).await
    }

    async fn find_entrypoint(&self, tenant: &TenantId, address: &str) -> Result<Option<EntrypointRow>> {
        let (tenant, address) = (tenant.clone(), address.to_owned());
        self.read("find_entrypoint", move |store| {
            Box::pin(async move { store.find_entrypoint(&tenant, &address).await })
        })
        .await
    }

    async fn update_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow> {
        self.write("update_entrypoint", move |store| Box::pin(async move { store.update_entrypoint(row).await })).await
    }

    async fn remove_entrypoint(&self, tenant: &TenantId, id: &str, expected_revision: u64) -> Result<()> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        self.write("remove_entrypoint", move |store| {
            Box::pin(async move { store.remove_entrypoint(&tenant, &id, expected_revision).await })
        })
        .await
    }

    async fn list_entrypoints(&self, scope: &Scope, query: &EntrypointQuery) -> Result<Vec<EntrypointRow>> {
        let (scope, query) = (scope.clone(), query.clone());
        self.read("list_entrypoints", move |store| {
            Box::pin(async move { store.list_entrypoints(&scope, &query).await })
        })
        .await
    }

    async fn count_entrypoints(&self, tenant: &TenantId) -> Result<u64> {
        let tenant = tenant.clone();
        self.read("count_entrypoints", move |store| Box::pin(async move { store.count_entrypoints(&tenant).await }))
            .await
    }
}
