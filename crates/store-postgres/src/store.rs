//! The store's handle: connecting, the few ways in which calls use a connection, and closing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use servo_model::TenantId;
use servo_model::limits::Limits;
use servo_store::{Error, Fence, Result, Scope, TimeSource};
use tokio_postgres::Row;

use crate::access::Access;
use crate::batch::Batcher;
use crate::config::Config;
use crate::hint::Hints;
use crate::migrate;
use crate::pipeline::{Answer, Param, Pipeline, params};
use crate::pool::Pools;
use crate::sql;

/// A store in a PostgreSQL database. Any number of processes may share the database.
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) core: Arc<Core>,
    pub(crate) batcher: Batcher,
    pub(crate) hints: Hints,
}

/// What the handle and its tasks share.
pub(crate) struct Core {
    pub(crate) pools: Pools,
    pub(crate) limits: Limits,
    time: Option<TimeSource>,
    /// Sabotage: the reader of the log goes by id.
    pub(crate) reads_naively: bool,
    /// False by sabotage: queries leave it to row security to keep tenants apart.
    names_tenants: bool,
    /// False by sabotage: an authority that has passed on may still write.
    fences: bool,
    /// False by sabotage: events are written without a checksum.
    pub(crate) seals: bool,
    /// Sabotage: appends are answered before they are written.
    pub(crate) answers_early: bool,
    is_closed: AtomicBool,
}

impl PostgresStore {
    /// Migrates the database if it must be and opens the store. Needs a tokio runtime, and goes on needing it.
    pub async fn connect(config: Config) -> Result<Self> {
        let access = Access::new(&config)?;
        migrate::migrate(&config, &access).await?;
        let core = Arc::new(Core {
            pools: Pools::new(&config, &access)?,
            limits: config.limits.clone(),
            time: config.time.clone(),
            reads_naively: config.is_sabotaged("naive-outbox"),
            names_tenants: !config.is_sabotaged("unnamed-tenant") && !config.is_sabotaged("no-tenancy"),
            fences: !config.is_sabotaged("no-fence"),
            seals: !config.is_sabotaged("no-checksums"),
            answers_early: config.is_sabotaged("ack-before-commit"),
            is_closed: AtomicBool::new(false),
        });
        let hints = Hints::start(&config, &access, &core)?;
        let batcher = Batcher::start(&core, config.append_connections, &hints.sender());
        Ok(Self { core, batcher, hints })
    }

    /// Changes when new events of another process may be in the log; whoever writes in this one knows it. Only a hint: it may
    /// come late, twice or not at all, and whoever waits for it polls as well.
    pub fn subscribe(&self) -> tokio::sync::watch::Receiver<u64> {
        self.hints.subscribe()
    }

    /// Changes when another process gave the authority up. Only a hint, as above.
    pub fn subscribe_freed(&self) -> tokio::sync::watch::Receiver<u64> {
        self.hints.subscribe_freed()
    }

    pub(crate) async fn shut_down(&self) -> Result<()> {
        if self.core.is_closed.swap(true, Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        self.batcher.finish().await;
        self.hints.finish().await;
        self.core.pools.close();
        Ok(())
    }

    /// Begins to ask in the name of a tenant, or of the engine.
    pub(crate) fn reading<'a>(&self, scope: &'a Scope) -> Reading<'a> {
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
        let tenant = match scope {
            Scope::Tenant(tenant) => {
                pipeline.query(sql::SET_TENANTS, params![tenant.as_str()]);
                Some(tenant)
            }
            Scope::System => None,
        };
        let named = tenant.filter(|_| self.core.names_tenants);
        Reading { pipeline, is_tenants: tenant.is_some(), named }
    }

    /// The same where the tenant also sees what the system shares: every question says which rows those are.
    pub(crate) fn reading_with_shared<'a>(&self, tenant: &'a TenantId) -> Reading<'a> {
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
        pipeline.query(sql::SET_TENANTS, params![format!("{tenant},{}", TenantId::system())]);
        Reading { pipeline, is_tenants: true, named: Some(tenant).filter(|_| self.core.names_tenants) }
    }

    /// A question, or several, answered from one state of the database.
    pub(crate) async fn read(&self, reading: Reading<'_>) -> Result<Vec<Answer>> {
        self.core.check_open()?;
        let Reading { mut pipeline, is_tenants, .. } = reading;
        let pools = &self.core.pools;
        let connection = pools.borrow(if is_tenants { &pools.tenant } else { &pools.engine }).await?;
        pipeline.plain("COMMIT");
        let answers = connection.ask(pipeline).await?;
        connection.release();
        Ok(answers)
    }

    /// As SQL's number.
    pub(crate) fn page_bytes_max(&self) -> i64 {
        i64::try_from(self.core.limits.page_bytes_max).unwrap_or(i64::MAX)
    }

    /// One question of the engine's own.
    pub(crate) async fn engine_read(&self, sql: &'static str, params: Vec<Param<'_>>) -> Result<Vec<Row>> {
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let mut pipeline = Pipeline::new();
        pipeline.query(sql, params);
        let mut answers = connection.ask(pipeline).await?;
        connection.release();
        Ok(answers.swap_remove(0).rows)
    }

    /// One statement of the engine's own that writes and commits by itself.
    pub(crate) async fn engine_write(&self, sql: &'static str, params: Vec<Param<'_>>) -> Result<Answer> {
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let answer = connection.once(sql, params).await?;
        connection.release();
        Ok(answer)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.batcher.stop();
        self.hints.stop();
    }
}

impl Core {
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::SeqCst) { Err(Error::Closed) } else { Ok(()) }
    }

    /// The fence that a write is checked against: the one it carries.
    pub(crate) fn enforced(&self, fence: Option<Fence>) -> Option<Fence> {
        fence.filter(|_| self.fences)
    }

    /// `None` where the database's clock counts.
    pub(crate) fn injected_now(&self) -> Option<i64> {
        self.time.as_ref().map(|time| time().as_millis())
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("pools", &self.pools).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Statements that are read in one transaction.
pub(crate) struct Reading<'a> {
    pipeline: Pipeline<'a>,
    is_tenants: bool,
    named: Option<&'a TenantId>,
}

impl<'a> Reading<'a> {
    /// For queries, which name the tenant beside what row security does.
    pub(crate) fn tenant(&self) -> Option<&'a str> {
        self.named.map(TenantId::as_str)
    }

    pub(crate) fn query(&mut self, sql: &'static str, params: Vec<Param<'a>>) -> usize {
        self.pipeline.query(sql, params)
    }

    pub(crate) fn query_built(&mut self, sql: String, params: Vec<Param<'a>>) -> usize {
        self.pipeline.query_built(sql, params)
    }

    pub(crate) fn query_once(&mut self, sql: String, params: Vec<Param<'a>>) -> usize {
        self.pipeline.query_once(sql, params)
    }
}
