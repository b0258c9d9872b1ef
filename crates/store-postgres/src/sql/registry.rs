//! Functions, their versions and aliases. Writers of one function take turns by its lock.

use async_trait::async_trait;
use servo_model::limits::ALIASES_PER_FUNCTION_MAX;
use servo_model::{AliasName, FunctionName, TenantId, Timestamp};
use servo_store::registry::{AliasRow, FunctionVersion, Publication, RegistryStore};
use servo_store::{Error, Result, Scope};
use tokio_postgres::Row;

use super::{lock, now};
use crate::error::corrupt;
use crate::pipeline::{Answer, Param, Pipeline, params};
use crate::pool::Connection;
use crate::rows;
use crate::store::PostgresStore;

const NOW: &str = concat!("SELECT ", now!(), " AS now");

const GET: &str = "SELECT v.* FROM function_versions v WHERE v.tenant_id = $1 AND v.name = $2
    AND v.version = COALESCE($3::bigint, (SELECT f.latest FROM functions f WHERE f.tenant_id = $1 AND f.name = $2))";

/// A page of versions, ended early where the documents exceed `$bytes`, a parameter.
macro_rules! version_page {
    ($from:literal, $order:literal, $bytes:literal) => {
        concat!(
            "SELECT v.* FROM (SELECT v.*, row_number() OVER page AS number,
                    sum(octet_length(v.document)) OVER page AS total FROM (SELECT v.* ",
            $from,
            ") v WINDOW page AS (ORDER BY ",
            $order,
            " ROWS UNBOUNDED PRECEDING)) v WHERE v.number = 1 OR v.total <= ",
            $bytes,
            "::bigint ORDER BY ",
            $order
        )
    };
}

const LIST: &str = version_page!(
    "FROM functions f
     JOIN function_versions v ON v.tenant_id = f.tenant_id AND v.name = f.name AND v.version = f.latest
     WHERE (f.tenant_id, f.name) > ($1, $2) AND (f.tenant_id, f.name) < ($3, $4)
     ORDER BY f.tenant_id, f.name LIMIT $5",
    "v.tenant_id, v.name",
    "$6"
);

const VERSIONS: &str = version_page!(
    "FROM function_versions v
     WHERE (v.tenant_id, v.name, v.version) >= ($1, $2, 0) AND (v.tenant_id, v.name, v.version) < ($1, $2, $3)
     ORDER BY v.tenant_id DESC, v.name DESC, v.version DESC LIMIT $4",
    "v.tenant_id DESC, v.name DESC, v.version DESC",
    "$5"
);

const PUT: &str = "INSERT INTO functions (tenant_id, name, latest) VALUES ($1, $2, $3)
    ON CONFLICT (tenant_id, name) DO UPDATE SET latest = EXCLUDED.latest";
const PUT_VERSION: &str = "INSERT INTO function_versions (tenant_id, name, version, digest, document, created_at) VALUES ($1, $2, $3, $4, $5, $6)";

/// In this order: what refers goes first. The last one says whether the function was there.
const REMOVE: [&str; 3] = [
    "DELETE FROM function_aliases WHERE tenant_id = $1 AND name = $2",
    "DELETE FROM function_versions WHERE tenant_id = $1 AND name = $2",
    "DELETE FROM functions WHERE tenant_id = $1 AND name = $2",
];

const HAS_VERSION: &str = "SELECT FROM function_versions WHERE tenant_id = $1 AND name = $2 AND version = $3";
const OTHER_ALIASES: &str =
    "SELECT count(*) AS count FROM function_aliases WHERE tenant_id = $1 AND name = $2 AND alias <> $3";
const PUT_ALIAS: &str = "INSERT INTO function_aliases (tenant_id, name, alias, version, changed_at)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant_id, name, alias) DO UPDATE SET version = EXCLUDED.version, changed_at = EXCLUDED.changed_at";
const ALIASES: &str = "SELECT alias, version, changed_at FROM function_aliases
    WHERE tenant_id = $1 AND name = $2 ORDER BY alias";
const ALIAS: &str = "SELECT alias, version, changed_at FROM function_aliases
    WHERE tenant_id = $1 AND name = $2 AND alias = $3";
const REMOVE_ALIAS: &str = "DELETE FROM function_aliases WHERE tenant_id = $1 AND name = $2 AND alias = $3";

fn version(row: &Row) -> Result<FunctionVersion> {
    Ok(FunctionVersion {
        tenant: rows::tenant(row)?,
        name: FunctionName::parse(rows::get(row, "name")?).map_err(|_| corrupt("a function's name cannot be read"))?,
        version: rows::number(row, "version")?,
        digest: rows::digest(rows::get(row, "digest")?)?,
        document: rows::get(row, "document")?,
        created_at: rows::time(row, "created_at")?,
    })
}

fn alias_row(row: &Row) -> Result<AliasRow> {
    Ok(AliasRow {
        alias: AliasName::parse(rows::get(row, "alias")?).map_err(|_| corrupt("an alias cannot be read"))?,
        version: rows::number(row, "version")?,
        changed_at: rows::time(row, "changed_at")?,
    })
}

impl PostgresStore {
    /// Begins a transaction of a tenant that changes a function, behind all others that do, and asks its first questions.
    /// The first answer is the time.
    async fn change_function(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        questions: Vec<(&'static str, Vec<Param<'_>>)>,
    ) -> Result<(Connection, Timestamp, Vec<Answer>)> {
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.tenant).await?;
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(super::SET_TENANTS, params![tenant.as_str()]);
        pipeline.query(lock::RUNS, params![vec![lock::function(tenant, name)]]);
        let first = pipeline.query(NOW, params![self.core.injected_now()]);
        for (sql, params) in questions {
            pipeline.query(sql, params);
        }
        let mut answers = connection.ask(pipeline).await?.split_off(first);
        let clock = answers.remove(0);
        let now = clock.rows.first().ok_or_else(|| corrupt("the clock is missing"))?;
        Ok((connection, rows::time(now, "now")?, answers))
    }

    async fn tenant_read(&self, tenant: &TenantId, sql: &'static str, params: Vec<Param<'_>>) -> Result<Vec<Row>> {
        let scope = Scope::Tenant(tenant.clone());
        let mut read = self.reading(&scope);
        let found = read.query(sql, params);
        let mut answers = self.read(read).await?;
        Ok(answers.swap_remove(found).rows)
    }
}

/// Ends a transaction that removed something, or found nothing to remove.
async fn removed(connection: Connection, count: u64) -> Result<()> {
    if count == 0 {
        connection.roll_back().await;
        return Err(Error::NotFound);
    }
    connection.commit(Pipeline::new()).await
}

#[async_trait]
impl RegistryStore for PostgresStore {
    async fn put_function(&self, tenant: &TenantId, name: &FunctionName, document: &str) -> Result<FunctionVersion> {
        let publication = Publication::of(document)?;
        let latest = vec![(GET, params![tenant.as_str(), name.as_str(), None::<i64>])];
        let (connection, now, answers) = self.change_function(tenant, name, latest).await?;
        let latest = answers[0].rows.first().map(version).transpose()?;
        let next = publication.version(latest.as_ref().map(|latest| (latest.version, latest.digest)));
        let next = match (next, latest) {
            (Ok(Some(next)), _) => next,
            (Ok(None), Some(latest)) => {
                connection.roll_back().await;
                return Ok(latest);
            }
            (Ok(None), None) => return Err(corrupt("a function has no latest version")),
            (Err(error), _) => {
                connection.roll_back().await;
                return Err(error);
            }
        };
        let Publication { digest, document } = publication;
        let number = rows::exact("version", next)?;
        let mut pipeline = Pipeline::new();
        pipeline.query(PUT, params![tenant.as_str(), name.as_str(), number]);
        let bytes = digest.as_bytes().as_slice();
        let created = now.as_millis();
        let params = params![tenant.as_str(), name.as_str(), number, bytes, document.as_str(), created];
        pipeline.query(PUT_VERSION, params);
        connection.commit(pipeline).await?;
        let (tenant, name) = (tenant.clone(), name.clone());
        Ok(FunctionVersion { tenant, name, version: next, digest, document, created_at: now })
    }

    async fn get_function(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        number: Option<u64>,
    ) -> Result<Option<FunctionVersion>> {
        let params = params![tenant.as_str(), name.as_str(), number.map(rows::bound)];
        self.tenant_read(tenant, GET, params).await?.first().map(version).transpose()
    }

    async fn list_functions(
        &self,
        scope: &Scope,
        after: Option<(TenantId, FunctionName)>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>> {
        let after = after.as_ref().map_or(("", ""), |(tenant, name)| (tenant.as_str(), name.as_str()));
        // Behind every name: none has a tilde.
        let (from, until) = match scope {
            Scope::System => (after, ("~", "~")),
            Scope::Tenant(tenant) => (after.max((tenant.as_str(), "")), (tenant.as_str(), "~")),
        };
        let mut read = self.reading(scope);
        let params = params![from.0, from.1, until.0, until.1, i64::from(limit), self.page_bytes_max()];
        let found = read.query(LIST, params);
        let answers = self.read(read).await?;
        answers[found].rows.iter().map(version).collect()
    }

    async fn list_versions(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>> {
        let before = before.map_or(i64::MAX, rows::bound);
        let params = params![tenant.as_str(), name.as_str(), before, i64::from(limit), self.page_bytes_max()];
        self.tenant_read(tenant, VERSIONS, params).await?.iter().map(version).collect()
    }

    async fn remove_function(&self, tenant: &TenantId, name: &FunctionName) -> Result<()> {
        let removal = REMOVE.map(|sql| (sql, params![tenant.as_str(), name.as_str()]));
        let (connection, _, answers) = self.change_function(tenant, name, Vec::from(removal)).await?;
        let gone = answers.last().map_or(0, |answer| answer.affected);
        removed(connection, gone).await
    }

    async fn put_alias(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        alias: &AliasName,
        version: u64,
    ) -> Result<AliasRow> {
        let number = rows::bound(version);
        let questions = vec![
            (HAS_VERSION, params![tenant.as_str(), name.as_str(), number]),
            (OTHER_ALIASES, params![tenant.as_str(), name.as_str(), alias.as_str()]),
        ];
        let (connection, now, answers) = self.change_function(tenant, name, questions).await?;
        let others = answers[1].rows.first().ok_or_else(|| corrupt("a count is missing"))?;
        let refused = if answers[0].rows.is_empty() {
            Some(Error::NotFound)
        } else if rows::number(others, "count")? >= ALIASES_PER_FUNCTION_MAX as u64 {
            Some(Error::Limit { what: "the aliases of one function", limit: ALIASES_PER_FUNCTION_MAX as u64 })
        } else {
            None
        };
        if let Some(error) = refused {
            connection.roll_back().await;
            return Err(error);
        }
        let mut pipeline = Pipeline::new();
        let params = params![tenant.as_str(), name.as_str(), alias.as_str(), number, now.as_millis()];
        pipeline.query(PUT_ALIAS, params);
        connection.commit(pipeline).await?;
        Ok(AliasRow { alias: alias.clone(), version, changed_at: now })
    }

    async fn get_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<Option<AliasRow>> {
        let params = params![tenant.as_str(), name.as_str(), alias.as_str()];
        self.tenant_read(tenant, ALIAS, params).await?.first().map(alias_row).transpose()
    }

    async fn list_aliases(&self, tenant: &TenantId, name: &FunctionName) -> Result<Vec<AliasRow>> {
        let found = self.tenant_read(tenant, ALIASES, params![tenant.as_str(), name.as_str()]).await?;
        found.iter().map(alias_row).collect()
    }

    async fn remove_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<()> {
        let removal = vec![(REMOVE_ALIAS, params![tenant.as_str(), name.as_str(), alias.as_str()])];
        let (connection, _, answers) = self.change_function(tenant, name, removal).await?;
        removed(connection, answers[0].affected).await
    }
}
