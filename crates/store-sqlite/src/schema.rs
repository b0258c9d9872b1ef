//! Migrations: plain SQL, applied in order, each in one transaction and recorded with its checksum. There is no way back:
//! a store that a newer program has migrated is refused, not guessed at.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use servo_canon::Digest;
use servo_model::{RunId, Timestamp};
use servo_store::mem::system_row;
use servo_store::{Error, Result};

use crate::error::{Fault, corrupt, unavailable};
use crate::sql::runs;

struct Migration {
    version: u32,
    name: &'static str,
    sql: &'static str,
}

/// Never edited once released, only added to.
const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "init", sql: include_str!("../migrations/0001_init.sql") },
    Migration { version: 2, name: "runs", sql: include_str!("../migrations/0002_runs.sql") },
    Migration { version: 3, name: "functions", sql: include_str!("../migrations/0003_functions.sql") },
    Migration { version: 4, name: "lines", sql: include_str!("../migrations/0004_lines.sql") },
    Migration { version: 5, name: "entrypoints", sql: include_str!("../migrations/0005_entrypoints.sql") },
    Migration { version: 6, name: "identity", sql: include_str!("../migrations/0006_identity.sql") },
    Migration { version: 7, name: "fair", sql: include_str!("../migrations/0007_fair.sql") },
    Migration { version: 8, name: "run_numbers", sql: include_str!("../migrations/0008_run_numbers.sql") },
    Migration { version: 9, name: "counts", sql: include_str!("../migrations/0009_counts.sql") },
    Migration { version: 10, name: "left_dispatches", sql: include_str!("../migrations/0010_left_dispatches.sql") },
    Migration { version: 11, name: "packs", sql: include_str!("../migrations/0011_packs.sql") },
    Migration { version: 12, name: "checksums", sql: include_str!("../migrations/0012_checksums.sql") },
    Migration { version: 13, name: "families", sql: include_str!("../migrations/0013_families.sql") },
];

/// The newest schema that this program knows.
pub const SCHEMA_VERSION: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// "SRVO", in the file's header: tells our databases from others.
const APPLICATION_ID: i32 = 0x5352_564f;

/// Refuses files that are not ours or newer than us. Writes nothing.
pub(crate) fn check(conn: &Connection) -> std::result::Result<(), Fault> {
    let application: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && tables > 0 {
        return Err(corrupt("the file is a SQLite database, but not one of Servo").into());
    }
    let known: bool = conn.query_row(
        "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'",
        [],
        |row| row.get(0),
    )?;
    if !known {
        return Ok(());
    }
    let found: u32 = conn.query_row("SELECT coalesce(max(version), 0) FROM schema_migrations", [], |row| row.get(0))?;
    if found > SCHEMA_VERSION {
        return Err(Error::TooNew { found, supported: SCHEMA_VERSION }.into());
    }
    Ok(())
}

/// Brings the schema up to date.
pub(crate) fn migrate(conn: &Connection, now: Timestamp) -> std::result::Result<(), Fault> {
    let tx = begin(conn)?;
    // Together, so that a file with tables is never without our mark.
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_migrations (
             version    INTEGER NOT NULL PRIMARY KEY,
             name       TEXT NOT NULL,
             sha256     TEXT NOT NULL,
             applied_at INTEGER NOT NULL
         ) STRICT",
    )?;
    tx.commit()?;
    for migration in MIGRATIONS {
        let sha256 = Digest::of(migration.sql.as_bytes()).to_string();
        let recorded: Option<String> = conn
            .query_row("SELECT sha256 FROM schema_migrations WHERE version = ?1", [migration.version], |row| row.get(0))
            .optional()?;
        match recorded {
            Some(recorded) if recorded == sha256 => continue,
            Some(recorded) => {
                let Migration { version, name, .. } = migration;
                return Err(corrupt(format!(
                    "migration {version} ({name}) was applied with checksum {recorded}, and this program has {sha256}"
                ))
                .into());
            }
            None => apply(conn, migration, &sha256, now)?,
        }
    }
    Ok(())
}

fn apply(conn: &Connection, migration: &Migration, sha256: &str, now: Timestamp) -> std::result::Result<(), Fault> {
    let tx = begin(conn)?;
    tx.execute_batch(migration.sql)?;
    tx.execute(
        "INSERT INTO schema_migrations (version, name, sha256, applied_at) VALUES (?1, ?2, ?3, ?4)",
        params![migration.version, migration.name, sha256, now.as_millis()],
    )?;
    crashpoint!("sqlite.migration.before_commit");
    tx.commit()?;
    crashpoint!("sqlite.migration.after_commit");
    Ok(())
}

fn begin(conn: &Connection) -> rusqlite::Result<Transaction<'_>> {
    Transaction::new_unchecked(conn, TransactionBehavior::Immediate)
}

/// What every store has from the start: its secret and the system stream.
pub(crate) fn seed(conn: &Connection, now: Timestamp) -> std::result::Result<(), Fault> {
    let tx = begin(conn)?;
    let seeded: bool = tx.query_row("SELECT count(*) > 0 FROM meta WHERE key = 'secret'", [], |row| row.get(0))?;
    if !seeded {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| unavailable(format!("no randomness for the secret: {error}")))?;
        tx.execute("INSERT INTO meta (key, value) VALUES ('secret', ?1)", [&secret[..]])?;
        let created_at = now.to_string();
        tx.execute("INSERT INTO meta (key, value) VALUES ('created_at', ?1)", [created_at.as_bytes()])?;
    }
    if !runs::exists(&tx, &RunId::system())? {
        runs::insert(&tx, &system_row(now), Some(0))?;
    }
    tx.commit()?;
    Ok(())
}

pub(crate) fn secret(conn: &Connection) -> std::result::Result<[u8; 32], Fault> {
    let mut found = conn.prepare_cached("SELECT value FROM meta WHERE key = 'secret'")?;
    Ok(found.query_row([], |row| row.get(0))?)
}

/// The oldest library without the bug that loses commits when a checkpoint and a write meet.
const LIBRARY_MIN: (i32, i32, i32) = (3, 51, 3);

/// Refuses a library that may lose commits. `number` is SQLite's own: 3051003 is 3.51.3.
pub(crate) fn check_library(number: i32) -> Result<()> {
    let version = (number / 1_000_000, number / 1_000 % 1_000, number % 1_000);
    if version < LIBRARY_MIN {
        let (major, minor, patch) = version;
        let (need_major, need_minor, need_patch) = LIBRARY_MIN;
        return Err(unavailable(format!(
            "SQLite {major}.{minor}.{patch} can lose committed writes; \
             {need_major}.{need_minor}.{need_patch} or newer is needed"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_with_the_wal_reset_bug_are_refused() {
        for bad in [3_040_001, 3_051_002, 3_007_000, 2_008_017] {
            let error = check_library(bad).unwrap_err().to_string();
            assert!(error.contains("3.51.3"), "{error}");
        }
        for good in [3_051_003, 3_052_000, 3_054_001, 4_000_000] {
            assert!(check_library(good).is_ok(), "{good}");
        }
        assert!(check_library(rusqlite::version_number()).is_ok());
    }

    #[test]
    fn versions_count_from_one() {
        for (index, migration) in MIGRATIONS.iter().enumerate() {
            assert_eq!(migration.version as usize, index + 1);
        }
    }
}
