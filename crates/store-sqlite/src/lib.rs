//! The SQLite store: one file, one process, one writer thread.
//!
//! - [`SqliteStore`] is the handle. Every write becomes a job for the `writer` thread. What happens often (appends,
//!   cursors, audit entries, log lines) it decides on what it knows, writes many callers' changes into the `redo` with
//!   one sync, and answers. What is `ahead` of the database is put there (`apply`) by the `applier`, many groups in one
//!   transaction; jobs of other kinds run there as well.
//! - Reads run on `reader` threads with connections of their own, after the database has all that was answered
//!   (`progress`), so no async thread ever waits for the disk.
//! - `open` locks the folder, checks the library and the file, and sets what durability rests on; `schema` migrates;
//!   `recover` brings the database up to what the redo file has after a crash.
//! - `sql` has the statements, a file per role, under the same names as in the Postgres store.
//! - [`restore`] puts a backup into an empty folder.
//!
//! The rules of every call are written at the traits in `servo_store`. What this crate adds: nothing that was answered
//! is lost by a crash or a power cut, a full disk refuses a write and keeps the rest, and an error of the disk itself
//! stops all writing, because nobody can know then what is on it.

// First, so that the others see its macro.
#[macro_use]
mod crashpoint;

mod ahead;
mod apply;
mod backup;
mod bytes;
mod codec;
mod config;
mod error;
mod health;
mod kept;
mod lock;
mod open;
mod own;
mod pack;
mod progress;
mod reader;
mod recover;
mod redo;
mod sabotage;
mod schema;
mod sql;
mod stats;
mod store;
mod tail;
mod touched;
mod traits;
mod writer;

pub use backup::restore;
pub use config::Config;
#[cfg(feature = "sabotage")]
pub use crashpoint::CRASH_POINTS;
pub use schema::SCHEMA_VERSION;
pub use stats::Stats;
pub use store::SqliteStore;

/// The redo file inside the data folder: what was answered and may not be in the database yet. A store that was closed has
/// none.
pub const REDO_FILES: [&str; 2] = ["servo.redo-a", "servo.redo-b"];
/// The database inside the data folder.
pub const DATABASE_FILE: &str = "servo.db";
