//! The log: appending by the rules written at `servo_store::LogStore`, and reading.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use servo_canon::Digest;
use servo_model::limits::{INLINE_PAYLOAD_BYTES_MAX, Limits};
use servo_model::{RunId, TenantId};
use servo_store::log::{
    EventOutcome, KeyMode, LogPage, QueueChange, RunPage, StoredSnapshot, StreamOutcome, TimerChange,
};
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
    let events = |stream: &StreamAppend| stream.events.iter().map(|event| event.payload.len() + ROW_BYTES).sum::<usize>();
    let bytes = append.streams.iter().map(|stream| ROW_BYTES + events(stream) + snapshot(stream)).sum();
    let plain = |stream: &StreamAppend| {
        let one = stream.events.len() <= 1;
        let new = stream.expected == Expected::New && stream.events.len() as u64 <= limits.events_per_run_max;
        let leased = matches!(&stream.queue, QueueChange::Remove { leased_by: Some(_) });
        (one || new) && !leased && stream.dispatches.is_empty()
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

fn append_stream(tx: &mut Tx<'_>, stream: StreamAppend, index: usize, digests: &Digests) -> Result<StreamOutcome, Fault> {
    let is_new = stream.expected == Expected::New;
    let start = if is_new {
        runs::create(tx.conn, &stream)?;
        0
    } else {
        let head = tx.head(&stream.run_id)?.filter(|head| head.tenant == stream.tenant);
        head.ok_or(Error::NotFound)?.seq
    };
    let events = match append_events(tx, &stream, start, index, digests)? {
        Written::Before(events) => return Ok(StreamOutcome { events }),
        Written::Now(events) => events,
    };
    let StreamAppend { run_id, tenant, row, timer, queue, dispatches, snapshot, .. } = stream;
    if let Some(row) = row.filter(|_| !is_new) {
        runs::update(tx.conn, &run_id, &row)?;
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
    for change in dispatches {
        dispatch::change(tx, &run_id, &tenant, change)?;
    }
    Ok(StreamOutcome { events })
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
    stream: &StreamAppend,
    start: u64,
    index: usize,
    digests: &Digests,
) -> Result<Written, Fault> {
    let max = if stream.run_id.is_system() { u64::MAX } else { tx.limits.events_per_run_max };
    let has_room = start.saturating_add(stream.events.len() as u64) <= max;
    let mut known = None;
    if stream.expected != Expected::New && !(has_room && check_sequence(tx, stream, start).is_ok()) {
        let found = find_keys(tx.conn, stream, start)?;
        if let Some(events) = judge_keys(tx, stream, start, &found)? {
            return Ok(Written::Before(events));
        }
        known = Some(found);
    }
    let mut seq = start;
    let mut outcomes = Vec::with_capacity(stream.events.len());
    for (position, event) in stream.events.iter().enumerate() {
        if let Some(found) = known.as_ref().and_then(|known| known[position].clone()) {
            outcomes.push(found);
            continue;
        }
        let inserted = seq < max && insert(tx, stream, event, seq + 1, digests.get(&(index, position)))?;
        if inserted {
            seq += 1;
            let EventOutcomeParts { event_id, emitted_at } = EventOutcomeParts::of(tx, event);
            outcomes.push(EventOutcome { run_seq: seq, event_id, emitted_at, inserted: true });
            continue;
        }
        match find_key(tx.conn, &stream.run_id, event.idempotency_key)? {
            // The append says the same thing twice.
            Some(found) if found.run_seq > start => outcomes.push(found),
            Some(found) => {
                let keys = find_keys(tx.conn, stream, start)?;
                if let Some(events) = judge_keys(tx, stream, start, &keys)? {
                    return Ok(Written::Before(events));
                }
                known = Some(keys);
                outcomes.push(found);
            }
            None if seq >= max => return Err(Error::Limit { what: "the events of one run", limit: max }.into()),
            None => {
                let detail = format!("run {} has an event at sequence {} that its head does not know", stream.run_id, seq + 1);
                return Err(corrupt(detail).into());
            }
        }
    }
    if seq > start || stream.expected == Expected::New {
        tx.advance_head(&stream.run_id, &stream.tenant, seq);
    }
    Ok(Written::Now(outcomes))
}
