//! Copying the write-ahead log into the database file. Only the writer does it, after it has answered, so that no two
//! connections ever write and checkpoint at once.

use std::time::Duration;

use rusqlite::Connection;

/// Bytes in the log that are not in the file yet: worth copying when nobody waits, and when somebody does. Copying late
/// is cheaper in all, because a page that changed many times is copied once.
const BYTES_WHEN_IDLE: i64 = 4 * 1024 * 1024;
const BYTES_WHEN_BUSY: i64 = 32 * 1024 * 1024;
/// A log of this many bytes has been held back by readers; then the writer waits a moment for them, so that it can start
/// over at the log's beginning.
const BYTES_RESTART: i64 = 64 * 1024 * 1024;
const READER_PATIENCE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Checkpoints {
    page_bytes: i64,
    /// Do not wait for readers again before the log has this many bytes.
    restart_at: i64,
}

impl Checkpoints {
    pub(crate) fn of(conn: &Connection) -> rusqlite::Result<Self> {
        let page_bytes = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        Ok(Self { page_bytes, restart_at: 0 })
    }

    /// Copies if it is time. Says whether it did.
    pub(crate) fn run_if_due(&mut self, conn: &Connection, is_idle: bool, busy: Duration) -> rusqlite::Result<bool> {
        let (pages, copied) = pragma(conn, "PRAGMA wal_checkpoint(NOOP)")?;
        let (length, uncopied) = (pages * self.page_bytes, (pages - copied) * self.page_bytes);
        let due = if is_idle { BYTES_WHEN_IDLE } else { BYTES_WHEN_BUSY };
        if uncopied < due {
            return Ok(false);
        }
        crashpoint!("sqlite.checkpoint.before");
        if length < BYTES_RESTART.max(self.restart_at) {
            pragma(conn, "PRAGMA wal_checkpoint(PASSIVE)")?;
        } else {
            conn.busy_timeout(READER_PATIENCE)?;
            let restarted = pragma(conn, "PRAGMA wal_checkpoint(RESTART)");
            conn.busy_timeout(busy)?;
            restarted?;
            self.restart_at = length + BYTES_RESTART;
        }
        if length < BYTES_RESTART {
            self.restart_at = 0;
        }
        crashpoint!("sqlite.checkpoint.after");
        Ok(true)
    }
}

/// Copies everything and empties the log: the file alone is the store then. False if somebody who reads has kept it from that.
pub(crate) fn truncate(conn: &Connection) -> rusqlite::Result<bool> {
    conn.prepare_cached("PRAGMA wal_checkpoint(TRUNCATE)")?.query_row([], |row| Ok(row.get::<_, i64>(0)? == 0))
}

/// Pages in the log, and how many of them the file has.
fn pragma(conn: &Connection, sql: &str) -> rusqlite::Result<(i64, i64)> {
    conn.prepare_cached(sql)?.query_row([], |row| Ok((row.get(1)?, row.get(2)?)))
}
