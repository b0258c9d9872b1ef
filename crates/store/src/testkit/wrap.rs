//! Wrappers of a store: every role but the log, passed on through one function of the wrapper.
//!
//! The log is left to the wrapper, because that is where wrappers differ.

mod entrypoints;
mod functions;
mod identity;

/// Implements `RunStore`, `WorkStore`, `RelayStore`, `RegistryStore`, `EntrypointStore`, `LineStore`, `IdentityStore`,
/// `AuditStore` and `AdminStore` for a wrapper with the methods
/// `fn inner(&self) -> &impl Store` (or `&dyn Store`) and
/// `async fn around<T: Send>(&self, method: &'static str, call: impl Future<Output = Result<T>> + Send) -> Result<T>`.
/// Generics go in the brackets: `wrap_store!([S: Store + ?Sized] FaultyStore<S>)`, `wrap_store!([] Mine)`.
#[macro_export]
macro_rules! wrap_store {
    ([$($generics:tt)*] $wrapper:ty) => {
        #[$crate::testkit::wrap::async_trait]
        impl<$($generics)*> $crate::RunStore for $wrapper {
            async fn get_run(
                &self,
                scope: &$crate::Scope,
                run_id: &$crate::testkit::wrap::RunId,
            ) -> $crate::Result<Option<$crate::RunRow>> {
                self.around("get_run", self.inner().get_run(scope, run_id)).await
            }

            async fn list_runs(
                &self,
                scope: &$crate::Scope,
                query: &$crate::runs::RunQuery,
            ) -> $crate::Result<Vec<$crate::RunRow>> {
                self.around("list_runs", self.inner().list_runs(scope, query)).await
            }

            async fn find_request(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                key: $crate::testkit::wrap::Digest,
            ) -> $crate::Result<Option<$crate::testkit::wrap::RunId>> {
                self.around("find_request", self.inner().find_request(tenant, key)).await
            }

            async fn release_request(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                key: $crate::testkit::wrap::Digest,
                run_id: &$crate::testkit::wrap::RunId,
            ) -> $crate::Result<bool> {
                self.around("release_request", self.inner().release_request(tenant, key, run_id)).await
            }

            async fn count_by_visible(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                plan_id: Option<&str>,
            ) -> $crate::Result<Vec<($crate::testkit::wrap::InvocationStatus, u64)>> {
                self.around("count_by_visible", self.inner().count_by_visible(tenant, plan_id)).await
            }

            async fn count_active(&self, tenant: &$crate::testkit::wrap::TenantId, most: u32) -> $crate::Result<u32> {
                self.around("count_active", self.inner().count_active(tenant, most)).await
            }

            async fn count_open(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                plan_id: &str,
            ) -> $crate::Result<Vec<(String, u64)>> {
                self.around("count_open", self.inner().count_open(tenant, plan_id)).await
            }

            async fn count_descendants(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                root: &$crate::testkit::wrap::RunId,
                most: u32,
            ) -> $crate::Result<u32> {
                self.around("count_descendants", self.inner().count_descendants(tenant, root, most)).await
            }

            async fn open_descendants(
                &self,
                tenant: &$crate::testkit::wrap::TenantId,
                root: &$crate::testkit::wrap::RunId,
                after: Option<&$crate::testkit::wrap::RunId>,
                limit: u32,
            ) -> $crate::Result<Vec<$crate::testkit::wrap::RunId>> {
                self.around("open_descendants", self.inner().open_descendants(tenant, root, after, limit)).await
            }
        }

        #[$crate::testkit::wrap::async_trait]
        impl<$($generics)*> $crate::WorkStore for $wrapper {
            async fn claim_queue(
                &self,
                claim: &$crate::dispatch::QueueClaim,
            ) -> $crate::Result<Vec<$crate::dispatch::QueuedRun>> {
                self.around("claim_queue", self.inner().claim_queue(claim)).await
            }

            async fn release_queue(
                &self,
                run_id: &$crate::testkit::wrap::RunId,
                owner: &str,
                not_before: $crate::testkit::wrap::Timestamp,
            ) -> $crate::Result<()> {
                self.around("release_queue", self.inner().release_queue(run_id, owner, not_before)).await
            }

            async fn dispatch_heads(
                &self,
                heads: &$crate::dispatch::DispatchHeads,
            ) -> $crate::Result<Vec<$crate::DispatchRow>> {
                self.around("dispatch_heads", self.inner().dispatch_heads(heads)).await
            }

            async fn open_dispatches(
                &self,
                epoch: u64,
                tenant: &$crate::testkit::wrap::TenantId,
                after: Option<($crate::testkit::wrap::Timestamp, String)>,
                limit: u32,
            ) -> $crate::Result<Vec<$crate::DispatchRow>> {
                self.around("open_dispatches", self.inner().open_dispatches(epoch, tenant, after, limit)).await
            }

            async fn get_dispatch(&self, request_id: &str) -> $crate::Result<Option<$crate::DispatchRow>> {
                self.around("get_dispatch", self.inner().get_dispatch(request_id)).await
            }

            async fn backlog(&self) -> $crate::Result<$crate::testkit::wrap::Backlog> {
                self.around("backlog", self.inner().backlog()).await
            }

            async fn due_timers(&self, limit: u32) -> $crate::Result<$crate::dispatch::DueTimers> {
                self.around("due_timers", self.inner().due_timers(limit)).await
            }

            async fn get_timer(
                &self,
                run_id: &$crate::testkit::wrap::RunId,
            ) -> $crate::Result<Option<$crate::testkit::wrap::Timestamp>> {
                self.around("get_timer", self.inner().get_timer(run_id)).await
            }

            async fn authority(&self) -> $crate::Result<Option<$crate::AuthorityRow>> {
                self.around("authority", self.inner().authority()).await
            }

            async fn break_leases(&self) -> $crate::Result<()> {
                self.around("break_leases", self.inner().break_leases()).await
            }
        }

        #[$crate::testkit::wrap::async_trait]
        impl<$($generics)*> $crate::RelayStore for $wrapper {
            async fn cursor(&self, name: &str) -> $crate::Result<Option<$crate::relay::CursorRow>> {
                self.around("cursor", self.inner().cursor(name)).await
            }

            async fn move_cursor(
                &self,
                from: Option<$crate::Position>,
                to: $crate::relay::CursorRow,
                fence: Option<$crate::Fence>,
            ) -> $crate::Result<()> {
                self.around("move_cursor", self.inner().move_cursor(from, to, fence)).await
            }

            async fn outbox_put(&self, row: $crate::relay::OutboxRow) -> $crate::Result<()> {
                self.around("outbox_put", self.inner().outbox_put(row)).await
            }

            async fn outbox_due(&self, limit: u32) -> $crate::Result<Vec<$crate::relay::OutboxRow>> {
                self.around("outbox_due", self.inner().outbox_due(limit)).await
            }

            async fn outbox_len(&self) -> $crate::Result<u64> {
                self.around("outbox_len", self.inner().outbox_len()).await
            }

            async fn outbox_done(&self, position: $crate::Position) -> $crate::Result<()> {
                self.around("outbox_done", self.inner().outbox_done(position)).await
            }

            async fn outbox_bury(&self, row: $crate::relay::OutboxRow) -> $crate::Result<()> {
                self.around("outbox_bury", self.inner().outbox_bury(row)).await
            }

            async fn dead_letters(
                &self,
                after: $crate::Position,
                limit: u32,
            ) -> $crate::Result<Vec<$crate::relay::DeadLetter>> {
                self.around("dead_letters", self.inner().dead_letters(after, limit)).await
            }

            async fn redrive(&self, position: Option<$crate::Position>) -> $crate::Result<u64> {
                self.around("redrive", self.inner().redrive(position)).await
            }

            async fn raise_alert(&self, alert: $crate::relay::NewAlert) -> $crate::Result<()> {
                self.around("raise_alert", self.inner().raise_alert(alert)).await
            }

            async fn alerts(
                &self,
                scope: &$crate::Scope,
                limit: u32,
            ) -> $crate::Result<Vec<$crate::testkit::wrap::Alert>> {
                self.around("alerts", self.inner().alerts(scope, limit)).await
            }

            async fn clear_alert(
                &self,
                code: $crate::testkit::wrap::AlertCode,
                tenant: &$crate::testkit::wrap::TenantId,
                subject: &str,
            ) -> $crate::Result<()> {
                self.around("clear_alert", self.inner().clear_alert(code, tenant, subject)).await
            }
        }

        $crate::wrap_functions!([$($generics)*] $wrapper);
        $crate::wrap_entrypoints!([$($generics)*] $wrapper);
        $crate::wrap_identity!([$($generics)*] $wrapper);

        #[$crate::testkit::wrap::async_trait]
        impl<$($generics)*> $crate::AdminStore for $wrapper {
            async fn info(&self) -> $crate::Result<$crate::admin::StoreInfo> {
                self.around("info", self.inner().info()).await
            }

            fn condition(&self) -> $crate::admin::Condition {
                self.inner().condition()
            }

            async fn secret(&self) -> $crate::Result<[u8; 32]> {
                self.around("secret", self.inner().secret()).await
            }

            async fn quarantine(&self, run_id: &$crate::testkit::wrap::RunId, reason: &str) -> $crate::Result<()> {
                self.around("quarantine", self.inner().quarantine(run_id, reason)).await
            }

            async fn retire(
                &self,
                finished_before: $crate::testkit::wrap::Timestamp,
                limit: u32,
            ) -> $crate::Result<u32> {
                self.around("retire", self.inner().retire(finished_before, limit)).await
            }

            async fn delete_run(
                &self,
                scope: &$crate::Scope,
                run_id: &$crate::testkit::wrap::RunId,
            ) -> $crate::Result<()> {
                self.around("delete_run", self.inner().delete_run(scope, run_id)).await
            }

            async fn trim_system(&self, before: $crate::testkit::wrap::Timestamp, limit: u32) -> $crate::Result<u32> {
                self.around("trim_system", self.inner().trim_system(before, limit)).await
            }

            async fn import_run(&self, row: $crate::RunRow, events: Vec<$crate::StoredEvent>) -> $crate::Result<()> {
                self.around("import_run", self.inner().import_run(row, events)).await
            }

            async fn backup(&self, path: &::std::path::Path) -> $crate::Result<()> {
                self.around("backup", self.inner().backup(path)).await
            }

            async fn integrity(&self) -> $crate::Result<$crate::Integrity> {
                self.around("integrity", self.inner().integrity()).await
            }

            async fn close(&self) -> $crate::Result<()> {
                self.around("close", self.inner().close()).await
            }
        }
    };
}

// What the macro names, so that its users need not depend on these crates.
pub use async_trait::async_trait;
pub use servo_canon::Digest;
pub use servo_model::alert::{Alert, AlertCode};
pub use servo_model::contract::Backlog;
pub use servo_model::invocation::InvocationStatus;
pub use servo_model::{AliasName, AuditEntry, FunctionName, KeyId, RunId, TenantId, Timestamp};
