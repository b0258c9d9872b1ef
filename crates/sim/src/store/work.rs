//! Queue, dispatches, timers and authority through a connection.

use async_trait::async_trait;
use servo_model::contract::Backlog;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::dispatch::{DispatchHeads, DispatchRow, DueTimers, QueueClaim, QueuedRun};
use servo_store::{AuthorityRow, Result, WorkStore};

use super::SimStore;

#[async_trait]
impl WorkStore for SimStore {
    async fn claim_queue(&self, claim: &QueueClaim) -> Result<Vec<QueuedRun>> {
        let claim = claim.clone();
        self.write("claim_queue", move |store| Box::pin(async move { store.claim_queue(&claim).await })).await
    }

    async fn release_queue(&self, run_id: &RunId, owner: &str, not_before: Timestamp) -> Result<()> {
        let (run_id, owner) = (run_id.clone(), owner.to_owned());
        self.write("release_queue", move |store| {
            Box::pin(async move { store.release_queue(&run_id, &owner, not_before).await })
        })
        .await
    }

    async fn dispatch_heads(&self, heads: &DispatchHeads) -> Result<Vec<DispatchRow>> {
        let heads = heads.clone();
        self.read("dispatch_heads", move |store| Box::pin(async move { store.dispatch_heads(&heads).await })).await
    }

    async fn open_dispatches(
        &self,
        epoch: u64,
        tenant: &TenantId,
        after: Option<(Timestamp, String)>,
        limit: u32,
    ) -> Result<Vec<DispatchRow>> {
        let tenant = tenant.clone();
        self.read("open_dispatches", move |store| {
            Box::pin(async move { store.open_dispatches(epoch, &tenant, after, limit).await })
        })
        .await
    }

    async fn get_dispatch(&self, request_id: &str) -> Result<Option<DispatchRow>> {
        let request_id = request_id.to_owned();
        self.read("get_dispatch", move |store| Box::pin(async move { store.get_dispatch(&request_id).await })).await
    }

    async fn backlog(&self) -> Result<Backlog> {
        self.read("backlog", |store| Box::pin(async move { store.backlog().await })).await
    }

    async fn due_timers(&self, limit: u32) -> Result<DueTimers> {
        self.read("due_timers", move |store| Box::pin(async move { store.due_timers(limit).await })).await
    }

    async fn get_timer(&self, run_id: &RunId) -> Result<Option<Timestamp>> {
        let run_id = run_id.clone();
        self.read("get_timer", move |store| Box::pin(async move { store.get_timer(&run_id).await })).await
    }

    async fn authority(&self) -> Result<Option<AuthorityRow>> {
        self.read("authority", |store| Box::pin(async move { store.authority().await })).await
    }

    async fn break_leases(&self) -> Result<()> {
        self.write("break_leases", |store| Box::pin(async move { store.break_leases().await })).await
    }
}
