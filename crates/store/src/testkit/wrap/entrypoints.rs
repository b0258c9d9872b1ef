//! The entrypoints of a wrapper.

/// Implements `EntrypointStore`, as `wrap_store!` does the other roles; it uses this one.
#[macro_export]
macro_rules! wrap_entrypoints {
    ([$($generics:tt)*] $wrapper:ty) => {
        #[$crate::testkit::wrap::async_trait]
        impl<$($generics)*> $crate::EntrypointStore for $wrapper {
            async fn put_entrypoint(&self, row: $crate::EntrypointRow) -> $crate::Result<$crate::EntrypointRow> {
                self.around("put_entrypoint", self.inner().put_entrypoint(row)).await
            }

            async fn get_entrypoint(
                &self,
                scope: &$crate::Scope,
                id: &str,
            ) -> $crate::Result<Option<$crate::EntrypointRow>> {
                self.around("get_entrypoint", self.inner().get_entrypoint(scope, id)).await
            }

            async fn find_entrypoint(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                address: &str,
            ) -> $crate::Result<Option<$crate::EntrypointRow>> {
                self.around("find_entrypoint", self.inner().find_entrypoint(tenant, address)).await
            }

            async fn update_entrypoint(&self, row: $crate::EntrypointRow) -> $crate::Result<$crate::EntrypointRow> {
                self.around("update_entrypoint", self.inner().update_entrypoint(row)).await
            }

            async fn remove_entrypoint(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                id: &str,
                expected_revision: u64,
            ) -> $crate::Result<()> {
                self.around("remove_entrypoint", self.inner().remove_entrypoint(tenant, id, expected_revision)).await
            }

            async fn list_entrypoints(
                &self,
                scope: &$crate::Scope,
                query: &$crate::entrypoints::EntrypointQuery,
            ) -> $crate::Result<Vec<$crate::EntrypointRow>> {
                self.around("list_entrypoints", self.inner().list_entrypoints(scope, query)).await
            }

            async fn count_entrypoints(&self, tenant: &$crate::testkit::wrap::TenantId) -> $crate::Result<u64> {
                self.around("count_entrypoints", self.inner().count_entrypoints(tenant)).await
            }
        }
    };
}
