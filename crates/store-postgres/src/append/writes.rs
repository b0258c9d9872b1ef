//! What a batch writes, gathered from its appends. Where several change the same thing, the last one counts.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::{RunId, TenantId, Timestamp};
use servo_store::checksum::{Content, unplaced};
use servo_store::log::TimerChange;
use servo_store::relay::CursorRow;
use servo_store::{AuthorityRow, DispatchRow, NewEvent, Result, RunRow, StreamAppend};

use crate::pipeline::Pipeline;
use crate::sql;
use crate::sql::counts::Counts;
use crate::sql::timer::Timers;

#[derive(Debug, Default)]
pub(super) struct Writes<'a> {
    pub(super) authority: Option<AuthorityRow>,
    pub(super) new_runs: Vec<NewRun<'a>>,
    pub(super) events: Vec<EventWrite<'a>>,
    pub(super) rows: BTreeMap<&'a RunId, &'a RunRow>,
    pub(super) timers: Timers<'a>,
    pub(super) queue: BTreeMap<&'a RunId, QueueWrite<'a>>,
    pub(super) snapshots: BTreeMap<(&'a RunId, u64), (&'a TenantId, &'a str)>,
    /// Removed before any is written: one that is withdrawn may be queued again.
    pub(super) withdrawn: BTreeSet<&'a str>,
    pub(super) dispatches: BTreeMap<&'a str, DispatchRow>,
    pub(super) cursors: BTreeMap<&'a str, &'a CursorRow>,
    pub(super) counts: Counts,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct NewRun<'a> {
    pub(crate) run_id: &'a RunId,
    pub(crate) tenant: &'a TenantId,
    pub(crate) row: &'a RunRow,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct EventWrite<'a> {
    pub(crate) run_id: &'a RunId,
    pub(crate) tenant: &'a TenantId,
    pub(crate) run_seq: u64,
    pub(crate) event: &'a NewEvent,
}

impl EventWrite<'_> {
    /// Of what the writer says. The database adds what it gives itself.
    pub(crate) fn checksum(&self) -> i64 {
        unplaced(Content::new(self.event, self.run_id, self.tenant, self.run_seq).checksum())
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum QueueWrite<'a> {
    Put { tenant: &'a TenantId, not_before: Timestamp },
    Remove,
}

impl<'a> Writes<'a> {
    pub(super) fn timer(&mut self, stream: &'a StreamAppend) {
        let due = match stream.timer {
            TimerChange::Keep => return,
            TimerChange::Set(due) => Some(due),
            TimerChange::Clear => None,
        };
        self.timers.insert(&stream.run_id, (&stream.tenant, due));
    }

    pub(super) fn merge(&mut self, later: Writes<'a>) {
        let Writes {
            authority,
            new_runs,
            events,
            rows,
            timers,
            queue,
            snapshots,
            withdrawn,
            dispatches,
            cursors,
            counts,
        } = later;
        self.authority = authority.or(self.authority.take());
        self.new_runs.extend(new_runs);
        self.events.extend(events);
        self.rows.extend(rows);
        self.timers.extend(timers);
        self.queue.extend(queue);
        self.snapshots.extend(snapshots);
        self.dispatches.retain(|id, _| !withdrawn.contains(id));
        self.withdrawn.extend(withdrawn);
        self.dispatches.extend(dispatches);
        self.cursors.extend(cursors);
        self.counts.merge(counts);
    }

    pub(super) fn is_empty(&self) -> bool {
        // Numbers change with rows only.
        let Writes {
            authority, new_runs, events, rows, timers, queue, snapshots, withdrawn, dispatches, cursors, ..
        } = self;
        authority.is_none()
            && new_runs.is_empty()
            && events.is_empty()
            && rows.is_empty()
            && timers.is_empty()
            && queue.is_empty()
            && snapshots.is_empty()
            && withdrawn.is_empty()
            && dispatches.is_empty()
            && cursors.is_empty()
    }

    /// Adds the statements: a run's row before whatever refers to it.
    pub(super) fn send(&self, pipeline: &mut Pipeline<'a>, now: Timestamp, seals: bool) -> Result<()> {
        sql::runs::insert(pipeline, &self.new_runs)?;
        sql::log::insert(pipeline, &self.events, now, seals)?;
        sql::runs::update(pipeline, &self.rows)?;
        sql::timer::change(pipeline, &self.timers);
        sql::queue::change(pipeline, &self.queue, now);
        sql::log::insert_snapshots(pipeline, &self.snapshots)?;
        sql::dispatch::change(pipeline, &self.withdrawn, &self.dispatches)?;
        sql::relay::put_cursors(pipeline, self.cursors.values().copied())?;
        if let Some(authority) = &self.authority {
            sql::lease::put(pipeline, authority)?;
        }
        self.counts.send(pipeline);
        Ok(())
    }
}
