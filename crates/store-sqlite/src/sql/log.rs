//! The log: appending by the rules written at `servo_store::LogStore`, and reading.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use servo_canon::Digest;
use servo_model::limits::{INLINE_PAYLOAD_BYTES_MAX, Limits};
use servo_model::{RunId, Timestamp};
use servo_store::log::{
    EventOutcome, KeyMode, LogPage, QueueChange, RunPage, StoredSnapshot, StreamOutcome, TimerChange,
};
use servo_store::page::PageBytes;
use servo_store::{Append, Appended, Error, Expected, NewEvent, Position, Scope, StoredEvent, StreamAppend};

use crate::codec::{self, int};
use crate::error::{Fault, corrupt, is_unique};
use crate::sql::{dispatch, lease, queue, relay, runs, timer};
use crate::writer::heads::Head;
use crate::writer::job::Nature;
use crate::writer::tx::Tx;

/// Bytes of a row besides its payload, about.
const ROW_BYTES: usize = 256;

/// Digests of the payloads that are too large for the log, by stream and event. Computed before the writer sees them.
pub(crate) type Digests = BTreeMap<(usize, usize), Digest>;

pub(crate) fn digests(append: &Append) -> Digests {
    let mut digests = Digests::new();
    for (s, stream) in append.streams.iter().enumerate() {
        for (e, event) in stream.events.iter().enumerate() {
            if event.payload.len() > INLINE_PAYLOAD_BYTES_MAX {
                digests.insert((s, e), Digest::of(event.payload.as_bytes()));
            }
        }
    }
    digests
}

/// What the writer should know of an append before it runs it. The common one, of one event, is refused only by its
/// first statement.
pub(crate) fn nature(append: &Append, limits: &Limits) -> Nature {
    let snapshot = |stream: &StreamAppend| stream.snapshot.as_ref().map_or(0, |snapshot| snapshot.state.len());
    let events =
        |stream: &StreamAppend| stream.events.iter().map(|event| event.payload.len() + ROW_BYTES).sum::<usize>();
    let bytes = append.streams.iter().map(|stream| ROW_BYTES + events(stream) + snapshot(stream)).sum();
    let plain = |stream: &StreamAppend| {
        let one = stream.events.len() <= 1;
        let new = stream.expected == Expected::New && stream.events.len() as u64 <= limits.events_per_run_max;
        let leased = matches!(&stream.queue, QueueChange::Remove { leased_by: Some(_) });
        let open = stream.expected == Expected::New && dispatch::only_begins(&stream.dispatches);
        (one || new) && !leased && (open || stream.dispatches.is_empty())
    };
    let may_fail_late = append.authority.is_some() || append.streams.len() > 1 || !append.streams.iter().all(plain);
    Nature { bytes, may_fail_late }
}

pub(crate) fn append(tx: &mut Tx<'_>, append: Append, digests: &Digests) -> Result<Appended, Fault> {
    if let Some(fence) = append.fence {
        lease::check_fence(tx, fence)?;
    }
    let epoch = match &append.authority {
        Some(change) => Some(lease::change(tx, change)?),
        None => None,
    };
    let mut streams = Vec::with_capacity(append.streams.len());
    for (index, stream) in append.streams.into_iter().enumerate() {
        streams.push(append_stream(tx, stream, index, digests)?);
    }
    for cursor in &append.cursors {
        relay::set_cursor(tx.conn, cursor)?;
    }
    Ok(Appended { streams, epoch })
}

fn append_stream(
    tx: &mut Tx<'_>,
    mut stream: StreamAppend,
    index: usize,
    digests: &Digests,
) -> Result<StreamOutcome, Fault> {
    let head = match tx.head(&stream.run_id)? {
        Some(head) if head.tenant == stream.tenant => Some(head),
        Some(_) if stream.expected == Expected::New => {
            return Err(Error::RunExists { run_id: stream.run_id }.into());
        }
        None if stream.expected == Expected::New => None,
        Some(_) | None => return Err(Error::NotFound.into()),
    };
    let is_new = head.is_none();
    let known = head.as_ref().and_then(|head| head.number);
    let number = match known {
        None if !stream.events.is_empty() => Some(next_position(tx.conn)?),
        known => known,
    };
    if is_new {
        runs::create(tx, &stream, number)?;
    }
    let events = match append_events(tx, &mut stream, head.map(|head| head.seq), number, index, digests)? {
        Written::Before(events) => return Ok(StreamOutcome { events }),
        Written::Now(events) => events,
    };
    // Behind all that can be refused: a number without its event would be given again.
    if let Some(number) = number.filter(|_| !is_new && known.is_none()) {
        runs::set_number(tx.conn, &stream.run_id, number)?;
    }
    let StreamAppend { run_id, tenant, row, timer, queue, dispatches, snapshot, .. } = stream;
    if let Some(row) = row.filter(|_| !is_new) {
        runs::update(tx, &run_id, &row)?;
    }
    match timer {
        TimerChange::Keep => {}
        TimerChange::Set(at) => timer::set(tx.conn, &run_id, &tenant, at)?,
        TimerChange::Clear => timer::clear(tx.conn, &run_id)?,
    }
    match queue {
        QueueChange::Keep => {}
        QueueChange::Put { not_before } => queue::put(tx, &run_id, &tenant, not_before)?,
        QueueChange::Remove { leased_by } => queue::remove(tx.conn, &run_id, leased_by.as_deref())?,
    }
    if let Some(snapshot) = snapshot {
        insert_snapshot(tx.conn, &run_id, &snapshot)?;
    }
    dispatch::change_all(tx, &run_id, &tenant, dispatches, is_new)?;
    Ok(StreamOutcome { events })
}

/// The position of the event that is inserted next.
pub(crate) fn next_position(conn: &Connection) -> Result<i64, Fault> {
    let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0) + 1";
    Ok(conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// When the events of a stream were written: by an earlier append, all of them, or by this one.
enum Written {
    Before(Vec<EventOutcome>),
    Now(Vec<EventOutcome>),
}

/// Inserts and lets the database find keys that exist: a repeated append is rare, and then costs one lookup per event.
/// Only where the answer depends on it are the keys looked up first.
fn append_events(
    tx: &mut Tx<'_>,
    stream: &mut StreamAppend,
    head: Option<u64>,
    number: Option<i64>,
    index: usize,
    digests: &Digests,
) -> Result<Written, Fault> {
    // Without a number there is nothing to write.
    let numbered = number.unwrap_or(-1);
    let start = head.unwrap_or(0);
    let max = if stream.run_id.is_system() { u64::MAX } else { tx.limits.events_per_run_max };
    let has_room = start.saturating_add(stream.events.len() as u64) <= max;
    let mut known = None;
    if head.is_some() && !(has_room && check_sequence(tx, stream, start).is_ok()) {
        let found = find_keys(tx.conn, numbered, stream, start)?;
        if let Some(events) = judge_keys(tx, stream, start, &found)? {
            return Ok(Written::Before(events));
        }
        known = Some(found);
    }
    let mut seq = start;
    let mut outcomes = Vec::with_capacity(stream.events.len());
    for place in 0..stream.events.len() {
        if let Some(found) = known.as_ref().and_then(|known| known[place].clone()) {
            outcomes.push(found);
            continue;
        }
        let event = &stream.events[place];
        let digest = digests.get(&(index, place));
        let inserted = if seq < max { insert(tx, numbered, stream, event, seq + 1, digest)? } else { None };
        if let Some(position) = inserted {
            seq += 1;
            let (event_id, emitted_at) = (event.event_id, tx.now);
            tx.grown.events.push(stored(stream, place, seq, emitted_at, position));
            outcomes.push(EventOutcome { run_seq: seq, event_id, emitted_at, inserted: true });
            continue;
        }
        match find_key(tx.conn, numbered, event.idempotency_key)? {
            // The append says the same thing twice.
            Some(found) if found.run_seq > start => outcomes.push(found),
            Some(found) => {
                let keys = find_keys(tx.conn, numbered, stream, start)?;
                if let Some(events) = judge_keys(tx, stream, start, &keys)? {
                    return Ok(Written::Before(events));
                }
                known = Some(keys);
                outcomes.push(found);
            }
            None if seq >= max => return Err(Error::Limit { what: "the events of one run", limit: max }.into()),
            None => {
                let detail =
                    format!("run {} has an event at sequence {} that its head does not know", stream.run_id, seq + 1);
                return Err(corrupt(detail).into());
            }
        }
    }
    if seq > start || head.is_none() {
        tx.advance_head(&stream.run_id, Head { tenant: stream.tenant.clone(), seq, number });
    }
    Ok(Written::Now(outcomes))
}

/// Takes the texts of the event along: it is written, and from here on only its key is asked for.
fn stored(stream: &mut StreamAppend, place: usize, run_seq: u64, emitted_at: Timestamp, position: i64) -> StoredEvent {
    let event = &mut stream.events[place];
    StoredEvent {
        position: Position::of_id(position.unsigned_abs()),
        run_id: stream.run_id.clone(),
        tenant: stream.tenant.clone(),
        run_seq,
        event_id: event.event_id,
        event_type: std::mem::take(&mut event.event_type),
        idempotency_key: event.idempotency_key,
        emitted_at,
        emitted_by: std::mem::take(&mut event.emitted_by),
        occurred_at: event.occurred_at,
        payload: std::mem::take(&mut event.payload),
    }
}

/// The rules about a run that exists and keys that it has, as they are written at `LogStore`. `found` has an entry per
/// event. Answers with the events if all of them were written before.
fn judge_keys(
    tx: &Tx<'_>,
    stream: &StreamAppend,
    head: u64,
    found: &[Option<EventOutcome>],
) -> Result<Option<Vec<EventOutcome>>, Fault> {
    let all_exist = !found.is_empty() && found.iter().all(Option::is_some);
    let sequence = check_sequence(tx, stream, head);
    let first = stream.events.iter().zip(found).find_map(|(event, found)| Some((event, found.as_ref()?)));
    if stream.key_mode == KeyMode::Strict
        && let Some((event, found)) = first
        && (all_exist || sequence.is_ok())
    {
        let EventOutcome { run_seq, event_id, .. } = *found;
        let run_id = stream.run_id.clone();
        return Err(Error::KeyExists { run_id, key: event.idempotency_key, run_seq, event_id }.into());
    }
    if all_exist {
        return Ok(Some(found.iter().flatten().cloned().collect()));
    }
    sequence?;
    if first.is_some() && stream.expected != Expected::Any {
        return Err(Error::Conflict { run_id: stream.run_id.clone(), expected: head, actual: head }.into());
    }
    Ok(None)
}

fn check_sequence(tx: &Tx<'_>, stream: &StreamAppend, head: u64) -> Result<(), Error> {
    match stream.expected {
        Expected::New => Err(Error::RunExists { run_id: stream.run_id.clone() }),
        Expected::Seq(expected) if expected != head && !tx.sabotage.ignores_sequences() => {
            Err(Error::Conflict { run_id: stream.run_id.clone(), expected, actual: head })
        }
        Expected::Seq(_) | Expected::Any => Ok(()),
    }
}

const INSERT: &str = "INSERT INTO events (run_number, run_id, run_seq, tenant_id, event_id, event_type, \
     idempotency_key, emitted_at, emitted_by, occurred_at, payload, blob_digest) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

/// The event's position; none if the run has an event with this key (or, which only damage can cause, with this
/// sequence).
fn insert(
    tx: &Tx<'_>,
    number: i64,
    stream: &StreamAppend,
    event: &NewEvent,
    seq: u64,
    digest: Option<&Digest>,
) -> Result<Option<i64>, Fault> {
    let inserted = tx.conn.prepare_cached(INSERT)?.execute(params![
        number,
        stream.run_id.as_str(),
        int(seq),
        stream.tenant.as_str(),
        event.event_id.as_bytes(),
        event.event_type,
        event.idempotency_key.as_bytes(),
        tx.now.as_millis(),
        event.emitted_by,
        event.occurred_at.map(|at| at.as_millis()),
        digest.is_none().then_some(&event.payload),
        digest.map(Digest::as_bytes),
    ]);
    match inserted {
        Ok(_) => {}
        Err(error) if is_unique(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let position = tx.conn.last_insert_rowid();
    if let Some(digest) = digest {
        insert_blob(tx.conn, &stream.run_id, digest, &event.payload)?;
    }
    Ok(Some(position))
}

/// An event that has its sequence and time already.
pub(crate) fn insert_stored(conn: &Connection, number: i64, event: &StoredEvent, tenant: &str) -> Result<(), Fault> {
    let large = event.payload.len() > INLINE_PAYLOAD_BYTES_MAX;
    let digest = large.then(|| Digest::of(event.payload.as_bytes()));
    conn.prepare_cached(INSERT)?.execute(params![
        number,
        event.run_id.as_str(),
        int(event.run_seq),
        tenant,
        event.event_id.as_bytes(),
        event.event_type,
        event.idempotency_key.as_bytes(),
        event.emitted_at.as_millis(),
        event.emitted_by,
        event.occurred_at.map(|at| at.as_millis()),
        digest.is_none().then_some(&event.payload),
        digest.as_ref().map(Digest::as_bytes),
    ])?;
    if let Some(digest) = &digest {
        insert_blob(conn, &event.run_id, digest, &event.payload)?;
    }
    Ok(())
}

fn insert_blob(conn: &Connection, run_id: &RunId, digest: &Digest, payload: &str) -> Result<(), Fault> {
    let sql = "INSERT INTO blobs (run_id, digest, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    conn.prepare_cached(sql)?.execute(params![run_id.as_str(), digest.as_bytes(), payload.as_bytes()])?;
    Ok(())
}

/// What the log has of a stream's keys, at or before a sequence.
fn find_keys(
    conn: &Connection,
    number: i64,
    stream: &StreamAppend,
    until: u64,
) -> Result<Vec<Option<EventOutcome>>, Fault> {
    let find = |event: &NewEvent| {
        let found = find_key(conn, number, event.idempotency_key)?;
        Ok(found.filter(|found| found.run_seq <= until))
    };
    stream.events.iter().map(find).collect()
}

fn find_key(conn: &Connection, number: i64, key: Digest) -> Result<Option<EventOutcome>, Fault> {
    // The index has half of a key.
    let sql = "SELECT run_seq, event_id, emitted_at FROM events WHERE run_number = ?1 \
               AND substr(idempotency_key, 1, 16) = substr(?2, 1, 16) AND idempotency_key = ?2";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![number, key.as_bytes()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(EventOutcome {
        run_seq: codec::count(row, 0)?,
        event_id: codec::event_id(row, 1)?,
        emitted_at: codec::time(row, 2)?,
        inserted: false,
    }))
}

/// A run's tenant and last sequence, whatever the length of its log.
pub(crate) fn head(conn: &Connection, run_id: &RunId) -> Result<Option<Head>, Fault> {
    let sql = "SELECT tenant_id, max(head_floor, \
                   coalesce((SELECT max(run_seq) FROM events WHERE run_number = runs.number), 0)), number \
               FROM runs WHERE run_id = ?1 AND purging = 0";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([run_id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Head { tenant: codec::tenant(row, 0)?, seq: codec::count(row, 1)?, number: row.get(2)? }))
}

/// The head of a run that the caller may see.
fn visible_head(conn: &Connection, scope: &Scope, run_id: &RunId) -> Result<Head, Fault> {
    let head = head(conn, run_id)?.filter(|head| scope.covers(&head.tenant));
    Ok(head.ok_or(Error::NotFound)?)
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
        event_type: row.get(5)?,
        idempotency_key: codec::digest(row, 6)?,
        emitted_at: codec::time(row, 7)?,
        emitted_by: row.get(8)?,
        occurred_at: codec::maybe_time(row, 9)?,
        payload,
    })
}

fn stored_events(
    conn: &Connection,
    bytes_max: usize,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<StoredEvent>, Fault> {
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params)?;
    let mut page = PageBytes::new(bytes_max);
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let event = stored_event(row)?;
        if !page.takes(event.payload.len()) {
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
    let events = stored_events(conn, bytes_max, sql, params![head.number, int(after), limit])?;
    Ok(RunPage { events, head_seq: head.seq })
}

pub(crate) fn read_log(conn: &Connection, after: Position, limit: u32, bytes_max: usize) -> Result<LogPage, Fault> {
    let sql = select_events!("WHERE position > ?1 ORDER BY position LIMIT ?2");
    let events = stored_events(conn, bytes_max, sql, params![int(after.id), limit])?;
    let next = events.last().map_or(after, |event| event.position);
    Ok(LogPage { events, next })
}

pub(crate) fn log_head(conn: &Connection) -> Result<Position, Fault> {
    let mut found = conn.prepare_cached("SELECT coalesce(max(position), 0) FROM events")?;
    let mut rows = found.query([])?;
    let id = rows.next()?.map_or(Ok(0), |row| codec::count(row, 0))?;
    Ok(Position::of_id(id))
}

pub(crate) fn count_log(conn: &Connection, after: Position, until: Position, most: u64) -> Result<u64, Fault> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM events WHERE position > ?1 AND position <= ?2 LIMIT ?3)";
    let mut found = conn.prepare_cached(sql)?;
    let counted = found.query_row(params![int(after.id), int(until.id), int(most)], |row| row.get::<_, i64>(0))?;
    Ok(counted.unsigned_abs())
}

pub(crate) fn snapshot_at(
    conn: &Connection,
    scope: &Scope,
    run_id: &RunId,
    seq_max: u64,
) -> Result<Option<StoredSnapshot>, Fault> {
    visible_head(conn, scope, run_id)?;
    let sql = "SELECT run_seq, state FROM snapshots WHERE run_id = ?1 AND run_seq <= ?2 ORDER BY run_seq DESC LIMIT 1";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![run_id.as_str(), int(seq_max)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(StoredSnapshot { run_seq: codec::count(row, 0)?, state: row.get(1)? }))
}

pub(crate) fn insert_snapshot(conn: &Connection, run_id: &RunId, snapshot: &StoredSnapshot) -> Result<(), Fault> {
    let sql = "INSERT INTO snapshots (run_id, run_seq, state) VALUES (?1, ?2, ?3) \
               ON CONFLICT (run_id, run_seq) DO UPDATE SET state = excluded.state";
    conn.prepare_cached(sql)?.execute(params![run_id.as_str(), int(snapshot.run_seq), snapshot.state])?;
    Ok(())
}
