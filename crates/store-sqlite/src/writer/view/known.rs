//! What the writer knows of one run.

use std::sync::Arc;

use rusqlite::Connection;
use servo_canon::Digest;
use servo_model::limits::INLINE_PAYLOAD_BYTES_MAX;
use servo_model::{RunId, TenantId};
use servo_store::{RunRow, StoredEvent};

use crate::ahead::Ahead;
use crate::ahead::change::Change;
use crate::error::Fault;
use crate::sql::events;
use crate::writer::keys::Keys;

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) tenant: TenantId,
    pub(crate) seq: u64,
    /// What the log's indexes know the run by; none before its first event.
    pub(crate) number: Option<i64>,
    /// The row, once it was needed.
    pub(crate) row: Option<Arc<RunRow>>,
    keys: Keys,
    /// Some of its events are rows of their own, whose keys only the database's index knows. The system stream has no
    /// others, and would fill the memory with its keys.
    has_rows: bool,
}

impl Known {
    /// Of a run that has nothing yet.
    pub(super) fn new(row: Arc<RunRow>) -> Self {
        let tenant = row.tenant.clone();
        Self { tenant, seq: 0, number: None, row: Some(row), keys: Keys::default(), has_rows: false }
    }

    pub(super) fn may_have(&self, key: &Digest) -> bool {
        self.has_rows || self.keys.may_have(key)
    }

    pub(super) fn add_event(&mut self, event: &StoredEvent) {
        self.seq = self.seq.max(event.run_seq);
        if event.run_id.is_system() {
            return;
        }
        self.has_rows |= event.payload.len() > INLINE_PAYLOAD_BYTES_MAX;
        self.keys.add(&event.idempotency_key);
    }

    /// What an earlier job of the group did to the run: it is in no other place yet.
    fn add_change(&mut self, run_id: &RunId, change: &Change) {
        match change {
            Change::Run { row, .. } if row.run_id == *run_id => self.row = Some(row.clone()),
            Change::Number { run_id: of, number, .. } if of == run_id => self.number = Some(*number),
            Change::Event { number, event } if event.run_id == *run_id => {
                self.number = Some(*number);
                self.add_event(event);
            }
            _ => {}
        }
    }
}

/// From the database, what is ahead of it, and what the group has done so far.
pub(super) fn load<'w>(
    conn: &Connection,
    aheads: impl Iterator<Item = &'w Ahead>,
    changes: &[Change],
    run_id: &RunId,
) -> Result<Option<Known>, Fault> {
    let aheads: Vec<_> = aheads.filter_map(|ahead| ahead.runs.get(run_id)).collect();
    let stored = events::head(conn, run_id)?;
    let is_there = stored.is_some() || aheads.iter().any(|run| run.is_new);
    let tenant = stored.as_ref().map(|head| &head.tenant).or(aheads.first().map(|run| &run.tenant));
    let mut known = tenant.filter(|_| is_there).map(|tenant| Known {
        tenant: tenant.clone(),
        seq: stored.as_ref().map_or(0, |head| head.seq),
        number: stored.as_ref().and_then(|head| head.number),
        row: aheads.iter().find_map(|run| run.row.clone()),
        keys: Keys::default(),
        has_rows: run_id.is_system(),
    });
    if let Some(known) = &mut known {
        if let Some(number) = known.number.filter(|_| !run_id.is_system()) {
            known.has_rows = events::has_rows(conn, number)?;
            events::pack_keys(conn, number)?.into_iter().for_each(|key| known.keys.add_short(key));
        }
        for run in aheads {
            known.number = known.number.or(run.number);
            run.events.iter().for_each(|event| known.add_event(event));
        }
    }
    for change in changes {
        match (&mut known, change) {
            (Some(known), change) => known.add_change(run_id, change),
            (None, Change::Run { row, .. }) if row.run_id == *run_id => known = Some(Known::new(row.clone())),
            (None, _) => {}
        }
    }
    Ok(known)
}
