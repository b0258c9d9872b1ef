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
use servo_store::log::{EventOutcome, LogPage, RunPage, Unreadable};
use servo_store::page::PageBytes;
use servo_store::{Error, Position, Scope, StoredEvent};

use crate::codec::{self, int};
use crate::error::{Fault, corrupt};

pub(crate) use packed::{Packing, check as check_pack, insert_pack, pack_keys};

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

/// An event of the log, or what stands in the place of events that cannot be read.
type Found = Result<StoredEvent, Unreadable>;

fn unreadable(last_position: i64, detail: String) -> Found {
    Err(Unreadable { position: Position::of_id(last_position.unsigned_abs()), run: None, detail })
}

/// What is wrong with the one thing that was read, in words. A fault of the database is no answer about it.
pub(crate) fn damage(read: Result<(), Fault>) -> Result<Option<String>, Fault> {
    match read {
        Ok(()) => Ok(None),
        Err(Fault::Refused(Error::Corrupt { detail })) => Ok(Some(detail)),
        Err(fault @ (Fault::Refused(_) | Fault::Sql(rusqlite::Error::SqliteFailure(..)))) => Err(fault),
        // A value of another type than its column has.
        Err(Fault::Sql(error)) => Ok(Some(error.to_string())),
    }
}

/// Whose the events at a position are, if everything that says so agrees.
fn owner(conn: &Connection, position: u64) -> Result<Option<(RunId, TenantId)>, Fault> {
    let sql = "SELECT r.run_id, r.tenant_id FROM (SELECT run_id, tenant_id, run_number FROM packs WHERE last_position = ?1 \
                   UNION ALL SELECT run_id, tenant_id, run_number FROM events WHERE position = ?1) e \
               JOIN runs r ON r.run_id = e.run_id WHERE r.number = e.run_number AND r.tenant_id = e.tenant_id";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([int(position)])?;
    rows.next()?.map(|row| Ok((codec::run_id(row, 0)?, codec::tenant(row, 1)?))).transpose()
}

macro_rules! select_events {
    ($rest:literal) => {
        concat!(
            "SELECT position, e.run_id, tenant_id, run_seq, event_id, event_type, idempotency_key, emitted_at, \
             emitted_by, occurred_at, payload, bytes, blob_digest, format, checksum FROM events e \
             LEFT JOIN blobs b ON b.run_id = e.run_id AND b.digest = e.blob_digest ",
            $rest
        )
    };
}

fn stored_event(row: &Row<'_>) -> Result<StoredEvent, Fault> {
    let position = Position::of_id(codec::count(row, 0)?);
    let checksum = row.get::<_, Option<i64>>(14)?;
    let payload = match row.get::<_, Option<String>>(10)? {
        Some(payload) => payload,
        None => {
            let lost = || corrupt(format!("the event at position {} has lost its payload", position.id));
            let bytes = row.get::<_, Option<Vec<u8>>>(11)?.ok_or_else(lost)?;
            let not_text = || corrupt(format!("the payload of the event at position {} is no text", position.id));
            // The checksum covers it. Before there was one, there was the digest.
            if checksum.is_none() && codec::maybe_digest(row, 12)? != Some(Digest::of(&bytes)) {
                return Err(corrupt(format!("the payload of the event at position {} has changed", position.id)).into());
            }
            String::from_utf8(bytes).map_err(|_| not_text())?
        }
    };
    let event = StoredEvent {
        position,
        format: codec::count32(row, 13)?,
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
    };
    event.check(checksum)?;
    Ok(event)
}

/// The rows of `events`, to be checked one after the other; with schemas from before there were checksums.
pub(crate) const ROWS: &str = select_events!("");
pub(crate) const ROWS_WITHOUT_CHECKSUM: &str = "SELECT position, e.run_id, tenant_id, run_seq, event_id, event_type, \
     idempotency_key, emitted_at, emitted_by, occurred_at, payload, bytes, blob_digest, 1, NULL FROM events e \
     LEFT JOIN blobs b ON b.run_id = e.run_id AND b.digest = e.blob_digest";

/// What is wrong with a row of `ROWS`, and whether it has a checksum.
pub(crate) fn check_row(row: &Row<'_>) -> Result<(Option<String>, bool), Fault> {
    let problem = damage(stored_event(row).map(drop))?;
    let has_checksum = row.get_ref(14)? != rusqlite::types::ValueRef::Null;
    Ok((problem, has_checksum))
}

/// What a page may hold.
#[derive(Debug, Clone, Copy)]
struct Size {
    limit: u32,
    bytes_max: usize,
}

/// A page as far as it was read.
#[derive(Debug, Default)]
struct Page {
    events: Vec<StoredEvent>,
    unreadable: Vec<Unreadable>,
    /// There is nothing behind it.
    is_last: bool,
}

/// The first of both, each in order, as far as they fit. Reads no further than that.
fn page(
    rows: impl Iterator<Item = Result<Found, Fault>>,
    packs: impl Iterator<Item = Result<Found, Fault>>,
    order: fn(&StoredEvent) -> u64,
    size: Size,
) -> Result<Page, Fault> {
    let (mut rows, mut packs) = (rows.peekable(), packs.peekable());
    let mut bytes = PageBytes::new(size.bytes_max);
    let mut page = Page::default();
    while page.events.len() < size.limit as usize {
        let row_first = match (rows.peek(), packs.peek()) {
            (Some(Ok(Ok(row))), Some(Ok(Ok(packed)))) => order(row) <= order(packed),
            (Some(Err(_) | Ok(Err(_))), _) | (_, None) => true,
            (_, Some(_)) => false,
        };
        let next = if row_first { rows.next() } else { packs.next() };
        match next.transpose()? {
            Some(Ok(event)) if bytes.takes(event.payload.len()) => page.events.push(event),
            Some(Ok(_)) => break,
            Some(Err(unreadable)) => page.unreadable.push(unreadable),
            None => {
                page.is_last = true;
                break;
            }
        }
    }
    Ok(page)
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
    let whole = |event: Result<StoredEvent, Fault>| event.map(Ok);
    let page = page(rows.map(whole), packs.map(whole), |event| event.run_seq, Size { limit, bytes_max })?;
    Ok(RunPage { events: page.events, head_seq: head.seq })
}

pub(crate) fn read_log(conn: &Connection, after: Position, limit: u32, bytes_max: usize) -> Result<LogPage, Fault> {
    // Without a limit: rows that cannot be read take no room on the page.
    let mut rows = conn.prepare_cached(select_events!("WHERE position > ?1 ORDER BY position"))?;
    let rows = rows.query_and_then([int(after.id)], |row| {
        let mut event = None;
        let read = stored_event(row).map(|read| event = Some(read));
        let problem = damage(read)?.unwrap_or_default();
        Ok::<_, Fault>(event.map_or_else(|| unreadable(row.get(0).unwrap_or_default(), problem), Ok))
    })?;
    let packs = packed::OfLog::after(conn, after.id);
    let Page { events, unreadable, is_last } = page(rows, packs, |event| event.position.id, Size { limit, bytes_max })?;
    let mut read = LogPage::new(events.into_iter().map(Arc::new).collect(), after);
    for mut gone in unreadable {
        gone.run = owner(conn, gone.position.id)?;
        // Packs lie across one another: what follows the page may stand before the end of one that cannot be read.
        if is_last {
            read.next = read.next.max(gone.position);
        }
        read.unreadable.push(gone);
    }
    Ok(read)
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
