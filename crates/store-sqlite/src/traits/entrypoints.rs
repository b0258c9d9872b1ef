//! Entrypoints.

use async_trait::async_trait;
use servo_model::TenantId;
use servo_store::entrypoints::{EntrypointQuery, EntrypointRow, EntrypointStore};
use servo_store::{Result, Scope};

use crate::sql::entrypoints;
use crate::store::SqliteStore;
use crate::writer::job::Nature;

#[async_trait]
impl EntrypointStore for SqliteStore {
    async fn put_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow> {
        row.check()?;
        let nature = Nature { bytes: row.document.len(), may_fail_late: false };
        self.write(nature, move |tx| entrypoints::put(tx.conn, row)).await
    }

    async fn get_entrypoint(&self, scope: &Scope, id: &str) -> Result<Option<EntrypointRow>> {
        let (scope, id) = (scope.clone(), id.to_owned());
        self.read_direct(move |conn| entrypoints::get(conn, &scope, &id)).await
    }

    async fn find_entrypoint(&self, tenant: &TenantId, address: &str) -> Result<Option<EntrypointRow>> {
        let (tenant, address) = (tenant.clone(), address.to_owned());
        self.read_direct(move |conn| entrypoints::called(conn, &tenant, &address)).await
    }

    async fn update_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow> {
        row.check()?;
        let nature = Nature { bytes: row.document.len(), may_fail_late: false };
        self.write(nature, move |tx| entrypoints::update(tx.conn, row)).await
    }

    async fn remove_entrypoint(&self, tenant: &TenantId, id: &str, expected_revision: u64) -> Result<()> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        self.write(Nature::SMALL_CHECKED, move |tx| entrypoints::remove(tx.conn, &tenant, &id, expected_revision)).await
    }

    async fn list_entrypoints(&self, scope: &Scope, query: &EntrypointQuery) -> Result<Vec<EntrypointRow>> {
        query.check()?;
        let (scope, query, bytes_max) = (scope.clone(), query.clone(), self.inner.limits.page_bytes_max);
        self.read_direct(move |conn| entrypoints::list(conn, &scope, &query, bytes_max)).await
    }

    async fn count_entrypoints(&self, tenant: &TenantId) -> Result<u64> {
        let tenant = tenant.clone();
        self.read_direct(move |conn| entrypoints::count(conn, &tenant)).await
    }
}
