//! Runs that wait to be started, and the leases on them.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::Error;
use servo_store::dispatch::{QueueClaim, QueuedRun};

use crate::ahead::change::Waits;
use crate::codec;
use crate::error::Fault;
use crate::writer::tx::Tx;

/// Up to this many claimable runs are sorted; more of them are met soon enough on the way from the oldest.
const SORT_MAX: i64 = 512;

/// The run waits. A lease on an earlier row is gone.
pub(crate) fn put(conn: &Connection, run_id: &RunId, tenant: &TenantId, waits: Waits) -> Result<(), Fault> {
    let sql = "INSERT INTO queue (run_id, tenant_id, not_before, queued_at, lease_owner, free_at) \
               VALUES (?1, ?2, ?3, ?4, NULL, ?3) ON CONFLICT (run_id) DO UPDATE SET not_before = excluded.not_before, \
               queued_at = excluded.queued_at, lease_owner = NULL, free_at = excluded.free_at";
    let (not_before, queued_at) = (waits.not_before.as_millis(), waits.queued_at.as_millis());
    conn.prepare_cached(sql)?.execute(params![run_id.as_str(), tenant.as_str(), not_before, queued_at])?;
    Ok(())
}

pub(crate) fn remove(conn: &Connection, run_id: &RunId) -> Result<(), Fault> {
    conn.prepare_cached("DELETE FROM queue WHERE run_id = ?1")?.execute([run_id.as_str()])?;
    Ok(())
}

/// Who holds the lease of a run that waits, expired or not; `None` if the run does not wait.
pub(crate) fn lease(conn: &Connection, run_id: &RunId) -> Result<Option<Option<String>>, Fault> {
    let mut found = conn.prepare_cached("SELECT lease_owner FROM queue WHERE run_id = ?1")?;
    Ok(found.query_row([run_id.as_str()], |row| row.get(0)).optional()?)
}

pub(crate) fn claim(tx: &Tx<'_>, claim: &QueueClaim) -> Result<Vec<QueuedRun>, Fault> {
    let now = tx.now.as_millis();
    // With few claimable runs, sorting those is quick however many are delayed; with many, walking from a tenant's oldest
    // meets enough of them at once.
    let sql = "SELECT count(*) FROM (SELECT 1 FROM queue WHERE free_at <= ?1 LIMIT ?2)";
    let claimable: i64 = tx.conn.prepare_cached(sql)?.query_row(params![now, SORT_MAX + 1], |row| row.get(0))?;
    let free = if claimable <= SORT_MAX {
        let sql =
            "SELECT run_id, tenant_id, not_before, queued_at FROM queue INDEXED BY queue_free WHERE free_at <= ?1";
        read(tx.conn, sql, params![now])?
    } else {
        first_of_each(tx.conn, now, claim)?
    };
    let claimed = claim.choose(free);
    let until = tx.now.plus(Duration::from_millis(claim.lease_ms)).as_millis();
    let mut lease = tx.conn.prepare_cached("UPDATE queue SET lease_owner = ?2, free_at = ?3 WHERE run_id = ?1")?;
    for run in &claimed {
        lease.execute(params![run.run_id.as_str(), claim.owner, until])?;
    }
    Ok(claimed)
}

/// The oldest claimable runs of the first tenants that have some. The index is entered once for each tenant and once for its
/// first rows.
fn first_of_each(conn: &Connection, now: i64, claim: &QueueClaim) -> Result<Vec<QueuedRun>, Fault> {
    let sql = "SELECT tenant_id FROM queue INDEXED BY queue_order WHERE tenant_id > ?1 ORDER BY tenant_id LIMIT 1";
    let mut next = conn.prepare_cached(sql)?;
    let sql = "SELECT run_id, tenant_id, not_before, queued_at FROM queue INDEXED BY queue_order \
               WHERE tenant_id = ?1 AND +free_at <= ?2 ORDER BY queued_at, run_id LIMIT ?3";
    let mut after = claim.after.as_ref().map_or("", |after| after.as_str()).to_owned();
    let mut oldest: Vec<QueuedRun> = Vec::new();
    while oldest.len() < claim.limit as usize
        && let Some(tenant) = next.query_row([&after], |row| row.get::<_, String>(0)).optional()?
    {
        oldest.extend(read(conn, sql, params![tenant, now, 1])?);
        after = tenant;
    }
    let share = claim.share(oldest.len());
    if share <= 1 {
        return Ok(oldest);
    }
    let each = i64::try_from(share).unwrap_or(i64::MAX);
    let mut free = Vec::new();
    for run in &oldest {
        free.extend(read(conn, sql, params![run.tenant.as_str(), now, each])?);
    }
    Ok(free)
}

fn read(conn: &Connection, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<QueuedRun>, Fault> {
    let mut runs = Vec::new();
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(values)?;
    while let Some(row) = rows.next()? {
        runs.push(QueuedRun {
            run_id: codec::run_id(row, 0)?,
            tenant: codec::tenant(row, 1)?,
            not_before: codec::time(row, 2)?,
            queued_at: codec::time(row, 3)?,
        });
    }
    Ok(runs)
}

pub(crate) fn release(conn: &Connection, run_id: &RunId, owner: &str, not_before: Timestamp) -> Result<(), Fault> {
    let sql =
        "UPDATE queue SET lease_owner = NULL, not_before = ?3, free_at = ?3 WHERE run_id = ?1 AND lease_owner = ?2";
    match conn.prepare_cached(sql)?.execute(params![run_id.as_str(), owner, not_before.as_millis()])? {
        0 => Err(Error::LeaseLost { run_id: run_id.clone() }.into()),
        _ => Ok(()),
    }
}

pub(crate) fn break_leases(conn: &Connection) -> Result<(), Fault> {
    let sql = "UPDATE queue SET lease_owner = NULL, free_at = not_before WHERE lease_owner IS NOT NULL";
    conn.prepare_cached(sql)?.execute([])?;
    Ok(())
}
