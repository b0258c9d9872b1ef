//! The audit log. Entries of several tenants are written together, so the engine's role writes them; a tenant's own role
//! reads.

use std::sync::Arc;

use async_trait::async_trait;
use servo_model::audit::first_id_at;
use servo_model::{AuditEntry, AuditOutcome, Timestamp};
use servo_store::audit::{AuditQuery, AuditStore, prepare};
use servo_store::identity::{parse_roles, roles_text};
use servo_store::{Result, Scope};
use tokio_postgres::Row;

use crate::error::corrupt;
use crate::pipeline::params;
use crate::rows;
use crate::store::PostgresStore;

const INSERT: &str = "INSERT INTO audit_log (audit_id, at, count, tenant_id, actor, roles, action, object_kind, object_id,
        outcome, correlation_id, reason, source)
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::text[], $13::text[])
    ON CONFLICT (tenant_id, audit_id) DO NOTHING";

const TRIM: &str = "DELETE FROM audit_log WHERE audit_id IN
    (SELECT audit_id FROM audit_log WHERE audit_id < $1 ORDER BY audit_id LIMIT $2)";

/// The same question with the condition that has the best index in front; the others only filter.
macro_rules! select_entries {
    ($lead:literal) => {
        concat!(
            "SELECT * FROM audit_log WHERE ",
            $lead,
            " AND audit_id >= $2 AND audit_id < $3
             AND ($1::text IS NULL OR tenant_id = $1) AND ($4::text IS NULL OR actor = $4)
             AND ($5::text IS NULL OR action = $5) AND ($6::text IS NULL OR object_id = $6)
             AND ($7::text IS NULL OR outcome = $7) ORDER BY audit_id DESC LIMIT $8"
        )
    };
}

fn entry(row: &Row) -> Result<AuditEntry> {
    Ok(AuditEntry {
        id: rows::get(row, "audit_id")?,
        at: rows::time(row, "at")?,
        tenant_id: rows::tenant(row)?,
        actor: rows::get(row, "actor")?,
        roles: parse_roles(rows::get(row, "roles")?).ok_or_else(|| corrupt("an audit entry has an unknown role"))?,
        action: rows::get(row, "action")?,
        object_kind: rows::get(row, "object_kind")?,
        object_id: rows::get(row, "object_id")?,
        outcome: AuditOutcome::parse(rows::get(row, "outcome")?)
            .ok_or_else(|| corrupt("an audit entry has an unknown outcome"))?,
        correlation_id: rows::get(row, "correlation_id")?,
        reason: rows::get(row, "reason")?,
        source: rows::get(row, "source")?,
        count: rows::number(row, "count")?,
    })
}

#[async_trait]
impl AuditStore for PostgresStore {
    async fn put_audit(&self, entries: Vec<Arc<AuditEntry>>) -> Result<()> {
        let entries = prepare(entries)?;
        if entries.is_empty() {
            return self.core.check_open();
        }
        let of =
            |text: for<'a> fn(&'a AuditEntry) -> &'a str| entries.iter().map(|entry| text(entry)).collect::<Vec<_>>();
        let maybe = |text: for<'a> fn(&'a AuditEntry) -> Option<&'a str>| {
            entries.iter().map(|entry| text(entry)).collect::<Vec<_>>()
        };
        let ids: Vec<_> = entries.iter().map(|entry| entry.id).collect();
        let times: Vec<_> = entries.iter().map(|entry| entry.at.as_millis()).collect();
        let counts: Vec<_> = entries.iter().map(|entry| rows::bound(entry.count.max(1))).collect();
        let roles: Vec<_> = entries.iter().map(|entry| roles_text(&entry.roles)).collect();
        let params = params![
            ids,
            times,
            counts,
            of(|entry| entry.tenant_id.as_str()),
            of(|entry| &entry.actor),
            roles,
            of(|entry| &entry.action),
            of(|entry| &entry.object_kind),
            of(|entry| &entry.object_id),
            of(|entry| entry.outcome.as_str()),
            of(|entry| &entry.correlation_id),
            maybe(|entry| entry.reason.as_deref()),
            maybe(|entry| entry.source.as_deref()),
        ];
        self.engine_write(INSERT, params).await.map(drop)
    }

    async fn read_audit(&self, scope: &Scope, query: &AuditQuery) -> Result<Vec<AuditEntry>> {
        let mut read = self.reading(scope);
        let tenant = read.tenant();
        let sql = match (tenant, &query.object_id, &query.actor, &query.action) {
            (None, ..) => select_entries!("true"),
            (_, Some(_), ..) => select_entries!("tenant_id = $1 AND object_id = $6"),
            (_, _, Some(_), _) => select_entries!("tenant_id = $1 AND actor = $4"),
            (_, _, _, Some(_)) => select_entries!("tenant_id = $1 AND action = $5"),
            _ => select_entries!("tenant_id = $1"),
        };
        let (low, high) = query.bounds();
        let outcome = query.outcome.map(AuditOutcome::as_str);
        let (actor, action, object) = (query.actor.clone(), query.action.clone(), query.object_id.clone());
        let limit = i64::from(query.limit);
        let found = read.query(sql, params![tenant, low, high, actor, action, object, outcome, limit]);
        let answers = self.read(read).await?;
        answers[found].rows.iter().map(entry).collect()
    }

    async fn trim_audit(&self, before: Timestamp, limit: u32) -> Result<u32> {
        let answer = self.engine_write(TRIM, params![first_id_at(before), i64::from(limit)]).await?;
        Ok(u32::try_from(answer.affected).unwrap_or(limit))
    }
}
