//! Reading the log. An event is a row of `events` or one of several in a row of `packs`, and no reader can tell: each
//! function here looks at both.
//!
//! Whoever calls these does so within one transaction, so that both tables are of one moment.

#[cfg(test)]
pub(crate) mod fixture;
mod packed;

use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use servo_canon::Digest;
use servo_model::event::EventBody;
use servo_model::{RunId, TenantId};
use servo_store::log::{EventOutcome, LogPage, RunPage};
use servo_store::page::PageBytes;
use servo_store::{Error, Position, Scope, StoredEvent};

use crate::codec::{self, int};
use crate::error::{Fault, corrupt};

pub(crate) use packed::{insert_pack, pack_keys};

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tenant: TenantId,
    pub(crate) seq: u64,
    /// What the log's indexes know the run by; none before its first event.
    pub(crate) number: Option<i64>,
}

/// A run's tenant and last sequence, whatever the length of its log.
pub(crate) fn head(conn: &Connection, run_id: &RunId) -> Result<Option<Head>, Fault> {
    let sql = "SELECT tenant_id, max(head_floor, \
                   coalesce((SELECT max(run_seq) FROM events WHERE run_number = runs.number), 0), \
                   coalesce((SELECT max(last_seq) FROM packs WHERE run_number = runs.number), 0)), number \
               FROM runs WHERE run_id = ?1 AND purging = 0";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([run_id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Head { tenant: codec::tenant(row, 0)?, seq: codec::count(row, 1)?, number: row.get(2)? }))
}

/// The head of a run that the caller may see.
pub(crate) fn visible_head(conn: &Connection, scope: &Scope, run_id: &RunId) -> Result<Head, Fault> {
    let head = head(conn, run_id)?.filter(|head| scope.covers(&head.tenant));
    Ok(head.ok_or(Error::NotFound)?)
}

/// The position of the event that is written next.
pub(crate) fn next_position(conn: &Connection) -> Result<i64, Fault> {
    let sql = "SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0), \
                   coalesce((SELECT max(last_position) FROM packs), 0)) + 1";
    Ok(conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Whether some of the run's events are rows of their own.
pub(crate) fn has_rows(conn: &Connection, number: i64) -> Result<bool, Fault> {
    Ok(conn.prepare_cached("SELECT 1 FROM events WHERE run_number = ?1 LIMIT 1")?.exists([number])?)
}

/// The run's event with a key. An index has the keys of rows; those of packs are all looked at.
pub(crate) fn find_key(conn: &Connection, number: i64, key: Digest) -> Result<Option<EventOutcome>, Fault> {
    // The index has half of a key.
    let sql = "SELECT run_seq, event_id, emitted_at FROM events WHERE run_number = ?1 \
               AND substr(idempotency_key, 1, 16) = substr(?2, 1, 16) AND idempotency_key = ?2";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![number, key.as_bytes()])?;
    let Some(row) = rows.next()? else { return packed::find_key(conn, number, key) };
    Ok(Some(EventOutcome {
        run_seq: codec::count(row, 0)?,
        event_id: codec::event_id(row, 1)?,
        emitted_at: codec::time(row, 2)?,
        inserted: false,
    }))
}

macro_rules! select_events {
    ($rest:literal) => {
        concat!(
            "SELECT position, e.run_id, tenant_id, run_seq, event_id, event_type, idempotency_key, emitted_at, \
             emitted_by, occurred_at, payload, bytes FROM events e \
             LEFT JOIN blobs b ON b.run_id = e.run_id AND b.digest = e.blob_digest ",
            $rest
        )
    };
}

fn stored_event(row: &Row<'_>) -> Result<StoredEvent, Fault> {
    let position = Position::of_id(codec::count(row, 0)?);
    let payload = match row.get::<_, Option<String>>(10)? {
        Some(payload) => payload,
        None => {
            let bytes = row.get::<_, Option<Vec<u8>>>(11)?;
            let payload = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            payload.ok_or_else(|| corrupt(format!("the event at position {} has lost its payload", position.id)))?
        }
    };
    Ok(StoredEvent {
        position,
        run_id: codec::run_id(row, 1)?,
        tenant: codec::tenant(row, 2)?,
        run_seq: codec::count(row, 3)?,
        event_id: codec::event_id(row, 4)?,
        event_type: codec::spelled(row, 5, |text| Some(EventBody::interned_type(text)))?,
        idempotency_key: codec::digest(row, 6)?,
        emitted_at: codec::time(row, 7)?,
        emitted_by: row.get(8)?,
        occurred_at: codec::maybe_time(row, 9)?,
        payload,
    })
}

/// What a page may hold.
#[derive(Debug, Clone, Copy)]
struct Size {
    limit: u32,
    bytes_max: usize,
}

/// The first of both, each in order, as far as they fit. Reads no further than that.
fn page(
    rows: impl Iterator<Item = Result<StoredEvent, Fault>>,
    packs: impl Iterator<Item = Result<StoredEvent, Fault>>,
    order: fn(&StoredEvent) -> u64,
    size: Size,
) -> Result<Vec<StoredEvent>, Fault> {
    let (mut rows, mut packs) = (rows.peekable(), packs.peekable());
    let mut bytes = PageBytes::new(size.bytes_max);
    let mut events = Vec::new();
    while events.len() < size.limit as usize {
        let row_first = match (rows.peek(), packs.peek()) {
            (Some(Ok(row)), Some(Ok(packed))) => order(row) <= order(packed),
            (Some(Err(_)), _) | (_, None) => true,
            (_, Some(_)) => false,
        };
        let next = if row_first { rows.next() } else { packs.next() };
        let Some(event) = next.transpose()? else { break };
        if !bytes.takes(event.payload.len()) {
            break;
        }
        events.push(event);
    }
    Ok(events)
}

pub(crate) fn read_run(
    conn: &Connection,
    scope: &Scope,
    run_id: &RunId,
    after: u64,
    limit: u32,
    bytes_max: usize,
) -> Result<RunPage, Fault> {
    let head = visible_head(conn, scope, run_id)?;
    let sql = select_events!("WHERE run_number = ?1 AND run_seq > ?2 ORDER BY run_seq LIMIT ?3");
    let mut rows = conn.prepare_cached(sql)?;
    let rows = rows.query_and_then(params![head.number, int(after), limit], stored_event)?;
    let mut packs = conn.prepare_cached(packed::OF_RUN)?;
    let packs = packed::of_run(&mut packs, head.number, after)?;
    let events = page(rows, packs, |event| event.run_seq, Size { limit, bytes_max })?;
    Ok(RunPage { events, head_seq: head.seq })
}

pub(crate) fn read_log(conn: &Connection, after: Position, limit: u32, bytes_max: usize) -> Result<LogPage, Fault> {
    let sql = select_events!("WHERE position > ?1 ORDER BY position LIMIT ?2");
    let mut rows = conn.prepare_cached(sql)?;
    let rows = rows.query_and_then(params![int(after.id), limit], stored_event)?;
    let packs = packed::OfLog::after(conn, after.id);
    let events = page(rows, packs, |event| event.position.id, Size { limit, bytes_max })?;
    let next = events.last().map_or(after, |event| event.position);
    Ok(LogPage { events: events.into_iter().map(Arc::new).collect(), next })
}

pub(crate) fn log_head(conn: &Connection) -> Result<Position, Fault> {
    let sql = "SELECT max(coalesce((SELECT max(position) FROM events), 0), \
                   coalesce((SELECT max(last_position) FROM packs), 0))";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([])?;
    let id = rows.next()?.map_or(Ok(0), |row| codec::count(row, 0))?;
    Ok(Position::of_id(id))
}

pub(crate) fn count_log(conn: &Connection, after: Position, until: Position, most: u64) -> Result<u64, Fault> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM events WHERE position > ?1 AND position <= ?2 LIMIT ?3)";
    let mut found = conn.prepare_cached(sql)?;
    let counted = found.query_row(params![int(after.id), int(until.id), int(most)], |row| row.get::<_, i64>(0))?;
    let counted = counted.unsigned_abs();
    Ok(counted + packed::count(conn, after.id, until.id, most.saturating_sub(counted))?)
}

#[cfg(test)]
mod tests;
