//! One change of a row or of the log, as it is written into the redo file and later into the database. A change says how
//! things are after it, so that making it needs no look at how they were.

use std::sync::Arc;

use servo_model::contract::DispatchState;
use servo_model::invocation::InvocationStatus;
use servo_model::{AuditEntry, RunId, TenantId, Timestamp};
use servo_store::lines::LogLine;
use servo_store::log::StoredSnapshot;
use servo_store::relay::CursorRow;
use servo_store::{AuthorityRow, DispatchRow, RunRow, StoredEvent};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A run's row, whole. `before` is where the run was counted as an invocation until now.
    Run {
        row: Arc<RunRow>,
        is_new: bool,
        before: Option<(Arc<str>, InvocationStatus)>,
    },
    /// What the log's indexes know a run by: given with its first event.
    Number {
        run_id: RunId,
        tenant: TenantId,
        number: i64,
    },
    Event {
        number: i64,
        event: Arc<StoredEvent>,
    },
    Timer {
        run_id: RunId,
        tenant: TenantId,
        due_at: Option<Timestamp>,
    },
    Queue {
        run_id: RunId,
        tenant: TenantId,
        waits: Option<Waits>,
    },
    Snapshot {
        run_id: RunId,
        tenant: TenantId,
        snapshot: StoredSnapshot,
    },
    /// Lines of user code, added to those that the run has.
    Lines {
        run_id: RunId,
        tenant: TenantId,
        lines: Vec<LogLine>,
    },
    /// `None`: the dispatch is removed. `is_new`: the database cannot have it.
    Dispatch {
        request_id: Arc<str>,
        row: Option<Arc<DispatchRow>>,
        before: Option<DispatchState>,
        is_new: bool,
    },
    Cursor(CursorRow),
    Authority(AuthorityRow),
    Audit(Arc<AuditEntry>),
}

impl Change {
    /// The run that reads differently after it. Dispatches are read by themselves.
    pub(crate) fn run_id(&self) -> Option<&RunId> {
        match self {
            Self::Run { row, .. } => Some(&row.run_id),
            Self::Event { event, .. } => Some(&event.run_id),
            Self::Number { run_id, .. }
            | Self::Timer { run_id, .. }
            | Self::Queue { run_id, .. }
            | Self::Snapshot { run_id, .. }
            | Self::Lines { run_id, .. } => Some(run_id),
            Self::Dispatch { .. } | Self::Cursor(_) | Self::Authority(_) | Self::Audit(_) => None,
        }
    }
}

/// A run that waits to be started, with nobody's lease on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) not_before: Timestamp,
    pub(crate) queued_at: Timestamp,
}
