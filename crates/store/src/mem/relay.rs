//! Cursors, outbox notes, dead letters and alerts.

use async_trait::async_trait;
use servo_model::TenantId;
use servo_model::alert::{Alert, AlertCode};

use super::MemStore;
use crate::error::{Error, Result};
use crate::lease::Fence;
use crate::position::Position;
use crate::relay::{CursorRow, DeadLetter, NewAlert, OutboxRow, RelayStore};
use crate::runs::Scope;

#[async_trait]
impl RelayStore for MemStore {
    async fn cursor(&self, name: &str) -> Result<Option<CursorRow>> {
        Ok(self.lock()?.cursors.get(name).cloned())
    }

    async fn move_cursor(&self, from: Option<Position>, to: CursorRow, fence: Option<Fence>) -> Result<()> {
        let now = (self.time)();
        let mut inner = self.lock()?;
        if let Some(fence) = fence {
            fence.check(inner.authority.as_ref(), now)?;
        }
        if inner.cursors.get(&to.name).map(|row| row.position) != from {
            return Err(Error::CursorMoved { name: to.name });
        }
        inner.cursors.insert(to.name.clone(), to);
        Ok(())
    }

    async fn outbox_put(&self, row: OutboxRow) -> Result<()> {
        self.lock()?.outbox.insert(row.position, row);
        Ok(())
    }

    async fn outbox_due(&self, limit: u32) -> Result<Vec<OutboxRow>> {
        let now = (self.time)();
        let inner = self.lock()?;
        Ok(inner.outbox.values().filter(|row| row.next_at <= now).take(limit as usize).cloned().collect())
    }

    async fn outbox_len(&self) -> Result<u64> {
        Ok(self.lock()?.outbox.len() as u64)
    }

    async fn outbox_done(&self, position: Position) -> Result<()> {
        self.lock()?.outbox.remove(&position);
        Ok(())
    }

    async fn outbox_bury(&self, row: OutboxRow) -> Result<()> {
        let buried_at = (self.time)();
        let mut inner = self.lock()?;
        inner.outbox.remove(&row.position);
        let OutboxRow { position, run_id, run_seq, tenant, attempts, last_error, .. } = row;
        inner.dead.insert(position, DeadLetter { position, run_id, run_seq, tenant, attempts, last_error, buried_at });
        Ok(())
    }

    async fn dead_letters(&self, after: Position, limit: u32) -> Result<Vec<DeadLetter>> {
        let inner = self.lock()?;
        let rows = inner.dead.values().filter(|row| row.position > after);
        Ok(rows.take(limit as usize).cloned().collect())
    }

    async fn redrive(&self, position: Option<Position>) -> Result<u64> {
        let next_at = (self.time)();
        let mut inner = self.lock()?;
        let chosen: Vec<_> = inner.dead.keys().copied().filter(|p| position.is_none_or(|one| one == *p)).collect();
        for position in &chosen {
            if let Some(letter) = inner.dead.remove(position) {
                let DeadLetter { position, run_id, run_seq, tenant, last_error, .. } = letter;
                let row = OutboxRow { position, run_id, run_seq, tenant, attempts: 0, next_at, last_error };
                inner.outbox.insert(position, row);
            }
        }
        Ok(chosen.len() as u64)
    }

    async fn raise_alert(&self, alert: NewAlert) -> Result<()> {
        let now = (self.time)();
        let key = (alert.code.as_str().to_owned(), alert.tenant.clone(), alert.subject.clone());
        let mut inner = self.lock()?;
        let row = inner.alerts.entry(key).or_insert_with(|| Alert {
            code: alert.code,
            severity: alert.code.severity(),
            subject: alert.subject,
            run_id: None,
            tenant_id: alert.tenant,
            message: String::new(),
            first_at: now,
            last_at: now,
            count: 0,
        });
        row.run_id = alert.run_id;
        row.message = alert.message;
        row.last_at = now;
        row.count += 1;
        Ok(())
    }

    async fn alerts(&self, scope: &Scope, limit: u32) -> Result<Vec<Alert>> {
        let inner = self.lock()?;
        let mut rows: Vec<_> = inner.alerts.values().filter(|row| scope.covers(&row.tenant_id)).cloned().collect();
        rows.sort_by(|a, b| (b.last_at, &a.code, &a.subject).cmp(&(a.last_at, &b.code, &b.subject)));
        rows.truncate(limit as usize);
        Ok(rows)
    }

    async fn clear_alert(&self, code: AlertCode, tenant: &TenantId, subject: &str) -> Result<()> {
        self.lock()?.alerts.remove(&(code.as_str().to_owned(), tenant.clone(), subject.to_owned()));
        Ok(())
    }
}
