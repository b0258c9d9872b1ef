//! The traits of `servo_store`: each call picks the thread and the function in `sql` that does the work.

mod entrypoints;
mod functions;
mod identity;

use std::path::Path;

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::alert::{Alert, AlertCode};
use servo_model::contract::Backlog;
use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::admin::{Condition, StoreInfo};
use servo_store::dispatch::{DispatchHeads, DueTimers, QueueClaim, QueuedRun};
use servo_store::log::{LogPage, RunPage, StoredRun, StoredSnapshot};
use servo_store::relay::{CursorRow, DeadLetter, NewAlert, OutboxRow};
use servo_store::runs::RunQuery;
use servo_store::{
    AdminStore, Append, Appended, AuthorityRow, DispatchRow, Error, Fence, Integrity, LogStore, Position, RelayStore,
    Result, RunRow, RunStore, Scope, StoredEvent, WorkStore,
};

use crate::REDO_FILES;
use crate::schema::{self, SCHEMA_VERSION};
use crate::sql::{admin, dispatch, events, lease, log, queue, relay, runs, timer};
use crate::store::SqliteStore;
use crate::writer::append;
use crate::writer::job::Nature;
use crate::{backup, error::Fault};

#[async_trait]
impl LogStore for SqliteStore {
    async fn now(&self) -> Result<Timestamp> {
        self.check_open()?;
        Ok((self.inner.time)())
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        append.check(&self.inner.limits)?;
        self.ahead(append::bytes(&append), move |view| append::append(view, append)).await
    }

    async fn read_run(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage> {
        let (scope, id, bytes_max) = (scope.clone(), run_id.clone(), self.inner.limits.page_bytes_max);
        self.read_of_run(run_id, move |conn| events::read_run(conn, &scope, &id, after, limit, bytes_max)).await
    }

    async fn load_run(&self, scope: &Scope, run_id: &RunId, limit: u32) -> Result<StoredRun> {
        let (scope, id, bytes_max) = (scope.clone(), run_id.clone(), self.inner.limits.page_bytes_max);
        self.read_of_run(run_id, move |conn| {
            let row = runs::get(conn, &scope, &id)?.ok_or(Error::NotFound)?;
            let snapshot = log::snapshot_at(conn, &id, u64::MAX)?;
            let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.run_seq);
            let page = events::read_run(conn, &scope, &id, after, limit, bytes_max)?;
            Ok(StoredRun { row, snapshot, page })
        })
        .await
    }

    async fn snapshot_at(&self, scope: &Scope, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>> {
        let (scope, id) = (scope.clone(), run_id.clone());
        self.read_of_run(run_id, move |conn| {
            events::visible_head(conn, &scope, &id)?;
            log::snapshot_at(conn, &id, seq_max)
        })
        .await
    }

    async fn put_snapshot(&self, run_id: &RunId, tenant: &TenantId, snapshot: StoredSnapshot) -> Result<()> {
        let (run_id, tenant) = (run_id.clone(), tenant.clone());
        let bytes = snapshot.state.len();
        self.ahead(bytes, move |view| append::put_snapshot(view, run_id, tenant, snapshot)).await
    }

    async fn read_log(&self, after: Position, limit: u32) -> Result<LogPage> {
        let bytes_max = self.inner.limits.page_bytes_max;
        if let Some(page) = self.inner.tail.read(after, limit, bytes_max) {
            self.check_open()?;
            return Ok(page);
        }
        self.read(move |conn| events::read_log(conn, after, limit, bytes_max)).await
    }

    async fn log_head(&self) -> Result<Position> {
        if let Some(head) = self.inner.tail.head() {
            self.check_open()?;
            return Ok(head);
        }
        self.read(events::log_head).await
    }

    async fn count_log(&self, after: Position, until: Position, most: u64) -> Result<u64> {
        if until <= after {
            self.check_open()?;
            return Ok(0);
        }
        self.read(move |conn| events::count_log(conn, after, until, most)).await
    }
}

#[async_trait]
impl RunStore for SqliteStore {
    async fn get_run(&self, scope: &Scope, run_id: &RunId) -> Result<Option<RunRow>> {
        let (scope, id) = (scope.clone(), run_id.clone());
        self.read_of_run(run_id, move |conn| runs::get(conn, &scope, &id)).await
    }

    async fn list_runs(&self, scope: &Scope, query: &RunQuery) -> Result<Vec<RunRow>> {
        query.check()?;
        let (scope, query) = (scope.clone(), query.clone());
        self.read(move |conn| runs::list(conn, &scope, &query)).await
    }

    async fn find_request(&self, tenant: &TenantId, key: Digest) -> Result<Option<RunId>> {
        let of = tenant.clone();
        self.read_of_request((tenant, key), move |conn| runs::find_request(conn, &of, key)).await
    }

    async fn release_request(&self, tenant: &TenantId, key: Digest, run_id: &RunId) -> Result<bool> {
        let (tenant, run_id) = (tenant.clone(), run_id.clone());
        self.write(Nature::SMALL_CHECKED, move |tx| {
            tx.changes_runs = true;
            runs::release_request(tx.conn, &tenant, key, &run_id)
        })
        .await
    }

    async fn count_by_visible(&self, tenant: &TenantId, plan_id: Option<&str>) -> Result<Vec<(InvocationStatus, u64)>> {
        let (tenant, plan_id) = (tenant.clone(), plan_id.map(str::to_owned));
        self.read(move |conn| runs::count_by_visible(conn, &tenant, plan_id.as_deref())).await
    }

    async fn count_active(&self, tenant: &TenantId, most: u32) -> Result<u32> {
        let tenant = tenant.clone();
        self.read(move |conn| runs::count_active(conn, &tenant, most)).await
    }

    async fn count_open(&self, tenant: &TenantId, plan_id: &str) -> Result<Vec<(String, u64)>> {
        let (tenant, plan_id) = (tenant.clone(), plan_id.to_owned());
        self.read(move |conn| runs::count_open(conn, &tenant, &plan_id)).await
    }

    async fn count_descendants(&self, tenant: &TenantId, root: &RunId, most: u32) -> Result<u32> {
        let (tenant, root) = (tenant.clone(), root.clone());
        self.read(move |conn| runs::count_descendants(conn, &tenant, &root, most)).await
    }

    async fn open_descendants(
        &self,
        tenant: &TenantId,
        root: &RunId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunId>> {
        let (tenant, root, after) = (tenant.clone(), root.clone(), after.cloned());
        self.read(move |conn| runs::open_descendants(conn, &tenant, &root, after.as_ref(), limit)).await
    }
}

#[async_trait]
impl WorkStore for SqliteStore {
    async fn claim_queue(&self, claim: &QueueClaim) -> Result<Vec<QueuedRun>> {
        let claim = claim.clone();
        self.write(Nature::SMALL, move |tx| queue::claim(tx, &claim)).await
    }

    async fn release_queue(&self, run_id: &RunId, owner: &str, not_before: Timestamp) -> Result<()> {
        let (run_id, owner) = (run_id.clone(), owner.to_owned());
        self.write(Nature::SMALL_CHECKED, move |tx| queue::release(tx.conn, &run_id, &owner, not_before)).await
    }

    async fn dispatch_heads(&self, heads: &DispatchHeads) -> Result<Vec<DispatchRow>> {
        let heads = heads.clone();
        self.read_open_dispatches(heads.epoch, move |conn| dispatch::heads(conn, &heads)).await
    }

    async fn open_dispatches(
        &self,
        epoch: u64,
        tenant: &TenantId,
        after: Option<(Timestamp, String)>,
        limit: u32,
    ) -> Result<Vec<DispatchRow>> {
        let tenant = tenant.clone();
        self.read_open_dispatches(epoch, move |conn| dispatch::open(conn, epoch, &tenant, after, limit)).await
    }

    async fn get_dispatch(&self, request_id: &str) -> Result<Option<DispatchRow>> {
        let request_id = request_id.to_owned();
        self.read(move |conn| dispatch::get(conn, &request_id)).await
    }

    async fn backlog(&self) -> Result<Backlog> {
        self.read(dispatch::backlog).await
    }

    async fn due_timers(&self, limit: u32) -> Result<DueTimers> {
        let now = (self.inner.time)();
        self.read(move |conn| timer::due(conn, now, limit)).await
    }

    async fn get_timer(&self, run_id: &RunId) -> Result<Option<Timestamp>> {
        let id = run_id.clone();
        self.read_of_run(run_id, move |conn| timer::get(conn, &id)).await
    }

    async fn authority(&self) -> Result<Option<AuthorityRow>> {
        self.read(lease::get).await
    }

    async fn break_leases(&self) -> Result<()> {
        self.write(Nature::SMALL_CHECKED, |tx| queue::break_leases(tx.conn)).await
    }
}

#[async_trait]
impl RelayStore for SqliteStore {
    async fn cursor(&self, name: &str) -> Result<Option<CursorRow>> {
        let name = name.to_owned();
        self.read(move |conn| relay::cursor(conn, &name)).await
    }

    async fn move_cursor(&self, from: Option<Position>, to: CursorRow, fence: Option<Fence>) -> Result<()> {
        self.ahead(Nature::SMALL.bytes, move |view| append::move_cursor(view, from, to, fence)).await
    }

    async fn outbox_put(&self, row: OutboxRow) -> Result<()> {
        self.write(Nature::SMALL_CHECKED, move |tx| relay::outbox_put(tx.conn, &row)).await
    }

    async fn outbox_due(&self, limit: u32) -> Result<Vec<OutboxRow>> {
        let now = (self.inner.time)();
        self.read_direct(move |conn| relay::outbox_due(conn, now, limit)).await
    }

    async fn outbox_len(&self) -> Result<u64> {
        self.read_direct(relay::outbox_len).await
    }

    async fn outbox_done(&self, position: Position) -> Result<()> {
        self.write(Nature::SMALL_CHECKED, move |tx| relay::outbox_done(tx.conn, position)).await
    }

    async fn outbox_bury(&self, row: OutboxRow) -> Result<()> {
        self.write(Nature::SMALL, move |tx| relay::outbox_bury(tx, &row)).await
    }

    async fn dead_letters(&self, after: Position, limit: u32) -> Result<Vec<DeadLetter>> {
        self.read_direct(move |conn| relay::dead_letters(conn, after, limit)).await
    }

    async fn redrive(&self, position: Option<Position>) -> Result<u64> {
        self.write(Nature::SMALL, move |tx| relay::redrive(tx, position)).await
    }

    async fn raise_alert(&self, alert: NewAlert) -> Result<()> {
        self.write(Nature::SMALL_CHECKED, move |tx| relay::raise_alert(tx, &alert)).await
    }

    async fn alerts(&self, scope: &Scope, limit: u32) -> Result<Vec<Alert>> {
        let scope = scope.clone();
        self.read_direct(move |conn| relay::alerts(conn, &scope, limit)).await
    }

    async fn clear_alert(&self, code: AlertCode, tenant: &TenantId, subject: &str) -> Result<()> {
        let (tenant, subject) = (tenant.clone(), subject.to_owned());
        self.write(Nature::SMALL_CHECKED, move |tx| relay::clear_alert(tx.conn, code, &tenant, &subject)).await
    }
}

#[async_trait]
impl AdminStore for SqliteStore {
    async fn info(&self) -> Result<StoreInfo> {
        let path = self.path().to_owned();
        let size_bytes = self.read_direct(move |_| Ok(size(&path))).await?;
        Ok(StoreInfo {
            kind: "sqlite",
            engine_version: rusqlite::version().to_owned(),
            schema_version: SCHEMA_VERSION,
            single_process: true,
            size_bytes,
            settings: self.inner.settings.clone(),
        })
    }

    fn condition(&self) -> Condition {
        self.inner.health.condition()
    }

    async fn secret(&self) -> Result<[u8; 32]> {
        self.read_direct(schema::secret).await
    }

    async fn quarantine(&self, run_id: &RunId, reason: &str) -> Result<()> {
        let (run_id, reason) = (run_id.clone(), reason.to_owned());
        self.write(Nature::SMALL, move |tx| admin::quarantine(tx, &run_id, &reason)).await
    }

    async fn retire(&self, finished_before: Timestamp, limit: u32) -> Result<u32> {
        let mut retired = 0;
        loop {
            let left = limit - retired;
            let portion = self.write(Nature::SMALL, move |tx| admin::retire_some(tx, finished_before, left)).await?;
            retired += portion.runs;
            if !portion.has_more {
                return Ok(retired);
            }
        }
    }

    async fn delete_run(&self, scope: &Scope, run_id: &RunId) -> Result<()> {
        let (scope, run_id) = (scope.clone(), run_id.clone());
        let mut has_more = self.write(Nature::SMALL, move |tx| admin::begin_delete(tx, &scope, &run_id)).await?;
        while has_more {
            has_more = self.write(Nature::SMALL, admin::purge_some).await?;
        }
        Ok(())
    }

    async fn trim_system(&self, before: Timestamp, limit: u32) -> Result<u32> {
        let mut trimmed = 0;
        loop {
            let left = limit - trimmed;
            let (count, has_more) = self.write(Nature::SMALL, move |tx| admin::trim_some(tx, before, left)).await?;
            trimmed += count;
            if !has_more {
                return Ok(trimmed);
            }
        }
    }

    async fn import_run(&self, row: RunRow, events: Vec<StoredEvent>) -> Result<()> {
        let bytes = events.iter().map(|event| event.payload.len()).sum();
        let nature = Nature { bytes, may_fail_late: true };
        self.write(nature, move |tx| admin::import(tx, &row, &events)).await
    }

    async fn backup(&self, path: &Path) -> Result<()> {
        let path = path.to_owned();
        self.read_apart("backup", move |conn| backup::backup(conn, &path)).await
    }

    async fn integrity(&self) -> Result<Integrity> {
        self.read_apart("integrity", |conn| admin::integrity(conn).map_err(|fault: Fault| fault.into_error(conn))).await
    }

    async fn close(&self) -> Result<()> {
        self.shut().await
    }
}

/// The database, its log and the redo file. A file that is not there has no size.
fn size(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let files = REDO_FILES.map(|name| path.with_file_name(name));
    let files = files.into_iter().chain([path.to_owned(), log.into()]);
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}
