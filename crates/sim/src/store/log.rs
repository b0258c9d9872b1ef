//! The log through a connection.

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::log::{LogPage, RunPage, StoredRun, StoredSnapshot, TimerChange};
use servo_store::runs::RunQuery;
use servo_store::{
    Append, Appended, DispatchChange, Error, Expected, LogStore, Position, Result, RunRow, RunStore, Scope, WorkStore,
};

use super::{Sabotage, SimStore};
use crate::faults::Call;
use crate::journal::{Accepted, Write};

impl SimStore {
    /// Makes an append wrong, if this store is.
    fn tamper(&self, append: &mut Append) {
        match self.sabotage() {
            Sabotage::None | Sabotage::DenyMaybeWritten | Sabotage::ForgetQuarantine => {}
            Sabotage::StripFence => append.fence = None,
            Sabotage::LoseDispatch(suffix) => {
                for stream in &mut append.streams {
                    stream.dispatches.retain(
                        |change| !matches!(change, DispatchChange::Queue { request_id, .. } if request_id.ends_with(suffix)),
                    );
                }
            }
            Sabotage::LoseTimers => {
                for stream in &mut append.streams {
                    stream.timer = TimerChange::Keep;
                }
            }
        }
    }
}

#[async_trait]
impl LogStore for SimStore {
    async fn now(&self) -> Result<Timestamp> {
        self.read("now", |store| Box::pin(async move { store.now().await })).await
    }

    async fn append(&self, mut append: Append) -> Result<Appended> {
        let conflict = append.streams.iter().find_map(|stream| match stream.expected {
            Expected::Seq(expected) => {
                Some(Error::Conflict { run_id: stream.run_id.clone(), expected, actual: expected + 1 })
            }
            Expected::New | Expected::Any => None,
        });
        let call = Call { name: "append", writes: true, can_conflict: conflict.is_some() };
        let claimed = append.fence;
        self.tamper(&mut append);
        let (journal, node) = (self.shared.journal.clone(), self.shared.node);
        self.call(call, conflict, move |store| {
            Box::pin(async move {
                let appended = store.append(append).await?;
                // Nothing is awaited for long in here, so the journal has the store's own order.
                let at = store.now().await?;
                if let Some(fence) = claimed {
                    journal.note(Accepted { at, node, what: Write::Fenced { epoch: fence.epoch } });
                }
                if let Some(epoch) = appended.epoch
                    && let Some(row) = store.authority().await?
                {
                    let (leased_until, resigned) = (row.leased_until_at, row.resigned);
                    journal.note(Accepted { at, node, what: Write::Authority { epoch, leased_until, resigned } });
                }
                Ok(appended)
            })
        })
        .await
    }

    async fn read_run(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage> {
        self.check_damage(run_id)?;
        let (scope, run_id) = (scope.clone(), run_id.clone());
        self.read("read_run", move |store| Box::pin(async move { store.read_run(&scope, &run_id, after, limit).await }))
            .await
    }

    async fn load_run(&self, scope: &Scope, run_id: &RunId, limit: u32) -> Result<StoredRun> {
        self.check_damage(run_id)?;
        let (scope, run_id) = (scope.clone(), run_id.clone());
        self.read("load_run", move |store| Box::pin(async move { store.load_run(&scope, &run_id, limit).await })).await
    }

    async fn snapshot_at(&self, scope: &Scope, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>> {
        let (scope, run_id) = (scope.clone(), run_id.clone());
        self.read("snapshot_at", move |store| {
            Box::pin(async move { store.snapshot_at(&scope, &run_id, seq_max).await })
        })
        .await
    }

    async fn put_snapshot(&self, run_id: &RunId, tenant: &TenantId, snapshot: StoredSnapshot) -> Result<()> {
        let (run_id, tenant) = (run_id.clone(), tenant.clone());
        self.write("put_snapshot", move |store| {
            Box::pin(async move { store.put_snapshot(&run_id, &tenant, snapshot).await })
        })
        .await
    }

    async fn read_log(&self, after: Position, limit: u32) -> Result<LogPage> {
        self.read("read_log", move |store| Box::pin(async move { store.read_log(after, limit).await })).await
    }

    async fn log_head(&self) -> Result<Position> {
        self.read("log_head", |store| Box::pin(async move { store.log_head().await })).await
    }

    async fn count_log(&self, after: Position, until: Position, most: u64) -> Result<u64> {
        self.read("count_log", move |store| Box::pin(async move { store.count_log(after, until, most).await })).await
    }
}

#[async_trait]
impl RunStore for SimStore {
    async fn get_run(&self, scope: &Scope, run_id: &RunId) -> Result<Option<RunRow>> {
        let (scope, run_id) = (scope.clone(), run_id.clone());
        self.read("get_run", move |store| Box::pin(async move { store.get_run(&scope, &run_id).await })).await
    }

    async fn list_runs(&self, scope: &Scope, query: &RunQuery) -> Result<Vec<RunRow>> {
        let (scope, query) = (scope.clone(), query.clone());
        self.read("list_runs", move |store| Box::pin(async move { store.list_runs(&scope, &query).await })).await
    }

    async fn find_request(&self, tenant: &TenantId, key: Digest) -> Result<Option<RunId>> {
        let tenant = tenant.clone();
        self.read("find_request", move |store| Box::pin(async move { store.find_request(&tenant, key).await })).await
    }

    async fn release_request(&self, tenant: &TenantId, key: Digest, run_id: &RunId) -> Result<bool> {
        let (tenant, run_id) = (tenant.clone(), run_id.clone());
        self.write("release_request", move |store| {
            Box::pin(async move { store.release_request(&tenant, key, &run_id).await })
        })
        .await
    }

    async fn count_by_visible(&self, tenant: &TenantId, plan_id: Option<&str>) -> Result<Vec<(InvocationStatus, u64)>> {
        let (tenant, plan_id) = (tenant.clone(), plan_id.map(str::to_owned));
        self.read("count_by_visible", move |store| {
            Box::pin(async move { store.count_by_visible(&tenant, plan_id.as_deref()).await })
        })
        .await
    }

    async fn count_active(&self, tenant: &TenantId, most: u32) -> Result<u32> {
        let tenant = tenant.clone();
        self.read("count_active", move |store| Box::pin(async move { store.count_active(&tenant, most).await })).await
    }

    async fn count_open(&self, tenant: &TenantId, plan_id: &str) -> Result<Vec<(String, u64)>> {
        let (tenant, plan_id) = (tenant.clone(), plan_id.to_owned());
        self.read("count_open", move |store| Box::pin(async move { store.count_open(&tenant, &plan_id).await })).await
    }

    async fn count_descendants(&self, tenant: &TenantId, root: &RunId, most: u32) -> Result<u32> {
        let (tenant, root) = (tenant.clone(), root.clone());
        self.read("count_descendants", move |store| {
            Box::pin(async move { store.count_descendants(&tenant, &root, most).await })
        })
        .await
    }

    async fn open_descendants(
        &self,
        tenant: &TenantId,
        root: &RunId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunId>> {
        let (tenant, root, after) = (tenant.clone(), root.clone(), after.cloned());
        self.read("open_descendants", move |store| {
            Box::pin(async move { store.open_descendants(&tenant, &root, after.as_ref(), limit).await })
        })
        .await
    }
}
