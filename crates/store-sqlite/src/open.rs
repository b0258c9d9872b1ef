//! Opening: the folder, the lock, the file, and the settings that durability rests on. Each setting is read back,
//! because SQLite answers a setting it does not take with silence.

use std::fs::{DirBuilder, File};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use servo_store::{Error, Result};

use crate::backup::remove_partial;
use crate::config::Config;
use crate::error::{Fault, corrupt, judge, os_error, unavailable};
use crate::lock::Lock;
use crate::own::Same;
use crate::recover::recover;
use crate::redo::Redo;
use crate::sabotage::Sabotage;
use crate::{DATABASE_FILE, own, schema};

/// Nobody else writes, so this only bridges a person's shell on the file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Statements kept ready per connection; there are fewer than this.
const STATEMENTS_MAX: usize = 128;
/// Page caches in KiB (SQLite counts KiB as negative pages). They grow only as pages are touched.
const WRITER_CACHE_KIB: i64 = -6 * 1024;
const READER_CACHE_KIB: i64 = -2 * 1024;
/// Of a new file; one that is there keeps its own. A pack of a small run's events is about 3 KB, so that a page of 4 KB has room
/// for one, and most of what the applier does is writing pages (ADR 26). Not read back, for the sake of older files.
const PAGE_BYTES: u32 = 8 * 1024;
/// A log that grew while a long reader held it back is cut to this once it is copied.
const WAL_KEEP_BYTES: i64 = 64 * 1024 * 1024;

/// A store that is open and up to date, before its threads are started.
pub(crate) struct Opened {
    pub(crate) conn: Connection,
    pub(crate) redo: Redo,
    pub(crate) lock: Lock,
    pub(crate) sabotage: Sabotage,
    pub(crate) settings: Vec<(String, String)>,
}

pub(crate) fn open(config: &Config) -> Result<Opened> {
    schema::check_library(rusqlite::version_number())?;
    let sabotage = Sabotage::of(config)?;
    make_folder(&config.data_dir)?;
    let lock = Lock::take(&config.data_dir)?;
    own::prepare(&config.data_dir)?;
    remove_partial(&config.data_dir);
    let path = config.data_dir.join(DATABASE_FILE);
    let conn = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    let settings = prepare(&conn, config, sabotage).map_err(|fault| explain(fault, &conn, &path))?;
    let redo = recover(&conn, config, sabotage).map_err(|error| at(&path, error))?;
    Ok(Opened { conn, redo, lock, sabotage, settings })
}

/// A connection that only reads.
pub(crate) fn open_reader(database: &Same) -> Result<Connection> {
    let path = database.path();
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    database.check()?;
    let set = || -> rusqlite::Result<()> {
        conn.pragma_update(None, "query_only", true)?;
        conn.pragma_update(None, "cache_size", READER_CACHE_KIB)?;
        set_common(&conn)
    };
    match set() {
        Ok(()) => Ok(conn),
        Err(error) => Err(explain(error.into(), &conn, path)),
    }
}

/// A connection of one thread: SQLite need not lock it.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let opened = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    opened.map_err(|error| at(path, judge(&error, 0).1))
}

fn prepare(
    conn: &Connection,
    config: &Config,
    sabotage: Sabotage,
) -> std::result::Result<Vec<(String, String)>, Fault> {
    conn.busy_timeout(BUSY_TIMEOUT)?;
    schema::check(conn)?;
    // Before the file gets its first page.
    conn.pragma_update(None, "page_size", PAGE_BYTES)?;
    let settings = set_durable(conn, sabotage)?;
    if let Some(pages) = config.pages_max {
        conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    let now = (config.time)();
    schema::migrate(conn, now)?;
    schema::seed(conn, now)?;
    Ok(settings)
}

/// `FULL` syncs SQLite's log at every commit; with `NORMAL` a power cut may take the last commits back, in order.
pub(crate) fn set_synchronous(conn: &Connection, is_durable: bool, sabotage: Sabotage) -> rusqlite::Result<()> {
    conn.pragma_update(None, "synchronous", synchronous(is_durable, sabotage))
}

fn synchronous(is_durable: bool, sabotage: Sabotage) -> i64 {
    match () {
        () if sabotage.never_syncs() => 0,
        () if sabotage.syncs_rarely() || !is_durable => 1,
        () => 2,
    }
}

fn set_durable(conn: &Connection, sabotage: Sabotage) -> std::result::Result<Vec<(String, String)>, Fault> {
    let synchronous = synchronous(true, sabotage);
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", synchronous)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // Otherwise `INSERT OR REPLACE` would pass by the guard against deletion.
    conn.pragma_update(None, "recursive_triggers", true)?;
    // The writer copies the log into the file itself, after it has answered.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    conn.pragma_update_and_check(None, "journal_size_limit", WAL_KEEP_BYTES, |_| Ok(()))?;
    conn.pragma_update(None, "cache_size", WRITER_CACHE_KIB)?;
    set_common(conn)?;
    let mut settings = Vec::new();
    for (name, expected) in [
        ("journal_mode", "wal".to_owned()),
        ("synchronous", synchronous.to_string()),
        ("foreign_keys", "1".to_owned()),
        ("recursive_triggers", "1".to_owned()),
        ("wal_autocheckpoint", "0".to_owned()),
        ("mmap_size", "0".to_owned()),
    ] {
        let found = conn.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))?;
        let found = match found {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        };
        if found != expected {
            return Err(unavailable(format!("{name} is {found}, and {expected} is needed")).into());
        }
        settings.push((name.to_owned(), found));
    }
    Ok(settings)
}

fn set_common(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    // An I/O error on a mapped page would be a signal, not an answer.
    conn.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(()))?;
    // Functions and virtual tables named by a damaged schema are not run.
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    // Otherwise SQLite plans a kept statement anew whenever a bound value might change the plan: a third of a read's time.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(())
}

/// Makes the folder for its owner only, and makes sure that it is still there after a power cut.
pub(crate) fn make_folder(data_dir: &Path) -> Result<()> {
    let missing: Vec<_> = data_dir.ancestors().take_while(|folder| !folder.is_dir()).collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(data_dir).map_err(|error| unavailable(format!("{}: {error}", data_dir.display())))?;
    for folder in missing {
        match folder.parent() {
            Some(parent) if parent.as_os_str().is_empty() => sync_folder(Path::new("."))?,
            Some(parent) => sync_folder(parent)?,
            None => {}
        }
    }
    Ok(())
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| unavailable(format!("{}: {error}", folder.display())))
}

/// Names the file, and says in words what its first pages look like.
pub(crate) fn explain(fault: Fault, conn: &Connection, path: &Path) -> Error {
    if let Fault::Sql(rusqlite::Error::SqliteFailure(failure, _)) = &fault
        && failure.code == ErrorCode::NotADatabase
    {
        return corrupt(format!("{} is not a SQLite database", path.display()));
    }
    let error = match fault {
        Fault::Refused(error) => error,
        Fault::Sql(error) => judge(&error, os_error(conn)).1,
    };
    at(path, error)
}

fn at(path: &Path, error: Error) -> Error {
    let path = path.display();
    match error {
        Error::Corrupt { detail } => Error::Corrupt { detail: format!("{path}: {detail}") },
        Error::Full { detail } => Error::Full { detail: format!("{path}: {detail}") },
        Error::Unavailable { detail, maybe_written } => {
            Error::Unavailable { detail: format!("{path}: {detail}"), maybe_written }
        }
        other => other,
    }
}
