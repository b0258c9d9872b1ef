//! Entrypoints. Lists are read tenant by tenant, each in the order of an index, and put together.

use rusqlite::{Connection, Row, ToSql, params};
use servo_model::TenantId;
use servo_store::entrypoints::{EntrypointOrder, EntrypointQuery, EntrypointRow, SortValue};
use servo_store::page::PageBytes;
use servo_store::{Error, Scope};

use crate::codec::{self, int};
use crate::error::{Fault, corrupt};
use crate::sql::events::damage;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT tenant_id, entrypoint_id, owner_type, owner_id, address, version, status, adapter, title, tags, \
             created_at, updated_at, revision, document, checksum FROM entrypoints ",
            $rest
        )
    };
}

/// What everybody may read, in words that need no parameter.
macro_rules! is_shared {
    () => {
        "(tenant_id = '_system' AND owner_type = 'system')"
    };
}

fn entrypoint_row(row: &Row<'_>) -> Result<EntrypointRow, Fault> {
    let tags: String = row.get(9)?;
    Ok(EntrypointRow {
        tenant: codec::tenant(row, 0)?,
        id: row.get(1)?,
        owner_type: row.get(2)?,
        owner_id: row.get(3)?,
        address: row.get(4)?,
        version: row.get(5)?,
        status: row.get(6)?,
        adapter: row.get(7)?,
        title: row.get(8)?,
        tags: serde_json::from_str(&tags).map_err(|_| corrupt("the tags of an entrypoint cannot be read"))?,
        created_at: codec::time(row, 10)?,
        updated_at: codec::time(row, 11)?,
        revision: codec::count(row, 12)?,
        document: row.get(13)?,
    })
}

fn one(conn: &Connection, sql: &str, params: &[&dyn ToSql]) -> Result<Option<EntrypointRow>, Fault> {
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params)?;
    rows.next()?.map(entrypoint_row).transpose()
}

/// What is called, or shown by itself, is as it was registered. Lists show the others, and this one can be removed.
fn intact(conn: &Connection, row: EntrypointRow) -> Result<EntrypointRow, Fault> {
    let sql = "SELECT checksum FROM entrypoints WHERE tenant_id = ?1 AND entrypoint_id = ?2";
    let checksum = conn.prepare_cached(sql)?.query_row([row.tenant.as_str(), row.id.as_str()], |row| row.get(0))?;
    row.check_written(checksum)?;
    Ok(row)
}

/// What is wrong with each, in words; none of it if a row of an earlier schema cannot tell.
pub(crate) fn problems(conn: &Connection) -> Result<Vec<String>, Fault> {
    let mut found = conn.prepare(select!(""))?;
    let mut rows = found.query([])?;
    let mut problems = Vec::new();
    while let Some(row) = rows.next()? {
        let checked = || Ok(entrypoint_row(row)?.check_written(row.get(14)?)?);
        problems.extend(damage(checked())?);
    }
    Ok(problems)
}

fn json(texts: &[String]) -> Result<String, Fault> {
    let text = serde_json::to_string(texts);
    Ok(text.map_err(|error| Error::Invalid { field: "tags".to_owned(), reason: error.to_string() })?)
}

fn own(conn: &Connection, tenant: &TenantId, id: &str) -> Result<Option<EntrypointRow>, Fault> {
    let sql = select!("WHERE tenant_id = ?1 AND entrypoint_id = ?2");
    one(conn, sql, &[&tenant.as_str(), &id])
}

pub(crate) fn get(conn: &Connection, scope: &Scope, id: &str) -> Result<Option<EntrypointRow>, Fault> {
    let found = match scope {
        Scope::System => one(conn, select!("WHERE entrypoint_id = ?1 ORDER BY tenant_id LIMIT 1"), &[&id]),
        Scope::Tenant(tenant) => match own(conn, tenant, id)? {
            Some(row) => Ok(Some(row)),
            None => Ok(own(conn, &TenantId::system(), id)?.filter(EntrypointRow::is_shared)),
        },
    };
    found?.map(|row| intact(conn, row)).transpose()
}

/// The one that is called by an address.
pub(crate) fn called(conn: &Connection, tenant: &TenantId, address: &str) -> Result<Option<EntrypointRow>, Fault> {
    find(conn, tenant, address)?.map(|row| intact(conn, row)).transpose()
}

fn find(conn: &Connection, tenant: &TenantId, address: &str) -> Result<Option<EntrypointRow>, Fault> {
    let sql = select!("WHERE tenant_id = ?1 AND address = ?2");
    match one(conn, sql, &[&tenant.as_str(), &address])? {
        Some(row) => Ok(Some(row)),
        None => Ok(one(conn, sql, &[&"_system", &address])?.filter(EntrypointRow::is_shared)),
    }
}

fn refuse(taken: Option<EntrypointRow>) -> Result<(), Fault> {
    taken.map_or(Ok(()), |row| Err(Error::EntrypointExists { id: row.id }.into()))
}

pub(crate) fn put(conn: &Connection, row: EntrypointRow) -> Result<EntrypointRow, Fault> {
    refuse(own(conn, &row.tenant, &row.id)?)?;
    refuse(find(conn, &row.tenant, &row.address)?)?;
    let row = EntrypointRow { revision: 1, ..row };
    let sql = "INSERT INTO entrypoints (tenant_id, entrypoint_id, owner_type, owner_id, address, version, status, \
               adapter, title, tags, created_at, updated_at, revision, document, checksum) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    conn.prepare_cached(sql)?.execute(params![
        row.tenant.as_str(),
        row.id,
        row.owner_type,
        row.owner_id,
        row.address,
        row.version,
        row.status,
        row.adapter,
        row.title,
        json(&row.tags)?,
        row.created_at.as_millis(),
        row.updated_at.as_millis(),
        int(row.revision),
        row.document,
        row.checksum(),
    ])?;
    Ok(row)
}

fn at_revision(conn: &Connection, tenant: &TenantId, id: &str, expected: u64) -> Result<EntrypointRow, Fault> {
    let row = own(conn, tenant, id)?.ok_or(Error::NotFound)?;
    if row.revision != expected {
        return Err(Error::RevisionMoved { id: row.id, expected, actual: row.revision }.into());
    }
    Ok(row)
}

pub(crate) fn update(conn: &Connection, row: EntrypointRow) -> Result<EntrypointRow, Fault> {
    let old = at_revision(conn, &row.tenant, &row.id, row.revision)?;
    if row.address != old.address {
        refuse(find(conn, &row.tenant, &row.address)?)?;
    }
    let row = old.changed(row);
    let sql = "UPDATE entrypoints SET address = ?3, version = ?4, status = ?5, adapter = ?6, title = ?7, tags = ?8, \
               updated_at = ?9, revision = ?10, document = ?11, owner_type = ?12, owner_id = ?13, checksum = ?14 \
               WHERE tenant_id = ?1 AND entrypoint_id = ?2";
    conn.prepare_cached(sql)?.execute(params![
        row.tenant.as_str(),
        row.id,
        row.address,
        row.version,
        row.status,
        row.adapter,
        row.title,
        json(&row.tags)?,
        row.updated_at.as_millis(),
        int(row.revision),
        row.document,
        row.owner_type,
        row.owner_id,
        row.checksum(),
    ])?;
    Ok(row)
}

pub(crate) fn remove(conn: &Connection, tenant: &TenantId, id: &str, expected: u64) -> Result<(), Fault> {
    at_revision(conn, tenant, id, expected)?;
    let sql = "DELETE FROM entrypoints WHERE tenant_id = ?1 AND entrypoint_id = ?2";
    conn.prepare_cached(sql)?.execute(params![tenant.as_str(), id])?;
    Ok(())
}

pub(crate) fn count(conn: &Connection, tenant: &TenantId) -> Result<u64, Fault> {
    let sql = "SELECT count(*) FROM entrypoints WHERE tenant_id = ?1 AND status <> 'archived'";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([tenant.as_str()])?;
    rows.next()?.map_or(Ok(0), |row| codec::count(row, 0))
}

pub(crate) fn list(
    conn: &Connection,
    scope: &Scope,
    query: &EntrypointQuery,
    bytes_max: usize,
) -> Result<Vec<EntrypointRow>, Fault> {
    let mut list = Vec::new();
    match scope {
        Scope::System => list_one(conn, "", None, query, bytes_max, &mut list)?,
        Scope::Tenant(tenant) => {
            list_one(conn, " AND tenant_id = :tenant", Some(tenant), query, bytes_max, &mut list)?;
            if *tenant != TenantId::system() {
                list_one(conn, concat!(" AND ", is_shared!()), None, query, bytes_max, &mut list)?;
            }
        }
    }
    query.sort(&mut list);
    let mut page = PageBytes::new(bytes_max);
    Ok(list.into_iter().take(query.limit as usize).take_while(|row| page.takes(row.document.len())).collect())
}

fn list_one(
    conn: &Connection,
    whose: &str,
    tenant: Option<&TenantId>,
    query: &EntrypointQuery,
    bytes_max: usize,
    list: &mut Vec<EntrypointRow>,
) -> Result<(), Fault> {
    let mut sql = format!("{}{whose}", select!("WHERE true"));
    let mut values: Vec<(&str, &dyn ToSql)> = Vec::new();
    let tenant = tenant.map(TenantId::as_str);
    if let Some(tenant) = &tenant {
        values.push((":tenant", tenant));
    }
    let some = |texts: &[String]| if texts.is_empty() { Ok(None) } else { json(texts).map(Some) };
    let (statuses, tags) = (some(&query.statuses)?, some(&query.tags)?);
    let value: Option<Box<dyn ToSql>> = query.after.as_ref().map(|after| match &after.value {
        SortValue::Time(at) => Box::new(at.as_millis()) as Box<dyn ToSql>,
        SortValue::Text(text) => Box::new(text.clone()),
    });
    let after = query.after.as_ref().map(|after| (after.id.as_str(), after.tenant.as_str()));
    macro_rules! filter {
        ($value:expr, $name:literal, $condition:literal) => {
            if let Some(value) = $value {
                sql.push_str($condition);
                values.push(($name, value));
            }
        };
    }
    filter!(&query.address, ":address", " AND address = :address");
    filter!(&query.address_prefix, ":prefix", " AND substr(address, 1, length(:prefix)) = :prefix");
    filter!(&statuses, ":statuses", " AND status IN (SELECT value FROM json_each(:statuses))");
    filter!(&query.owner_type, ":owner_type", " AND owner_type = :owner_type");
    filter!(&query.owner_id, ":owner_id", " AND owner_id = :owner_id");
    filter!(&query.subject, ":subject", " AND (owner_type <> 'user' OR owner_id = :subject)");
    filter!(&query.adapter, ":adapter", " AND adapter = :adapter");
    filter!(
        &tags,
        ":tags",
        " AND NOT EXISTS (SELECT 1 FROM json_each(:tags) asked \
         WHERE asked.value NOT IN (SELECT value FROM json_each(entrypoints.tags)))"
    );
    if query.exclude_archived {
        sql.push_str(" AND status <> 'archived'");
    }
    let column = match query.order {
        EntrypointOrder::Created => "created_at",
        EntrypointOrder::Updated => "updated_at",
        EntrypointOrder::Address => "address",
    };
    let (behind, direction) = if query.ascending { (">", "ASC") } else { ("<", "DESC") };
    if let (Some(value), Some((id, owner))) = (&value, &after) {
        sql.push_str(&format!(" AND ({column}, entrypoint_id, tenant_id) {behind} (:value, :id, :owner)"));
        values.extend([(":value", &**value as &dyn ToSql), (":id", id), (":owner", owner)]);
    }
    sql.push_str(&format!(
        " ORDER BY {column} {direction}, entrypoint_id {direction}, tenant_id {direction} LIMIT :limit"
    ));
    values.push((":limit", &query.limit));
    let mut found = conn.prepare_cached(&sql)?;
    let mut rows = found.query(&values[..])?;
    // What does not fit one page of this tenant's does not fit a page of two.
    let mut page = PageBytes::new(bytes_max);
    while let Some(row) = rows.next()? {
        let row = entrypoint_row(row)?;
        if !page.takes(row.document.len()) {
            break;
        }
        list.push(row);
    }
    Ok(())
}
