//! Queue, dispatches, timers and authority.

use async_trait::async_trait;
use servo_model::contract::{Backlog, DispatchState};
use servo_model::{RunId, Timestamp};

use super::MemStore;
use crate::dispatch::{DispatchRow, DueTimer, DueTimers, QueuedRun, WorkStore};
use crate::error::{Error, Result};
use crate::lease::AuthorityRow;

#[async_trait]
impl WorkStore for MemStore {
    async fn claim_queue(&self, owner: &str, lease_ms: u64, limit: u32) -> Result<Vec<QueuedRun>> {
        let now = (self.time)();
        let until = now.plus(std::time::Duration::from_millis(lease_ms));
        let mut inner = self.lock()?;
        let mut free: Vec<_> = inner
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
            })
            .collect();
        free.sort_by(|a, b| (a.queued_at, &a.run_id).cmp(&(b.queued_at, &b.run_id)));
        free.truncate(limit as usize);
        for claimed in &free {
            if let Some(queue) = inner.runs.get_mut(&claimed.run_id).and_then(|run| run.queue.as_mut()) {
                queue.lease = Some((owner.to_owned(), until));
            }
        }
        Ok(free)
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

    async fn open_dispatches(
        &self,
        epoch: u64,
        after: Option<(Timestamp, String)>,
        limit: u32,
    ) -> Result<Vec<DispatchRow>> {
        let inner = self.lock()?;
        let mut open: Vec<_> = inner
            .dispatches
            .values()
            .filter(|row| row.step.is_some())
            .filter(|row| match row.state {
                DispatchState::Pending => true,
                DispatchState::Notified => row.epoch < epoch,
                DispatchState::Delivered | DispatchState::Failed => false,
            })
            .filter(|row| after.as_ref().is_none_or(|(at, id)| (row.queued_at, &row.request_id) > (*at, id)))
            .cloned()
            .collect();
        open.sort_by(|a, b| (a.queued_at, &a.request_id).cmp(&(b.queued_at, &b.request_id)));
        open.truncate(limit as usize);
        Ok(open)
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
