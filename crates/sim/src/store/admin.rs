//! Maintenance through a connection. Closing ends this connection and no other.

use std::path::Path;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use servo_model::{RunId, Timestamp};
use servo_store::admin::StoreInfo;
use servo_store::{AdminStore, Integrity, Result, RunRow, Scope, StoredEvent};

use super::{Sabotage, SimStore};

#[async_trait]
impl AdminStore for SimStore {
    async fn info(&self) -> Result<StoreInfo> {
        self.read("info", |store| Box::pin(async move { store.info().await })).await
    }

    async fn secret(&self) -> Result<[u8; 32]> {
        self.read("secret", |store| Box::pin(async move { store.secret().await })).await
    }

    async fn quarantine(&self, run_id: &RunId, reason: &str) -> Result<()> {
        if self.sabotage() == Sabotage::ForgetQuarantine {
            return Ok(());
        }
        let (run_id, reason) = (run_id.clone(), reason.to_owned());
        self.write("quarantine", move |store| Box::pin(async move { store.quarantine(&run_id, &reason).await })).await
    }

    async fn retire(&self, finished_before: Timestamp, limit: u32) -> Result<u32> {
        self.write("retire", move |store| Box::pin(async move { store.retire(finished_before, limit).await })).await
    }

    async fn delete_run(&self, scope: &Scope, run_id: &RunId) -> Result<()> {
        let (scope, run_id) = (scope.clone(), run_id.clone());
        self.write("delete_run", move |store| Box::pin(async move { store.delete_run(&scope, &run_id).await })).await
    }

    async fn trim_system(&self, before: Timestamp, limit: u32) -> Result<u32> {
        self.write("trim_system", move |store| Box::pin(async move { store.trim_system(before, limit).await })).await
    }

    async fn import_run(&self, row: RunRow, events: Vec<StoredEvent>) -> Result<()> {
        self.write("import_run", move |store| Box::pin(async move { store.import_run(row, events).await })).await
    }

    async fn backup(&self, path: &Path) -> Result<()> {
        let path = path.to_owned();
        self.write("backup", move |store| Box::pin(async move { store.backup(&path).await })).await
    }

    async fn integrity(&self) -> Result<Integrity> {
        self.read("integrity", |store| Box::pin(async move { store.integrity().await })).await
    }

    async fn close(&self) -> Result<()> {
        self.shared.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}
