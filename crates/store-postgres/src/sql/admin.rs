//! Maintenance. Removing runs is in `remove`, looking for damage in `integrity`.

mod integrity;
mod remove;

use std::path::Path;

use async_trait::async_trait;
use servo_model::{RunId, Timestamp};
use servo_store::admin::{StoreInfo, check_import};
use servo_store::{AdminStore, Error, Integrity, Result, RunRow, Scope, StoredEvent};

use super::counts::Counts;
use super::{lock, log, runs};
use crate::append::NewRun;
use crate::error::{Phase, corrupt};
use crate::migrate::SCHEMA_VERSION;
use crate::pipeline::{Pipeline, params};
use crate::rows;
use crate::store::PostgresStore;

/// Payload bytes in one statement of an import.
const IMPORT_BYTES_MAX: usize = 4 * 1024 * 1024;

const INFO: &str = "SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size";

/// What durability rests on.
const SETTINGS: &str = "SELECT name, setting FROM pg_settings
    WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names', 'data_checksums',
        'wal_level', 'default_transaction_isolation')
    ORDER BY name COLLATE \"C\"";

const EPOCH: &str = "SELECT store_epoch::bigint AS epoch FROM meta";

const SECRET: &str = "SELECT secret FROM secret";

const QUARANTINE: &str = "UPDATE runs SET quarantined = $2 WHERE run_id = $1";
const NO_TIMER: &str = "DELETE FROM timers WHERE run_id = $1";
const NO_QUEUE: &str = "DELETE FROM queue WHERE run_id = $1";
const NO_OPEN_DISPATCH: &str = "DELETE FROM dispatches WHERE run_id = $1 AND state IN ('pending', 'notified')";

const RUN: &str = "SELECT run_id FROM runs WHERE run_id = $1";
const REQUEST: &str = "SELECT run_id FROM runs WHERE tenant_id = $1 AND request_key = $2";

#[async_trait]
impl AdminStore for PostgresStore {
    async fn info(&self) -> Result<StoreInfo> {
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let mut pipeline = Pipeline::new();
        let info = pipeline.query(INFO, params![]);
        let settings = pipeline.query(SETTINGS, params![]);
        let epoch = pipeline.query(EPOCH, params![]);
        let held_back = pipeline.query(log::HELD_BACK, params![self.core.injected_now()]);
        let answers = connection.ask(pipeline).await?;
        connection.release();
        let row = answers[info].rows.first().ok_or_else(|| corrupt("the version is missing"))?;
        let mut shown = Vec::new();
        for row in &answers[settings].rows {
            shown.push((rows::get(row, "name")?, rows::get(row, "setting")?));
        }
        for row in &answers[epoch].rows {
            shown.push(("store_epoch".to_owned(), rows::number(row, "epoch")?.to_string()));
        }
        let age = answers[held_back].rows.first().map_or(Ok(0), |row| rows::get::<i64>(row, "age"))?;
        shown.push(("xmin_age_ms".to_owned(), age.max(0).to_string()));
        Ok(StoreInfo {
            kind: "postgres",
            engine_version: rows::get(row, "version")?,
            schema_version: SCHEMA_VERSION,
            single_process: false,
            size_bytes: rows::number(row, "size")?,
            settings: shown,
        })
    }

    async fn secret(&self) -> Result<[u8; 32]> {
        let rows = self.engine_read(SECRET, params![]).await?;
        let row = rows.first().ok_or_else(|| corrupt("the secret is missing"))?;
        rows::get::<&[u8]>(row, "secret")?.try_into().map_err(|_| corrupt("the secret has the wrong length"))
    }

    async fn quarantine(&self, run_id: &RunId, reason: &str) -> Result<()> {
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(lock::RUNS, params![lock::runs([run_id])]);
        let marked = pipeline.query(QUARANTINE, params![run_id.as_str(), reason]);
        for sql in [NO_TIMER, NO_QUEUE, NO_OPEN_DISPATCH] {
            pipeline.query(sql, params![run_id.as_str()]);
        }
        let answers = connection.ask(pipeline).await?;
        if answers[marked].affected == 0 {
            connection.roll_back().await;
            return Err(Error::NotFound);
        }
        connection.commit(Pipeline::new()).await
    }

    async fn retire(&self, finished_before: Timestamp, limit: u32) -> Result<u32> {
        self.retire_runs(finished_before, limit).await
    }

    async fn delete_run(&self, scope: &Scope, run_id: &RunId) -> Result<()> {
        self.delete_one(scope, run_id).await
    }

    async fn trim_system(&self, before: Timestamp, limit: u32) -> Result<u32> {
        self.trim(before, limit).await
    }

    async fn import_run(&self, row: RunRow, events: Vec<StoredEvent>) -> Result<()> {
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let mut locks = vec![lock::run(&row.run_id)];
        locks.extend(row.request_key.map(|key| lock::request(&row.tenant, key)));
        locks.sort_unstable();
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(lock::RUNS, params![locks]);
        let run = pipeline.query(RUN, params![row.run_id.as_str()]);
        let key = row.request_key.map(|key| key.as_bytes().to_vec());
        let request = pipeline.query(REQUEST, params![row.tenant.as_str(), key]);
        let answers = connection.ask(pipeline).await?;
        let refused = if !answers[run].rows.is_empty() {
            Some(Error::RunExists { run_id: row.run_id.clone() })
        } else if let Some(earlier) = answers[request].rows.first() {
            Some(Error::RequestExists { run_id: rows::run_id(earlier, "run_id")? })
        } else {
            check_import(&row, &events).err()
        };
        if let Some(error) = refused {
            connection.roll_back().await;
            return Err(error);
        }
        let mut pipeline = Pipeline::new();
        runs::insert(&mut pipeline, &[NewRun { run_id: &row.run_id, tenant: &row.tenant, row: &row }])?;
        for chunk in chunks(&events) {
            log::import(&mut pipeline, &row.tenant, chunk)?;
        }
        if row.invocation {
            let mut counts = Counts::default();
            counts.add(&row.tenant, &row.plan_id, row.visible, 1);
            counts.send(&mut pipeline);
        }
        let commit = pipeline.plain("COMMIT");
        match connection.send(pipeline).await {
            Ok(_) => {
                connection.release();
                self.hints.sender().wrote();
                Ok(())
            }
            Err(failed) if failed.failure.is_refusal() => {
                connection.roll_back().await;
                Err(failed.failure.into_error(Phase::Open))
            }
            Err(failed) => Err(failed.into_error(commit)),
        }
    }

    async fn backup(&self, _path: &Path) -> Result<()> {
        self.core.check_open()?;
        Err(Error::Unsupported {
            what: "backup of a PostgreSQL database: use pg_dump --enable-row-security, or pg_basebackup",
        })
    }

    async fn integrity(&self) -> Result<Integrity> {
        self.find_damage().await
    }

    async fn close(&self) -> Result<()> {
        self.shut_down().await
    }
}

/// Runs of events whose payloads fit one statement, or single ones that do not.
fn chunks(events: &[StoredEvent]) -> Vec<&[StoredEvent]> {
    let (mut chunks, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (index, event) in events.iter().enumerate() {
        bytes += event.payload.len();
        if index > start && bytes > IMPORT_BYTES_MAX {
            chunks.push(&events[start..index]);
            (start, bytes) = (index, event.payload.len());
        }
    }
    chunks.push(&events[start..]);
    chunks
}
