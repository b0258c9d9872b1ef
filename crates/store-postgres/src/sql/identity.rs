//! Keys that callers show. Writers of one tenant's keys take turns by its lock, so that they are counted right.

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::limits::KEYS_PER_TENANT_MAX;
use servo_model::{KeyId, Timestamp};
use servo_store::identity::{IdentityStore, KeyRow, TOUCH_EVERY_MS, parse_roles, roles_text, too_many};
use servo_store::{Error, Result, Scope};
use tokio_postgres::Row;

use super::lock;
use crate::error::corrupt;
use crate::pipeline::{Pipeline, params};
use crate::rows;
use crate::store::PostgresStore;

const KNOWN: &str = "SELECT FROM api_keys WHERE tenant_id = $1 AND key_id = $2";
const LIVE: &str = "SELECT count(*) AS count FROM api_keys
    WHERE tenant_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)";
const INSERT: &str =
    "INSERT INTO api_keys (key_id, tenant_id, name, roles, prefix, digest, sealed, created_at, created_by,
        expires_at, revoked_at, last_used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

const FIND: &str = "SELECT * FROM api_keys WHERE digest = $1 ORDER BY key_id LIMIT 1";
const LIST: &str = "SELECT * FROM api_keys WHERE key_id < $1 ORDER BY key_id DESC LIMIT $2";
const LIST_OF: &str = "SELECT * FROM api_keys WHERE tenant_id = $3 AND key_id < $1 ORDER BY key_id DESC LIMIT $2";
const GET: &str = "SELECT * FROM api_keys WHERE key_id = $1 AND ($2::text IS NULL OR tenant_id = $2)";
const REVOKE: &str = "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, $3)
    WHERE key_id = $1 AND ($2::text IS NULL OR tenant_id = $2) RETURNING *";
const TOUCH: &str = "UPDATE api_keys SET last_used_at = $2
    WHERE key_id = $1 AND (last_used_at IS NULL OR last_used_at <= $2 - $3::bigint)";
const TRIM: &str = "DELETE FROM api_keys WHERE key_id IN (SELECT key_id FROM api_keys
    WHERE COALESCE(revoked_at, expires_at) < $1 ORDER BY COALESCE(revoked_at, expires_at), key_id LIMIT $2)";

fn key(row: &Row) -> Result<KeyRow> {
    Ok(KeyRow {
        id: KeyId::parse(rows::get(row, "key_id")?).map_err(|_| corrupt("a key's id cannot be read"))?,
        tenant: rows::tenant(row)?,
        name: rows::get(row, "name")?,
        roles: parse_roles(rows::get(row, "roles")?).ok_or_else(|| corrupt("a key has an unknown role"))?,
        prefix: rows::get(row, "prefix")?,
        digest: rows::digest(rows::get(row, "digest")?)?,
        sealed: rows::get(row, "sealed")?,
        created_at: rows::time(row, "created_at")?,
        created_by: rows::get(row, "created_by")?,
        expires_at: rows::optional_time(row, "expires_at")?,
        revoked_at: rows::optional_time(row, "revoked_at")?,
        last_used_at: rows::optional_time(row, "last_used_at")?,
    })
}

#[async_trait]
impl IdentityStore for PostgresStore {
    async fn put_key(&self, key: KeyRow) -> Result<()> {
        key.check()?;
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.tenant).await?;
        let (tenant, id, created_at) = (key.tenant.as_str(), key.id.as_str(), key.created_at.as_millis());
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(super::SET_TENANTS, params![tenant]);
        pipeline.query(lock::RUNS, params![vec![lock::keys(&key.tenant)]]);
        let known = pipeline.query(KNOWN, params![tenant, id]);
        let live = pipeline.query(LIVE, params![tenant, created_at]);
        let answers = connection.ask(pipeline).await?;
        let count = answers[live].rows.first().ok_or_else(|| corrupt("a count is missing"))?;
        if !answers[known].rows.is_empty() || rows::number(count, "count")? >= KEYS_PER_TENANT_MAX as u64 {
            connection.roll_back().await;
            return if answers[known].rows.is_empty() { Err(too_many()) } else { Ok(()) };
        }
        let digest = key.digest.as_bytes().as_slice();
        let time = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
        let mut pipeline = Pipeline::new();
        pipeline.query(
            INSERT,
            params![
                id,
                tenant,
                key.name.as_str(),
                roles_text(&key.roles),
                key.prefix.as_str(),
                digest,
                key.sealed.as_deref(),
                created_at,
                key.created_by.as_str(),
                time(key.expires_at),
                time(key.revoked_at),
                time(key.last_used_at)
            ],
        );
        connection.commit(pipeline).await
    }

    async fn find_key(&self, digest: Digest) -> Result<Option<KeyRow>> {
        let found = self.engine_read(FIND, params![digest.as_bytes().as_slice()]).await?;
        found.first().map(key).transpose()
    }

    async fn list_keys(&self, scope: &Scope, before: Option<KeyId>, limit: u32) -> Result<Vec<KeyRow>> {
        // Behind every id: none has a tilde.
        let before = before.as_ref().map_or("~", KeyId::as_str);
        let mut read = self.reading(scope);
        let found = match read.tenant() {
            Some(tenant) => read.query(LIST_OF, params![before, i64::from(limit), tenant]),
            None => read.query(LIST, params![before, i64::from(limit)]),
        };
        let answers = self.read(read).await?;
        answers[found].rows.iter().map(key).collect()
    }

    async fn get_key(&self, scope: &Scope, id: &KeyId) -> Result<Option<KeyRow>> {
        let mut read = self.reading(scope);
        let tenant = read.tenant();
        let found = read.query(GET, params![id.as_str(), tenant]);
        let answers = self.read(read).await?;
        answers[found].rows.first().map(key).transpose()
    }

    async fn revoke_key(&self, scope: &Scope, id: &KeyId, at: Timestamp) -> Result<KeyRow> {
        self.core.check_open()?;
        let pools = &self.core.pools;
        let tenant = match scope {
            Scope::Tenant(tenant) => Some(tenant.as_str()),
            Scope::System => None,
        };
        let connection = pools.borrow(if tenant.is_some() { &pools.tenant } else { &pools.engine }).await?;
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        if let Some(tenant) = tenant {
            pipeline.query(super::SET_TENANTS, params![tenant]);
        }
        let revoked = pipeline.query(REVOKE, params![id.as_str(), tenant, at.as_millis()]);
        let answers = connection.ask(pipeline).await?;
        let Some(row) = answers[revoked].rows.first() else {
            connection.roll_back().await;
            return Err(Error::NotFound);
        };
        let revoked = key(row)?;
        connection.commit(Pipeline::new()).await?;
        Ok(revoked)
    }

    async fn touch_key(&self, id: &KeyId, at: Timestamp) -> Result<()> {
        self.engine_write(TOUCH, params![id.as_str(), at.as_millis(), TOUCH_EVERY_MS]).await.map(drop)
    }

    async fn trim_keys(&self, before: Timestamp, limit: u32) -> Result<u32> {
        let answer = self.engine_write(TRIM, params![before.as_millis(), i64::from(limit)]).await?;
        Ok(u32::try_from(answer.affected).unwrap_or(limit))
    }
}
