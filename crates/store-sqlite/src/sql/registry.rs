//! Functions, their versions and aliases.

use rusqlite::{Connection, Params, Row, params};
use servo_model::limits::ALIASES_PER_FUNCTION_MAX;
use servo_model::{AliasName, FunctionName, TenantId};
use servo_store::page::PageBytes;
use servo_store::registry::{AliasRow, FunctionVersion, Publication};
use servo_store::{Error, Scope};

use crate::codec::{self, int};
use crate::error::Fault;
use crate::writer::tx::Tx;

macro_rules! select_versions {
    ($rest:literal) => {
        concat!(
            "SELECT v.tenant_id, v.name, v.version, v.digest, v.document, v.created_at FROM function_versions v ",
            $rest
        )
    };
}

fn version_row(row: &Row<'_>) -> Result<FunctionVersion, Fault> {
    Ok(FunctionVersion {
        tenant: codec::tenant(row, 0)?,
        name: codec::parse(row, 1, FunctionName::parse)?,
        version: codec::count(row, 2)?,
        digest: codec::digest(row, 3)?,
        document: row.get(4)?,
        created_at: codec::time(row, 5)?,
    })
}

fn version_rows(
    conn: &Connection,
    bytes_max: usize,
    sql: &str,
    params: impl Params,
) -> Result<Vec<FunctionVersion>, Fault> {
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params)?;
    let mut page = PageBytes::new(bytes_max);
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        let version = version_row(row)?;
        if !page.takes(version.document.len()) {
            break;
        }
        versions.push(version);
    }
    Ok(versions)
}

pub(crate) fn put(
    tx: &Tx<'_>,
    tenant: TenantId,
    name: FunctionName,
    publication: Publication,
) -> Result<FunctionVersion, Fault> {
    let latest = get(tx.conn, &tenant, &name, None)?;
    let Some(version) = publication.version(latest.as_ref().map(|latest| (latest.version, latest.digest)))? else {
        return Ok(latest.ok_or(Error::NotFound)?);
    };
    let Publication { digest, document } = publication;
    let sql = "INSERT INTO functions (tenant_id, name, latest) VALUES (?1, ?2, ?3) \
               ON CONFLICT (tenant_id, name) DO UPDATE SET latest = excluded.latest";
    tx.conn.prepare_cached(sql)?.execute(params![tenant.as_str(), name.as_str(), int(version)])?;
    let sql = "INSERT INTO function_versions (tenant_id, name, version, digest, document, created_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    tx.conn.prepare_cached(sql)?.execute(params![
        tenant.as_str(),
        name.as_str(),
        int(version),
        digest.as_bytes(),
        document,
        tx.now.as_millis()
    ])?;
    Ok(FunctionVersion { tenant, name, version, digest, document, created_at: tx.now })
}

pub(crate) fn get(
    conn: &Connection,
    tenant: &TenantId,
    name: &FunctionName,
    version: Option<u64>,
) -> Result<Option<FunctionVersion>, Fault> {
    let sql = select_versions!(
        "WHERE tenant_id = ?1 AND name = ?2 AND version = coalesce(?3, \
         (SELECT latest FROM functions WHERE tenant_id = ?1 AND name = ?2))"
    );
    let found = version_rows(conn, 0, sql, params![tenant.as_str(), name.as_str(), version.map(int)])?;
    Ok(found.into_iter().next())
}

/// Behind every name: none has a tilde.
const END: &str = "~";

pub(crate) fn list(
    conn: &Connection,
    scope: &Scope,
    after: Option<&(TenantId, FunctionName)>,
    limit: u32,
    bytes_max: usize,
) -> Result<Vec<FunctionVersion>, Fault> {
    let after = after.map_or(("", ""), |(tenant, name)| (tenant.as_str(), name.as_str()));
    let (from, until) = match scope {
        Scope::System => (after, (END, END)),
        Scope::Tenant(tenant) => (after.max((tenant.as_str(), "")), (tenant.as_str(), END)),
    };
    let sql = select_versions!(
        "JOIN functions f ON v.tenant_id = f.tenant_id AND v.name = f.name AND v.version = f.latest \
         WHERE (f.tenant_id, f.name) > (?1, ?2) AND (f.tenant_id, f.name) < (?3, ?4) \
         ORDER BY f.tenant_id, f.name LIMIT ?5"
    );
    version_rows(conn, bytes_max, sql, params![from.0, from.1, until.0, until.1, limit])
}

pub(crate) fn versions(
    conn: &Connection,
    tenant: &TenantId,
    name: &FunctionName,
    before: Option<u64>,
    limit: u32,
    bytes_max: usize,
) -> Result<Vec<FunctionVersion>, Fault> {
    let sql = select_versions!(
        "WHERE tenant_id = ?1 AND name = ?2 AND version < ?3 ORDER BY tenant_id DESC, name DESC, version DESC LIMIT ?4"
    );
    let before = before.map_or(i64::MAX, int);
    version_rows(conn, bytes_max, sql, params![tenant.as_str(), name.as_str(), before, limit])
}

pub(crate) fn remove(conn: &Connection, tenant: &TenantId, name: &FunctionName) -> Result<(), Fault> {
    let mut gone = 0;
    // What refers goes first; the last one says whether the function was there.
    for sql in [
        "DELETE FROM function_aliases WHERE tenant_id = ?1 AND name = ?2",
        "DELETE FROM function_versions WHERE tenant_id = ?1 AND name = ?2",
        "DELETE FROM functions WHERE tenant_id = ?1 AND name = ?2",
    ] {
        gone = conn.prepare_cached(sql)?.execute(params![tenant.as_str(), name.as_str()])?;
    }
    if gone == 0 { Err(Error::NotFound.into()) } else { Ok(()) }
}

fn alias_row(row: &Row<'_>) -> Result<AliasRow, Fault> {
    Ok(AliasRow {
        alias: codec::parse(row, 0, AliasName::parse)?,
        version: codec::count(row, 1)?,
        changed_at: codec::time(row, 2)?,
    })
}

pub(crate) fn put_alias(
    tx: &Tx<'_>,
    tenant: &TenantId,
    name: &FunctionName,
    alias: AliasName,
    version: u64,
) -> Result<AliasRow, Fault> {
    let sql = "SELECT 1 FROM function_versions WHERE tenant_id = ?1 AND name = ?2 AND version = ?3";
    if !tx.conn.prepare_cached(sql)?.exists(params![tenant.as_str(), name.as_str(), int(version)])? {
        return Err(Error::NotFound.into());
    }
    let sql = "SELECT count(*) FROM function_aliases WHERE tenant_id = ?1 AND name = ?2 AND alias <> ?3";
    let mut others = tx.conn.prepare_cached(sql)?;
    let others: i64 = others.query_row(params![tenant.as_str(), name.as_str(), alias.as_str()], |row| row.get(0))?;
    if others >= int(ALIASES_PER_FUNCTION_MAX as u64) {
        let limit = ALIASES_PER_FUNCTION_MAX as u64;
        return Err(Error::Limit { what: "the aliases of one function", limit }.into());
    }
    let sql = "INSERT INTO function_aliases (tenant_id, name, alias, version, changed_at) VALUES (?1, ?2, ?3, ?4, ?5) \
               ON CONFLICT (tenant_id, name, alias) \
               DO UPDATE SET version = excluded.version, changed_at = excluded.changed_at";
    let values = params![tenant.as_str(), name.as_str(), alias.as_str(), int(version), tx.now.as_millis()];
    tx.conn.prepare_cached(sql)?.execute(values)?;
    Ok(AliasRow { alias, version, changed_at: tx.now })
}

/// All aliases of a function, or one.
pub(crate) fn aliases(
    conn: &Connection,
    tenant: &TenantId,
    name: &FunctionName,
    alias: Option<&AliasName>,
) -> Result<Vec<AliasRow>, Fault> {
    let sql = "SELECT alias, version, changed_at FROM function_aliases \
               WHERE tenant_id = ?1 AND name = ?2 AND (?3 IS NULL OR alias = ?3) ORDER BY alias";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![tenant.as_str(), name.as_str(), alias.map(AliasName::as_str)])?;
    let mut aliases = Vec::new();
    while let Some(row) = rows.next()? {
        aliases.push(alias_row(row)?);
    }
    Ok(aliases)
}

pub(crate) fn remove_alias(
    conn: &Connection,
    tenant: &TenantId,
    name: &FunctionName,
    alias: &AliasName,
) -> Result<(), Fault> {
    let sql = "DELETE FROM function_aliases WHERE tenant_id = ?1 AND name = ?2 AND alias = ?3";
    let gone = conn.prepare_cached(sql)?.execute(params![tenant.as_str(), name.as_str(), alias.as_str()])?;
    if gone == 0 { Err(Error::NotFound.into()) } else { Ok(()) }
}
