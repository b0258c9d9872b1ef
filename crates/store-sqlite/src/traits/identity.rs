//! Keys and the audit log.

use std::sync::Arc;

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::{AuditEntry, KeyId, Timestamp};
use servo_store::audit::{self, AuditQuery, AuditStore};
use servo_store::identity::{IdentityStore, KeyRow};
use servo_store::{Result, Scope};

use crate::ahead::change::Change;
use crate::sql::{audit as log, identity};
use crate::store::SqliteStore;
use crate::writer::job::Nature;

/// Roughly what an entry takes with its four index entries.
const ENTRY_BYTES: usize = 512;

#[async_trait]
impl IdentityStore for SqliteStore {
    async fn put_key(&self, key: KeyRow) -> Result<()> {
        key.check()?;
        self.write(Nature::SMALL_CHECKED, move |tx| identity::put(tx, &key)).await
    }

    async fn find_key(&self, digest: Digest) -> Result<Option<KeyRow>> {
        self.read_direct(move |conn| identity::find(conn, digest)).await
    }

    async fn list_keys(&self, scope: &Scope, before: Option<KeyId>, limit: u32) -> Result<Vec<KeyRow>> {
        let scope = scope.clone();
        self.read_direct(move |conn| identity::list(conn, &scope, before.as_ref(), limit)).await
    }

    async fn get_key(&self, scope: &Scope, id: &KeyId) -> Result<Option<KeyRow>> {
        let (scope, id) = (scope.clone(), id.clone());
        self.read_direct(move |conn| identity::get(conn, &scope, &id)).await
    }

    async fn revoke_key(&self, scope: &Scope, id: &KeyId, at: Timestamp) -> Result<KeyRow> {
        let (scope, id) = (scope.clone(), id.clone());
        self.write(Nature::SMALL_CHECKED, move |tx| identity::revoke(tx, &scope, &id, at)).await
    }

    async fn touch_key(&self, id: &KeyId, at: Timestamp) -> Result<()> {
        let id = id.clone();
        self.write(Nature::SMALL_CHECKED, move |tx| identity::touch(tx, &id, at)).await
    }

    async fn trim_keys(&self, before: Timestamp, limit: u32) -> Result<u32> {
        self.write(Nature::SMALL_CHECKED, move |tx| identity::trim(tx, before, limit)).await
    }
}

#[async_trait]
impl AuditStore for SqliteStore {
    async fn put_audit(&self, entries: Vec<Arc<AuditEntry>>) -> Result<()> {
        let entries = audit::prepare(entries)?;
        self.ahead(ENTRY_BYTES * entries.len(), move |view| {
            view.changes.extend(entries.into_iter().map(Change::Audit));
            Ok(())
        })
        .await
    }

    async fn read_audit(&self, scope: &Scope, query: &AuditQuery) -> Result<Vec<AuditEntry>> {
        let (scope, query) = (scope.clone(), query.clone());
        self.read(move |conn| log::read(conn, &scope, &query)).await
    }

    async fn trim_audit(&self, before: Timestamp, limit: u32) -> Result<u32> {
        self.write(Nature::SMALL_CHECKED, move |tx| log::trim(tx, before, limit)).await
    }
}
