//! The audit log: entries that are added and read, and leave by age. Nothing changes one.

use std::sync::Arc;

use async_trait::async_trait;
use servo_model::audit::first_id_at;
use servo_model::limits::AUDIT_BATCH_MAX;
use servo_model::{AuditEntry, AuditOutcome, EventId, TenantId, Timestamp};

use crate::error::{Error, Result};
use crate::runs::Scope;

/// Which entries, newest first. Every condition that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    pub actor: Option<String>,
    pub action: Option<String>,
    pub object_id: Option<String>,
    pub outcome: Option<AuditOutcome>,
    /// At this time or later.
    pub from: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// Goes on behind this entry, which need not be there any more.
    pub after: Option<EventId>,
    pub limit: u32,
}

impl AuditQuery {
    /// The ids that can meet the conditions on time and place: from the first, up to and without the second.
    pub fn bounds(&self) -> (EventId, EventId) {
        let low = self.from.map_or(EventId::nil(), first_id_at);
        let high = [self.until.map(first_id_at), self.after].into_iter().flatten().min();
        (low, high.unwrap_or(EventId::max()))
    }

    /// Whether an entry meets every condition. The rule that databases put into SQL.
    pub fn matches(&self, entry: &AuditEntry) -> bool {
        let same = |asked: &Option<String>, has: &str| asked.as_ref().is_none_or(|asked| asked == has);
        let (low, high) = self.bounds();
        same(&self.actor, &entry.actor)
            && same(&self.action, &entry.action)
            && same(&self.object_id, &entry.object_id)
            && self.outcome.is_none_or(|outcome| outcome == entry.outcome)
            && entry.id >= low
            && entry.id < high
    }
}

#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Adds entries, all or none. One whose id is there already is left as it is, so the call can be repeated after an
    /// unknown outcome. Texts that are too long are cut. `Limit` for too many at once.
    async fn put_audit(&self, entries: Vec<Arc<AuditEntry>>) -> Result<()>;

    async fn read_audit(&self, scope: &Scope, query: &AuditQuery) -> Result<Vec<AuditEntry>>;

    /// Removes entries from before a time, oldest first. Says how many went; fewer than `limit` means that no more are
    /// due.
    async fn trim_audit(&self, before: Timestamp, limit: u32) -> Result<u32>;
}

/// Entries as they are stored.
pub fn prepare(mut entries: Vec<Arc<AuditEntry>>) -> Result<Vec<Arc<AuditEntry>>> {
    if entries.len() > AUDIT_BATCH_MAX {
        return Err(Error::Limit { what: "audit entries written together", limit: AUDIT_BATCH_MAX as u64 });
    }
    for entry in entries.iter_mut().filter(|entry| !entry.is_clipped()) {
        *entry = Arc::new(AuditEntry::clone(entry).clipped());
    }
    Ok(entries)
}

/// A tenant's own entries, or all.
pub fn tenant_of(scope: &Scope) -> Option<&TenantId> {
    match scope {
        Scope::Tenant(tenant) => Some(tenant),
        Scope::System => None,
    }
}
