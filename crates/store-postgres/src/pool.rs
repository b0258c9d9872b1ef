//! Connections: three pools, a role each, and a guard that never hands on a connection in an unknown state.
//!
//! A connection logs in as the owner of the schema and takes its role once, when it is made. It keeps that role; which
//! tenants it may see is said anew in every transaction and forgotten at its end.

use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime,
};
use servo_store::Result;

use crate::access::Access;
use crate::config::Config;
use crate::error::{self, Phase};
use crate::migrate;
use crate::pipeline::{Answer, Param, Pipeline};
use crate::tls::Mode;

/// What this side waits beyond the server's own timeout before it gives a connection up.
const PATIENCE: Duration = Duration::from_secs(5);

/// A transaction that does nothing holds back every reader of the log, and one of a process that was paused in the middle
/// of it holds the locks that its successor waits for. Ours pause for as long as it takes to decide: milliseconds. An
/// append of a process that was only slow is tried again.
const IDLE_IN_TRANSACTION_MS: u128 = 500;

/// What one transaction of an append waits for a lock; the append itself waits for longer, by trying again. A paused
/// process cannot call back what it has sent: were this longer, its transactions that wait would get their locks one after
/// the other and hold each of them for as long as a session may be idle.
const APPEND_LOCK_MS: u128 = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    App,
    Engine,
}

#[derive(Debug)]
pub(crate) struct Pools {
    pub(crate) append: Pool,
    pub(crate) tenant: Pool,
    pub(crate) engine: Pool,
    /// How long a lock is waited for in all.
    pub(crate) lock_patience: Duration,
    patience: Duration,
    mode: Mode,
}

impl Pools {
    pub(crate) fn new(config: &Config, access: &Access) -> Result<Self> {
        let tenant_role = if config.is_sabotaged("no-tenancy") { Role::Engine } else { Role::App };
        let pool = |settings: &str, size| pool(config, access, settings, size);
        Ok(Self {
            append: pool(&session(config, Role::App, Some(APPEND_LOCK_MS)), config.append_connections)?,
            tenant: pool(&session(config, tenant_role, None), config.tenant_connections)?,
            engine: pool(&session(config, Role::Engine, None), config.engine_connections)?,
            lock_patience: lock_patience(config),
            patience: config.statement_timeout + PATIENCE,
            mode: access.mode(),
        })
    }

    pub(crate) async fn borrow(&self, pool: &Pool) -> Result<Connection> {
        let object = pool.get().await.map_err(|error| error::from_pool(error, self.mode))?;
        Ok(Connection { object: Some(object), patience: self.patience })
    }

    pub(crate) fn close(&self) {
        self.append.close();
        self.tenant.close();
        self.engine.close();
    }
}

/// A borrowed connection. It goes back to its pool only by `release`; dropped otherwise, by an error or because the
/// caller went away in the middle, it is closed, and with it any open transaction.
#[derive(Debug)]
pub(crate) struct Connection {
    object: Option<Object>,
    patience: Duration,
}

impl Connection {
    pub(crate) fn release(mut self) {
        drop(self.object.take());
    }

    pub(crate) fn client(&self) -> &ClientWrapper {
        self.object.as_ref().expect("only release and drop take it, and both end the connection")
    }

    /// Sends a pipeline. An error leaves the connection as it is: inside a refused transaction, or broken.
    pub(crate) async fn send(
        &self,
        pipeline: Pipeline<'_>,
    ) -> std::result::Result<Vec<Answer>, crate::pipeline::Failed> {
        pipeline.run(self.client(), self.patience).await
    }

    /// The same, where nothing of it can be kept: a read, or the part of a transaction before its commit.
    pub(crate) async fn ask(&self, pipeline: Pipeline<'_>) -> Result<Vec<Answer>> {
        self.send(pipeline).await.map_err(|failed| failed.failure.into_error(Phase::Open))
    }

    /// One statement that commits by itself.
    pub(crate) async fn once(&self, sql: &'static str, params: Vec<Param<'_>>) -> Result<Answer> {
        let mut pipeline = Pipeline::new();
        pipeline.query(sql, params);
        let answers = self.send(pipeline).await;
        let mut answers = answers.map_err(|failed| {
            let phase = if failed.failure.is_refusal() || !failed.was_sent { Phase::Open } else { Phase::Commit };
            failed.failure.into_error(phase)
        })?;
        Ok(answers.swap_remove(0))
    }

    /// Undoes the open transaction and gives the connection back; one that cannot even do that is closed.
    pub(crate) async fn roll_back(self) {
        let mut pipeline = Pipeline::new();
        pipeline.plain("ROLLBACK");
        if self.send(pipeline).await.is_ok() {
            self.release();
        }
    }

    /// Ends the transaction with `pipeline` and a COMMIT in one exchange, and gives the connection back.
    pub(crate) async fn commit(self, mut pipeline: Pipeline<'_>) -> Result<()> {
        let commit = pipeline.plain("COMMIT");
        match self.send(pipeline).await {
            Ok(_) => {
                self.release();
                Ok(())
            }
            Err(failed) => {
                let is_refusal = failed.failure.is_refusal();
                let error = failed.into_error(commit);
                if is_refusal {
                    self.roll_back().await;
                }
                Err(error)
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            drop(Object::take(object));
        }
    }
}

fn pool(config: &Config, access: &Access, settings: &str, size: usize) -> Result<Pool> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(access.driver.clone(), access.tls.clone(), recycling);
    let settings = settings.to_owned();
    let set_up = Hook::async_fn(move |client: &mut ClientWrapper, _| {
        let settings = settings.clone();
        Box::pin(async move { set_up(client, &settings).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(size.max(1))
        // The one that was used last: its process on the server has its plans and pages at hand, and often still runs.
        .queue_mode(QueueMode::Lifo)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(config.acquire_timeout))
        .create_timeout(Some(config.acquire_timeout))
        .recycle_timeout(Some(config.acquire_timeout))
        .post_create(set_up)
        .build()
        .map_err(|_| error::corrupt("the connection pool has no runtime"))
}

/// Before the role is taken, the owner notices whether the database is still the one it was: a connection that is made
/// after a failover finds another timeline.
async fn set_up(client: &ClientWrapper, settings: &str) -> std::result::Result<(), tokio_postgres::Error> {
    migrate::note_identity(client).await?;
    client.batch_execute(settings).await
}

/// Shorter than a statement's time, so that a batch that waits for one run's lock can still be tried run by run.
fn lock_patience(config: &Config) -> Duration {
    config.statement_timeout / 3
}

/// Row security needs the role. Plans must not depend on what the statistics say of a table that was empty when they were
/// made: each of our queries has an index that finds its rows in their order, and none should read a whole run or table.
fn session(config: &Config, role: Role, lock_ms_max: Option<u128>) -> String {
    let role = match role {
        Role::App => "servo_app",
        Role::Engine => "servo_engine",
    };
    let statement_ms = config.statement_timeout.as_millis();
    let lock_ms = lock_patience(config).as_millis();
    let lock_ms = lock_ms_max.map_or(lock_ms, |most| most.min(lock_ms));
    let commit = if config.is_sabotaged("asynchronous-commit") {
        "SET synchronous_commit = off"
    } else {
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    };
    format!(
        "SET search_path = servo;
         SET statement_timeout = {statement_ms};
         SET lock_timeout = {lock_ms};
         SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS};
         SET plan_cache_mode = force_generic_plan;
         SET enable_seqscan = off;
         SET enable_hashjoin = off;
         SET enable_mergejoin = off;
         SET enable_bitmapscan = off;
         SET enable_sort = off;
         SET enable_incremental_sort = off;
         SET jit = off;
         {commit};
         SET ROLE {role};"
    )
}
