//! The `runs` rows: written by appends, read by lists and filters. Runs that are being deleted are in none of them.

use rusqlite::{Connection, Row, ToSql, params};
use servo_canon::Digest;
use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, RunStatus, TenantId, Timestamp};
use servo_store::runs::RunQuery;
use servo_store::{Error, RunRow, Scope, StreamAppend};

use crate::codec::{self, int};
use crate::error::{Fault, is_unique};

const COLUMNS: &str = "run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, request_key, \
                       created_at, finished_at, changed_seq, quarantined, name, outcome";

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
    })
}

/// The row of a new run, under the id and tenant of its stream.
pub(crate) fn create(conn: &Connection, stream: &StreamAppend) -> Result<(), Fault> {
    let row = stream
        .row
        .as_ref()
        .ok_or_else(|| Error::Invalid { field: "row".to_owned(), reason: "a new run brings its row".to_owned() })?;
    let (run_id, tenant) = (stream.run_id.clone(), stream.tenant.clone());
    insert_new(conn, &RunRow { run_id, tenant, ..row.clone() })
}

/// Inserts a row, or says which of the two things that must be unique is taken.
pub(crate) fn insert_new(conn: &Connection, row: &RunRow) -> Result<(), Fault> {
    match insert(conn, row) {
        Err(Fault::Sql(error)) if is_unique(&error) => {}
        other => return other,
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

pub(crate) fn insert(conn: &Connection, row: &RunRow) -> Result<(), Fault> {
    let sql = "INSERT INTO runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, \
               request_key, created_at, finished_at, changed_seq, quarantined, name, outcome) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
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
    ])?;
    Ok(())
}

/// Everything but what a run keeps for life: its request, its first moment, and being set aside.
pub(crate) fn update(conn: &Connection, run_id: &RunId, row: &RunRow) -> Result<(), Fault> {
    let sql = "UPDATE runs SET project = ?2, environment = ?3, plan_id = ?4, plan_version = ?5, status = ?6, \
               visible = ?7, finished_at = ?8, changed_seq = ?9, name = ?10, outcome = ?11 WHERE run_id = ?1";
    conn.prepare_cached(sql)?.execute(params![
        run_id.as_str(),
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

/// Whether the id is taken, also by a run that is being deleted.
pub(crate) fn exists(conn: &Connection, run_id: &RunId) -> Result<bool, Fault> {
    Ok(conn.prepare_cached("SELECT 1 FROM runs WHERE run_id = ?1")?.exists([run_id.as_str()])?)
}

pub(crate) fn get(conn: &Connection, scope: &Scope, run_id: &RunId) -> Result<Option<RunRow>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE run_id = ?1 AND purging = 0");
    let mut found = conn.prepare_cached(&sql)?;
    let mut rows = found.query([run_id.as_str()])?;
    let row = rows.next()?.map(run_row).transpose()?;
    Ok(row.filter(|row| scope.covers(&row.tenant)))
}

/// Each index gives the runs of one status in their order, so several statuses are asked for one by one and put together:
/// never more than a page of each is read.
pub(crate) fn list(conn: &Connection, scope: &Scope, query: &RunQuery) -> Result<Vec<RunRow>, Fault> {
    let mut statuses: Vec<_> = query.visible_set().into_iter().map(Some).collect();
    if statuses.is_empty() {
        // The index of plans is by status, too; without a plan there is one for all.
        let by_plan = query.plan_id.is_some() && query.name.is_none() && matches!(scope, Scope::Tenant(_));
        statuses = if by_plan { InvocationStatus::ALL.map(Some).to_vec() } else { vec![None] };
    }
    let mut list = Vec::new();
    for visible in &statuses {
        list_one(conn, scope, query, *visible, &mut list)?;
    }
    if statuses.len() > 1 {
        list.sort_unstable_by(|a: &RunRow, b| a.run_id.cmp(&b.run_id));
        if !query.oldest_first {
            list.reverse();
        }
        list.truncate(query.limit as usize);
    }
    Ok(list)
}

fn list_one(
    conn: &Connection,
    scope: &Scope,
    query: &RunQuery,
    visible: Option<InvocationStatus>,
    list: &mut Vec<RunRow>,
) -> Result<(), Fault> {
    // The system stream is a row like others and no run.
    let mut sql = format!("SELECT {COLUMNS} FROM runs WHERE purging = 0 AND run_id <> '_system'");
    let mut values: Vec<(&str, &dyn ToSql)> = Vec::new();
    let tenant = match scope {
        Scope::Tenant(tenant) => Some(tenant.as_str()),
        Scope::System => None,
    };
    let visible = visible.map(InvocationStatus::as_str);
    let after = query.after.as_ref().map(RunId::as_str);
    let (from, until) = (query.created_from.map(Timestamp::as_millis), query.created_until.map(Timestamp::as_millis));
    // One text for any number of outcomes, so that the statement stays the same.
    let outcomes = query.outcome.as_ref().map(servo_canon::to_canonical).transpose();
    let outcomes =
        outcomes.map_err(|error| Error::Invalid { field: "outcome".to_owned(), reason: error.to_string() })?;
    let (behind, order) =
        if query.oldest_first { (" AND run_id > :after", "") } else { (" AND run_id < :after", " DESC") };
    macro_rules! filter {
        ($value:expr, $name:literal, $condition:expr) => {
            if let Some(value) = $value {
                sql.push_str($condition);
                values.push(($name, value));
            }
        };
    }
    filter!(&tenant, ":tenant", " AND tenant_id = :tenant");
    filter!(&visible, ":visible", " AND visible = :visible");
    filter!(&query.plan_id, ":plan", " AND plan_id = :plan");
    filter!(&query.plan_version, ":version", " AND plan_version = :version");
    filter!(&query.name, ":name", " AND name = :name");
    filter!(&from, ":from", " AND created_at >= :from");
    filter!(&until, ":until", " AND created_at < :until");
    filter!(
        &outcomes,
        ":outcomes",
        " AND EXISTS (SELECT 1 FROM json_each(:outcomes) asked WHERE asked.value IS runs.outcome)"
    );
    filter!(&after, ":after", behind);
    sql.push_str(" ORDER BY run_id");
    sql.push_str(order);
    sql.push_str(" LIMIT :limit");
    values.push((":limit", &query.limit));
    let mut found = conn.prepare_cached(&sql)?;
    let mut rows = found.query(&values[..])?;
    while let Some(row) = rows.next()? {
        list.push(run_row(row)?);
    }
    Ok(())
}

pub(crate) fn find_request(conn: &Connection, tenant: &TenantId, key: Digest) -> Result<Option<RunId>, Fault> {
    let mut found = conn.prepare_cached("SELECT run_id FROM runs WHERE tenant_id = ?1 AND request_key = ?2")?;
    let mut rows = found.query(params![tenant.as_str(), key.as_bytes()])?;
    rows.next()?.map(|row| codec::run_id(row, 0)).transpose()
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
