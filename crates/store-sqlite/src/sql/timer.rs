//! One timer per run: its earliest due time.

use rusqlite::{Connection, params};
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::dispatch::{DueTimer, DueTimers};

use crate::codec;
use crate::error::Fault;

pub(crate) fn set(conn: &Connection, run_id: &RunId, tenant: &TenantId, due_at: Timestamp) -> Result<(), Fault> {
    let sql = "INSERT INTO timers (run_id, tenant_id, due_at) VALUES (?1, ?2, ?3) \
               ON CONFLICT (run_id) DO UPDATE SET due_at = excluded.due_at";
    conn.prepare_cached(sql)?.execute(params![run_id.as_str(), tenant.as_str(), due_at.as_millis()])?;
    Ok(())
}

pub(crate) fn clear(conn: &Connection, run_id: &RunId) -> Result<(), Fault> {
    conn.prepare_cached("DELETE FROM timers WHERE run_id = ?1")?.execute([run_id.as_str()])?;
    Ok(())
}

pub(crate) fn get(conn: &Connection, run_id: &RunId) -> Result<Option<Timestamp>, Fault> {
    let mut found = conn.prepare_cached("SELECT due_at FROM timers WHERE run_id = ?1")?;
    let mut rows = found.query([run_id.as_str()])?;
    rows.next()?.map(|row| codec::time(row, 0)).transpose()
}

pub(crate) fn due(conn: &Connection, now: Timestamp, limit: u32) -> Result<DueTimers, Fault> {
    let sql = "SELECT run_id, tenant_id, due_at FROM timers WHERE due_at <= ?1 ORDER BY due_at, run_id LIMIT ?2";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![now.as_millis(), limit])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        due.push(DueTimer {
            run_id: codec::run_id(row, 0)?,
            tenant: codec::tenant(row, 1)?,
            due_at: codec::time(row, 2)?,
        });
    }
    let mut next = conn.prepare_cached("SELECT due_at FROM timers WHERE due_at > ?1 ORDER BY due_at LIMIT 1")?;
    let mut rows = next.query([now.as_millis()])?;
    let next_at = rows.next()?.map(|row| codec::time(row, 0)).transpose()?;
    Ok(DueTimers { due, next_at })
}
