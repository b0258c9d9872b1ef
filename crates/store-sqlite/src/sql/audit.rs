//! The audit log.

use std::sync::Arc;

use rusqlite::{Connection, Row, named_params, params};
use servo_model::audit::first_id_at;
use servo_model::{AuditEntry, AuditOutcome, Timestamp};
use servo_store::Scope;
use servo_store::audit::{AuditQuery, tenant_of};
use servo_store::identity::{parse_roles, roles_text};

use crate::codec::{self, int};
use crate::error::Fault;
use crate::writer::tx::Tx;

fn entry(row: &Row<'_>) -> Result<AuditEntry, Fault> {
    Ok(AuditEntry {
        id: codec::event_id(row, 0)?,
        at: codec::time(row, 1)?,
        tenant_id: codec::tenant(row, 2)?,
        actor: row.get(3)?,
        roles: codec::spelled(row, 4, parse_roles)?,
        action: row.get(5)?,
        object_kind: row.get(6)?,
        object_id: row.get(7)?,
        outcome: codec::spelled(row, 8, AuditOutcome::parse)?,
        correlation_id: row.get(9)?,
        reason: row.get(10)?,
        source: row.get(11)?,
        count: codec::count(row, 12)?,
    })
}

pub(crate) fn put(conn: &Connection, entries: &[Arc<AuditEntry>]) -> Result<(), Fault> {
    let sql = "INSERT INTO audit_log (audit_id, at, tenant_id, actor, roles, action, object_kind, object_id, outcome, \
               correlation_id, reason, source, count) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT (audit_id) DO NOTHING";
    let mut insert = conn.prepare_cached(sql)?;
    for entry in entries {
        insert.execute(params![
            entry.id.as_bytes(),
            entry.at.as_millis(),
            entry.tenant_id.as_str(),
            entry.actor,
            roles_text(&entry.roles),
            entry.action,
            entry.object_kind,
            entry.object_id,
            entry.outcome.as_str(),
            entry.correlation_id,
            entry.reason,
            entry.source,
            int(entry.count.max(1)),
        ])?;
    }
    Ok(())
}

/// The same question with the condition that has the best index in front; the others only filter.
macro_rules! select_entries {
    ($lead:literal) => {
        concat!(
            "SELECT audit_id, at, tenant_id, actor, roles, action, object_kind, object_id, outcome, correlation_id, \
             reason, source, count FROM audit_log WHERE ",
            $lead,
            " AND audit_id >= :low AND audit_id < :high \
             AND (:tenant IS NULL OR tenant_id = :tenant) AND (:actor IS NULL OR actor = :actor) \
             AND (:action IS NULL OR action = :action) AND (:object IS NULL OR object_id = :object) \
             AND (:outcome IS NULL OR outcome = :outcome) ORDER BY audit_id DESC LIMIT :limit"
        )
    };
}

pub(crate) fn read(conn: &Connection, scope: &Scope, query: &AuditQuery) -> Result<Vec<AuditEntry>, Fault> {
    let tenant = tenant_of(scope).map(|tenant| tenant.as_str());
    let sql = match (tenant, &query.object_id, &query.actor, &query.action) {
        (None, ..) => select_entries!("true"),
        (_, Some(_), ..) => select_entries!("tenant_id = :tenant AND object_id = :object"),
        (_, _, Some(_), _) => select_entries!("tenant_id = :tenant AND actor = :actor"),
        (_, _, _, Some(_)) => select_entries!("tenant_id = :tenant AND action = :action"),
        _ => select_entries!("tenant_id = :tenant"),
    };
    let (low, high) = query.bounds();
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(named_params! {
        ":tenant": tenant,
        ":low": low.as_bytes(),
        ":high": high.as_bytes(),
        ":actor": query.actor,
        ":action": query.action,
        ":object": query.object_id,
        ":outcome": query.outcome.map(AuditOutcome::as_str),
        ":limit": query.limit,
    })?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(entry(row)?);
    }
    Ok(entries)
}

pub(crate) fn trim(tx: &Tx<'_>, before: Timestamp, limit: u32) -> Result<u32, Fault> {
    let sql = "DELETE FROM audit_log WHERE audit_id IN \
               (SELECT audit_id FROM audit_log WHERE audit_id < ?1 ORDER BY audit_id LIMIT ?2)";
    let gone = tx.conn.prepare_cached(sql)?.execute(params![first_id_at(before).as_bytes(), limit])?;
    Ok(u32::try_from(gone).unwrap_or(limit))
}
