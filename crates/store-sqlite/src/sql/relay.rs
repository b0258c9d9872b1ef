//! Cursors over the log, failed publications, dead letters, and alerts.

use rusqlite::{Connection, Row, params};
use servo_model::alert::{Alert, AlertCode};
use servo_model::{EventId, TenantId, Timestamp};
use servo_store::relay::{CursorRow, DeadLetter, NewAlert, OutboxRow};
use servo_store::{Position, Scope};

use crate::codec::{self, int};
use crate::error::Fault;
use crate::writer::tx::Tx;

pub(crate) fn cursor(conn: &Connection, name: &str) -> Result<Option<CursorRow>, Fault> {
    let sql = "SELECT position, last_event_id, target, deferred FROM cursors WHERE name = ?1";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([name])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let has_target = row.get_ref(2)? != rusqlite::types::ValueRef::Null;
    Ok(Some(CursorRow {
        name: name.to_owned(),
        position: codec::parse(row, 0, Position::parse)?,
        last_event_id: row.get::<_, Option<[u8; 16]>>(1)?.map(EventId::from_bytes),
        target: if has_target { Some(codec::parse(row, 2, Position::parse)?) } else { None },
        deferred: row.get(3)?,
    }))
}

pub(crate) fn set_cursor(conn: &Connection, row: &CursorRow) -> Result<(), Fault> {
    let sql = "INSERT INTO cursors (name, position, last_event_id, target, deferred) VALUES (?1, ?2, ?3, ?4, ?5) \
               ON CONFLICT (name) DO UPDATE SET position = excluded.position, last_event_id = excluded.last_event_id, \
               target = excluded.target, deferred = excluded.deferred";
    conn.prepare_cached(sql)?.execute(params![
        row.name,
        row.position.to_string(),
        row.last_event_id.as_ref().map(EventId::as_bytes),
        row.target.map(|target| target.to_string()),
        row.deferred,
    ])?;
    Ok(())
}

/// A position as the three columns that sort like it.
fn position(position: Position) -> (u32, i64, i64) {
    (position.store_epoch, int(position.transaction), int(position.id))
}

pub(crate) fn outbox_put(conn: &Connection, row: &OutboxRow) -> Result<(), Fault> {
    let sql = "INSERT INTO outbox (store_epoch, transaction_id, position_id, run_id, run_seq, tenant_id, attempts, \
               next_at, last_error) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
               ON CONFLICT (store_epoch, transaction_id, position_id) DO UPDATE SET run_id = excluded.run_id, \
               run_seq = excluded.run_seq, tenant_id = excluded.tenant_id, attempts = excluded.attempts, \
               next_at = excluded.next_at, last_error = excluded.last_error";
    let (epoch, transaction, id) = position(row.position);
    conn.prepare_cached(sql)?.execute(params![
        epoch,
        transaction,
        id,
        row.run_id.as_str(),
        int(row.run_seq),
        row.tenant.as_str(),
        row.attempts,
        row.next_at.as_millis(),
        row.last_error,
    ])?;
    Ok(())
}

pub(crate) fn outbox_due(conn: &Connection, now: Timestamp, limit: u32) -> Result<Vec<OutboxRow>, Fault> {
    let sql = "SELECT store_epoch, transaction_id, position_id, run_id, run_seq, tenant_id, attempts, next_at, \
               last_error FROM outbox WHERE next_at <= ?1 \
               ORDER BY store_epoch, transaction_id, position_id LIMIT ?2";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![now.as_millis(), limit])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        due.push(OutboxRow {
            position: codec::position(row, 0)?,
            run_id: codec::run_id(row, 3)?,
            run_seq: codec::count(row, 4)?,
            tenant: codec::tenant(row, 5)?,
            attempts: codec::count32(row, 6)?,
            next_at: codec::time(row, 7)?,
            last_error: row.get(8)?,
        });
    }
    Ok(due)
}

pub(crate) fn outbox_len(conn: &Connection) -> Result<u64, Fault> {
    let counted: i64 = conn.prepare_cached("SELECT count(*) FROM outbox")?.query_row([], |row| row.get(0))?;
    Ok(counted.unsigned_abs())
}

pub(crate) fn outbox_done(conn: &Connection, done: Position) -> Result<(), Fault> {
    let sql = "DELETE FROM outbox WHERE store_epoch = ?1 AND transaction_id = ?2 AND position_id = ?3";
    conn.prepare_cached(sql)?.execute(position(done))?;
    Ok(())
}

pub(crate) fn outbox_bury(tx: &Tx<'_>, row: &OutboxRow) -> Result<(), Fault> {
    outbox_done(tx.conn, row.position)?;
    let sql = "INSERT OR REPLACE INTO dead_letters (store_epoch, transaction_id, position_id, run_id, run_seq, \
               tenant_id, attempts, last_error, buried_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let (epoch, transaction, id) = position(row.position);
    tx.conn.prepare_cached(sql)?.execute(params![
        epoch,
        transaction,
        id,
        row.run_id.as_str(),
        int(row.run_seq),
        row.tenant.as_str(),
        row.attempts,
        row.last_error,
        tx.now.as_millis(),
    ])?;
    Ok(())
}

fn dead_letter(row: &Row<'_>) -> Result<DeadLetter, Fault> {
    Ok(DeadLetter {
        position: codec::position(row, 0)?,
        run_id: codec::run_id(row, 3)?,
        run_seq: codec::count(row, 4)?,
        tenant: codec::tenant(row, 5)?,
        attempts: codec::count32(row, 6)?,
        last_error: row.get(7)?,
        buried_at: codec::time(row, 8)?,
    })
}

pub(crate) fn dead_letters(conn: &Connection, after: Position, limit: u32) -> Result<Vec<DeadLetter>, Fault> {
    let sql = "SELECT store_epoch, transaction_id, position_id, run_id, run_seq, tenant_id, attempts, last_error, \
               buried_at FROM dead_letters WHERE (store_epoch, transaction_id, position_id) > (?1, ?2, ?3) \
               ORDER BY store_epoch, transaction_id, position_id LIMIT ?4";
    let (epoch, transaction, id) = position(after);
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![epoch, transaction, id, limit])?;
    let mut letters = Vec::new();
    while let Some(row) = rows.next()? {
        letters.push(dead_letter(row)?);
    }
    Ok(letters)
}

/// Dead letters become notes that are due now, with no attempts counted.
pub(crate) fn redrive(tx: &Tx<'_>, chosen: Option<Position>) -> Result<u64, Fault> {
    let (epoch, transaction, id) = position(chosen.unwrap_or_default());
    let values = params![chosen.is_none(), epoch, transaction, id, tx.now.as_millis()];
    let sql = "INSERT OR REPLACE INTO outbox (store_epoch, transaction_id, position_id, run_id, run_seq, tenant_id, \
               attempts, next_at, last_error) SELECT store_epoch, transaction_id, position_id, run_id, run_seq, \
               tenant_id, 0, ?5, last_error FROM dead_letters \
               WHERE ?1 OR (store_epoch = ?2 AND transaction_id = ?3 AND position_id = ?4)";
    let moved = tx.conn.prepare_cached(sql)?.execute(values)?;
    let sql = "DELETE FROM dead_letters WHERE ?1 OR (store_epoch = ?2 AND transaction_id = ?3 AND position_id = ?4)";
    tx.conn.prepare_cached(sql)?.execute(params![chosen.is_none(), epoch, transaction, id])?;
    Ok(moved as u64)
}

pub(crate) fn raise_alert(tx: &Tx<'_>, alert: &NewAlert) -> Result<(), Fault> {
    let sql = "INSERT INTO alerts (code, tenant_id, subject, run_id, message, first_at, last_at, count) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 1) ON CONFLICT (code, tenant_id, subject) DO UPDATE SET \
               run_id = excluded.run_id, message = excluded.message, last_at = excluded.last_at, count = count + 1";
    tx.conn.prepare_cached(sql)?.execute(params![
        alert.code.as_str(),
        alert.tenant.as_str(),
        alert.subject,
        alert.run_id.as_ref().map(servo_model::RunId::as_str),
        alert.message,
        tx.now.as_millis(),
    ])?;
    Ok(())
}

pub(crate) fn alerts(conn: &Connection, scope: &Scope, limit: u32) -> Result<Vec<Alert>, Fault> {
    // Codes sort in the order of the model's list, not by their spelling.
    let rank: String = AlertCode::ALL
        .iter()
        .enumerate()
        .map(|(rank, code)| format!(" WHEN '{}' THEN {rank}", code.as_str()))
        .collect();
    let tenant = match scope {
        Scope::Tenant(tenant) => Some(tenant.as_str()),
        Scope::System => None,
    };
    let filter = if tenant.is_some() { "tenant_id = ?1" } else { "?1 IS NULL" };
    let sql = format!(
        "SELECT code, tenant_id, subject, run_id, message, first_at, last_at, count FROM alerts WHERE {filter} \
         ORDER BY last_at DESC, CASE code{rank} END, subject, tenant_id LIMIT ?2"
    );
    let mut found = conn.prepare_cached(&sql)?;
    let mut rows = found.query(params![tenant, limit])?;
    let mut alerts = Vec::new();
    while let Some(row) = rows.next()? {
        // One of a later release is passed over, and not the reason that nobody sees the others.
        let Some(code) = AlertCode::parse(&row.get::<_, String>(0)?) else { continue };
        let has_run = row.get_ref(3)? != rusqlite::types::ValueRef::Null;
        alerts.push(Alert {
            code,
            severity: code.severity(),
            subject: row.get(2)?,
            run_id: if has_run { Some(codec::run_id(row, 3)?) } else { None },
            tenant_id: codec::tenant(row, 1)?,
            message: row.get(4)?,
            first_at: codec::time(row, 5)?,
            last_at: codec::time(row, 6)?,
            count: codec::count(row, 7)?,
        });
    }
    Ok(alerts)
}

pub(crate) fn clear_alert(conn: &Connection, code: AlertCode, tenant: &TenantId, subject: &str) -> Result<(), Fault> {
    let sql = "DELETE FROM alerts WHERE code = ?1 AND tenant_id = ?2 AND subject = ?3";
    conn.prepare_cached(sql)?.execute(params![code.as_str(), tenant.as_str(), subject])?;
    Ok(())
}
