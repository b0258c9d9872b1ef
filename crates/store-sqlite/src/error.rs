//! What an error of SQLite means: for the caller, and for how far it reaches.

use std::io::ErrorKind;

use rusqlite::{Connection, ErrorCode, ffi};
use servo_store::Error;

/// What a statement or a rule answered, before anybody judged it.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The store's rules refuse the call. Nothing is wrong with the database.
    Refused(Error),
    Sql(rusqlite::Error),
}

/// How far an error of the database reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// One statement.
    Job,
    /// The physical transaction: everybody in it has written nothing.
    Batch,
    /// The disk reported an error. What it holds is unknown, and asking it again proves nothing: a second sync may
    /// report success for pages that the first one lost.
    Store,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Refused(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sql(error)
    }
}

impl Fault {
    /// For callers that have no transaction to give up.
    pub(crate) fn into_error(self, conn: &Connection) -> Error {
        match self {
            Fault::Refused(error) => error,
            Fault::Sql(error) => judge(&error, os_error(conn)).1,
        }
    }
}

pub(crate) fn unavailable(detail: impl Into<String>) -> Error {
    Error::Unavailable { detail: detail.into(), maybe_written: false }
}

pub(crate) fn corrupt(detail: impl Into<String>) -> Error {
    Error::Corrupt { detail: detail.into() }
}

/// `os_error` is the operating system's last error on the connection; only I/O errors look at it.
pub(crate) fn judge(error: &rusqlite::Error, os_error: i32) -> (Reach, Error) {
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        // A value of another type than the schema says, or none where there must be one.
        return (Reach::Job, corrupt(error.to_string()));
    };
    let detail = error.to_string();
    match failure.code {
        ErrorCode::DiskFull => (Reach::Batch, Error::Full { detail }),
        ErrorCode::SystemIoFailure => match failure.extended_code {
            ffi::SQLITE_IOERR_NOMEM => (Reach::Batch, unavailable(detail)),
            // Only a write may be taken back; if a sync says so, pages are gone.
            ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE
                if no_space(&std::io::Error::from_raw_os_error(os_error)) =>
            {
                (Reach::Batch, Error::Full { detail })
            }
            _ => (Reach::Store, unavailable(with_cause(detail, os_error))),
        },
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => (Reach::Job, corrupt(detail)),
        // The statements keep every constraint; a broken one means that the file says something else than we know.
        ErrorCode::ConstraintViolation => (Reach::Job, corrupt(detail)),
        _ => (Reach::Batch, unavailable(detail)),
    }
}

/// A quota or a limit on file sizes is as good as a full disk.
pub(crate) fn no_space(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

fn with_cause(detail: String, os_error: i32) -> String {
    if os_error == 0 { detail } else { format!("{detail}: {}", std::io::Error::from_raw_os_error(os_error)) }
}

/// The operating system's error behind the connection's last I/O error.
#[expect(unsafe_code, reason = "rusqlite does not wrap sqlite3_system_errno")]
pub(crate) fn os_error(conn: &Connection) -> i32 {
    // SAFETY: the handle is open for as long as `conn` is borrowed, and the call only reads a number from it.
    unsafe { ffi::sqlite3_system_errno(conn.handle()) }
}

/// Whether an insert was refused by a UNIQUE constraint.
pub(crate) fn is_unique(error: &rusqlite::Error) -> bool {
    let unique = [ffi::SQLITE_CONSTRAINT_UNIQUE, ffi::SQLITE_CONSTRAINT_PRIMARYKEY];
    error.sqlite_error().is_some_and(|failure| unique.contains(&failure.extended_code))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOSPC: i32 = 28;
    const EIO: i32 = 5;

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn a_full_disk_is_full_and_a_failed_sync_stops_the_store() {
        assert!(matches!(judge(&failure(ffi::SQLITE_FULL), 0), (Reach::Batch, Error::Full { .. })));
        assert!(matches!(judge(&failure(ffi::SQLITE_IOERR_WRITE), ENOSPC), (Reach::Batch, Error::Full { .. })));
        for (code, errno) in [
            (ffi::SQLITE_IOERR_WRITE, EIO),
            (ffi::SQLITE_IOERR_FSYNC, EIO),
            // A sync that finds the disk full has lost pages that were handed over before.
            (ffi::SQLITE_IOERR_FSYNC, ENOSPC),
        ] {
            assert!(matches!(judge(&failure(code), errno), (Reach::Store, Error::Unavailable { .. })), "{code}");
        }
    }

    #[test]
    fn damage_is_named() {
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_CONSTRAINT_UNIQUE] {
            assert!(matches!(judge(&failure(code), 0), (Reach::Job, Error::Corrupt { .. })), "{code}");
        }
        assert!(matches!(judge(&failure(ffi::SQLITE_BUSY), 0), (Reach::Batch, Error::Unavailable { .. })));
    }
}
