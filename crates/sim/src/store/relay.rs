//! Cursors, outbox, dead letters and alerts through a connection.

use async_trait::async_trait;
use servo_model::TenantId;
use servo_model::alert::{Alert, AlertCode};
use servo_store::relay::{CursorRow, DeadLetter, NewAlert, OutboxRow};
use servo_store::{Error, Fence, LogStore, Position, RelayStore, Result, Scope};

use super::{Sabotage, SimStore};
use crate::faults::Call;
use crate::journal::{Accepted, Write};

#[async_trait]
impl RelayStore for SimStore {
    async fn cursor(&self, name: &str) -> Result<Option<CursorRow>> {
        let name = name.to_owned();
        self.read("cursor", move |store| Box::pin(async move { store.cursor(&name).await })).await
    }

    async fn move_cursor(&self, from: Option<Position>, to: CursorRow, fence: Option<Fence>) -> Result<()> {
        let call = Call { name: "move_cursor", writes: true, can_conflict: true };
        let conflict = Error::CursorMoved { name: to.name.clone() };
        let enforced = fence.filter(|_| self.sabotage() != Sabotage::StripFence);
        let (journal, node) = (self.shared.journal.clone(), self.shared.node);
        self.call(call, Some(conflict), move |store| {
            Box::pin(async move {
                store.move_cursor(from, to, enforced).await?;
                let at = store.now().await?;
                if let Some(fence) = fence {
                    journal.note(Accepted { at, node, what: Write::Fenced { epoch: fence.epoch } });
                }
                Ok(())
            })
        })
        .await
    }

    async fn outbox_put(&self, row: OutboxRow) -> Result<()> {
        self.write("outbox_put", move |store| Box::pin(async move { store.outbox_put(row).await })).await
    }

    async fn outbox_due(&self, limit: u32) -> Result<Vec<OutboxRow>> {
        self.read("outbox_due", move |store| Box::pin(async move { store.outbox_due(limit).await })).await
    }

    async fn outbox_len(&self) -> Result<u64> {
        self.read("outbox_len", |store| Box::pin(async move { store.outbox_len().await })).await
    }

    async fn outbox_done(&self, position: Position) -> Result<()> {
        self.write("outbox_done", move |store| Box::pin(async move { store.outbox_done(position).await })).await
    }

    async fn outbox_bury(&self, row: OutboxRow) -> Result<()> {
        self.write("outbox_bury", move |store| Box::pin(async move { store.outbox_bury(row).await })).await
    }

    async fn dead_letters(&self, after: Position, limit: u32) -> Result<Vec<DeadLetter>> {
        self.read("dead_letters", move |store| Box::pin(async move { store.dead_letters(after, limit).await })).await
    }

    async fn redrive(&self, position: Option<Position>) -> Result<u64> {
        self.write("redrive", move |store| Box::pin(async move { store.redrive(position).await })).await
    }

    async fn raise_alert(&self, alert: NewAlert) -> Result<()> {
        self.write("raise_alert", move |store| Box::pin(async move { store.raise_alert(alert).await })).await
    }

    async fn alerts(&self, scope: &Scope, limit: u32) -> Result<Vec<Alert>> {
        let scope = scope.clone();
        self.read("alerts", move |store| Box::pin(async move { store.alerts(&scope, limit).await })).await
    }

    async fn clear_alert(&self, code: AlertCode, tenant: &TenantId, subject: &str) -> Result<()> {
        let (tenant, subject) = (tenant.clone(), subject.to_owned());
        self.write("clear_alert", move |store| {
            Box::pin(async move { store.clear_alert(code, &tenant, &subject).await })
        })
        .await
    }
}
