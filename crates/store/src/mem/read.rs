//! Reading the log and the runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, TenantId, Timestamp};

use super::{Inner, MemStore, Run};
use crate::error::{Error, Result};
use crate::log::{Append, Appended, LogPage, LogStore, RunPage, StoredRun, StoredSnapshot, Unreadable};
use crate::page::PageBytes;
use crate::position::Position;
use crate::runs::{RunQuery, RunRow, RunStore, Scope};

impl Inner {
    pub(super) fn run(&self, scope: &Scope, run_id: &RunId) -> Result<&Run> {
        self.runs.get(run_id).filter(|run| scope.covers(&run.row.tenant)).ok_or(Error::NotFound)
    }
}

impl Run {
    fn page(&self, after: u64, limit: u32, bytes_max: usize) -> Result<RunPage> {
        let mut page = PageBytes::new(bytes_max);
        let events = self.events.range(after.saturating_add(1)..).map(|(_, event)| event).take(limit as usize);
        let events = events.take_while(|event| page.takes(event.payload.len()));
        let events = events.map(|event| self.check(event).map(|()| event.clone())).collect::<Result<_>>()?;
        Ok(RunPage { events, head_seq: self.head })
    }

    fn snapshot_at(&self, seq_max: u64) -> Option<StoredSnapshot> {
        let (run_seq, state) = self.snapshots.range(..=seq_max).next_back()?;
        Some(StoredSnapshot { run_seq: *run_seq, state: state.clone() })
    }
}

#[async_trait]
impl LogStore for MemStore {
    async fn now(&self) -> Result<Timestamp> {
        drop(self.lock()?);
        Ok((self.time)())
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.append_now(append)
    }

    async fn read_run(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage> {
        let inner = self.lock()?;
        inner.run(scope, run_id)?.page(after, limit, self.limits.page_bytes_max)
    }

    async fn load_run(&self, scope: &Scope, run_id: &RunId, limit: u32) -> Result<StoredRun> {
        let inner = self.lock()?;
        let run = inner.run(scope, run_id)?;
        let snapshot = run.snapshot_at(u64::MAX);
        let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.run_seq);
        Ok(StoredRun { row: run.row.clone(), snapshot, page: run.page(after, limit, self.limits.page_bytes_max)? })
    }

    async fn snapshot_at(&self, scope: &Scope, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>> {
        let inner = self.lock()?;
        Ok(inner.run(scope, run_id)?.snapshot_at(seq_max))
    }

    async fn put_snapshot(&self, run_id: &RunId, tenant: &TenantId, snapshot: StoredSnapshot) -> Result<()> {
        let mut inner = self.lock()?;
        if let Some(run) = inner.runs.get_mut(run_id).filter(|run| run.row.tenant == *tenant) {
            run.snapshots.insert(snapshot.run_seq, snapshot.state);
        }
        Ok(())
    }

    async fn read_log(&self, after: Position, limit: u32) -> Result<LogPage> {
        let inner = self.lock()?;
        let rows = inner.log.range(after.id.saturating_add(1)..).take(limit as usize);
        let mut page = PageBytes::new(self.limits.page_bytes_max);
        let found = rows.filter_map(|(id, (run, seq))| {
            let run = inner.runs.get(run)?;
            Some((Position::of_id(*id), run, run.events.get(seq)?))
        });
        let mut read = LogPage::new(Vec::new(), after);
        for (position, run, event) in found.take_while(|(_, _, event)| page.takes(event.payload.len())) {
            match run.check(event) {
                Ok(()) => read.events.push(Arc::new(event.clone())),
                Err(Error::Corrupt { detail }) => {
                    let run = Some((run.row.run_id.clone(), run.row.tenant.clone()));
                    read.unreadable.push(Unreadable { position, run, detail });
                }
                Err(error) => return Err(error),
            }
            read.next = position;
        }
        Ok(read)
    }

    async fn log_head(&self) -> Result<Position> {
        let inner = self.lock()?;
        Ok(Position::of_id(inner.log.last_key_value().map_or(0, |(id, _)| *id)))
    }

    async fn count_log(&self, after: Position, until: Position, most: u64) -> Result<u64> {
        let inner = self.lock()?;
        if until <= after {
            return Ok(0);
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(inner.log.range(after.id.saturating_add(1)..=until.id).take(most).count() as u64)
    }
}

#[async_trait]
impl RunStore for MemStore {
    async fn get_run(&self, scope: &Scope, run_id: &RunId) -> Result<Option<RunRow>> {
        let inner = self.lock()?;
        Ok(inner.run(scope, run_id).ok().map(|run| run.row.clone()))
    }

    async fn list_runs(&self, scope: &Scope, query: &RunQuery) -> Result<Vec<RunRow>> {
        query.check()?;
        let inner = self.lock()?;
        let rows = inner.runs.values().map(|run| &run.row).filter(|row| {
            !row.run_id.is_system() && scope.covers(&row.tenant) && query.matches(row) && query.is_ahead(row)
        });
        let mut rows: Vec<_> = rows.cloned().collect();
        query.sort(&mut rows);
        rows.truncate(query.limit as usize);
        Ok(rows)
    }

    async fn find_request(&self, tenant: &TenantId, key: Digest) -> Result<Option<RunId>> {
        Ok(self.lock()?.requests.get(&(tenant.clone(), key)).cloned())
    }

    async fn release_request(&self, tenant: &TenantId, key: Digest, run_id: &RunId) -> Result<bool> {
        let mut inner = self.lock()?;
        let slot = (tenant.clone(), key);
        if inner.requests.get(&slot) != Some(run_id) {
            return Ok(false);
        }
        inner.requests.remove(&slot);
        if let Some(run) = inner.runs.get_mut(run_id) {
            run.row.request_key = None;
        }
        Ok(true)
    }

    async fn count_by_visible(&self, tenant: &TenantId, plan_id: Option<&str>) -> Result<Vec<(InvocationStatus, u64)>> {
        let inner = self.lock()?;
        let mut counts = BTreeMap::new();
        for row in inner.runs.values().map(|run| &run.row).filter(|row| row.invocation && row.tenant == *tenant) {
            if plan_id.is_none_or(|plan| *plan == *row.plan_id) {
                *counts.entry(row.visible).or_default() += 1;
            }
        }
        Ok(counts.into_iter().collect())
    }

    async fn count_active(&self, tenant: &TenantId, most: u32) -> Result<u32> {
        use servo_model::RunStatus::{Paused, Running};
        let inner = self.lock()?;
        let active = inner.runs.values().filter(|run| {
            run.row.tenant == *tenant && matches!(run.row.status, Running | Paused) && !run.row.run_id.is_system()
        });
        Ok(u32::try_from(active.take(most as usize).count()).unwrap_or(most))
    }
    async fn count_open(&self, tenant: &TenantId, plan_id: &str) -> Result<Vec<(String, u64)>> {
        let inner = self.lock()?;
        let mut counts = BTreeMap::new();
        for row in inner.runs.values().map(|run| &run.row) {
            if row.tenant == *tenant && *row.plan_id == *plan_id && !row.status.is_terminal() && !row.run_id.is_system()
            {
                *counts.entry(row.plan_version.clone()).or_default() += 1;
            }
        }
        Ok(counts.into_iter().collect())
    }
    async fn count_descendants(&self, tenant: &TenantId, root: &RunId, most: u32) -> Result<u32> {
        let inner = self.lock()?;
        let open = descendants(&inner, tenant, root).take(most as usize).count();
        Ok(u32::try_from(open).unwrap_or(most))
    }
    async fn open_descendants(
        &self,
        tenant: &TenantId,
        root: &RunId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunId>> {
        let inner = self.lock()?;
        let open = descendants(&inner, tenant, root).filter(|run_id| after.is_none_or(|after| *run_id > after));
        Ok(open.take(limit as usize).cloned().collect())
    }
}

/// Open runs below a root, in the order of their ids.
fn descendants<'a>(inner: &'a Inner, tenant: &TenantId, root: &RunId) -> impl Iterator<Item = &'a RunId> {
    let is_one = |row: &&RunRow| row.root.as_ref() == Some(root) && row.tenant == *tenant && !row.status.is_terminal();
    inner.runs.values().map(|run| &run.row).filter(is_one).map(|row| &row.run_id)
}
