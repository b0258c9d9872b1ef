//! Entrypoints. Writers of one address take turns by its lock, whoever they are: a tenant may not take what the system
//! shares. Lists are read tenant by tenant, each in the order of an index, and put together.

mod list;

use async_trait::async_trait;
use servo_model::TenantId;
use servo_store::entrypoints::{EntrypointQuery, EntrypointRow, EntrypointStore};
use servo_store::page::PageBytes;
use servo_store::{Error, Result, Scope};
use tokio_postgres::Row;

use super::lock;
use crate::pipeline::{Answer, Param, Pipeline, params};
use crate::pool::Connection;
use crate::rows;
use crate::store::PostgresStore;

const SYSTEM: &str = "_system";

const BY_ID: &str = "SELECT * FROM entrypoints WHERE tenant_id = $1 AND entrypoint_id = $2";
const BY_ADDRESS: &str = "SELECT * FROM entrypoints WHERE tenant_id = $1 AND address = $2";
const ANYONES: &str = "SELECT * FROM entrypoints WHERE entrypoint_id = $1 ORDER BY entrypoint_id, tenant_id LIMIT 1";

const INSERT: &str =
    "INSERT INTO entrypoints (tenant_id, entrypoint_id, owner_type, owner_id, address, version, status,
        adapter, title, tags, created_at, updated_at, revision, document, checksum)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
const UPDATE: &str =
    "UPDATE entrypoints SET address = $3, version = $4, status = $5, adapter = $6, title = $7, tags = $8,
        updated_at = $9, revision = $10, document = $11, owner_type = $12, owner_id = $13, checksum = $14
    WHERE tenant_id = $1 AND entrypoint_id = $2";
const REMOVE: &str = "DELETE FROM entrypoints WHERE tenant_id = $1 AND entrypoint_id = $2";
const COUNT: &str = "SELECT count(*) AS count FROM entrypoints WHERE tenant_id = $1 AND status <> 'archived'";

/// What is called, or shown by itself, is as it was registered. Lists show the others, and this one can be removed.
pub(crate) fn intact(row: &Row) -> Result<EntrypointRow> {
    let found = entrypoint(row)?;
    found.check_written(rows::get(row, "checksum")?)?;
    Ok(found)
}

fn entrypoint(row: &Row) -> Result<EntrypointRow> {
    Ok(EntrypointRow {
        id: rows::get(row, "entrypoint_id")?,
        tenant: rows::tenant(row)?,
        owner_type: rows::get(row, "owner_type")?,
        owner_id: rows::get(row, "owner_id")?,
        address: rows::get(row, "address")?,
        version: rows::get(row, "version")?,
        status: rows::get(row, "status")?,
        adapter: rows::get(row, "adapter")?,
        title: rows::get(row, "title")?,
        tags: rows::get(row, "tags")?,
        document: rows::get(row, "document")?,
        created_at: rows::time(row, "created_at")?,
        updated_at: rows::time(row, "updated_at")?,
        revision: rows::number(row, "revision")?,
    })
}

/// The tenant's own row, else the system's if that is shared.
fn own_or_shared(
    own: &Answer,
    system: &Answer,
    read: fn(&Row) -> Result<EntrypointRow>,
) -> Result<Option<EntrypointRow>> {
    if let Some(row) = own.rows.first() {
        return read(row).map(Some);
    }
    let shared = system.rows.first().map(read).transpose()?;
    Ok(shared.filter(EntrypointRow::is_shared))
}

impl PostgresStore {
    /// Begins a transaction that changes entrypoints of a tenant, behind all others that change the same ones, and sees
    /// what the system shares.
    async fn change_entrypoint(
        &self,
        tenant: &TenantId,
        id: &str,
        address: Option<&str>,
        questions: Vec<(&'static str, Vec<Param<'_>>)>,
    ) -> Result<(Connection, Vec<Answer>)> {
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.tenant).await?;
        let mut locks = vec![lock::entrypoint(tenant, id)];
        locks.extend(address.map(lock::address));
        locks.sort_unstable();
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(super::SET_TENANTS, params![format!("{tenant},{SYSTEM}")]);
        let locked = pipeline.query(lock::RUNS, params![locks]);
        for (sql, params) in questions {
            pipeline.query(sql, params);
        }
        let answers = connection.ask(pipeline).await?.split_off(locked + 1);
        Ok((connection, answers))
    }

    async fn own_and_shared(&self, tenant: &TenantId, sql: &'static str, value: &str) -> Result<Option<EntrypointRow>> {
        let mut read = self.reading_with_shared(tenant);
        let own = read.query(sql, params![tenant.as_str(), value]);
        let system = read.query(sql, params![SYSTEM, value]);
        let answers = self.read(read).await?;
        own_or_shared(&answers[own], &answers[system], intact)
    }
}

/// The row if it is still at this revision.
fn at_revision(answer: &Answer, id: &str, expected: u64) -> Result<EntrypointRow> {
    let row = entrypoint(answer.rows.first().ok_or(Error::NotFound)?)?;
    if row.revision != expected {
        return Err(Error::RevisionMoved { id: id.to_owned(), expected, actual: row.revision });
    }
    Ok(row)
}

/// Commits what was decided, or gives up what was refused.
async fn end<T>(connection: Connection, decided: Result<(T, Pipeline<'_>)>) -> Result<T> {
    match decided {
        Ok((value, pipeline)) => connection.commit(pipeline).await.map(|()| value),
        Err(error) => {
            connection.roll_back().await;
            Err(error)
        }
    }
}

fn insertion(row: EntrypointRow, answers: &[Answer]) -> Result<(EntrypointRow, Pipeline<'static>)> {
    let earlier = match answers[0].rows.first() {
        Some(same) => Some(entrypoint(same)?),
        None => own_or_shared(&answers[1], &answers[2], entrypoint)?,
    };
    if let Some(earlier) = earlier {
        return Err(Error::EntrypointExists { id: earlier.id });
    }
    let row = EntrypointRow { revision: 1, ..row };
    let mut pipeline = Pipeline::new();
    let (written, checksum) = (row.clone(), row.checksum());
    let params = params![
        written.tenant.as_str().to_owned(),
        written.id,
        written.owner_type,
        written.owner_id,
        written.address,
        written.version,
        written.status,
        written.adapter,
        written.title,
        written.tags,
        written.created_at.as_millis(),
        written.updated_at.as_millis(),
        1_i64,
        written.document,
        checksum,
    ];
    pipeline.query(INSERT, params);
    Ok((row, pipeline))
}

fn change(row: EntrypointRow, answers: &[Answer]) -> Result<(EntrypointRow, Pipeline<'static>)> {
    let old = at_revision(&answers[0], &row.id, row.revision)?;
    if row.address != old.address
        && let Some(other) = own_or_shared(&answers[1], &answers[2], entrypoint)?
    {
        return Err(Error::EntrypointExists { id: other.id });
    }
    let row = old.changed(row);
    let mut pipeline = Pipeline::new();
    let (written, checksum) = (row.clone(), row.checksum());
    let params = params![
        written.tenant.as_str().to_owned(),
        written.id,
        written.address,
        written.version,
        written.status,
        written.adapter,
        written.title,
        written.tags,
        written.updated_at.as_millis(),
        rows::exact("revision", written.revision)?,
        written.document,
        written.owner_type,
        written.owner_id,
        checksum,
    ];
    pipeline.query(UPDATE, params);
    Ok((row, pipeline))
}

/// The row of that id, and who has the address.
fn standing(row: &EntrypointRow) -> Vec<(&'static str, Vec<Param<'_>>)> {
    vec![
        (BY_ID, params![row.tenant.as_str(), row.id.as_str()]),
        (BY_ADDRESS, params![row.tenant.as_str(), row.address.as_str()]),
        (BY_ADDRESS, params![SYSTEM, row.address.as_str()]),
    ]
}

#[async_trait]
impl EntrypointStore for PostgresStore {
    async fn put_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow> {
        row.check()?;
        let (connection, answers) =
            self.change_entrypoint(&row.tenant, &row.id, Some(&row.address), standing(&row)).await?;
        end(connection, insertion(row, &answers)).await
    }

    async fn get_entrypoint(&self, scope: &Scope, id: &str) -> Result<Option<EntrypointRow>> {
        match scope {
            Scope::Tenant(tenant) => self.own_and_shared(tenant, BY_ID, id).await,
            Scope::System => self.engine_read(ANYONES, params![id]).await?.first().map(intact).transpose(),
        }
    }

    async fn find_entrypoint(&self, tenant: &TenantId, address: &str) -> Result<Option<EntrypointRow>> {
        self.own_and_shared(tenant, BY_ADDRESS, address).await
    }

    async fn update_entrypoint(&self, row: EntrypointRow) -> Result<EntrypointRow> {
        row.check()?;
        let (connection, answers) =
            self.change_entrypoint(&row.tenant, &row.id, Some(&row.address), standing(&row)).await?;
        end(connection, change(row, &answers)).await
    }

    async fn remove_entrypoint(&self, tenant: &TenantId, id: &str, expected_revision: u64) -> Result<()> {
        let questions = vec![(BY_ID, params![tenant.as_str(), id])];
        let (connection, answers) = self.change_entrypoint(tenant, id, None, questions).await?;
        let decided = at_revision(&answers[0], id, expected_revision).map(|_| {
            let mut pipeline = Pipeline::new();
            pipeline.query(REMOVE, params![tenant.as_str(), id]);
            ((), pipeline)
        });
        end(connection, decided).await
    }

    async fn list_entrypoints(&self, scope: &Scope, query: &EntrypointQuery) -> Result<Vec<EntrypointRow>> {
        query.check()?;
        let bytes = self.page_bytes_max();
        let (read, pages) = match scope {
            Scope::System => {
                let mut read = self.reading(scope);
                let page = list::ask(&mut read, "$1::text IS NULL", None, query, bytes);
                (read, vec![page])
            }
            Scope::Tenant(tenant) => {
                let mut read = self.reading_with_shared(tenant);
                let mut pages = vec![list::ask(&mut read, "tenant_id = $1", Some(tenant.as_str()), query, bytes)];
                if tenant.as_str() != SYSTEM {
                    let shared = "tenant_id = $1 AND owner_type = 'system'";
                    pages.push(list::ask(&mut read, shared, Some(SYSTEM), query, bytes));
                }
                (read, pages)
            }
        };
        let answers = self.read(read).await?;
        let found = pages.iter().flat_map(|page| &answers[*page].rows);
        let mut list = found.map(entrypoint).collect::<Result<Vec<_>>>()?;
        query.sort(&mut list);
        let mut page = PageBytes::new(self.core.limits.page_bytes_max);
        Ok(list.into_iter().take(query.limit as usize).take_while(|row| page.takes(row.document.len())).collect())
    }

    async fn count_entrypoints(&self, tenant: &TenantId) -> Result<u64> {
        let scope = Scope::Tenant(tenant.clone());
        let mut read = self.reading(&scope);
        let count = read.query(COUNT, params![tenant.as_str()]);
        let answers = self.read(read).await?;
        let row = answers[count].rows.first().ok_or_else(|| crate::error::corrupt("a count is missing"))?;
        rows::number(row, "count")
    }
}
