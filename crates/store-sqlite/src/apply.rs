//! Puts what is ahead of the database into it, in one transaction: each row once, however often it has changed, and the
//! events of a run as one pack.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use servo_model::RunId;
use servo_model::limits::{INLINE_PAYLOAD_BYTES_MAX, Limits};
use servo_store::StoredEvent;

use crate::ahead::{Ahead, DispatchAhead, RunAhead};
use crate::codec::int;
use crate::error::Fault;
use crate::sabotage::Sabotage;
use crate::sql::events::Packing;
use crate::sql::{audit, dispatch, events, lease, lines, log, queue, relay, runs, timer};

/// Events and bytes of one pack, so that reading a few events of a long run does not mean reading much more.
const PACK_EVENTS_MAX: usize = 128;
const PACK_BYTES_MAX: usize = 128 * 1024;

/// Inside an open transaction.
pub(crate) fn apply(conn: &Connection, ahead: &Ahead, limits: &Limits, sabotage: Sabotage) -> Result<(), Fault> {
    // In the order of the tables' keys: neighbours share pages.
    let mut found: Vec<_> = ahead.runs.iter().collect();
    found.sort_unstable_by(|a, b| a.0.cmp(b.0));
    for (run_id, run) in &found {
        apply_row(conn, run_id, run)?;
    }
    apply_events(conn, ahead, &found, sabotage)?;
    for (run_id, run) in &found {
        apply_rest(conn, run_id, run, limits)?;
    }
    let mut dispatches: Vec<_> = ahead.dispatches.iter().collect();
    dispatches.sort_unstable_by(|a, b| a.0.cmp(b.0));
    for (request_id, dispatch) in dispatches {
        apply_dispatch(conn, request_id, dispatch)?;
    }
    ahead.counts.flush(conn)?;
    for cursor in ahead.cursors.values() {
        relay::set_cursor(conn, cursor)?;
    }
    if let Some(row) = &ahead.authority {
        lease::put(conn, row)?;
    }
    audit::put(conn, &ahead.audit)?;
    if let Some(generation) = ahead.redo {
        note_open(conn, generation)?;
    }
    set_applied(conn, ahead.lsn)
}

fn apply_row(conn: &Connection, run_id: &RunId, run: &RunAhead) -> Result<(), Fault> {
    match &run.row {
        Some(row) if run.is_new => return runs::insert(conn, row, run.number),
        Some(row) => runs::update(conn, row)?,
        None => {}
    }
    match run.new_number {
        Some(number) => runs::set_number(conn, run_id, number),
        None => Ok(()),
    }
}

fn apply_events(
    conn: &Connection,
    ahead: &Ahead,
    runs: &[(&RunId, &RunAhead)],
    sabotage: Sabotage,
) -> Result<(), Fault> {
    if ahead.last_position == 0 {
        return Ok(());
    }
    let flush_end = int(ahead.last_position);
    for (run_id, run) in runs {
        let Some(number) = run.number.filter(|_| !run.events.is_empty()) else { continue };
        let all_alone = run_id.is_system() || sabotage.writes_rows();
        let is_alone = |event: &Arc<StoredEvent>| all_alone || event.payload.len() > INLINE_PAYLOAD_BYTES_MAX;
        for events in run.events.chunk_by(|a, b| !is_alone(a) && !is_alone(b)) {
            if events.first().is_some_and(is_alone) {
                let event = &events[0];
                log::insert(conn, number, event, sabotage)?;
            } else {
                insert_packs(conn, Packing { number, flush_end, sabotage }, events)?;
            }
        }
    }
    log::set_last_position(conn, flush_end)
}

fn insert_packs(conn: &Connection, packing: Packing, events: &[Arc<StoredEvent>]) -> Result<(), Fault> {
    let (mut start, mut bytes) = (0, 0);
    for (place, event) in events.iter().enumerate() {
        let is_full = place - start >= PACK_EVENTS_MAX || bytes + event.payload.len() > PACK_BYTES_MAX;
        if is_full && place > start {
            events::insert_pack(conn, packing, &events[start..place])?;
            (start, bytes) = (place, 0);
        }
        bytes += event.payload.len();
    }
    events::insert_pack(conn, packing, &events[start..])
}

fn apply_rest(conn: &Connection, run_id: &RunId, run: &RunAhead, limits: &Limits) -> Result<(), Fault> {
    match run.timer {
        Some(Some(due_at)) => timer::set(conn, run_id, &run.tenant, due_at)?,
        Some(None) if !run.is_new => timer::clear(conn, run_id)?,
        Some(None) | None => {}
    }
    match run.queue {
        Some(Some(waits)) => queue::put(conn, run_id, &run.tenant, waits)?,
        Some(None) if !run.is_new => queue::remove(conn, run_id)?,
        Some(None) | None => {}
    }
    for snapshot in &run.snapshots {
        log::insert_snapshot(conn, run_id, snapshot)?;
    }
    if !run.lines.is_empty() {
        lines::put(conn, run_id, run.lines.clone(), limits)?;
    }
    Ok(())
}

fn apply_dispatch(conn: &Connection, request_id: &str, dispatch: &DispatchAhead) -> Result<(), Fault> {
    if !dispatch.is_new && (dispatch.is_remade || dispatch.row.is_none()) {
        dispatch::delete_one(conn, request_id)?;
    }
    dispatch.row.as_ref().map_or(Ok(()), |row| dispatch::put(conn, row))
}

/// The last record of the redo file that the database has.
pub(crate) fn applied(conn: &Connection) -> Result<u64, Fault> {
    let mut found = conn.prepare_cached("SELECT value FROM meta WHERE key = 'applied'")?;
    let mut rows = found.query([])?;
    match rows.next()? {
        Some(row) => Ok(u64::from_be_bytes(row.get(0)?)),
        None => Ok(0),
    }
}

pub(crate) fn set_applied(conn: &Connection, lsn: u64) -> Result<(), Fault> {
    let sql =
        "INSERT INTO meta (key, value) VALUES ('applied', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    conn.prepare_cached(sql)?.execute(params![&lsn.to_be_bytes()[..]])?;
    Ok(())
}

/// Notes that the store is open, so that there are redo files, and which use of them is the newest. It stays until the store is
/// closed in order: whoever finds it at a start knows what must be there.
pub(crate) fn note_open(conn: &Connection, generation: u64) -> Result<(), Fault> {
    let sql =
        "INSERT INTO meta (key, value) VALUES ('redo', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    conn.prepare_cached(sql)?.execute([&generation.to_le_bytes()[..]])?;
    Ok(())
}

/// The newest use of the redo file, if the store was not closed in order.
pub(crate) fn noted(conn: &Connection) -> Result<Option<u64>, Fault> {
    let mut found = conn.prepare_cached("SELECT value FROM meta WHERE key = 'redo'")?;
    let bytes: Option<[u8; 8]> = found.query_row([], |row| row.get(0)).optional()?;
    Ok(bytes.map(u64::from_le_bytes))
}

/// The store is closed in order, or this is a copy of it: the database alone is all of it.
pub(crate) fn note_closed(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM meta WHERE key = 'redo'", []).map(|_| ())
}
