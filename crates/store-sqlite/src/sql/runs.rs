//! The `runs` rows: written by appends, read by lists and filters. Runs that are being deleted are in none of them.

mod filter;
mod list;

use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use servo_canon::Digest;
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::{RunId, RunStatus, TenantId};
use servo_store::{Error, RunRow, Scope};

use crate::codec::{self, int};
use crate::error::{Fault, is_unique};
use crate::sql::events::damage;
use crate::writer::tx::Tx;

pub(crate) use list::list;

const COLUMNS: &str = "run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, request_key, \
                       created_at, finished_at, changed_seq, quarantined, name, outcome, invocation, mode, correlation_id, root_id";

fn run_row(row: &Row<'_>) -> Result<RunRow, Fault> {
    Ok(RunRow {
        run_id: codec::run_id(row, 0)?,
        tenant: codec::tenant(row, 1)?,
        project: row.get(2)?,
        environment: row.get(3)?,
        plan_id: row.get(4)?,
        plan_version: row.get(5)?,
        status: codec::spelled(row, 6, RunStatus::parse)?,
        visible: codec::spelled(row, 7, InvocationStatus::parse)?,
        request_key: codec::maybe_digest(row, 8)?,
        created_at: codec::time(row, 9)?,
        finished_at: codec::maybe_time(row, 10)?,
        changed_seq: codec::count(row, 11)?,
        quarantined: row.get(12)?,
        name: row.get(13)?,
        outcome: row.get(14)?,
        invocation: row.get(15)?,
        mode: codec::maybe_spelled(row, 16, InvocationMode::parse)?,
        correlation_id: row.get(17)?,
        root: codec::maybe_spelled(row, 18, |text| RunId::parse(text).ok())?,
    })
}

/// Inserts a row, or says which of the two things that must be unique is taken.
pub(crate) fn insert_new(tx: &mut Tx<'_>, row: &RunRow, number: Option<i64>) -> Result<(), Fault> {
    let conn = tx.conn;
    match insert(conn, row, number) {
        Ok(()) => {
            if row.invocation {
                tx.counts.add_invocations(&row.tenant, &row.plan_id, row.visible, 1);
            }
            return Ok(());
        }
        Err(Fault::Sql(error)) if is_unique(&error) => {}
        Err(error) => return Err(error),
    }
    if exists(conn, &row.run_id)? {
        return Err(Error::RunExists { run_id: row.run_id.clone() }.into());
    }
    let earlier = match row.request_key {
        Some(key) => find_request(conn, &row.tenant, key)?,
        None => None,
    };
    Err(earlier
        .map_or_else(
            || Error::Corrupt { detail: format!("run {} is neither new nor there", row.run_id) },
            |run_id| Error::RequestExists { run_id },
        )
        .into())
}

pub(crate) fn insert(conn: &Connection, row: &RunRow, number: Option<i64>) -> Result<(), Fault> {
    let sql = "INSERT INTO runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, \
               request_key, created_at, finished_at, changed_seq, quarantined, name, outcome, invocation, mode, \
               correlation_id, root_id, number) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";
    conn.prepare_cached(sql)?.execute(params![
        row.run_id.as_str(),
        row.tenant.as_str(),
        row.project,
        row.environment,
        row.plan_id,
        row.plan_version,
        row.status.as_str(),
        row.visible.as_str(),
        row.request_key.as_ref().map(Digest::as_bytes),
        row.created_at.as_millis(),
        row.finished_at.map(|at| at.as_millis()),
        int(row.changed_seq),
        row.quarantined,
        row.name,
        row.outcome,
        row.invocation,
        row.mode.map(InvocationMode::as_str),
        row.correlation_id,
        row.root.as_ref().map(RunId::as_str),
        number,
    ])?;
    Ok(())
}

/// A run that had no events gets its number with the first.
pub(crate) fn set_number(conn: &Connection, run_id: &RunId, number: i64) -> Result<(), Fault> {
    let sql = "UPDATE runs SET number = ?2 WHERE run_id = ?1";
    conn.prepare_cached(sql)?.execute(params![run_id.as_str(), number])?;
    Ok(())
}

/// Everything but what a run keeps for life: its request, its first moment, how it was called, and being set aside.
pub(crate) fn update(conn: &Connection, row: &RunRow) -> Result<(), Fault> {
    let sql = "UPDATE runs SET project = ?2, environment = ?3, plan_id = ?4, plan_version = ?5, status = ?6, \
               visible = ?7, finished_at = ?8, changed_seq = ?9, name = ?10, outcome = ?11 WHERE run_id = ?1";
    conn.prepare_cached(sql)?.execute(params![
        row.run_id.as_str(),
        row.project,
        row.environment,
        row.plan_id,
        row.plan_version,
        row.status.as_str(),
        row.visible.as_str(),
        row.finished_at.map(|at| at.as_millis()),
        int(row.changed_seq),
        row.name,
        row.outcome,
    ])?;
    Ok(())
}

/// The highest id of all, also of runs that are being deleted.
pub(crate) fn last(conn: &Connection) -> Result<Option<RunId>, Fault> {
    let mut found = conn.prepare_cached("SELECT run_id FROM runs ORDER BY run_id DESC LIMIT 1")?;
    let mut rows = found.query([])?;
    rows.next()?.map(|row| codec::run_id(row, 0)).transpose()
}

/// Where a run is counted as an invocation.
pub(crate) struct Counted {
    pub(crate) tenant: TenantId,
    pub(crate) plan_id: Arc<str>,
    pub(crate) status: InvocationStatus,
}

/// `None` for runs that are no invocations, and for those that are being deleted.
pub(crate) fn counted(conn: &Connection, run_id: &RunId) -> Result<Option<Counted>, Fault> {
    let sql = "SELECT tenant_id, plan_id, visible FROM runs WHERE run_id = ?1 AND invocation = 1 AND purging = 0";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([run_id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let status = codec::spelled(row, 2, InvocationStatus::parse)?;
    Ok(Some(Counted { tenant: codec::tenant(row, 0)?, plan_id: row.get(1)?, status }))
}

/// Whether the id is taken, also by a run that is being deleted.
pub(crate) fn exists(conn: &Connection, run_id: &RunId) -> Result<bool, Fault> {
    Ok(conn.prepare_cached("SELECT 1 FROM runs WHERE run_id = ?1")?.exists([run_id.as_str()])?)
}

pub(crate) fn get(conn: &Connection, scope: &Scope, run_id: &RunId) -> Result<Option<RunRow>, Fault> {
    Ok(find(conn, run_id)?.filter(|row| scope.covers(&row.tenant)))
}

pub(crate) fn find(conn: &Connection, run_id: &RunId) -> Result<Option<RunRow>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE run_id = ?1 AND purging = 0");
    let mut found = conn.prepare_cached(&sql)?;
    let mut rows = found.query([run_id.as_str()])?;
    rows.next()?.map(run_row).transpose()
}

/// Rows that cannot be read, in words.
pub(crate) fn problems(conn: &Connection) -> Result<Vec<String>, Fault> {
    let mut found = conn.prepare(&format!("SELECT {COLUMNS} FROM runs"))?;
    let mut rows = found.query([])?;
    let mut problems = Vec::new();
    while let Some(row) = rows.next()? {
        let run_id = String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default()).into_owned();
        let detail = damage(run_row(row).map(drop))?;
        problems.extend(detail.map(|detail| format!("the row of run {run_id} cannot be read: {detail}")));
    }
    Ok(problems)
}

pub(crate) fn find_request(conn: &Connection, tenant: &TenantId, key: Digest) -> Result<Option<RunId>, Fault> {
    let mut found = conn.prepare_cached("SELECT run_id FROM runs WHERE tenant_id = ?1 AND request_key = ?2")?;
    let mut rows = found.query(params![tenant.as_str(), key.as_bytes()])?;
    rows.next()?.map(|row| codec::run_id(row, 0)).transpose()
}

/// True if the request was this run's.
pub(crate) fn release_request(
    conn: &Connection,
    tenant: &TenantId,
    key: Digest,
    run_id: &RunId,
) -> Result<bool, Fault> {
    let sql = "UPDATE runs SET request_key = NULL WHERE run_id = ?1 AND tenant_id = ?2 AND request_key = ?3";
    let freed = conn.prepare_cached(sql)?.execute(params![run_id.as_str(), tenant.as_str(), key.as_bytes()])?;
    Ok(freed > 0)
}

pub(crate) fn count_by_visible(
    conn: &Connection,
    tenant: &TenantId,
    plan_id: Option<&str>,
) -> Result<Vec<(InvocationStatus, u64)>, Fault> {
    let sql = if plan_id.is_some() {
        "SELECT visible, count FROM invocation_counts WHERE tenant_id = ?1 AND plan_id = ?2 AND count <> 0"
    } else {
        "SELECT visible, sum(count) FROM invocation_counts WHERE tenant_id = ?1 AND ?2 IS NULL AND count <> 0 \
         GROUP BY visible"
    };
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![tenant.as_str(), plan_id])?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        counts.push((codec::spelled(row, 0, InvocationStatus::parse)?, codec::count(row, 1)?));
    }
    counts.sort_unstable();
    Ok(counts)
}

pub(crate) fn count_active(conn: &Connection, tenant: &TenantId, most: u32) -> Result<u32, Fault> {
    // The condition is the partial index's, word for word.
    let sql = "SELECT count(*) FROM (SELECT 1 FROM runs WHERE tenant_id = ?1 AND run_id <> '_system' \
               AND purging = 0 AND status IN ('RUNNING', 'PAUSED') LIMIT ?2)";
    Ok(conn.prepare_cached(sql)?.query_row(params![tenant.as_str(), most], |row| row.get(0))?)
}

pub(crate) fn count_open(conn: &Connection, tenant: &TenantId, plan_id: &str) -> Result<Vec<(String, u64)>, Fault> {
    // The condition is the partial index's, word for word.
    let sql = "SELECT plan_version, count(*) FROM runs WHERE tenant_id = ?1 AND plan_id = ?2 AND run_id <> '_system' \
               AND purging = 0 AND status IN ('PENDING', 'APPROVED', 'RUNNING', 'PAUSED') \
               GROUP BY plan_version ORDER BY plan_version";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![tenant.as_str(), plan_id])?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        counts.push((row.get(0)?, codec::count(row, 1)?));
    }
    Ok(counts)
}

/// The condition of the partial index, word for word.
const OPEN_BELOW: &str = "tenant_id = ?1 AND root_id = ?2 AND purging = 0 AND root_id IS NOT NULL \
                          AND status IN ('PENDING', 'APPROVED', 'RUNNING', 'PAUSED')";

pub(crate) fn count_descendants(conn: &Connection, tenant: &TenantId, root: &RunId, most: u32) -> Result<u32, Fault> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM runs WHERE {OPEN_BELOW} LIMIT ?3)");
    Ok(conn.prepare_cached(&sql)?.query_row(params![tenant.as_str(), root.as_str(), most], |row| row.get(0))?)
}

pub(crate) fn open_descendants(
    conn: &Connection,
    tenant: &TenantId,
    root: &RunId,
    after: Option<&RunId>,
    limit: u32,
) -> Result<Vec<RunId>, Fault> {
    let sql = format!("SELECT run_id FROM runs WHERE {OPEN_BELOW} AND run_id > ?3 ORDER BY run_id LIMIT ?4");
    let mut found = conn.prepare_cached(&sql)?;
    let after = after.map_or("", RunId::as_str);
    let mut rows = found.query(params![tenant.as_str(), root.as_str(), after, limit])?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        runs.push(codec::run_id(row, 0)?);
    }
    Ok(runs)
}
