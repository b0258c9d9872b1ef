//! Copies of the whole store: taken while it works, and put back into an empty folder.
//!
//! Both write beside the target and rename at the end, so that a file with the target's name is always whole.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, params};
use servo_store::{Error, Result};
use tempfile::NamedTempFile;

use crate::error::{Fault, corrupt, unavailable};
use crate::lock::Lock;
use crate::open::{self, make_folder, sync_folder};
use crate::sql::admin;
use crate::{DATABASE_FILE, REDO_FILES, apply, own, schema};

/// A copy that is not whole yet has a name like this, with anything in between.
const PREFIX: &str = ".servo-";
const SUFFIX: &str = ".partial";
/// Elsewhere a lock of ours on a file may be in the way of SQLite's own.
const LOCKS: bool = cfg!(target_os = "linux");

/// Added to the positions of a restored store. Events after the backup are lost, but readers may have seen them: no new
/// event may come to stand at or before a position that a reader has passed.
const POSITION_GAP: i64 = 1 << 32;

/// Copies what `conn` sees at this moment to a new file.
pub(crate) fn backup(conn: &Connection, path: &Path) -> Result<()> {
    refuse_existing(path, "path")?;
    let folder = folder_of(path);
    remove_partial(&folder);
    let file = copy(conn, &folder, apply::note_closed)?;
    crashpoint!("sqlite.backup.before_rename");
    put_in_place(file, path, &folder)
}

/// Puts a backup into a folder that has no store. The store must not be open, and the backup must be whole.
pub fn restore(backup: &Path, data_dir: &Path) -> Result<()> {
    schema::check_library(rusqlite::version_number())?;
    if !backup.is_file() {
        return Err(invalid("backup", "is not a file"));
    }
    let source = open::connect(backup, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    check(&source).map_err(|fault| open::explain(fault, &source, backup))?;
    make_folder(data_dir)?;
    let _lock = Lock::take(data_dir)?;
    let target = data_dir.join(DATABASE_FILE);
    for suffix in ["", "-wal", "-journal"] {
        let mut name = target.clone().into_os_string();
        name.push(suffix);
        refuse_existing(Path::new(&name), "data_dir")?;
    }
    for name in REDO_FILES {
        refuse_existing(&data_dir.join(name), "data_dir")?;
    }
    remove_partial(data_dir);
    let file = copy(&source, data_dir, |copy| {
        // Of an earlier version's backup, or of a file that was copied in another way.
        apply::note_closed(copy)?;
        skip_positions(copy)
    })?;
    crashpoint!("sqlite.restore.before_rename");
    put_in_place(file, &target, data_dir)
}

/// Removes what a copy has left that was ended before it was whole. Whoever still writes one has it locked.
pub(crate) fn remove_partial(folder: &Path) {
    let Ok(found) = std::fs::read_dir(folder) else { return };
    for path in found.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // SQLite's journal of one goes with it.
        let whole = name.strip_suffix("-journal").unwrap_or(name);
        if !whole.starts_with(PREFIX) || !whole.ends_with(SUFFIX) {
            continue;
        }
        let mut options = OpenOptions::new();
        let is_left = match options.read(true).custom_flags(own::no_follow()).open(path.with_file_name(whole)) {
            Ok(file) => LOCKS && file.try_lock().is_ok(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if is_left && let Err(error) = std::fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "what an interrupted backup has left could not be removed");
        }
    }
}

fn check(source: &Connection) -> std::result::Result<(), Fault> {
    schema::check(source)?;
    let is_store = source.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'")?.exists([])?;
    if !is_store {
        return Err(corrupt("the file has no store in it").into());
    }
    match admin::integrity(source)?.problems.first() {
        None => Ok(()),
        Some(problem) => Err(corrupt(problem.clone()).into()),
    }
}

/// The counter of `events` knows every position that was given. Packs are asked nevertheless: a position that is given
/// twice would be noticed by nobody.
fn skip_positions(copy: &Connection) -> rusqlite::Result<()> {
    let packed = copy.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'packs'")?.exists([])?;
    let sql = if packed { "SELECT coalesce(max(last_position), 0) FROM packs" } else { "SELECT 0" };
    let last: i64 = copy.query_row(sql, [], |row| row.get(0))?;
    let skipped = copy.execute(
        "UPDATE sqlite_sequence SET seq = max(seq, ?1) + ?2 WHERE name = 'events'",
        params![last, POSITION_GAP],
    )?;
    if skipped == 0 {
        copy.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?1)", params![last + POSITION_GAP])?;
    }
    Ok(())
}

/// One snapshot of the source as a file without a write-ahead log, on the disk.
fn copy(
    source: &Connection,
    folder: &Path,
    adapt: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<NamedTempFile> {
    let failed = |error: std::io::Error| unavailable(format!("{}: {error}", folder.display()));
    let file = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder).map_err(failed)?;
    if LOCKS {
        // Says that it is in use: see `remove_partial`.
        file.as_file().try_lock().map_err(|error| failed(error.into()))?;
    }
    let mut target = open::connect(file.path(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let copied = copy_pages(source, &mut target, adapt);
    copied.map_err(|fault| open::explain(fault, &target, file.path()))?;
    target.close().map_err(|(target, error)| open::explain(error.into(), &target, file.path()))?;
    File::open(file.path()).and_then(|file| file.sync_all()).map_err(failed)?;
    Ok(file)
}

fn copy_pages(
    source: &Connection,
    target: &mut Connection,
    adapt: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> std::result::Result<(), Fault> {
    // The whole file is synced at the end; until then nobody knows it.
    target.pragma_update(None, "synchronous", "off")?;
    let pages = Backup::new(source, target)?;
    // All pages in one step: the source stays at one moment while others write on.
    match pages.step(-1)? {
        StepResult::Done => {}
        other => return Err(unavailable(format!("the copy did not finish: {other:?}")).into()),
    }
    drop(pages);
    target.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
    adapt(target)?;
    Ok(())
}

fn put_in_place(file: NamedTempFile, path: &Path, folder: &Path) -> Result<()> {
    file.persist_noclobber(path).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => invalid("path", "exists already"),
        _ => unavailable(format!("{}: {}", path.display(), error.error)),
    })?;
    sync_folder(folder)
}

fn refuse_existing(path: &Path, field: &str) -> Result<()> {
    match path.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(invalid(field, &format!("{} exists already", path.display()))),
        Err(error) => Err(unavailable(format!("{}: {error}", path.display()))),
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn invalid(field: &str, reason: &str) -> Error {
    Error::Invalid { field: field.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::events;
    use crate::sql::events::fixture::{Filled, packed, row};

    #[test]
    fn positions_of_packs_are_skipped_too() {
        for plans in [&[packed(0), row(0), packed(0)][..], &[packed(0), packed(0), packed(1)]] {
            let mut filled = Filled::new();
            filled.flush(plans);
            skip_positions(&filled.conn).unwrap();
            assert_eq!(events::next_position(&filled.conn).unwrap(), 3 + POSITION_GAP + 1);
            filled.conn.execute_batch("DROP TABLE packs; DELETE FROM sqlite_sequence").unwrap();
            skip_positions(&filled.conn).unwrap();
            let seq: i64 = filled.conn.query_row("SELECT seq FROM sqlite_sequence", [], |row| row.get(0)).unwrap();
            assert_eq!(seq, POSITION_GAP, "a backup of an earlier schema has no packs");
        }
    }
}
