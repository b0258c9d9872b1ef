//! Keys and the audit log.

use std::sync::Arc;

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::audit::first_id_at;
use servo_model::limits::KEYS_PER_TENANT_MAX;
use servo_model::{AuditEntry, KeyId, Timestamp};

use super::MemStore;
use crate::audit::{self, AuditQuery, AuditStore};
use crate::error::{Error, Result};
use crate::identity::{IdentityStore, KeyRow, too_many};
use crate::runs::Scope;

#[async_trait]
impl IdentityStore for MemStore {
    async fn put_key(&self, key: KeyRow) -> Result<()> {
        key.check()?;
        let mut inner = self.lock()?;
        if inner.keys.contains_key(&key.id) {
            return Ok(());
        }
        let live = inner.keys.values().filter(|other| other.tenant == key.tenant && other.is_live(key.created_at));
        if live.count() >= KEYS_PER_TENANT_MAX {
            return Err(too_many());
        }
        inner.keys.insert(key.id.clone(), key);
        Ok(())
    }

    async fn find_key(&self, digest: Digest) -> Result<Option<KeyRow>> {
        Ok(self.lock()?.keys.values().find(|key| key.digest == digest).cloned())
    }

    async fn list_keys(&self, scope: &Scope, before: Option<KeyId>, limit: u32) -> Result<Vec<KeyRow>> {
        let inner = self.lock()?;
        let keys = inner.keys.values().rev().filter(|key| scope.covers(&key.tenant));
        let keys = keys.filter(|key| before.as_ref().is_none_or(|before| key.id < *before));
        Ok(keys.take(limit as usize).cloned().collect())
    }

    async fn get_key(&self, scope: &Scope, id: &KeyId) -> Result<Option<KeyRow>> {
        Ok(self.lock()?.keys.get(id).filter(|key| scope.covers(&key.tenant)).cloned())
    }

    async fn revoke_key(&self, scope: &Scope, id: &KeyId, at: Timestamp) -> Result<KeyRow> {
        let mut inner = self.lock()?;
        let key = inner.keys.get_mut(id).filter(|key| scope.covers(&key.tenant)).ok_or(Error::NotFound)?;
        key.revoked_at.get_or_insert(at);
        Ok(key.clone())
    }

    async fn touch_key(&self, id: &KeyId, at: Timestamp) -> Result<()> {
        if let Some(key) = self.lock()?.keys.get_mut(id).filter(|key| key.is_due_for_touch(at)) {
            key.last_used_at = Some(at);
        }
        Ok(())
    }

    async fn trim_keys(&self, before: Timestamp, limit: u32) -> Result<u32> {
        let mut inner = self.lock()?;
        let ended = inner.keys.values().filter_map(|key| Some((key.ends_at()?, key.id.clone())));
        let mut due: Vec<_> = ended.filter(|(end, _)| *end < before).collect();
        due.sort();
        due.truncate(limit as usize);
        for (_, id) in &due {
            inner.keys.remove(id);
        }
        Ok(u32::try_from(due.len()).unwrap_or(limit))
    }
}

#[async_trait]
impl AuditStore for MemStore {
    async fn put_audit(&self, entries: Vec<Arc<AuditEntry>>) -> Result<()> {
        let entries = audit::prepare(entries)?;
        let mut inner = self.lock()?;
        for entry in entries {
            inner.audit.entry(entry.id).or_insert_with(|| Arc::unwrap_or_clone(entry));
        }
        Ok(())
    }

    async fn read_audit(&self, scope: &Scope, query: &AuditQuery) -> Result<Vec<AuditEntry>> {
        let inner = self.lock()?;
        let entries = inner.audit.values().rev().filter(|entry| scope.covers(&entry.tenant_id) && query.matches(entry));
        Ok(entries.take(query.limit as usize).cloned().collect())
    }

    async fn trim_audit(&self, before: Timestamp, limit: u32) -> Result<u32> {
        let mut inner = self.lock()?;
        let old: Vec<_> = inner.audit.range(..first_id_at(before)).map(|(id, _)| *id).take(limit as usize).collect();
        for id in &old {
            inner.audit.remove(id);
        }
        Ok(u32::try_from(old.len()).unwrap_or(limit))
    }
}
