//! Dispatches: as they stand, and the readers of those that are open.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use servo_model::contract::{Backlog, DispatchState};
use servo_model::{RunId, StepId, TenantId, Timestamp};
use servo_store::DispatchRow;
use servo_store::dispatch::{DispatchHeads, DispatchStep};

use crate::codec::{self, int};
use crate::error::{Fault, corrupt};
use crate::writer::tx::Tx;

macro_rules! columns {
    () => {
        "request_id, run_id, tenant_id, target, step_id, logical_attempt, state, channel, reason, epoch, queued_at, \
         changed_at"
    };
}

/// Two partial indexes, so that neither delivered dispatches nor those of the current epoch are walked over.
const OPEN: &str = concat!(
    "SELECT * FROM (SELECT ",
    columns!(),
    " FROM dispatches INDEXED BY dispatches_pending WHERE state = 'pending' AND step_id IS NOT NULL \
     AND tenant_id = ?5 AND (queued_at, request_id) > (?2, ?3) ORDER BY queued_at, request_id LIMIT ?4) \
     UNION ALL SELECT * FROM (SELECT ",
    columns!(),
    " FROM dispatches INDEXED BY dispatches_notified WHERE state = 'notified' AND step_id IS NOT NULL \
     AND tenant_id = ?5 AND epoch < ?1 AND (queued_at, request_id) > (?2, ?3) \
     ORDER BY queued_at, request_id LIMIT ?4) ORDER BY 11, 1 LIMIT ?4"
);

/// The tenants that an earlier epoch has left something of. No more is walked over than what is in flight.
const LEFT: &str = "SELECT DISTINCT tenant_id FROM dispatches INDEXED BY dispatches_notified \
    WHERE state = 'notified' AND step_id IS NOT NULL AND epoch < ?1 AND tenant_id > ?2";

const INSERT: &str = concat!(
    "INSERT INTO dispatches (",
    columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (request_id) DO UPDATE SET \
     state = excluded.state, channel = excluded.channel, reason = excluded.reason, epoch = excluded.epoch, \
     changed_at = excluded.changed_at"
);

/// A dispatch as it stands now, new or not.
pub(crate) fn put(conn: &Connection, row: &DispatchRow) -> Result<(), Fault> {
    let step = row.step.as_ref();
    conn.prepare_cached(INSERT)?.execute(params![
        row.request_id,
        row.run_id.as_str(),
        row.tenant.as_str(),
        row.target,
        step.map(|step| step.step_id.as_str()),
        step.map(|step| step.logical_attempt),
        row.state.as_str(),
        row.channel,
        row.reason,
        int(row.epoch),
        row.queued_at.as_millis(),
        row.changed_at.as_millis(),
    ])?;
    Ok(())
}

pub(crate) fn delete_one(conn: &Connection, request_id: &str) -> Result<(), Fault> {
    conn.prepare_cached("DELETE FROM dispatches WHERE request_id = ?1")?.execute([request_id])?;
    Ok(())
}

fn dispatch_row(row: &Row<'_>) -> Result<DispatchRow, Fault> {
    let step = match (row.get_ref(4)?, row.get::<_, Option<u32>>(5)?) {
        (ValueRef::Null, None) => None,
        (ValueRef::Text(_), Some(logical_attempt)) => {
            Some(DispatchStep { step_id: codec::parse(row, 4, StepId::parse)?, logical_attempt })
        }
        _ => return Err(corrupt("a dispatch has half a step").into()),
    };
    Ok(DispatchRow {
        request_id: row.get(0)?,
        run_id: codec::run_id(row, 1)?,
        tenant: codec::tenant(row, 2)?,
        target: row.get(3)?,
        step,
        state: codec::spelled(row, 6, DispatchState::parse)?,
        channel: row.get(7)?,
        reason: row.get(8)?,
        epoch: codec::count(row, 9)?,
        queued_at: codec::time(row, 10)?,
        changed_at: codec::time(row, 11)?,
    })
}

pub(crate) fn get(conn: &Connection, request_id: &str) -> Result<Option<DispatchRow>, Fault> {
    let sql = concat!("SELECT ", columns!(), " FROM dispatches WHERE request_id = ?1");
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([request_id])?;
    rows.next()?.map(dispatch_row).transpose()
}

pub(crate) fn heads(conn: &Connection, heads: &DispatchHeads) -> Result<Vec<DispatchRow>, Fault> {
    let mut open = Vec::new();
    for tenant in tenants(conn, heads)? {
        open.extend(self::open(conn, heads.epoch, &tenant, None, heads.each)?);
    }
    Ok(open)
}

/// The tenants that have open dispatches. The index is entered once for each, and never walked.
fn tenants(conn: &Connection, heads: &DispatchHeads) -> Result<BTreeSet<TenantId>, Fault> {
    let most = heads.tenants as usize;
    let mut found = BTreeSet::new();
    let first = heads.after.as_ref().map_or("", |after| after.as_str()).to_owned();
    let sql = "SELECT tenant_id FROM dispatches INDEXED BY dispatches_pending \
               WHERE state = 'pending' AND step_id IS NOT NULL AND tenant_id > ?1 ORDER BY tenant_id LIMIT 1";
    let mut next = conn.prepare_cached(sql)?;
    let mut after = first.clone();
    while found.len() < most {
        let mut rows = next.query([&after])?;
        let Some(row) = rows.next()? else { break };
        let tenant = codec::tenant(row, 0)?;
        after = tenant.as_str().to_owned();
        found.insert(tenant);
    }
    // What an earlier epoch left is little: what it had in flight when it ended.
    let mut left = conn.prepare_cached(LEFT)?;
    let mut rows = left.query(params![int(heads.epoch), first])?;
    while let Some(row) = rows.next()? {
        found.insert(codec::tenant(row, 0)?);
    }
    while found.len() > most {
        found.pop_last();
    }
    Ok(found)
}

pub(crate) fn open(
    conn: &Connection,
    epoch: u64,
    tenant: &TenantId,
    after: Option<(Timestamp, String)>,
    limit: u32,
) -> Result<Vec<DispatchRow>, Fault> {
    // Times are not negative, so this is before everything.
    let (at, request_id) = after.map_or((-1, String::new()), |(at, request_id)| (at.as_millis(), request_id));
    let mut found = conn.prepare_cached(OPEN)?;
    let mut rows = found.query(params![int(epoch), at, request_id, limit, tenant.as_str()])?;
    let mut open = Vec::new();
    while let Some(row) = rows.next()? {
        open.push(dispatch_row(row)?);
    }
    Ok(open)
}

pub(crate) fn backlog(conn: &Connection) -> Result<Backlog, Fault> {
    let mut found = conn.prepare_cached("SELECT state, count FROM dispatch_counts")?;
    let mut rows = found.query([])?;
    let mut backlog = Backlog::default();
    while let Some(row) = rows.next()? {
        let count = codec::count(row, 1)?;
        match codec::spelled(row, 0, DispatchState::parse)? {
            DispatchState::Pending => backlog.pending = count,
            DispatchState::Notified => backlog.notified = count,
            DispatchState::Delivered => backlog.delivered = count,
            DispatchState::Failed => backlog.failed = count,
        }
    }
    Ok(backlog)
}

/// Which of a run's dispatches to remove.
pub(crate) enum Removed {
    /// Those that are pending or notified.
    Open,
    /// Those that came to an end before a time.
    EndedBefore(Timestamp),
}

pub(crate) fn remove(tx: &mut Tx<'_>, run_id: &RunId, which: &Removed) -> Result<(), Fault> {
    let (sql, before) = match which {
        Removed::Open => (
            "DELETE FROM dispatches WHERE run_id = ?1 AND state IN ('pending', 'notified') AND ?2 IS NULL \
             RETURNING state",
            None,
        ),
        Removed::EndedBefore(before) => (
            "DELETE FROM dispatches WHERE run_id = ?1 AND state IN ('delivered', 'failed') AND changed_at < ?2 \
             RETURNING state",
            Some(before.as_millis()),
        ),
    };
    delete(tx, sql, params![run_id.as_str(), before]).map(|_| ())
}

/// Removes up to `limit` dispatches of a run, whatever their state. Says how many.
pub(crate) fn remove_some(tx: &mut Tx<'_>, run_id: &RunId, limit: u32) -> Result<usize, Fault> {
    let sql = "DELETE FROM dispatches WHERE rowid IN (SELECT rowid FROM dispatches WHERE run_id = ?1 LIMIT ?2) \
               RETURNING state";
    delete(tx, sql, params![run_id.as_str(), limit])
}

/// The counts follow from what was deleted.
fn delete(tx: &mut Tx<'_>, sql: &str, params: &[&dyn rusqlite::ToSql]) -> Result<usize, Fault> {
    let mut deleted = 0;
    let mut found = tx.conn.prepare_cached(sql)?;
    let mut rows = found.query(params)?;
    while let Some(row) = rows.next()? {
        tx.count(codec::spelled(row, 0, DispatchState::parse)?, -1);
        deleted += 1;
    }
    Ok(deleted)
}
