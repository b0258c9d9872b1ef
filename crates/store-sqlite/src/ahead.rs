//! What was answered and is in the redo file, but not in the database yet. The writer adds to one of these; from time to
//! time it is handed over, and `apply` puts all of it into the database in one transaction. A row that changed ten times
//! since then is written once.

pub(crate) mod change;
pub(crate) mod codec;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;
use servo_canon::Digest;
use servo_model::{AuditEntry, RunId, TenantId, Timestamp};
use servo_store::lines::LogLine;
use servo_store::log::StoredSnapshot;
use servo_store::relay::CursorRow;
use servo_store::{AuthorityRow, DispatchRow, RunRow, StoredEvent};

use crate::writer::counts::Counts;
use change::{Change, Waits};

#[derive(Debug, Clone, Default)]
pub(crate) struct Ahead {
    /// The last record of the redo file that is in here.
    pub(crate) lsn: u64,
    pub(crate) runs: HashMap<RunId, RunAhead>,
    /// The requests of new runs.
    pub(crate) requests: HashMap<(TenantId, Digest), RunId>,
    pub(crate) dispatches: HashMap<Arc<str>, DispatchAhead>,
    pub(crate) cursors: BTreeMap<String, CursorRow>,
    pub(crate) authority: Option<AuthorityRow>,
    /// The redo file's newest use, if it is newer than what the database has noted.
    pub(crate) redo: Option<u64>,
    pub(crate) audit: Vec<Arc<AuditEntry>>,
    pub(crate) counts: Counts,
    /// Of the last event; zero if there is none.
    pub(crate) last_position: u64,
    /// How many changes, and about how many bytes they hold.
    pub(crate) changes: usize,
    pub(crate) bytes: usize,
}

/// What changed of one run.
#[derive(Debug, Clone)]
pub(crate) struct RunAhead {
    pub(crate) tenant: TenantId,
    /// The database has no such run yet.
    pub(crate) is_new: bool,
    pub(crate) row: Option<Arc<RunRow>>,
    /// The number that the run's row does not have yet.
    pub(crate) new_number: Option<i64>,
    /// The number under which these events are in the log.
    pub(crate) number: Option<i64>,
    pub(crate) events: Vec<Arc<StoredEvent>>,
    pub(crate) timer: Option<Option<Timestamp>>,
    pub(crate) queue: Option<Option<Waits>>,
    pub(crate) snapshots: Vec<StoredSnapshot>,
    pub(crate) lines: Vec<LogLine>,
}

#[derive(Debug, Clone)]
pub(crate) struct DispatchAhead {
    pub(crate) row: Option<Arc<DispatchRow>>,
    /// The database has no such dispatch yet.
    pub(crate) is_new: bool,
    /// It was removed and made again: nothing of what the database has stays.
    pub(crate) is_remade: bool,
}

/// A change besides its texts and payloads, about.
const CHANGE_BYTES: usize = 200;

impl Ahead {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// Makes a change. In the order of the redo file.
    pub(crate) fn absorb(&mut self, change: Change) {
        self.changes += 1;
        self.bytes += CHANGE_BYTES;
        match change {
            Change::Run { row, is_new, before } => self.absorb_row(row, is_new, before),
            Change::Number { run_id, tenant, number } => {
                let run = self.run(run_id, &tenant);
                (run.new_number, run.number) = (Some(number), Some(number));
            }
            Change::Event { number, event } => {
                self.bytes += event.payload.len();
                self.last_position = event.position.id;
                let run = self.run(event.run_id.clone(), &event.tenant);
                run.number = Some(number);
                run.events.push(event);
            }
            Change::Timer { run_id, tenant, due_at } => self.run(run_id, &tenant).timer = Some(due_at),
            Change::Queue { run_id, tenant, waits } => self.run(run_id, &tenant).queue = Some(waits),
            Change::Snapshot { run_id, tenant, snapshot } => {
                self.bytes += snapshot.state.len();
                let run = self.run(run_id, &tenant);
                run.snapshots.retain(|earlier| earlier.run_seq != snapshot.run_seq);
                run.snapshots.push(snapshot);
            }
            Change::Lines { run_id, tenant, lines } => {
                self.bytes += lines.iter().map(|line| line.text.len() + CHANGE_BYTES).sum::<usize>();
                self.run(run_id, &tenant).lines.extend(lines);
            }
            Change::Dispatch { request_id, row, before, is_new } => {
                if let Some(before) = before {
                    self.counts.add_dispatches(before, -1);
                }
                if let Some(row) = &row {
                    self.counts.add_dispatches(row.state, 1);
                }
                let earlier = self.dispatches.get(&request_id);
                let is_remade = earlier.is_some_and(|earlier| earlier.is_remade || earlier.row.is_none());
                let is_new = earlier.map_or(is_new, |earlier| earlier.is_new);
                self.dispatches.insert(request_id, DispatchAhead { row, is_new, is_remade });
            }
            Change::Cursor(cursor) => {
                self.cursors.insert(cursor.name.clone(), cursor);
            }
            Change::Authority(row) => self.authority = Some(row),
            Change::Audit(entry) => self.audit.push(entry),
        }
    }

    fn absorb_row(
        &mut self,
        row: Arc<RunRow>,
        is_new: bool,
        before: Option<(Arc<str>, servo_model::invocation::InvocationStatus)>,
    ) {
        if let Some((plan_id, status)) = before {
            self.counts.add_invocations(&row.tenant, &plan_id, status, -1);
        }
        if row.invocation {
            self.counts.add_invocations(&row.tenant, &row.plan_id, row.visible, 1);
        }
        if is_new && let Some(key) = row.request_key {
            self.requests.insert((row.tenant.clone(), key), row.run_id.clone());
        }
        let run = self.run(row.run_id.clone(), &row.tenant);
        run.is_new |= is_new;
        run.row = Some(row);
    }

    fn run(&mut self, run_id: RunId, tenant: &TenantId) -> &mut RunAhead {
        self.runs.entry(run_id).or_insert_with(|| RunAhead {
            tenant: tenant.clone(),
            is_new: false,
            row: None,
            new_number: None,
            number: None,
            events: Vec::new(),
            timer: None,
            queue: None,
            snapshots: Vec::new(),
            lines: Vec::new(),
        })
    }
}
