//! Copying the write-ahead log into the database file. Only the writer does it, after it has answered, so that no two
//! connections ever write and checkpoint at once.

use std::time::Duration;

use rusqlite::Connection;

/// Pages in the log that are not in the file yet: worth copying when nobody waits, and when somebody does. Copying late
/// is cheaper in all, because a page that changed many times is copied once.
const PAGES_WHEN_IDLE: i64 = 1_000;
const PAGES_WHEN_BUSY: i64 = 8_000;
/// A log of this many pages (64 MB) has been held back by readers; then the writer waits a moment for them, so that it
/// can start over at the log's beginning.
const PAGES_RESTART: i64 = 16_000;
const READER_PATIENCE: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    /// Do not wait for readers again before the log has this many pages.
    restart_at: i64,
}

impl Checkpoints {
    /// Copies if it is time. Says whether it did.
    pub(crate) fn run_if_due(&mut self, conn: &Connection, is_idle: bool, busy: Duration) -> rusqlite::Result<bool> {
        let (pages, copied) = pragma(conn, "PRAGMA wal_checkpoint(NOOP)")?;
        let due = if is_idle { PAGES_WHEN_IDLE } else { PAGES_WHEN_BUSY };
        if pages - copied < due {
            return Ok(false);
        }
        crashpoint!("sqlite.checkpoint.before");
        if pages < PAGES_RESTART.max(self.restart_at) {
            pragma(conn, "PRAGMA wal_checkpoint(PASSIVE)")?;
        } else {
            conn.busy_timeout(READER_PATIENCE)?;
            let restarted = pragma(conn, "PRAGMA wal_checkpoint(RESTART)");
            conn.busy_timeout(busy)?;
            restarted?;
            self.restart_at = pages + PAGES_RESTART;
        }
        if pages < PAGES_RESTART {
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
