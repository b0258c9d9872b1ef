//! One operation on a store, in terms that mean the same to both: places instead of positions.

use std::collections::BTreeMap;

use servo_canon::Digest;
use servo_model::alert::AlertCode;
use servo_model::{EventId, RunId, TenantId, Timestamp};

use super::entrypoints::EntrypointOp;
use super::functions::FunctionOp;
use super::identity::IdentityOp;
use crate::dispatch::{DispatchHeads, QueueClaim};
use crate::lease::Fence;
use crate::log::{Append, StoredEvent, StoredSnapshot};
use crate::position::Position;
use crate::relay::{CursorRow, NewAlert, OutboxRow};
use crate::runs::{RunQuery, RunRow, Scope};

/// The n-th event a reader of the log saw; 0 is before all.
pub(super) type Place = usize;

#[derive(Debug, Clone)]
pub(super) enum Op {
    /// Cursors of the append stand beside it, because their positions are places.
    Append {
        append: Append,
        cursors: Vec<Cursor>,
    },
    ReadRun {
        scope: Scope,
        run_id: RunId,
        after: u64,
        limit: u32,
    },
    LoadRun {
        scope: Scope,
        run_id: RunId,
        limit: u32,
    },
    SnapshotAt {
        scope: Scope,
        run_id: RunId,
        seq_max: u64,
    },
    PutSnapshot {
        run_id: RunId,
        tenant: TenantId,
        snapshot: StoredSnapshot,
    },
    /// Reads the log to its end, in pages of this size.
    Follow {
        page: u32,
    },
    LogHead,
    CountLog {
        after: Place,
        until: Place,
        most: u64,
    },
    GetRun {
        scope: Scope,
        run_id: RunId,
    },
    ListRuns {
        scope: Scope,
        query: RunQuery,
    },
    FindRequest {
        tenant: TenantId,
        key: Digest,
    },
    ReleaseRequest {
        tenant: TenantId,
        key: Digest,
        run_id: RunId,
    },
    CountByVisible {
        tenant: TenantId,
        plan_id: Option<String>,
    },
    CountActive {
        tenant: TenantId,
        most: u32,
    },
    CountOpen {
        tenant: TenantId,
        plan_id: String,
    },
    CountDescendants {
        tenant: TenantId,
        root: RunId,
        most: u32,
    },
    OpenDescendants {
        tenant: TenantId,
        root: RunId,
        after: Option<RunId>,
        limit: u32,
    },
    ClaimQueue {
        claim: QueueClaim,
    },
    ReleaseQueue {
        run_id: RunId,
        owner: String,
        not_before: Timestamp,
    },
    DispatchHeads {
        heads: DispatchHeads,
    },
    OpenDispatches {
        epoch: u64,
        tenant: TenantId,
        after: Option<(Timestamp, String)>,
        limit: u32,
    },
    GetDispatch {
        request_id: String,
    },
    Backlog,
    DueTimers {
        limit: u32,
    },
    GetTimer {
        run_id: RunId,
    },
    Authority,
    BreakLeases,
    GetCursor {
        name: String,
    },
    MoveCursor {
        from: Option<Place>,
        to: Cursor,
        fence: Option<Fence>,
    },
    OutboxPut {
        note: Note,
    },
    OutboxDue {
        limit: u32,
    },
    OutboxLen,
    OutboxDone {
        place: Place,
    },
    OutboxBury {
        note: Note,
    },
    DeadLetters {
        after: Place,
        limit: u32,
    },
    Redrive {
        place: Option<Place>,
    },
    RaiseAlert {
        alert: NewAlert,
    },
    Alerts {
        scope: Scope,
        limit: u32,
    },
    ClearAlert {
        code: AlertCode,
        tenant: TenantId,
        subject: String,
    },
    Quarantine {
        run_id: RunId,
        reason: String,
    },
    Retire {
        finished_before: Timestamp,
        limit: u32,
    },
    DeleteRun {
        scope: Scope,
        run_id: RunId,
    },
    TrimSystem {
        before: Timestamp,
        limit: u32,
    },
    Function(FunctionOp),
    Entrypoint(EntrypointOp),
    Identity(IdentityOp),
    Import {
        row: RunRow,
        events: Vec<StoredEvent>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Cursor {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) last_event_id: Option<EventId>,
    pub(super) target: Option<Place>,
    pub(super) deferred: bool,
}

impl Cursor {
    pub(super) fn row(&self, places: &[Position]) -> CursorRow {
        CursorRow {
            name: self.name.clone(),
            position: places[self.place],
            last_event_id: self.last_event_id,
            target: self.target.map(|place| places[place]),
            deferred: self.deferred,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Note {
    pub(super) place: Place,
    pub(super) run_id: RunId,
    pub(super) run_seq: u64,
    pub(super) tenant: TenantId,
    pub(super) attempts: u32,
    pub(super) next_at: Timestamp,
    pub(super) last_error: String,
}

impl Note {
    pub(super) fn row(&self, places: &[Position]) -> OutboxRow {
        OutboxRow {
            position: places[self.place],
            run_id: self.run_id.clone(),
            run_seq: self.run_seq,
            tenant: self.tenant.clone(),
            attempts: self.attempts,
            next_at: self.next_at,
            last_error: self.last_error.clone(),
        }
    }
}

/// The place of a position, as both stores would tell it.
pub(super) fn place_text(position: Position, places: &[Position]) -> String {
    let known: BTreeMap<_, _> = places.iter().enumerate().map(|(place, position)| (*position, place)).collect();
    known.get(&position).map_or("no known place".to_owned(), |place| format!("place {place}"))
}

impl Op {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Op::Append { .. } => "append",
            Op::ReadRun { .. } => "read_run",
            Op::LoadRun { .. } => "load_run",
            Op::SnapshotAt { .. } => "snapshot_at",
            Op::PutSnapshot { .. } => "put_snapshot",
            Op::Follow { .. } => "read_log",
            Op::LogHead => "log_head",
            Op::CountLog { .. } => "count_log",
            Op::GetRun { .. } => "get_run",
            Op::ListRuns { .. } => "list_runs",
            Op::FindRequest { .. } => "find_request",
            Op::ReleaseRequest { .. } => "release_request",
            Op::CountByVisible { .. } => "count_by_visible",
            Op::CountActive { .. } => "count_active",
            Op::CountOpen { .. } => "count_open",
            Op::CountDescendants { .. } => "count_descendants",
            Op::OpenDescendants { .. } => "open_descendants",
            Op::ClaimQueue { .. } => "claim_queue",
            Op::ReleaseQueue { .. } => "release_queue",
            Op::DispatchHeads { .. } => "dispatch_heads",
            Op::OpenDispatches { .. } => "open_dispatches",
            Op::GetDispatch { .. } => "get_dispatch",
            Op::Backlog => "backlog",
            Op::DueTimers { .. } => "due_timers",
            Op::GetTimer { .. } => "get_timer",
            Op::Authority => "authority",
            Op::BreakLeases => "break_leases",
            Op::GetCursor { .. } => "cursor",
            Op::MoveCursor { .. } => "move_cursor",
            Op::OutboxPut { .. } => "outbox_put",
            Op::OutboxDue { .. } => "outbox_due",
            Op::OutboxLen => "outbox_len",
            Op::OutboxDone { .. } => "outbox_done",
            Op::OutboxBury { .. } => "outbox_bury",
            Op::DeadLetters { .. } => "dead_letters",
            Op::Redrive { .. } => "redrive",
            Op::RaiseAlert { .. } => "raise_alert",
            Op::Alerts { .. } => "alerts",
            Op::ClearAlert { .. } => "clear_alert",
            Op::Quarantine { .. } => "quarantine",
            Op::Retire { .. } => "retire",
            Op::DeleteRun { .. } => "delete_run",
            Op::TrimSystem { .. } => "trim_system",
            Op::Function(op) => op.kind(),
            Op::Entrypoint(op) => op.kind(),
            Op::Identity(op) => op.kind(),
            Op::Import { .. } => "import_run",
        }
    }
}
