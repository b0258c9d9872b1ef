//! How everything stands after the last answer: what the writer remembers, what is ahead of the database, and the database.
//! A job that is decided here makes changes; they take effect together, after the redo file has them.

mod known;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;
use servo_canon::Digest;
use servo_model::limits::Limits;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::log::EventOutcome;
use servo_store::relay::CursorRow;
use servo_store::{AuthorityRow, DispatchRow, RunRow, StoredEvent};

use super::recent::Recent;
use crate::ahead::Ahead;
use crate::ahead::change::{Change, Waits};
use crate::error::Fault;
use crate::sabotage::Sabotage;
use crate::sql::{dispatch, events, lease, queue, relay, runs};

pub(crate) use known::Known;

/// Runs and dispatches that are remembered, per generation of two: some 10 MB when full.
const RUNS_MAX: usize = 4_000;
const DISPATCHES_MAX: usize = 2_000;

/// What is remembered between groups: always as new as the last job that was not refused.
#[derive(Debug)]
pub(crate) struct Memory {
    runs: Recent<RunId, Known>,
    /// `None`: there is no such dispatch.
    dispatches: Recent<Arc<str>, Option<Arc<DispatchRow>>>,
    cursors: HashMap<String, Option<CursorRow>>,
    authority: Option<Option<AuthorityRow>>,
    /// No run with an id above this one is in the database without being remembered.
    last_run: Option<Option<RunId>>,
    next_position: Option<i64>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            runs: Recent::new(RUNS_MAX),
            dispatches: Recent::new(DISPATCHES_MAX),
            cursors: HashMap::new(),
            authority: None,
            last_run: None,
            next_position: None,
        }
    }
}

impl Memory {
    /// Everything is read again: something else than these jobs has changed the database, or a group came to nothing.
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.dispatches.clear();
        self.cursors.clear();
        (self.authority, self.last_run, self.next_position) = (None, None, None);
    }

    fn note_forgotten(&mut self, runs: impl Iterator<Item = RunId>) {
        if let Some(last) = &mut self.last_run {
            *last = last.take().into_iter().chain(runs).max();
        }
    }
}

/// What a job sees, and where it leaves its changes.
pub(crate) struct View<'w> {
    /// The database as it is: it may lag behind what is ahead of it, by none, some or all of `older`.
    conn: &'w Connection,
    memory: &'w mut Memory,
    newer: &'w Ahead,
    /// Being put into the database right now.
    older: Option<&'w Ahead>,
    pub(crate) now: Timestamp,
    pub(crate) limits: &'w Limits,
    pub(crate) sabotage: Sabotage,
    /// Of this group, this job's last.
    pub(crate) changes: &'w mut Vec<Change>,
    /// Where this job's begin.
    first: usize,
    touched: Touched,
}

/// What a job has taken out of memory, or changed there.
#[derive(Debug, Default)]
struct Touched {
    runs: Vec<RunId>,
    dispatches: Vec<Arc<str>>,
    position: Option<i64>,
}

/// What every job of a group sees alike.
pub(crate) struct Place<'w> {
    pub(crate) conn: &'w Connection,
    pub(crate) newer: &'w Ahead,
    pub(crate) older: Option<&'w Ahead>,
    pub(crate) limits: &'w Limits,
    pub(crate) sabotage: Sabotage,
}

impl<'w> View<'w> {
    pub(crate) fn new(place: &Place<'w>, memory: &'w mut Memory, changes: &'w mut Vec<Change>, now: Timestamp) -> Self {
        let Place { conn, newer, older, limits, sabotage } = *place;
        let first = changes.len();
        let touched = Touched::default();
        Self { conn, memory, newer, older, now, limits, sabotage, changes, first, touched }
    }

    /// The job is refused: its changes go, and what it left in memory is read again.
    pub(crate) fn take_back(self) {
        self.changes.truncate(self.first);
        for run_id in &self.touched.runs {
            drop(self.memory.runs.take(run_id));
        }
        self.memory.note_forgotten(self.touched.runs.into_iter());
        for request_id in &self.touched.dispatches {
            drop(self.memory.dispatches.take(request_id.as_ref()));
        }
        if self.touched.position.is_some() {
            self.memory.next_position = self.touched.position;
        }
        self.memory.cursors.clear();
        self.memory.authority = None;
    }

    /// Newest first.
    fn aheads(&self) -> impl Iterator<Item = &'w Ahead> + use<'w> {
        std::iter::once(self.newer).chain(self.older)
    }

    /// A run that is there. Whoever takes it puts it back, or is refused.
    pub(crate) fn take_run(&mut self, run_id: &RunId) -> Result<Option<Known>, Fault> {
        let known = match self.memory.runs.take(run_id) {
            Some(known) => Some(known),
            None => known::load(self.conn, self.aheads(), self.changes, run_id)?,
        };
        if known.is_some() {
            self.touched.runs.push(run_id.clone());
        }
        Ok(known)
    }

    pub(crate) fn put_run(&mut self, run_id: &RunId, known: Known) {
        let forgotten = self.memory.runs.set(run_id.clone(), known);
        self.memory.note_forgotten(forgotten.into_keys());
    }

    /// Whether there is such a run of the tenant.
    pub(crate) fn has_run(&mut self, run_id: &RunId, tenant: &TenantId) -> Result<bool, Fault> {
        let Some(known) = self.take_run(run_id)? else { return Ok(false) };
        let is_theirs = known.tenant == *tenant;
        self.put_run(run_id, known);
        Ok(is_theirs)
    }

    /// A run that is new with this job.
    pub(crate) fn add_run(&mut self, row: Arc<RunRow>) -> Known {
        self.touched.runs.push(row.run_id.clone());
        self.changes.push(Change::Run { row: row.clone(), is_new: true, before: None });
        Known::new(row)
    }

    /// Whether the id is taken, also by a run that is being deleted.
    pub(crate) fn exists(&mut self, run_id: &RunId) -> Result<bool, Fault> {
        let is_new = |change: &Change| matches!(change, Change::Run { row, .. } if row.run_id == *run_id);
        if self.memory.runs.has(run_id)
            || self.aheads().any(|ahead| ahead.runs.contains_key(run_id))
            || self.changes.iter().any(is_new)
        {
            return Ok(true);
        }
        let last = match &self.memory.last_run {
            Some(last) => last,
            None => {
                // What is ahead is in the database soon, and not remembered either.
                let ahead = self.aheads().flat_map(|ahead| ahead.runs.keys().max()).max().cloned();
                self.memory.last_run.insert(runs::last(self.conn)?.max(ahead))
            }
        };
        if last.as_ref().is_none_or(|last| run_id > last) {
            return Ok(false);
        }
        runs::exists(self.conn, run_id)
    }

    /// The run that a request has started.
    pub(crate) fn request(&self, tenant: &TenantId, key: Digest) -> Result<Option<RunId>, Fault> {
        let of_group = self.changes.iter().find_map(|change| match change {
            Change::Run { row, is_new: true, .. } if row.request_key == Some(key) && row.tenant == *tenant => {
                Some(row.run_id.clone())
            }
            _ => None,
        });
        let slot = (tenant.clone(), key);
        let ahead = || self.aheads().find_map(|ahead| ahead.requests.get(&slot).cloned());
        match of_group.or_else(ahead) {
            Some(run_id) => Ok(Some(run_id)),
            None => runs::find_request(self.conn, tenant, key),
        }
    }

    /// The row of a run that is there.
    pub(crate) fn row(&self, run_id: &RunId, known: &Known) -> Result<Arc<RunRow>, Fault> {
        match &known.row {
            Some(row) => Ok(row.clone()),
            None => Ok(Arc::new(runs::find(self.conn, run_id)?.ok_or(servo_store::Error::NotFound)?)),
        }
    }

    /// The event of a run that has this key.
    pub(crate) fn find_key(&self, run_id: &RunId, known: &Known, key: &Digest) -> Result<Option<EventOutcome>, Fault> {
        if !known.may_have(key) {
            return Ok(None);
        }
        let is_it = |event: &&Arc<StoredEvent>| event.run_id == *run_id && event.idempotency_key == *key;
        let of_group = self.changes.iter().find_map(|change| match change {
            Change::Event { event, .. } if is_it(&event) => Some(event),
            _ => None,
        });
        let runs = || self.aheads().filter_map(|ahead| ahead.runs.get(run_id));
        if let Some(event) = of_group.or_else(|| runs().flat_map(|run| &run.events).find(is_it)) {
            let (run_seq, event_id, emitted_at) = (event.run_seq, event.event_id, event.emitted_at);
            return Ok(Some(EventOutcome { run_seq, event_id, emitted_at, inserted: false }));
        }
        known.number.map_or(Ok(None), |number| events::find_key(self.conn, number, *key))
    }

    /// The position of the next event.
    pub(crate) fn next_position(&mut self) -> Result<i64, Fault> {
        match self.memory.next_position {
            Some(position) => Ok(position),
            None => {
                let stored = events::next_position(self.conn)?;
                let ahead = self.aheads().map(|ahead| ahead.last_position).max().unwrap_or(0);
                let position = stored.max(crate::codec::int(ahead) + 1);
                self.memory.next_position = Some(position);
                Ok(position)
            }
        }
    }

    /// An event at the next position.
    pub(crate) fn add_event(&mut self, known: &mut Known, number: i64, event: StoredEvent) -> Result<(), Fault> {
        let position = self.next_position()?;
        self.touched.position.get_or_insert(position);
        self.memory.next_position = Some(position + 1);
        known.number = Some(number);
        known.add_event(&event);
        self.changes.push(Change::Event { number, event: Arc::new(event) });
        Ok(())
    }

    pub(crate) fn dispatch(&mut self, request_id: &str) -> Result<Option<Arc<DispatchRow>>, Fault> {
        let found = match self.memory.dispatches.take(request_id) {
            Some(known) => known,
            None => {
                let of_group = self.changes.iter().rev().find_map(|change| match change {
                    Change::Dispatch { request_id: of, row, .. } if **of == *request_id => Some(row),
                    _ => None,
                });
                let ahead = || self.aheads().find_map(|ahead| ahead.dispatches.get(request_id)).map(|found| &found.row);
                match of_group.or_else(ahead) {
                    Some(row) => row.clone(),
                    None => dispatch::get(self.conn, request_id)?.map(Arc::new),
                }
            }
        };
        self.memory.dispatches.set(request_id.into(), found.clone());
        Ok(found)
    }

    /// Whether a run was begun so recently that the database has it only from what is ahead, if at all.
    pub(crate) fn is_new_ahead(&self, run_id: &RunId) -> bool {
        self.aheads().any(|ahead| ahead.runs.get(run_id).is_some_and(|run| run.is_new))
    }

    /// Whether nothing but the database can know it.
    pub(crate) fn is_unknown_dispatch(&self, request_id: &str) -> bool {
        let is_it = |change: &Change| matches!(change, Change::Dispatch { request_id: of, .. } if **of == *request_id);
        !self.memory.dispatches.has(request_id)
            && !self.aheads().any(|ahead| ahead.dispatches.contains_key(request_id))
            && !self.changes.iter().any(is_it)
    }

    /// How a dispatch was and is; `None` where there is none.
    pub(crate) fn put_dispatch(&mut self, before: Option<&DispatchRow>, row: Option<DispatchRow>) {
        let row = row.map(Arc::new);
        let Some(request_id) = row.as_ref().map(|row| &row.request_id).or(before.map(|row| &row.request_id)) else {
            return;
        };
        let request_id: Arc<str> = request_id.as_str().into();
        self.touched.dispatches.push(request_id.clone());
        drop(self.memory.dispatches.take(request_id.as_ref()));
        self.memory.dispatches.set(request_id.clone(), row.clone());
        // One that this job hands out with what queues it was never pending for anybody else.
        let own = self.changes.get_mut(self.first..).and_then(<[Change]>::last_mut);
        if let Some(Change::Dispatch { request_id: last, row: queued, is_new: true, .. }) = own
            && *last == request_id
            && row.is_some()
        {
            *queued = row;
            return;
        }
        let (before, is_new) = (before.map(|row| row.state), before.is_none());
        self.changes.push(Change::Dispatch { request_id, row, before, is_new });
    }

    /// Who holds the lease of a run that waits to be started; `None` if it does not wait.
    pub(crate) fn lease(&self, run_id: &RunId) -> Result<Option<Option<String>>, Fault> {
        let of_group = self.changes.iter().rev().find_map(|change| match change {
            Change::Queue { run_id: of, waits, .. } if of == run_id => Some(*waits),
            _ => None,
        });
        let ahead = || self.aheads().find_map(|ahead| ahead.runs.get(run_id).and_then(|run| run.queue));
        match of_group.or_else(ahead) {
            Some(waits) => Ok(waits.map(|_: Waits| None)),
            None => queue::lease(self.conn, run_id),
        }
    }

    pub(crate) fn cursor(&mut self, name: &str) -> Result<Option<CursorRow>, Fault> {
        if let Some(known) = self.memory.cursors.get(name) {
            return Ok(known.clone());
        }
        let of_group = self.changes.iter().rev().find_map(|change| match change {
            Change::Cursor(cursor) if cursor.name == name => Some(cursor),
            _ => None,
        });
        let ahead = || self.aheads().find_map(|ahead| ahead.cursors.get(name));
        let found = match of_group.or_else(ahead) {
            Some(cursor) => Some(cursor.clone()),
            None => relay::cursor(self.conn, name)?,
        };
        self.memory.cursors.insert(name.to_owned(), found.clone());
        Ok(found)
    }

    pub(crate) fn set_cursor(&mut self, cursor: CursorRow) {
        self.memory.cursors.insert(cursor.name.clone(), Some(cursor.clone()));
        self.changes.push(Change::Cursor(cursor));
    }

    pub(crate) fn authority(&mut self) -> Result<Option<&AuthorityRow>, Fault> {
        if self.memory.authority.is_none() {
            let of_group = self.changes.iter().rev().find_map(|change| match change {
                Change::Authority(row) => Some(row),
                _ => None,
            });
            let ahead = || self.aheads().find_map(|ahead| ahead.authority.as_ref());
            let found = match of_group.or_else(ahead) {
                Some(row) => Some(row.clone()),
                None => lease::get(self.conn)?,
            };
            self.memory.authority = Some(found);
        }
        Ok(self.memory.authority.as_ref().and_then(Option::as_ref))
    }

    pub(crate) fn set_authority(&mut self, row: AuthorityRow) {
        self.memory.authority = Some(Some(row.clone()));
        self.changes.push(Change::Authority(row));
    }
}
