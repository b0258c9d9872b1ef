//! Operations on keys and on the audit log, over few keys and entries.

use std::sync::Arc;

use servo_canon::Digest;
use servo_model::{AuditEntry, KeyId, Timestamp};

use super::apply::Answer;
use crate::Store;
use crate::audit::AuditQuery;
use crate::identity::KeyRow;
use crate::runs::Scope;

#[derive(Debug, Clone)]
pub(super) enum IdentityOp {
    Put { key: KeyRow },
    Find { digest: Digest },
    List { scope: Scope, before: Option<KeyId>, limit: u32 },
    Get { scope: Scope, id: KeyId },
    Revoke { scope: Scope, id: KeyId, at: Timestamp },
    Touch { id: KeyId, at: Timestamp },
    TrimKeys { before: Timestamp, limit: u32 },
    PutAudit { entries: Vec<AuditEntry> },
    ReadAudit { scope: Scope, query: AuditQuery },
    TrimAudit { before: Timestamp, limit: u32 },
}

impl IdentityOp {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            IdentityOp::Put { .. } => "put_key",
            IdentityOp::Find { .. } => "find_key",
            IdentityOp::List { .. } => "list_keys",
            IdentityOp::Get { .. } => "get_key",
            IdentityOp::Revoke { .. } => "revoke_key",
            IdentityOp::Touch { .. } => "touch_key",
            IdentityOp::TrimKeys { .. } => "trim_keys",
            IdentityOp::PutAudit { .. } => "put_audit",
            IdentityOp::ReadAudit { .. } => "read_audit",
            IdentityOp::TrimAudit { .. } => "trim_audit",
        }
    }

    pub(super) async fn apply(&self, store: &dyn Store) -> Answer {
        match self {
            IdentityOp::Put { key } => Answer::of(store.put_key(key.clone()).await),
            IdentityOp::Find { digest } => Answer::of(store.find_key(*digest).await),
            IdentityOp::List { scope, before, limit } => {
                Answer::of(store.list_keys(scope, before.clone(), *limit).await)
            }
            IdentityOp::Get { scope, id } => Answer::of(store.get_key(scope, id).await),
            IdentityOp::Revoke { scope, id, at } => Answer::of(store.revoke_key(scope, id, *at).await),
            IdentityOp::Touch { id, at } => Answer::of(store.touch_key(id, *at).await),
            IdentityOp::TrimKeys { before, limit } => Answer::of(store.trim_keys(*before, *limit).await),
            IdentityOp::PutAudit { entries } => {
                Answer::of(store.put_audit(entries.iter().cloned().map(Arc::new).collect()).await)
            }
            IdentityOp::ReadAudit { scope, query } => Answer::of(store.read_audit(scope, query).await),
            IdentityOp::TrimAudit { before, limit } => Answer::of(store.trim_audit(*before, *limit).await),
        }
    }
}
