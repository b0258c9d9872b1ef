//! The reference model: every rule of the store in plain collections under one lock.
//!
//! It is not a mock. The other backends are compared with it, the simulator runs on it, and `servo dev --ephemeral`
//! does not use it only because people expect SQLite's behaviour there.

mod admin;
mod append;
mod entrypoints;
mod identity;
mod lines;
mod read;
mod registry;
mod relay;
mod work;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_canon::Digest;
use servo_model::alert::Alert;
use servo_model::limits::Limits;
use servo_model::{AliasName, AuditEntry, EventId, FunctionName, KeyId, RunId, RunStatus, TenantId, Timestamp};

use crate::TimeSource;
use crate::dispatch::DispatchRow;
use crate::entrypoints::EntrypointRow;
use crate::error::{Error, Result};
use crate::identity::KeyRow;
use crate::lease::AuthorityRow;
use crate::lines::LogLine;
use crate::log::StoredEvent;
use crate::position::Position;
use crate::registry::{AliasRow, FunctionVersion};
use crate::relay::{CursorRow, DeadLetter, OutboxRow};
use crate::runs::RunRow;
use servo_model::invocation::InvocationStatus;

/// A store in memory. Clones share it, as two connections share a database.
#[derive(Clone)]
pub struct MemStore {
    inner: Arc<Mutex<Inner>>,
    time: TimeSource,
    limits: Limits,
    single_process: bool,
}

#[derive(Debug, Default)]
struct Inner {
    next_id: u64,
    /// Global log: position id to run and sequence.
    log: BTreeMap<u64, (RunId, u64)>,
    runs: BTreeMap<RunId, Run>,
    requests: BTreeMap<(TenantId, Digest), RunId>,
    dispatches: BTreeMap<String, DispatchRow>,
    authority: Option<AuthorityRow>,
    cursors: BTreeMap<String, CursorRow>,
    outbox: BTreeMap<Position, OutboxRow>,
    dead: BTreeMap<Position, DeadLetter>,
    alerts: BTreeMap<(String, TenantId, String), Alert>,
    functions: BTreeMap<(TenantId, FunctionName), Function>,
    entrypoints: BTreeMap<(TenantId, String), EntrypointRow>,
    keys: BTreeMap<KeyId, KeyRow>,
    audit: BTreeMap<EventId, AuditEntry>,
    secret: [u8; 32],
    closed: bool,
}

#[derive(Debug, Clone)]
struct Run {
    row: RunRow,
    events: BTreeMap<u64, StoredEvent>,
    /// Of the events, as each was written.
    checksums: BTreeMap<u64, i64>,
    keys: BTreeMap<Digest, u64>,
    snapshots: BTreeMap<u64, String>,
    timer: Option<Timestamp>,
    queue: Option<Queue>,
    /// The highest sequence ever given, kept when events are trimmed.
    head: u64,
    lines: BTreeMap<u64, LogLine>,
    /// The highest number ever given, kept when lines leave.
    last_line: u64,
}

#[derive(Debug, Clone, Default)]
struct Function {
    versions: BTreeMap<u64, FunctionVersion>,
    aliases: BTreeMap<AliasName, AliasRow>,
}

#[derive(Debug, Clone)]
struct Queue {
    not_before: Timestamp,
    queued_at: Timestamp,
    lease: Option<(String, Timestamp)>,
}

impl Run {
    fn new(row: RunRow) -> Self {
        Self {
            row,
            events: BTreeMap::new(),
            checksums: BTreeMap::new(),
            keys: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            timer: None,
            queue: None,
            head: 0,
            lines: BTreeMap::new(),
            last_line: 0,
        }
    }
}

impl Run {
    /// An event comes in, with the checksum that it has now.
    fn keep(&mut self, event: StoredEvent) {
        self.keys.insert(event.idempotency_key, event.run_seq);
        self.checksums.insert(event.run_seq, event.checksum());
        self.events.insert(event.run_seq, event);
    }

    fn check(&self, event: &StoredEvent) -> Result<()> {
        event.check(self.checksums.get(&event.run_seq).copied())
    }
}

impl std::fmt::Debug for MemStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemStore").finish_non_exhaustive()
    }
}

impl MemStore {
    pub fn new(time: TimeSource, limits: Limits, secret: [u8; 32]) -> Self {
        let mut inner = Inner { secret, ..Inner::default() };
        inner.runs.insert(RunId::system(), Run::new(system_row(time())));
        Self { inner: Arc::new(Mutex::new(inner)), time, limits, single_process: true }
    }

    /// The same store, presented as one that several processes may open at a time.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { single_process: false, ..self }
    }

    /// Changes an event behind the store's back, as failing memory would.
    #[cfg(feature = "testkit")]
    pub fn damage(&self, run_id: &RunId, run_seq: u64, change: impl FnOnce(&mut StoredEvent)) -> Result<()> {
        let mut inner = self.lock()?;
        let event = inner.runs.get_mut(run_id).and_then(|run| run.events.get_mut(&run_seq));
        event.map(change).ok_or(Error::NotFound)
    }

    fn lock(&self) -> Result<MutexGuard<'_, Inner>> {
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if inner.closed { Err(Error::Closed) } else { Ok(inner) }
    }
}

/// The row of the system stream, the same in every backend.
pub fn system_row(now: Timestamp) -> RunRow {
    RunRow {
        run_id: RunId::system(),
        tenant: TenantId::system(),
        project: "".into(),
        environment: "".into(),
        plan_id: "".into(),
        plan_version: String::new(),
        status: RunStatus::Running,
        visible: InvocationStatus::Running,
        request_key: None,
        created_at: now,
        finished_at: None,
        changed_seq: 0,
        quarantined: None,
        name: None,
        outcome: None,
        invocation: false,
        mode: None,
        correlation_id: None,
        root: None,
    }
}
