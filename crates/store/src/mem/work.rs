//! Queue, dispatches, timers and authority.

use std::collections::BTreeMap;

use async_trait::async_trait;
use servo_model::contract::{Backlog, DispatchState};
use servo_model::{RunId, TenantId, Timestamp};

use super::MemStore;
use crate::dispatch::{DispatchHeads, DispatchRow, DueTimer, DueTimers, QueueClaim, QueuedRun, WorkStore};
use crate::error::{Error, Result};
use crate::lease::AuthorityRow;

#[async_trait]
impl WorkStore for MemStore {
    async fn claim_queue(&self, claim: &QueueClaim) -> Result<Vec<QueuedRun>> {
        let now = (self.time)();
        let until = now.plus(std::time::Duration::from_millis(claim.lease_ms));
        let mut inner = self.lock()?;
        let free = inner
            .runs
            .values()
            .filter_map(|run| Some((run, run.queue.as_ref()?)))
            .filter(|(_, queue)| {
                let leased = queue.lease.as_ref().is_some_and(|(_, until)| now < *until);
                queue.not_before <= now && !leased
            })
            .map(|(run, queue)| QueuedRun {
                run_id: run.row.run_id.clone(),
                tenant: run.row.tenant.clone(),
                not_before: queue.not_before,
                queued_at: queue.queued_at,
            });
        let chosen = claim.choose(free);
        for claimed in &chosen {
            if let Some(queue) = inner.runs.get_mut(&claimed.run_id).and_then(|run| run.queue.as_mut()) {
                queue.lease = Some((claim.owner.clone(), until));
            }
        }
        Ok(chosen)
    }

    async fn release_queue(&self, run_id: &RunId, owner: &str, not_before: Timestamp) -> Result<()> {
        let mut inner = self.lock()?;
        let queue = inner.runs.get_mut(run_id).and_then(|run| run.queue.as_mut());
        match queue {
            Some(queue) if queue.lease.as_ref().is_some_and(|(holder, _)| holder == owner) => {
                queue.lease = None;
                queue.not_before = not_before;
                Ok(())
            }
            _ => Err(Error::LeaseLost { run_id: run_id.clone() }),
        }
    }

    async fn dispatch_heads(&self, heads: &DispatchHeads) -> Result<Vec<DispatchRow>> {
        let inner = self.lock()?;
        let mut by_tenant: BTreeMap<&TenantId, Vec<&DispatchRow>> = BTreeMap::new();
        for row in inner.dispatches.values().filter(|row| is_open(row, heads.epoch)) {
            if heads.after.as_ref().is_none_or(|after| row.tenant > *after) {
                by_tenant.entry(&row.tenant).or_default().push(row);
            }
        }
        let first = by_tenant.into_values().take(heads.tenants as usize);
        Ok(first.flat_map(|open| oldest(open, heads.each)).collect())
    }

    async fn open_dispatches(
        &self,
        epoch: u64,
        tenant: &TenantId,
        after: Option<(Timestamp, String)>,
        limit: u32,
    ) -> Result<Vec<DispatchRow>> {
        let inner = self.lock()?;
        let open = inner
            .dispatches
            .values()
            .filter(|row| row.tenant == *tenant && is_open(row, epoch))
            .filter(|row| after.as_ref().is_none_or(|(at, id)| (row.queued_at, &row.request_id) > (*at, id)));
        Ok(oldest(open.collect(), limit))
    }

    async fn get_dispatch(&self, request_id: &str) -> Result<Option<DispatchRow>> {
        Ok(self.lock()?.dispatches.get(request_id).cloned())
    }

    async fn backlog(&self) -> Result<Backlog> {
        let inner = self.lock()?;
        let mut backlog = Backlog::default();
        for row in inner.dispatches.values() {
            match row.state {
                DispatchState::Pending => backlog.pending += 1,
                DispatchState::Notified => backlog.notified += 1,
                DispatchState::Delivered => backlog.delivered += 1,
                DispatchState::Failed => backlog.failed += 1,
            }
        }
        Ok(backlog)
    }

    async fn due_timers(&self, limit: u32) -> Result<DueTimers> {
        let now = (self.time)();
        let inner = self.lock()?;
        let mut timers: Vec<_> = inner
            .runs
            .values()
            .filter_map(|run| {
                Some(DueTimer { run_id: run.row.run_id.clone(), tenant: run.row.tenant.clone(), due_at: run.timer? })
            })
            .collect();
        timers.sort_by(|a, b| (a.due_at, &a.run_id).cmp(&(b.due_at, &b.run_id)));
        let next_at = timers.iter().find(|timer| timer.due_at > now).map(|timer| timer.due_at);
        timers.retain(|timer| timer.due_at <= now);
        timers.truncate(limit as usize);
        Ok(DueTimers { due: timers, next_at })
    }

    async fn get_timer(&self, run_id: &RunId) -> Result<Option<Timestamp>> {
        Ok(self.lock()?.runs.get(run_id).and_then(|run| run.timer))
    }

    async fn authority(&self) -> Result<Option<AuthorityRow>> {
        Ok(self.lock()?.authority.clone())
    }

    async fn break_leases(&self) -> Result<()> {
        for run in self.lock()?.runs.values_mut() {
            if let Some(queue) = &mut run.queue {
                queue.lease = None;
            }
        }
        Ok(())
    }
}

/// Whether a dispatch is to be handed out by the holder of this epoch.
fn is_open(row: &DispatchRow, epoch: u64) -> bool {
    let open = match row.state {
        DispatchState::Pending => true,
        DispatchState::Notified => row.epoch < epoch,
        DispatchState::Delivered | DispatchState::Failed => false,
    };
    open && row.step.is_some()
}

fn oldest(mut rows: Vec<&DispatchRow>, limit: u32) -> Vec<DispatchRow> {
    rows.sort_by(|a, b| (a.queued_at, &a.request_id).cmp(&(b.queued_at, &b.request_id)));
    rows.into_iter().take(limit as usize).cloned().collect()
}
