//! Keys and the audit log through a connection.

use std::sync::Arc;

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::{AuditEntry, KeyId, Timestamp};
use servo_store::audit::AuditQuery;
use servo_store::identity::KeyRow;
use servo_store::{AuditStore, IdentityStore, Result, Scope};

use super::SimStore;
use super::functions::passed_on;

#[async_trait]
impl IdentityStore for SimStore {
    async fn put_key(&self, key: KeyRow) -> Result<()> {
        passed_on!(self.write(put_key(; key)))
    }

    async fn find_key(&self, digest: Digest) -> Result<Option<KeyRow>> {
        passed_on!(self.read(find_key(; digest)))
    }

    async fn list_keys(&self, scope: &Scope, before: Option<KeyId>, limit: u32) -> Result<Vec<KeyRow>> {
        passed_on!(self.read(list_keys(scope; before, limit)))
    }

    async fn get_key(&self, scope: &Scope, id: &KeyId) -> Result<Option<KeyRow>> {
        passed_on!(self.read(get_key(scope, id;)))
    }

    async fn revoke_key(&self, scope: &Scope, id: &KeyId, at: Timestamp) -> Result<KeyRow> {
        passed_on!(self.write(revoke_key(scope, id; at)))
    }

    async fn touch_key(&self, id: &KeyId, at: Timestamp) -> Result<()> {
        passed_on!(self.write(touch_key(id; at)))
    }

    async fn trim_keys(&self, before: Timestamp, limit: u32) -> Result<u32> {
        passed_on!(self.write(trim_keys(; before, limit)))
    }
}

#[async_trait]
impl AuditStore for SimStore {
    async fn put_audit(&self, entries: Vec<Arc<AuditEntry>>) -> Result<()> {
        passed_on!(self.write(put_audit(; entries)))
    }

    async fn read_audit(&self, scope: &Scope, query: &AuditQuery) -> Result<Vec<AuditEntry>> {
        passed_on!(self.read(read_audit(scope, query;)))
    }

    async fn trim_audit(&self, before: Timestamp, limit: u32) -> Result<u32> {
        passed_on!(self.write(trim_audit(; before, limit)))
    }
}
