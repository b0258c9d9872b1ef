//! Dispatches: compare-and-set moves inside appends, and the readers of those that are open.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use servo_model::contract::{Backlog, DispatchState};
use servo_model::{RunId, StepId, TenantId, Timestamp};
use servo_store::dispatch::{DispatchHeads, DispatchStep};
use servo_store::{DispatchChange, DispatchRow, Error};

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

pub(crate) fn change_all(
    tx: &mut Tx<'_>,
    run_id: &RunId,
    tenant: &TenantId,
    changes: Vec<DispatchChange>,
    is_new: bool,
) -> Result<(), Fault> {
    let mut changes = changes.into_iter().peekable();
    while let Some(change) = changes.next() {
        if let Some(notify) = changes.next_if(|next| is_begun(&change, next)) {
            begin(tx, run_id, tenant, (change, notify), is_new)?;
        } else {
            self::change(tx, run_id, tenant, change)?;
        }
    }
    Ok(())
}

/// Whether the changes are of dispatches that are new, so that none can be refused.
pub(crate) fn only_begins(changes: &[DispatchChange]) -> bool {
    let (mut seen, mut before) = (BTreeSet::new(), None);
    changes.iter().all(|change| {
        let known = match change {
            DispatchChange::Queue { request_id, .. } => seen.insert(request_id),
            _ => before.is_some_and(|before| is_begun(before, change)),
        };
        before = Some(change);
        known
    })
}

/// A dispatch that is handed out with what queues it.
fn is_begun(queued: &DispatchChange, next: &DispatchChange) -> bool {
    matches!((queued, next), (DispatchChange::Queue { request_id: queued, .. },
        DispatchChange::Notify { request_id: notified, .. }) if queued == notified)
}

/// Both at once, so that the index of what is pending never meets it.
fn begin(
    tx: &mut Tx<'_>,
    run_id: &RunId,
    tenant: &TenantId,
    (queue, notify): (DispatchChange, DispatchChange),
    is_new: bool,
) -> Result<(), Fault> {
    if let DispatchChange::Queue { request_id, target, step } = &queue
        && let DispatchChange::Notify { channel, epoch, .. } = &notify
        && insert(tx, run_id, tenant, (request_id, target, step.as_ref()), Some((channel, *epoch)))?
    {
        return Ok(());
    }
    // The dispatch was there. What a new run brings is not taken back alone, so it must not be refused from here on.
    if is_new {
        return Err(corrupt(format!("run {run_id} is new and has a dispatch")).into());
    }
    change(tx, run_id, tenant, queue)?;
    change(tx, run_id, tenant, notify)
}

fn change(tx: &mut Tx<'_>, run_id: &RunId, tenant: &TenantId, change: DispatchChange) -> Result<(), Fault> {
    match change {
        DispatchChange::Queue { request_id, target, step } => {
            insert(tx, run_id, tenant, (&request_id, &target, step.as_ref()), None).map(|_| ())
        }
        DispatchChange::Notify { request_id, channel, epoch } => {
            let sql = "UPDATE dispatches SET state = 'notified', changed_at = ?2, channel = ?3, epoch = ?4 \
                       WHERE request_id = ?1 AND state = 'pending'";
            let values = params![request_id, tx.now.as_millis(), channel, int(epoch)];
            let moved = tx.conn.prepare_cached(sql)?.execute(values)?;
            settle(tx, &request_id, moved, DispatchState::Pending, DispatchState::Notified)
        }
        DispatchChange::Deliver { request_id } => {
            let sql = "UPDATE dispatches SET state = 'delivered', changed_at = ?2 \
                       WHERE request_id = ?1 AND state = 'notified'";
            let moved = tx.conn.prepare_cached(sql)?.execute(params![request_id, tx.now.as_millis()])?;
            settle(tx, &request_id, moved, DispatchState::Notified, DispatchState::Delivered)
        }
        DispatchChange::Fail { request_id, reason } => {
            let sql = "UPDATE dispatches SET state = 'failed', changed_at = ?2, reason = ?3 \
                       WHERE request_id = ?1 AND state = 'notified'";
            let moved = tx.conn.prepare_cached(sql)?.execute(params![request_id, tx.now.as_millis(), reason])?;
            settle(tx, &request_id, moved, DispatchState::Notified, DispatchState::Failed)
        }
        DispatchChange::Adopt { request_id, epoch } => {
            let sql = "UPDATE dispatches SET epoch = ?3, changed_at = ?2 \
                       WHERE request_id = ?1 AND state = 'notified' AND epoch < ?3";
            let moved = tx.conn.prepare_cached(sql)?.execute(params![request_id, tx.now.as_millis(), int(epoch)])?;
            settle(tx, &request_id, moved, DispatchState::Notified, DispatchState::Notified)
        }
        DispatchChange::Withdraw { request_id } => {
            let sql = "DELETE FROM dispatches WHERE request_id = ?1 AND state = 'pending'";
            if tx.conn.prepare_cached(sql)?.execute([request_id])? > 0 {
                tx.count(DispatchState::Pending, -1);
            }
            Ok(())
        }
    }
}

/// A dispatch that waits, or one that is handed out already, over a channel and under an epoch. False if it was there.
fn insert(
    tx: &mut Tx<'_>,
    run_id: &RunId,
    tenant: &TenantId,
    (request_id, target, step): (&str, &str, Option<&DispatchStep>),
    notified: Option<(&str, u64)>,
) -> Result<bool, Fault> {
    let sql = "INSERT INTO dispatches (request_id, run_id, tenant_id, target, step_id, logical_attempt, state, channel, \
               epoch, queued_at, changed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10) ON CONFLICT DO NOTHING";
    let state = if notified.is_some() { DispatchState::Notified } else { DispatchState::Pending };
    let added = tx.conn.prepare_cached(sql)?.execute(params![
        request_id,
        run_id.as_str(),
        tenant.as_str(),
        target,
        step.map(|step| step.step_id.as_str()),
        step.map(|step| step.logical_attempt),
        state.as_str(),
        notified.map(|(channel, _)| channel),
        int(notified.map_or(0, |(_, epoch)| epoch)),
        tx.now.as_millis(),
    ])?;
    if added > 0 {
        tx.count(state, 1);
    }
    Ok(added > 0)
}

/// Counts a move that was made, or says why it was not.
fn settle(
    tx: &mut Tx<'_>,
    request_id: &str,
    moved: usize,
    from: DispatchState,
    to: DispatchState,
) -> Result<(), Fault> {
    if moved > 0 {
        tx.count(from, -1);
        tx.count(to, 1);
        return Ok(());
    }
    let request_id = request_id.to_owned();
    match get(tx.conn, &request_id)? {
        Some(row) => Err(Error::DispatchMove { request_id, from: row.state, to }.into()),
        None => Err(Error::DispatchNotFound { request_id }.into()),
    }
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
