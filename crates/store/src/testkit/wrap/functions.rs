//! The registry and log lines of a wrapper.

/// Implements `RegistryStore` and `LineStore`, as `wrap_store!` does the other roles; it uses this one.
#[macro_export]
macro_rules! wrap_functions {
    ([$($generics:tt)*] $wrapper:ty) => {
        #[$crate::testkit::wrap::async_trait]
        impl<$($generics)*> $crate::RegistryStore for $wrapper {
            async fn put_function(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                name: &$crate::testkit::wrap::FunctionName,
                document: &str,
            ) -> $crate::Result<$crate::registry::FunctionVersion> {
                self.around("put_function", self.inner().put_function(tenant, name, document)).await
            }

            async fn get_function(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                name: &$crate::testkit::wrap::FunctionName,
                version: Option<u64>,
            ) -> $crate::Result<Option<$crate::registry::FunctionVersion>> {
                self.around("get_function", self.inner().get_function(tenant, name, version)).await
            }

            async fn list_functions(
                &self,
                scope: &$crate::Scope,
                after: Option<($crate::testkit::wrap::TenantId, $crate::testkit::wrap::FunctionName)>,
                limit: u32,
            ) -> $crate::Result<Vec<$crate::registry::FunctionVersion>> {
                self.around("list_functions", self.inner().list_functions(scope, after, limit)).await
            }

            async fn list_versions(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                name: &$crate::testkit::wrap::FunctionName,
                before: Option<u64>,
                limit: u32,
            ) -> $crate::Result<Vec<$crate::registry::FunctionVersion>> {
                self.around("list_versions", self.inner().list_versions(tenant, name, before, limit)).await
            }

            async fn remove_function(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                name: &$crate::testkit::wrap::FunctionName,
            ) -> $crate::Result<()> {
                self.around("remove_function", self.inner().remove_function(tenant, name)).await
            }

            async fn put_alias(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                name: &$crate::testkit::wrap::FunctionName,
                alias: &$crate::testkit::wrap::AliasName,
                version: u64,
            ) -> $crate::Result<$crate::registry::AliasRow> {
                self.around("put_alias", self.inner().put_alias(tenant, name, alias, version)).await
            }

            async fn get_alias(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                name: &$crate::testkit::wrap::FunctionName,
                alias: &$crate::testkit::wrap::AliasName,
            ) -> $crate::Result<Option<$crate::registry::AliasRow>> {
                self.around("get_alias", self.inner().get_alias(tenant, name, alias)).await
            }

            async fn list_aliases(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                name: &$crate::testkit::wrap::FunctionName,
            ) -> $crate::Result<Vec<$crate::registry::AliasRow>> {
                self.around("list_aliases", self.inner().list_aliases(tenant, name)).await
            }

            async fn remove_alias(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                name: &$crate::testkit::wrap::FunctionName,
                alias: &$crate::testkit::wrap::AliasName,
            ) -> $crate::Result<()> {
                self.around("remove_alias", self.inner().remove_alias(tenant, name, alias)).await
            }
        }

        #[$crate::testkit::wrap::async_trait]
        impl<$($generics)*> $crate::LineStore for $wrapper {
            async fn put_lines(
                &self,
                run_id: &$crate::testkit::wrap::RunId,
                tenant: &$crate::testkit::wrap::TenantId,
                lines: Vec<$crate::lines::LogLine>,
            ) -> $crate::Result<()> {
                self.around("put_lines", self.inner().put_lines(run_id, tenant, lines)).await
            }

            async fn read_lines(
                &self,
                scope: &$crate::Scope,
                run_id: &$crate::testkit::wrap::RunId,
                after: u64,
                limit: u32,
            ) -> $crate::Result<Vec<(u64, $crate::lines::LogLine)>> {
                self.around("read_lines", self.inner().read_lines(scope, run_id, after, limit)).await
            }
        }
    };
}
