//! Keys that callers show.

use rusqlite::{Connection, Params, Row, params};
use servo_canon::Digest;
use servo_model::limits::KEYS_PER_TENANT_MAX;
use servo_model::{KeyId, Timestamp};
use servo_store::identity::{KeyRow, TOUCH_EVERY_MS, parse_roles, roles_text, too_many};
use servo_store::{Error, Scope};

use crate::codec;
use crate::error::Fault;
use crate::writer::tx::Tx;

macro_rules! select_keys {
    ($rest:literal) => {
        concat!(
            "SELECT key_id, tenant_id, name, roles, prefix, digest, sealed, created_at, created_by, expires_at, \
             revoked_at, last_used_at FROM api_keys ",
            $rest
        )
    };
}

fn key_row(row: &Row<'_>) -> Result<KeyRow, Fault> {
    Ok(KeyRow {
        id: codec::parse(row, 0, KeyId::parse)?,
        tenant: codec::tenant(row, 1)?,
        name: row.get(2)?,
        roles: codec::spelled(row, 3, parse_roles)?,
        prefix: row.get(4)?,
        digest: codec::digest(row, 5)?,
        sealed: row.get(6)?,
        created_at: codec::time(row, 7)?,
        created_by: row.get(8)?,
        expires_at: codec::maybe_time(row, 9)?,
        revoked_at: codec::maybe_time(row, 10)?,
        last_used_at: codec::maybe_time(row, 11)?,
    })
}

fn key_rows(conn: &Connection, sql: &str, params: impl Params) -> Result<Vec<KeyRow>, Fault> {
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params)?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        keys.push(key_row(row)?);
    }
    Ok(keys)
}

pub(crate) fn put(tx: &Tx<'_>, key: &KeyRow) -> Result<(), Fault> {
    let known = "SELECT 1 FROM api_keys WHERE key_id = ?1";
    if tx.conn.prepare_cached(known)?.exists([key.id.as_str()])? {
        return Ok(());
    }
    let live = "SELECT count(*) FROM api_keys \
                WHERE tenant_id = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)";
    let live: i64 = tx
        .conn
        .prepare_cached(live)?
        .query_row(params![key.tenant.as_str(), key.created_at.as_millis()], |row| row.get(0))?;
    if live >= KEYS_PER_TENANT_MAX as i64 {
        return Err(too_many().into());
    }
    let sql = "INSERT INTO api_keys (key_id, tenant_id, name, roles, prefix, digest, sealed, created_at, created_by, \
               expires_at, revoked_at, last_used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    tx.conn.prepare_cached(sql)?.execute(params![
        key.id.as_str(),
        key.tenant.as_str(),
        key.name,
        roles_text(&key.roles),
        key.prefix,
        key.digest.as_bytes(),
        key.sealed,
        key.created_at.as_millis(),
        key.created_by,
        key.expires_at.map(Timestamp::as_millis),
        key.revoked_at.map(Timestamp::as_millis),
        key.last_used_at.map(Timestamp::as_millis),
    ])?;
    Ok(())
}

pub(crate) fn find(conn: &Connection, digest: Digest) -> Result<Option<KeyRow>, Fault> {
    let sql = select_keys!("WHERE digest = ?1 ORDER BY key_id LIMIT 1");
    Ok(key_rows(conn, sql, params![digest.as_bytes()])?.pop())
}

pub(crate) fn list(conn: &Connection, scope: &Scope, before: Option<&KeyId>, limit: u32) -> Result<Vec<KeyRow>, Fault> {
    // Behind every id: none has a tilde.
    let before = before.map_or("~", KeyId::as_str);
    match scope {
        Scope::Tenant(tenant) => {
            let sql = select_keys!("WHERE tenant_id = ?1 AND key_id < ?2 ORDER BY key_id DESC LIMIT ?3");
            key_rows(conn, sql, params![tenant.as_str(), before, limit])
        }
        Scope::System => {
            key_rows(conn, select_keys!("WHERE key_id < ?1 ORDER BY key_id DESC LIMIT ?2"), params![before, limit])
        }
    }
}

pub(crate) fn get(conn: &Connection, scope: &Scope, id: &KeyId) -> Result<Option<KeyRow>, Fault> {
    let found = key_rows(conn, select_keys!("WHERE key_id = ?1"), [id.as_str()])?.pop();
    Ok(found.filter(|key| scope.covers(&key.tenant)))
}

pub(crate) fn revoke(tx: &Tx<'_>, scope: &Scope, id: &KeyId, at: Timestamp) -> Result<KeyRow, Fault> {
    let mut key = get(tx.conn, scope, id)?.ok_or(Error::NotFound)?;
    if key.revoked_at.is_none() {
        let sql = "UPDATE api_keys SET revoked_at = ?2 WHERE key_id = ?1";
        tx.conn.prepare_cached(sql)?.execute(params![id.as_str(), at.as_millis()])?;
        key.revoked_at = Some(at);
    }
    Ok(key)
}

pub(crate) fn touch(tx: &Tx<'_>, id: &KeyId, at: Timestamp) -> Result<(), Fault> {
    let sql = "UPDATE api_keys SET last_used_at = ?2 \
               WHERE key_id = ?1 AND (last_used_at IS NULL OR last_used_at <= ?2 - ?3)";
    tx.conn.prepare_cached(sql)?.execute(params![id.as_str(), at.as_millis(), TOUCH_EVERY_MS])?;
    Ok(())
}

pub(crate) fn trim(tx: &Tx<'_>, before: Timestamp, limit: u32) -> Result<u32, Fault> {
    let sql = "DELETE FROM api_keys WHERE key_id IN (SELECT key_id FROM api_keys \
               WHERE coalesce(revoked_at, expires_at) < ?1 ORDER BY coalesce(revoked_at, expires_at), key_id LIMIT ?2)";
    let gone = tx.conn.prepare_cached(sql)?.execute(params![before.as_millis(), limit])?;
    Ok(u32::try_from(gone).unwrap_or(limit))
}
