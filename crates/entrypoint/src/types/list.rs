//! Lists: what they are restricted to, how they are cut into pages, and what is done to many runs at once.

use serde::{Deserialize, Serialize};

use super::{
    DefinitionStatus, EntrypointId, InvocationControlAction, InvocationId, InvocationMode, InvocationStatus, OwnerType,
    RuntimeErrorPayload, TenantId, ValidationError, ValidationIssue,
};
use crate::odata::{Filter, OrderBy};

pub const LIMIT_DEFAULT: u32 = 25;
pub const LIMIT_MAX: u32 = 200;

/// Which part of a list is wanted, and in which order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageQuery {
    /// Absent: [`LIMIT_DEFAULT`], where a page is asked for.
    pub limit: Option<u32>,
    /// From an earlier page.
    pub cursor: Option<String>,
    pub filter: Option<Filter>,
    /// Absent: newest first.
    pub order: Option<OrderBy>,
}

/// The length of a page that a query asks for.
pub fn list_limit(asked: Option<&str>) -> Result<u32, RuntimeErrorPayload> {
    let limit = asked.map_or(Some(LIMIT_DEFAULT), |text| text.parse().ok());
    limit.filter(|limit| (1..=LIMIT_MAX).contains(limit)).ok_or_else(|| {
        let message = format!("`limit` is a number from 1 to {LIMIT_MAX}");
        ValidationError::new(vec![ValidationIssue::new("invalid_value", "$.limit", message)]).into()
    })
}

impl PageQuery {
    /// Whether a page is asked for, and not the whole list.
    pub fn is_cut(&self) -> bool {
        self.limit.is_some() || self.cursor.is_some()
    }

    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub page_info: PageInfo,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageInfo {
    pub next_cursor: Option<String>,
    pub prev_cursor: Option<String>,
    pub has_more: bool,
}

/// The default restricts nothing, except that archived entrypoints are shown only to those who ask for them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EntrypointListFilter {
    pub tenant_id: Option<TenantId>,
    /// May end in `*`.
    pub entrypoint_id_prefix: Option<String>,
    pub status: Option<DefinitionStatus>,
    pub owner_type: Option<OwnerType>,
    /// The adapter.
    pub runtime: Option<String>,
    /// All of them must be there.
    pub tags: Vec<String>,
    pub page: PageQuery,
}

/// The default restricts nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InvocationListFilter {
    pub tenant_id: Option<TenantId>,
    pub entrypoint_id: Option<EntrypointId>,
    pub status: Option<InvocationStatus>,
    pub mode: Option<InvocationMode>,
    pub correlation_id: Option<String>,
    pub page: PageQuery,
}

/// Runs of one bulk action.
pub const BULK_ITEMS_MAX: u32 = 1_000;

/// One action on all runs that a filter finds.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkControl {
    /// Its cursor goes on behind an earlier call, so that what an action leaves in the list is not met again.
    pub filter: InvocationListFilter,
    pub action: InvocationControlAction,
    /// At most so many runs; the answer says whether there are more.
    pub max_items: u32,
    /// At most so many a second, so that a redrive does not flood what it repairs.
    pub per_second: Option<u32>,
    /// Only say which runs it would be.
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkOutcome {
    pub invocation_id: InvocationId,
    /// Why nothing was done; absent when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RuntimeErrorPayload>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCount {
    pub status: InvocationStatus,
    pub count: u64,
}
