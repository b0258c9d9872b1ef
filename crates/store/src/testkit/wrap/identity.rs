//! Keys and the audit log of a wrapper.

/// Implements `IdentityStore` and `AuditStore`, as `wrap_store!` does the other roles; it uses this one.
#[macro_export]
macro_rules! wrap_identity {
    ([$($generics:tt)*] $wrapper:ty) => {
        #[$crate::testkit::wrap::async_trait]
        impl<$($generics)*> $crate::IdentityStore for $wrapper {
            async fn put_key(
                &self,
                key: $crate::identity::KeyRow,
            ) -> $crate::Result<()> {
                self.around("put_key", self.inner().put_key(key)).await
            }

            async fn find_key(
                &self,
                digest: $crate::testkit::wrap::Digest,
            ) -> $crate::Result<Option<$crate::identity::KeyRow>> {
                self.around("find_key", self.inner().find_key(digest)).await
            }

            async fn list_keys(
                &self,
                scope: &$crate::Scope,
                before: Option<$crate::testkit::wrap::KeyId>,
                limit: u32,
            ) -> $crate::Result<Vec<$crate::identity::KeyRow>> {
                self.around("list_keys", self.inner().list_keys(scope, before, limit)).await
            }

            async fn get_key(
                &self,
                scope: &$crate::Scope,
                id: &$crate::testkit::wrap::KeyId,
            ) -> $crate::Result<Option<$crate::identity::KeyRow>> {
                self.around("get_key", self.inner().get_key(scope, id)).await
            }

            async fn revoke_key(
                &self,
                scope: &$crate::Scope,
                id: &$crate::testkit::wrap::KeyId,
                at: $crate::testkit::wrap::Timestamp,
            ) -> $crate::Result<$crate::identity::KeyRow> {
                self.around("revoke_key", self.inner().revoke_key(scope, id, at)).await
            }

            async fn touch_key(
                &self,
                id: &$crate::testkit::wrap::KeyId,
                at: $crate::testkit::wrap::Timestamp,
            ) -> $crate::Result<()> {
                self.around("touch_key", self.inner().touch_key(id, at)).await
            }

            async fn trim_keys(
                &self,
                before: $crate::testkit::wrap::Timestamp,
                limit: u32,
            ) -> $crate::Result<u32> {
                self.around("trim_keys", self.inner().trim_keys(before, limit)).await
            }
        }

        #[$crate::testkit::wrap::async_trait]
        impl<$($generics)*> $crate::AuditStore for $wrapper {
            async fn put_audit(
                &self,
                entries: Vec<std::sync::Arc<$crate::testkit::wrap::AuditEntry>>,
            ) -> $crate::Result<()> {
                self.around("put_audit", self.inner().put_audit(entries)).await
            }

            async fn read_audit(
                &self,
                scope: &$crate::Scope,
                query: &$crate::audit::AuditQuery,
            ) -> $crate::Result<Vec<$crate::testkit::wrap::AuditEntry>> {
                self.around("read_audit", self.inner().read_audit(scope, query)).await
            }

            async fn trim_audit(
                &self,
                before: $crate::testkit::wrap::Timestamp,
                limit: u32,
            ) -> $crate::Result<u32> {
                self.around("trim_audit", self.inner().trim_audit(before, limit)).await
            }
        }
    };
}
