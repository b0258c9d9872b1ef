//! Entrypoints: what can be called by its address, registered while the server runs.
//!
//! The document is the caller's own; the store reads only the columns beside it. Rows of the system's tenant that the
//! system owns are there for everybody to read and for nobody else to change. What a status allows is the caller's
//! question, not the store's.

use async_trait::async_trait;
use servo_model::limits::{
    ENTRYPOINT_ADDRESS_CHARS_MAX, ENTRYPOINT_DOCUMENT_BYTES_MAX, LABEL_CHARS_MAX, TAGS_PER_ENTRYPOINT_MAX, fits,
};
use servo_model::{TenantId, Timestamp};

use crate::error::{Error, Result};
use crate::runs::Scope;

/// The status that leaves lists and quotas.
pub const ARCHIVED: &str = "archived";
/// The owners that rules name.
pub const OWNER_USER: &str = "user";
pub const OWNER_SYSTEM: &str = "system";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrypointRow {
    /// `ep_…`, unique in its tenant.
    pub id: String,
    pub tenant: TenantId,
    /// `user`, `tenant` or `system`.
    pub owner_type: String,
    pub owner_id: String,
    /// Unique in the tenant, archived ones included.
    pub address: String,
    pub version: String,
    pub status: String,
    pub adapter: String,
    pub title: String,
    pub tags: Vec<String>,
    /// Normalized JSON.
    pub document: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Counts changes, from 1.
    pub revision: u64,
}

impl EntrypointRow {
    /// Whether every tenant may read it.
    pub fn is_shared(&self) -> bool {
        self.tenant == TenantId::system() && self.owner_type == OWNER_SYSTEM
    }

    pub fn is_readable(&self, scope: &Scope) -> bool {
        scope.covers(&self.tenant) || self.is_shared()
    }

    /// Limits that hold for every backend, checked before the row is written.
    pub fn check(&self) -> Result<()> {
        let labels = [&self.id, &self.owner_type, &self.owner_id, &self.version, &self.status, &self.adapter];
        if labels.into_iter().chain(&self.tags).any(|label| !fits(label, LABEL_CHARS_MAX)) {
            return Err(Error::Limit { what: "a label of an entrypoint", limit: LABEL_CHARS_MAX as u64 });
        }
        for (what, text) in [("an entrypoint's address", &self.address), ("an entrypoint's title", &self.title)] {
            if !fits(text, ENTRYPOINT_ADDRESS_CHARS_MAX) {
                return Err(Error::Limit { what, limit: ENTRYPOINT_ADDRESS_CHARS_MAX as u64 });
            }
        }
        if self.tags.len() > TAGS_PER_ENTRYPOINT_MAX {
            return Err(Error::Limit { what: "an entrypoint's tags", limit: TAGS_PER_ENTRYPOINT_MAX as u64 });
        }
        if self.document.len() > ENTRYPOINT_DOCUMENT_BYTES_MAX {
            let limit = ENTRYPOINT_DOCUMENT_BYTES_MAX as u64;
            return Err(Error::Limit { what: "an entrypoint's document", limit });
        }
        let texts = labels.into_iter().chain([&self.address, &self.title, &self.document]).chain(&self.tags);
        check_texts("entrypoint", texts.map(String::as_str))
    }

    /// This row with what a change may change, one revision on. Id, tenant and first moment stay.
    #[must_use]
    pub fn changed(&self, row: EntrypointRow) -> EntrypointRow {
        EntrypointRow {
            id: self.id.clone(),
            tenant: self.tenant.clone(),
            created_at: self.created_at,
            revision: self.revision + 1,
            ..row
        }
    }
}

/// Postgres cannot store NUL, so no store takes it.
pub(crate) fn check_texts<'a>(field: &str, mut texts: impl Iterator<Item = &'a str>) -> Result<()> {
    if texts.any(|text| text.contains('\0')) {
        let reason = "a text holds a NUL character; leave it out".to_owned();
        return Err(Error::Invalid { field: field.to_owned(), reason });
    }
    Ok(())
}

/// By what a list is ordered; ids, then tenants, break ties.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EntrypointOrder {
    #[default]
    Created,
    Updated,
    Address,
}

/// A value that a list is ordered by. Texts compare as bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortValue {
    Time(Timestamp),
    Text(String),
}

/// Where a row stands in a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntrypointKey {
    pub value: SortValue,
    pub id: String,
    pub tenant: TenantId,
}

impl EntrypointOrder {
    pub fn key(self, row: &EntrypointRow) -> EntrypointKey {
        let value = match self {
            EntrypointOrder::Created => SortValue::Time(row.created_at),
            EntrypointOrder::Updated => SortValue::Time(row.updated_at),
            EntrypointOrder::Address => SortValue::Text(row.address.clone()),
        };
        EntrypointKey { value, id: row.id.clone(), tenant: row.tenant.clone() }
    }
}

/// Which entrypoints, of those that the scope may read. Every condition that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct EntrypointQuery {
    pub address: Option<String>,
    pub address_prefix: Option<String>,
    /// One of these; none stands for any.
    pub statuses: Vec<String>,
    pub exclude_archived: bool,
    pub owner_type: Option<String>,
    pub owner_id: Option<String>,
    /// Who asks: of rows that users own, only this one's are shown. `None` shows everybody's.
    pub subject: Option<String>,
    pub adapter: Option<String>,
    /// All of these.
    pub tags: Vec<String>,
    pub order: EntrypointOrder,
    /// The newest, or last by address, come first unless told otherwise.
    pub ascending: bool,
    /// Goes on behind this place, in either direction. The row itself need not be there any more.
    pub after: Option<EntrypointKey>,
    pub limit: u32,
}

impl EntrypointQuery {
    /// What must hold before a query is asked.
    pub fn check(&self) -> Result<()> {
        let singles =
            [&self.address, &self.address_prefix, &self.owner_type, &self.owner_id, &self.subject, &self.adapter];
        let key = self.after.iter().flat_map(|after| match &after.value {
            SortValue::Text(text) => vec![text, &after.id],
            SortValue::Time(_) => vec![&after.id],
        });
        let texts = singles.into_iter().flatten().chain(&self.statuses).chain(&self.tags).chain(key);
        check_texts("query", texts.map(String::as_str))?;
        let is_text = self.order == EntrypointOrder::Address;
        if self.after.as_ref().is_some_and(|after| matches!(after.value, SortValue::Text(_)) != is_text) {
            let reason = "belongs to a list in another order; begin again without it".to_owned();
            return Err(Error::Invalid { field: "after".to_owned(), reason });
        }
        Ok(())
    }

    /// Whether a row meets every condition, its place in the order aside. The rule that databases put into SQL.
    pub fn matches(&self, row: &EntrypointRow) -> bool {
        let same = |asked: &Option<String>, has: &String| asked.as_ref().is_none_or(|asked| asked == has);
        same(&self.address, &row.address)
            && self.address_prefix.as_ref().is_none_or(|prefix| row.address.starts_with(prefix))
            && (self.statuses.is_empty() || self.statuses.contains(&row.status))
            && !(self.exclude_archived && row.status == ARCHIVED)
            && same(&self.owner_type, &row.owner_type)
            && same(&self.owner_id, &row.owner_id)
            && (row.owner_type != OWNER_USER || same(&self.subject, &row.owner_id))
            && same(&self.adapter, &row.adapter)
            && self.tags.iter().all(|tag| row.tags.contains(tag))
    }

    /// Whether a place is on the pages that are still to come.
    pub fn is_ahead(&self, key: &EntrypointKey) -> bool {
        self.after.as_ref().is_none_or(|after| if self.ascending { key > after } else { key < after })
    }

    /// Puts the rows of several tenants together.
    pub fn sort(&self, rows: &mut [EntrypointRow]) {
        rows.sort_by_cached_key(|row| self.order.key(row));
        if !self.ascending {
            rows.reverse();
        }
    }
}

#[async_trait]
pub trait EntrypointStore: Send + Sync {
    /// Registers an entrypoint, at revision 1 whatever the row says. `EntrypointExists` when its tenant has the address
    /// or the id already, or a shared entrypoint has the address.
    async fn put_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow>;

    /// By id: the scope's own first, else a shared one.
    async fn get_entrypoint(&self, scope: &Scope, id: &str) -> Result<Option<EntrypointRow>>;

    /// By address: the tenant's own first, else a shared one.
    async fn find_entrypoint(&self, tenant: &TenantId, address: &str) -> Result<Option<EntrypointRow>>;

    /// Changes an entrypoint of the row's tenant that is still at the row's revision, and answers with it one revision
    /// on. Its first moment stays. `RevisionMoved` if somebody was faster, `NotFound` if the tenant has no such
    /// entrypoint, `EntrypointExists` if a new address is taken.
    async fn update_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow>;

    /// Removes an entrypoint that is still at this revision. Errors as for a change.
    async fn remove_entrypoint(&self, tenant: &TenantId, id: &str, expected_revision: u64) -> Result<()>;

    /// Pages are limited in bytes, too, so only an empty one is the end.
    async fn list_entrypoints(&self, scope: &Scope, query: &EntrypointQuery) -> Result<Vec<EntrypointRow>>;

    /// A tenant's own that are not archived.
    async fn count_entrypoints(&self, tenant: &TenantId) -> Result<u64>;
}
