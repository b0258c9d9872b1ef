//! The schema and its history: which migrations ran, with the checksums they had, under a lock; the two roles; and
//! whether the database is still the one that the log's positions were counted in.
//!
//! Runs as the user of the URL, who needs no superuser rights.

mod roles;

use deadpool_postgres::ClientWrapper;
use servo_canon::Digest;
use servo_model::Timestamp;
use servo_store::mem::system_row;
use servo_store::{Error, Result};
use tokio_postgres::Client;

use crate::access::Access;
use crate::config::Config;
use crate::error::{Failure, Phase, corrupt};
use crate::tasks;

/// In order, from 1. Never edited once released.
const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "initial", sql: include_str!("../migrations/0001_initial.sql") },
    Migration { version: 2, name: "runs", sql: include_str!("../migrations/0002_runs.sql") },
    Migration { version: 3, name: "functions", sql: include_str!("../migrations/0003_functions.sql") },
    Migration { version: 4, name: "lines", sql: include_str!("../migrations/0004_lines.sql") },
    Migration { version: 5, name: "entrypoints", sql: include_str!("../migrations/0005_entrypoints.sql") },
    Migration { version: 6, name: "identity", sql: include_str!("../migrations/0006_identity.sql") },
    Migration { version: 7, name: "fair", sql: include_str!("../migrations/0007_fair.sql") },
    Migration { version: 8, name: "expected", sql: include_str!("../migrations/0008_expected.sql") },
    Migration { version: 9, name: "events", sql: include_str!("../migrations/0009_events.sql") },
    Migration { version: 10, name: "checksums", sql: include_str!("../migrations/0010_checksums.sql") },
    Migration { version: 11, name: "families", sql: include_str!("../migrations/0011_families.sql") },
];

pub(crate) const SCHEMA_VERSION: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// PostgreSQL 15.0, as the server numbers itself.
pub(crate) const SERVER_VERSION_MIN: i32 = 150_000;

/// Any constant that all versions of this program share: whoever holds this lock migrates.
const MIGRATION_LOCK: i64 = 0x5345_5256_4f00_0001;

/// Another process may be migrating a large store.
const LOCK_WAIT_MS: u32 = 120_000;

struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
}

/// Brings the database to this program's schema, or says why it cannot.
pub(crate) async fn migrate(config: &Config, access: &Access) -> Result<()> {
    let (client, connection) = access.connect().await?;
    let connection = tasks::spawn(async move {
        // The client's calls report what happens to the connection.
        let _ = connection.await;
    });
    let result = migrate_on(&client, config).await;
    drop(client);
    let _ = connection.await;
    result
}

async fn migrate_on(client: &Client, config: &Config) -> Result<()> {
    check_server(client).await?;
    roles::ensure(client).await?;
    let sql = format!("SET lock_timeout = {LOCK_WAIT_MS}; SELECT pg_advisory_lock({MIGRATION_LOCK})");
    client.batch_execute(&sql).await.map_err(open)?;
    let result = apply(client, config).await;
    // The lock ends with the connection at the latest.
    let _ = client.batch_execute(&format!("SELECT pg_advisory_unlock({MIGRATION_LOCK})")).await;
    result
}

async fn check_server(client: &Client) -> Result<()> {
    let sql = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')";
    let row = client.query_one(sql, &[]).await.map_err(open)?;
    if row.get::<_, i32>(0) < SERVER_VERSION_MIN {
        return Err(Error::Unsupported { what: "PostgreSQL before version 15" });
    }
    if row.get::<_, &str>(1) != "UTF8" {
        return Err(Error::Unsupported { what: "a database whose encoding is not UTF8" });
    }
    Ok(())
}

async fn apply(client: &Client, config: &Config) -> Result<()> {
    let sql = "CREATE SCHEMA IF NOT EXISTS servo;
        SET search_path = servo;
        CREATE TABLE IF NOT EXISTS schema_migrations (
            version integer PRIMARY KEY,
            name text NOT NULL,
            checksum text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now()
        )";
    client.batch_execute(sql).await.map_err(open)?;
    let applied = client.query("SELECT version, checksum FROM schema_migrations ORDER BY version", &[]).await;
    let applied = applied.map_err(open)?;
    for row in &applied {
        let (version, checksum): (i32, &str) = (row.get(0), row.get(1));
        let known = MIGRATIONS.iter().find(|known| i64::from(known.version) == i64::from(version));
        match known {
            None => {
                let found = u32::try_from(version).unwrap_or(u32::MAX);
                return Err(Error::TooNew { found, supported: SCHEMA_VERSION });
            }
            Some(known) if known.checksum() != checksum => {
                return Err(corrupt(&format!("migration {version} is not the one that was applied")));
            }
            Some(_) => {}
        }
    }
    for migration in MIGRATIONS.iter().skip(applied.len()) {
        run(client, migration).await?;
    }
    first_rows(client, config).await
}

impl Migration {
    fn checksum(&self) -> String {
        Digest::of(self.sql.as_bytes()).to_string()
    }
}

/// The migration and its record in one transaction.
async fn run(client: &Client, migration: &Migration) -> Result<()> {
    let version = migration.version;
    let (name, checksum) = (migration.name, migration.checksum());
    let sql = format!(
        "BEGIN; {sql}; INSERT INTO schema_migrations (version, name, checksum) VALUES ({version}, '{name}', '{checksum}')",
        sql = migration.sql
    );
    let result = client.batch_execute(&sql).await;
    if result.is_err() {
        let _ = client.batch_execute("ROLLBACK").await;
        return result.map_err(open);
    }
    crashpoint!("postgres.migration.before_commit");
    client.batch_execute("COMMIT").await.map_err(open)?;
    crashpoint!("postgres.migration.after_commit");
    Ok(())
}

/// Rows that every store has: its identity, its secret and the system stream. Written once, then left alone.
async fn first_rows(client: &Client, config: &Config) -> Result<()> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|_| corrupt("the operating system gives no randomness"))?;
    let sql = format!("INSERT INTO meta (store_epoch, identity) SELECT 1, {IDENTITY} ON CONFLICT DO NOTHING");
    client.batch_execute(&sql).await.map_err(open)?;
    let sql = "INSERT INTO secret (secret) VALUES ($1) ON CONFLICT DO NOTHING";
    client.execute(sql, &[&secret.as_slice()]).await.map_err(open)?;
    let now = match &config.time {
        Some(time) => time().as_millis(),
        None => client.query_one(crate::sql::CLOCK, &[]).await.map_err(open)?.get(0),
    };
    let row = system_row(Timestamp::from_millis(now));
    let sql = "INSERT INTO runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible,
            created_at, changed_seq)
        VALUES ($1, $2, '', '', '', '', $3, $4, $5, 0) ON CONFLICT DO NOTHING";
    let (run, tenant) = (row.run_id.as_str(), row.tenant.as_str());
    let written = client.execute(sql, &[&run, &tenant, &row.status.as_str(), &row.visible.as_str(), &now]).await;
    written.map_err(open)?;
    Ok(())
}

/// Transaction ids are counted per cluster and may be given again after a failover that lost some; a dump carries them
/// to where they mean nothing.
const IDENTITY: &str = "(SELECT system_identifier FROM pg_control_system())
    || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
    || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";

/// Begins a new store epoch if the data is found in another place than the last epoch's. Called with the owner's rights
/// on every new connection, before it can write.
pub(crate) async fn note_identity(client: &ClientWrapper) -> std::result::Result<(), tokio_postgres::Error> {
    let sql = format!(
        "UPDATE servo.meta SET store_epoch = store_epoch + 1, identity = {IDENTITY}
         WHERE identity <> {IDENTITY}"
    );
    client.batch_execute(&sql).await
}

fn open(error: tokio_postgres::Error) -> Error {
    Failure::from(error).into_error(Phase::Open)
}
