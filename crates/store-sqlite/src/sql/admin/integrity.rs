//! The database's check of itself: what a reader would stumble over, found before anybody reads it.

use rusqlite::{Connection, Row};
use servo_canon::Digest;
use servo_model::contract::DispatchState;

use crate::codec;
use crate::error::{Fault, corrupt};
use crate::pack;

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
pub(crate) fn integrity(conn: &Connection) -> Result<Vec<String>, Fault> {
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
    check(
        "SELECT e.position || '' FROM events e LEFT JOIN blobs b ON b.run_id = e.run_id AND b.digest = e.blob_digest \
         WHERE (e.payload IS NULL) = (b.digest IS NULL)",
        &|row| Ok(Some(format!("the event at position {} has lost its payload", text(row)?))),
    )?;
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
        check_packs(conn, &mut problems)?;
    }
    Ok(problems)
}

/// Reads every pack, one at a time, and compares it with what its row says.
fn check_packs(conn: &Connection, problems: &mut Vec<String>) -> Result<(), Fault> {
    let sql = "SELECT last_position, first_position, first_seq, last_seq, run_id, tenant_id, events FROM packs";
    let mut found = conn.prepare(sql)?;
    let mut rows = found.query([])?;
    while let Some(row) = rows.next()? {
        let position: i64 = row.get(0)?;
        match problem_of(row) {
            Ok(None) => {}
            Ok(Some(words)) => problems.push(format!("the pack that ends at position {position} {words}")),
            Err(Fault::Refused(error)) => problems.push(format!("the pack that ends at position {position}: {error}")),
            Err(fault @ Fault::Sql(_)) => return Err(fault),
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
