//! Maintenance: retention, deletion, trimming, quarantine, import, and (in `integrity`) the database's check of itself.
//!
//! A run is deleted in two movements. First it is hidden: for every caller it is gone. Then its events leave, a few in
//! each transaction, so that writers never wait long. A crash between the two leaves a hidden run, which the writer of
//! the next start removes.

mod integrity;

use rusqlite::{Connection, params};
use servo_model::{RunId, Timestamp};
use servo_store::admin::check_import;
use servo_store::{Error, Position, RunRow, Scope, StoredEvent};

use crate::codec::{self, int};
use crate::error::Fault;
use crate::sabotage::Sabotage;
use crate::sql::dispatch::{self, Removed};
use crate::sql::runs::Counted;
use crate::sql::{events, log, queue, runs, timer};
use crate::writer::tx::Tx;

pub(crate) use integrity::integrity;

/// Rows that one transaction of maintenance may delete: a few milliseconds.
const ROWS_MAX: u32 = 256;
/// Payloads and snapshots are large: each counts as this many rows.
const LARGE_ROW: u32 = 16;
/// And so does each pack of events.
const PACK_ROW: u32 = 4;

/// How a portion of retention went.
#[derive(Debug)]
pub(crate) struct Retired {
    pub(crate) runs: u32,
    pub(crate) has_more: bool,
}

/// Removes some of the runs that finished before a time, and what earlier deletions have left.
pub(crate) fn retire_some(tx: &mut Tx<'_>, finished_before: Timestamp, limit: u32) -> Result<Retired, Fault> {
    let mut budget = ROWS_MAX;
    let mut runs = 0;
    loop {
        if !purge_leftovers(tx, &mut budget)? {
            return Ok(Retired { runs, has_more: true });
        }
        let due = if runs < limit { next_finished(tx.conn, finished_before)? } else { None };
        let Some(run_id) = due else { return Ok(Retired { runs, has_more: false }) };
        hide(tx, &run_id)?;
        runs += 1;
    }
}

/// Hides a run and removes what fits into this transaction. True if more is left.
pub(crate) fn begin_delete(tx: &mut Tx<'_>, scope: &Scope, run_id: &RunId) -> Result<bool, Fault> {
    let head = events::head(tx.conn, run_id)?.filter(|head| scope.covers(&head.tenant));
    if head.is_none() || run_id.is_system() {
        return Err(Error::NotFound.into());
    }
    hide(tx, run_id)?;
    purge_some(tx)
}

/// Removes some of what hidden runs have left. True if more is left.
pub(crate) fn purge_some(tx: &mut Tx<'_>) -> Result<bool, Fault> {
    let mut budget = ROWS_MAX;
    Ok(!purge_leftovers(tx, &mut budget)?)
}

pub(crate) fn has_leftovers(conn: &Connection) -> Result<bool, Fault> {
    Ok(next_hidden(conn)?.is_some())
}

fn next_hidden(conn: &Connection) -> Result<Option<RunId>, Fault> {
    let mut found = conn.prepare_cached("SELECT run_id FROM runs WHERE purging = 1 LIMIT 1")?;
    let mut rows = found.query([])?;
    rows.next()?.map(|row| codec::run_id(row, 0)).transpose()
}

fn next_finished(conn: &Connection, before: Timestamp) -> Result<Option<RunId>, Fault> {
    let sql = "SELECT run_id FROM runs WHERE purging = 0 AND finished_at IS NOT NULL AND finished_at < ?1 \
               ORDER BY finished_at, run_id LIMIT 1";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([before.as_millis()])?;
    rows.next()?.map(|row| codec::run_id(row, 0)).transpose()
}

/// From here on the run is gone for every caller, and its request may start another.
fn hide(tx: &mut Tx<'_>, run_id: &RunId) -> Result<(), Fault> {
    if let Some(Counted { tenant, plan_id, status }) = runs::counted(tx.conn, run_id)? {
        tx.counts.delete_invocation(&tenant, &plan_id, status);
    }
    let sql = "UPDATE runs SET purging = 1, request_key = NULL, trim_before = ?2 WHERE run_id = ?1";
    tx.conn.prepare_cached(sql)?.execute(params![run_id.as_str(), i64::MAX])?;
    timer::clear(tx.conn, run_id)?;
    queue::remove(tx.conn, run_id)?;
    dispatch::remove(tx, run_id, &Removed::Open)?;
    for sql in [
        "DELETE FROM outbox WHERE run_id = ?1",
        "DELETE FROM dead_letters WHERE run_id = ?1",
        "DELETE FROM alerts WHERE run_id = ?1",
    ] {
        tx.conn.prepare_cached(sql)?.execute([run_id.as_str()])?;
    }
    tx.breaks_log = true;
    crashpoint!("sqlite.retire.hidden");
    Ok(())
}

/// True if nothing hidden is left; false if the budget ran out first.
fn purge_leftovers(tx: &mut Tx<'_>, budget: &mut u32) -> Result<bool, Fault> {
    while let Some(run_id) = next_hidden(tx.conn)? {
        if !purge(tx, &run_id, budget)? {
            tx.leave_leftovers();
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if the run is gone.
fn purge(tx: &mut Tx<'_>, run_id: &RunId, budget: &mut u32) -> Result<bool, Fault> {
    // Somebody may have asked for one of its dispatches since it was hidden.
    tx.changes_runs = true;
    let tables = [
        (
            "DELETE FROM events WHERE position IN \
             (SELECT position FROM events WHERE run_number = (SELECT number FROM runs WHERE run_id = ?1) \
             ORDER BY run_seq LIMIT ?2)",
            1,
        ),
        (
            "DELETE FROM packs WHERE last_position IN \
             (SELECT last_position FROM packs WHERE run_number = (SELECT number FROM runs WHERE run_id = ?1) \
             ORDER BY last_seq LIMIT ?2)",
            PACK_ROW,
        ),
        ("DELETE FROM lines WHERE rowid IN (SELECT rowid FROM lines WHERE run_id = ?1 LIMIT ?2)", 1),
        ("DELETE FROM blobs WHERE rowid IN (SELECT rowid FROM blobs WHERE run_id = ?1 LIMIT ?2)", LARGE_ROW),
        ("DELETE FROM snapshots WHERE rowid IN (SELECT rowid FROM snapshots WHERE run_id = ?1 LIMIT ?2)", LARGE_ROW),
    ];
    for (sql, weight) in tables {
        let limit = *budget / weight;
        let deleted = tx.conn.prepare_cached(sql)?.execute(params![run_id.as_str(), limit])?;
        if !spend(budget, deleted, limit, weight) {
            return Ok(false);
        }
    }
    tx.conn.prepare_cached("DELETE FROM line_heads WHERE run_id = ?1")?.execute([run_id.as_str()])?;
    let limit = *budget;
    let deleted = dispatch::remove_some(tx, run_id, limit)?;
    if !spend(budget, deleted, limit, 1) {
        return Ok(false);
    }
    tx.conn.prepare_cached("DELETE FROM runs WHERE run_id = ?1 AND purging = 1")?.execute([run_id.as_str()])?;
    *budget = budget.saturating_sub(1);
    crashpoint!("sqlite.retire.purged");
    Ok(true)
}

/// False if the limit was reached, so that there may be more.
fn spend(budget: &mut u32, deleted: usize, limit: u32, weight: u32) -> bool {
    let deleted = u32::try_from(deleted).unwrap_or(limit);
    *budget = budget.saturating_sub(deleted.saturating_mul(weight));
    deleted < limit
}

/// Removes up to `limit` of the oldest facts of the system stream, at most a transaction's worth. Says how many, and
/// whether there may be more. The head stays, so no sequence is given twice. The stream has no packs.
pub(crate) fn trim_some(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> Result<(u32, bool), Fault> {
    let system = RunId::system();
    let asked = limit.min(ROWS_MAX);
    let mut last = None;
    let mut trimmed = 0;
    let mut blobs = Vec::new();
    let sql = "SELECT run_seq, emitted_at, blob_digest FROM events WHERE run_number = 0 ORDER BY run_seq LIMIT ?1";
    let mut found = tx.conn.prepare_cached(sql)?;
    let mut rows = found.query([asked])?;
    while let Some(row) = rows.next()? {
        if codec::time(row, 1)? >= before {
            break;
        }
        last = Some(codec::count(row, 0)?);
        trimmed += 1;
        blobs.extend(codec::maybe_digest(row, 2)?);
    }
    drop(rows);
    drop(found);
    if let Some(last) = last {
        let head = events::head(tx.conn, &system)?.ok_or(Error::NotFound)?.seq;
        let sql = "UPDATE runs SET trim_before = ?2, head_floor = ?3 WHERE run_id = ?1";
        tx.conn.prepare_cached(sql)?.execute(params![system.as_str(), int(last) + 1, int(head)])?;
        let sql = "DELETE FROM events WHERE run_number = 0 AND run_seq <= ?1";
        tx.conn.prepare_cached(sql)?.execute([int(last)])?;
    }
    for digest in &blobs {
        // Another event may have the same payload.
        let sql = "DELETE FROM blobs WHERE run_id = ?1 AND digest = ?2 \
                   AND NOT EXISTS (SELECT 1 FROM events WHERE run_number = 0 AND blob_digest = ?2)";
        tx.conn.prepare_cached(sql)?.execute(params![system.as_str(), digest.as_bytes()])?;
    }
    dispatch::remove(tx, &system, &Removed::EndedBefore(before))?;
    tx.breaks_log = true;
    crashpoint!("sqlite.trim.deleted");
    Ok((trimmed, trimmed == asked && trimmed < limit))
}

pub(crate) fn quarantine(tx: &mut Tx<'_>, run_id: &RunId, reason: &str) -> Result<(), Fault> {
    tx.changes_runs = true;
    let sql = "UPDATE runs SET quarantined = ?2 WHERE run_id = ?1 AND purging = 0";
    if tx.conn.prepare_cached(sql)?.execute(params![run_id.as_str(), reason])? == 0 {
        return Err(Error::NotFound.into());
    }
    timer::clear(tx.conn, run_id)?;
    queue::remove(tx.conn, run_id)?;
    dispatch::remove(tx, run_id, &Removed::Open)
}

pub(crate) fn import(tx: &mut Tx<'_>, row: &RunRow, events: &[StoredEvent]) -> Result<(), Fault> {
    if runs::exists(tx.conn, &row.run_id)? {
        return Err(Error::RunExists { run_id: row.run_id.clone() }.into());
    }
    if let Some(key) = row.request_key
        && let Some(run_id) = runs::find_request(tx.conn, &row.tenant, key)?
    {
        return Err(Error::RequestExists { run_id }.into());
    }
    check_import(row, events)?;
    let number = events::next_position(tx.conn)?;
    runs::insert_new(tx, row, Some(number))?;
    for (position, event) in (number.unsigned_abs()..).zip(events) {
        let (position, tenant) = (Position::of_id(position), row.tenant.clone());
        let event = StoredEvent { position, tenant, ..event.clone() };
        log::insert(tx.conn, number, &event, Sabotage::default())?;
    }
    tx.breaks_log = true;
    Ok(())
}

#[cfg(test)]
mod tests;
