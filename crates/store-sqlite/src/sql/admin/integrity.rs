//! The database's check of itself: what a reader would stumble over, found before anybody reads it.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use servo_canon::Digest;
use servo_model::contract::DispatchState;
use servo_store::Integrity;
use servo_store::log::StoredSnapshot;

use crate::codec;
use crate::error::{Fault, corrupt};
use crate::pack;
use crate::sql::{entrypoints, events, runs};

const MISSING: &str =
    "SELECT DISTINCT run_id FROM packs WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = packs.run_id)";

const MISNUMBERED: &str = "SELECT DISTINCT p.run_id FROM packs p JOIN runs ON runs.run_id = p.run_id \
     WHERE p.run_number IS NOT runs.number OR p.tenant_id IS NOT runs.tenant_id";

/// Where packs of a run overlap, two that end next to each other do.
const TWICE: &str = "SELECT run_id FROM (SELECT run_id, first_seq, \
         lag(last_seq) OVER (PARTITION BY run_number ORDER BY last_seq) AS before FROM packs) WHERE first_seq <= before \
     UNION SELECT run_id FROM packs p WHERE EXISTS (SELECT 1 FROM events e WHERE e.run_number = p.run_number \
         AND e.run_seq BETWEEN p.first_seq AND p.last_seq)";

/// What readers of the log rely on: packs of different flushes lie behind one another.
const ACROSS: &str = "SELECT last_position || '' FROM (SELECT last_position, first_position, flush_end, \
         lag(flush_end) OVER (ORDER BY last_position) AS before FROM packs) \
     WHERE flush_end < last_position OR (flush_end <> before AND first_position <= before)";

/// What is wrong with the file, in words. Reads everything.
pub(crate) fn integrity(conn: &Connection) -> Result<Integrity, Fault> {
    let mut problems = Vec::new();
    let mut check = |sql: &str, words: &dyn Fn(&Row<'_>) -> rusqlite::Result<Option<String>>| {
        let mut found = conn.prepare(sql)?;
        let mut rows = found.query([])?;
        while let Some(row) = rows.next()? {
            problems.extend(words(row)?);
        }
        Ok::<_, Fault>(())
    };
    let text = |row: &Row<'_>| row.get::<_, String>(0);
    check("PRAGMA integrity_check", &|row| Ok(Some(text(row)?).filter(|line| line != "ok")))?;
    check("PRAGMA foreign_key_check", &|row| {
        Ok(Some(format!("a row of {} names a run that is not there", text(row)?)))
    })?;
    check(
        "SELECT DISTINCT run_id FROM events WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = events.run_id)",
        &|row| Ok(Some(format!("run {} has events and no row", text(row)?))),
    )?;
    check(
        "SELECT DISTINCT e.run_id FROM events e JOIN runs ON runs.run_id = e.run_id WHERE e.run_number IS NOT runs.number",
        &|row| Ok(Some(format!("run {} has events under another number", text(row)?))),
    )?;
    check("SELECT run_id FROM runs GROUP BY number HAVING number IS NOT NULL AND count(*) > 1", &|row| {
        Ok(Some(format!("run {} and another have the same number", text(row)?)))
    })?;
    check("SELECT position || '' FROM events WHERE payload IS NOT NULL AND blob_digest IS NOT NULL", &|row| {
        Ok(Some(format!("the event at position {} has two payloads", text(row)?)))
    })?;
    check("SELECT run_id, digest, bytes FROM blobs", &|row| {
        let (digest, bytes) = (row.get::<_, [u8; 32]>(1)?, row.get_ref(2)?);
        let intact = bytes.as_blob().is_ok_and(|bytes| Digest::of(bytes).as_bytes() == &digest);
        Ok((!intact).then_some(format!("a payload of run {} has changed", text(row)?)))
    })?;
    let counted = "SELECT c.state FROM dispatch_counts c \
                   WHERE c.count <> (SELECT count(*) FROM dispatches d WHERE d.state = c.state)";
    check(counted, &|row| Ok(Some(format!("the number of {} dispatches is wrong", text(row)?))))?;
    let counted = "SELECT DISTINCT tenant_id FROM ( \
            SELECT tenant_id, plan_id, visible, count(*) AS count FROM runs WHERE invocation = 1 AND purging = 0 \
            GROUP BY tenant_id, plan_id, visible \
            UNION ALL SELECT tenant_id, plan_id, visible, -count FROM invocation_counts) \
         GROUP BY tenant_id, plan_id, visible HAVING sum(count) <> 0";
    check(counted, &|row| Ok(Some(format!("the number of invocations of tenant {} is wrong", text(row)?))))?;
    debug_assert!(DispatchState::ALL.len() == 4, "dispatch_counts has a row per state");
    // A backup of an earlier schema is checked before it is brought up to date.
    if conn.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'packs'")?.exists([])? {
        check(MISSING, &|row| Ok(Some(format!("run {} has packs of events and no row", text(row)?))))?;
        check(MISNUMBERED, &|row| {
            Ok(Some(format!("run {} has packs of events that say otherwise whose they are", text(row)?)))
        })?;
        check(TWICE, &|row| Ok(Some(format!("run {} has two events at one sequence", text(row)?))))?;
        check(ACROSS, &|row| Ok(Some(format!("the pack that ends at position {} lies in two flushes", text(row)?))))?;
    }
    let mut integrity = Integrity { problems, without_checksum: 0 };
    check_rows(conn, &mut integrity)?;
    check_packs(conn, &mut integrity)?;
    check_snapshots(conn, &mut integrity)?;
    check_functions(conn, &mut integrity)?;
    if has(conn, "runs", "root_id")? {
        integrity.problems.extend(runs::problems(conn)?);
    }
    if has(conn, "entrypoints", "checksum")? {
        integrity.problems.extend(entrypoints::problems(conn)?);
    }
    Ok(integrity)
}

fn has(conn: &Connection, table: &str, column: &str) -> Result<bool, Fault> {
    Ok(conn.prepare("SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2")?.exists([table, column])?)
}

/// Reads every row of `events`, one at a time.
fn check_rows(conn: &Connection, integrity: &mut Integrity) -> Result<(), Fault> {
    let sql = if has(conn, "events", "checksum")? { events::ROWS } else { events::ROWS_WITHOUT_CHECKSUM };
    let mut found = conn.prepare(sql)?;
    let mut rows = found.query([])?;
    while let Some(row) = rows.next()? {
        let (problem, has_checksum) = events::check_row(row)?;
        integrity.problems.extend(problem);
        integrity.without_checksum += u64::from(!has_checksum);
    }
    Ok(())
}

/// Reads every pack, one at a time, and compares it with what its row says.
fn check_packs(conn: &Connection, integrity: &mut Integrity) -> Result<(), Fault> {
    if !has(conn, "packs", "events")? {
        return Ok(());
    }
    let checksum = if has(conn, "packs", "checksum")? { "checksum" } else { "NULL" };
    let sql = format!(
        "SELECT last_position, first_position, first_seq, last_seq, run_id, tenant_id, events, flush_end, run_number, \
         {checksum} FROM packs"
    );
    let mut found = conn.prepare(&sql)?;
    let mut rows = found.query([])?;
    while let Some(row) = rows.next()? {
        let position: i64 = row.get(0)?;
        if let Some(problem) = events::damage(events::check_pack(row))? {
            integrity.problems.push(problem);
            continue;
        }
        let mut problem = None;
        if let Some(detail) = events::damage(problem_of(row).map(|words| problem = words))? {
            problem = Some(format!("cannot be read: {detail}"));
        }
        integrity.problems.extend(problem.map(|words| format!("the pack that ends at position {position} {words}")));
        if row.get_ref(9)? == ValueRef::Null {
            // The row says how many, or it is among the problems.
            let (first, last): (i64, i64) = (row.get(2).unwrap_or(0), row.get(3).unwrap_or(0));
            integrity.without_checksum += last.saturating_sub(first).unsigned_abs().saturating_add(1);
        }
    }
    Ok(())
}

/// A snapshot that has changed is not used: what it spares a reader is lost, and nothing else.
fn check_snapshots(conn: &Connection, integrity: &mut Integrity) -> Result<(), Fault> {
    if !has(conn, "snapshots", "checksum")? {
        return Ok(());
    }
    let mut found =
        conn.prepare("SELECT run_id, run_seq, state, checksum FROM snapshots WHERE checksum IS NOT NULL")?;
    let mut rows = found.query([])?;
    while let Some(row) = rows.next()? {
        let mut is_intact = false;
        let mut checked = || {
            let (run_id, run_seq, state) = (codec::run_id(row, 0)?, codec::count(row, 1)?, row.get(2)?);
            is_intact = StoredSnapshot { run_seq, state }.checksum(&run_id) == row.get::<_, i64>(3)?;
            Ok(())
        };
        events::damage(checked())?;
        if !is_intact {
            let (run_id, run_seq) = (row.get_ref(0)?.as_str().unwrap_or("?"), row.get(1).unwrap_or(0_i64));
            let problem = format!("the snapshot of run {run_id} at event {run_seq} is not as written; it is not used");
            integrity.problems.push(problem);
        }
    }
    Ok(())
}

/// A version of a function has the digest of its document since it was registered.
fn check_functions(conn: &Connection, integrity: &mut Integrity) -> Result<(), Fault> {
    if !has(conn, "function_versions", "digest")? {
        return Ok(());
    }
    let mut found = conn.prepare("SELECT name, version, digest, document FROM function_versions")?;
    let mut rows = found.query([])?;
    while let Some(row) = rows.next()? {
        let digest = Digest::of(row.get_ref(3)?.as_bytes().unwrap_or_default());
        if row.get_ref(2)?.as_bytes().ok() != Some(digest.as_bytes().as_slice()) {
            let (name, version) = (row.get_ref(0)?.as_str().unwrap_or("?"), row.get(1).unwrap_or(0_i64));
            integrity.problems.push(format!("version {version} of function {name} is not as registered"));
        }
    }
    Ok(())
}

fn problem_of(row: &Row<'_>) -> Result<Option<String>, Fault> {
    let (run_id, tenant, first_seq) = (codec::run_id(row, 4)?, codec::tenant(row, 5)?, codec::count(row, 2)?);
    let says = Some((codec::count(row, 1)?, codec::count(row, 0)?, codec::count(row, 3)?));
    let bytes = row.get_ref(6)?.as_blob().map_err(|error| corrupt(error.to_string()))?;
    let events = match pack::decode(&run_id, &tenant, first_seq, bytes) {
        Ok(events) => events,
        Err(damage) => return Ok(Some(damage.to_string())),
    };
    let ends = events.first().zip(events.last());
    let has = ends.map(|(first, last)| (first.position.id, last.position.id, last.run_seq));
    Ok((has != says).then(|| "has other events than its row says".to_owned()))
}
