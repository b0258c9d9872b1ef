//! The SQLite store: one file, one process, one writer thread.
//!
//! - [`SqliteStore`] is the handle. Every write becomes a job for the `writer` thread, which commits many jobs in one
//!   physical transaction and answers each after the commit that holds its work. Reads run on `reader` threads with
//!   connections of their own, so no async thread ever waits for the disk.
//! - `open` locks the folder, checks the library and the file, and sets what durability rests on; `schema` migrates.
//! - `sql` has the statements, a file per role, under the same names as in the Postgres store.
//! - [`restore`] puts a backup into an empty folder.
//!
//! The rules of every call are written at the traits in `servo_store`. What this crate adds: nothing that was answered
//! is lost by a crash or a power cut, a full disk refuses a write and keeps the rest, and an error of the disk itself
//! stops all writing, because nobody can know then what is on it.

// First, so that the others see its macro.
#[macro_use]
mod crashpoint;

mod backup;
mod codec;
mod config;
mod error;
mod kept;
mod lock;
mod open;
mod reader;
mod sabotage;
mod schema;
mod sql;
mod stats;
mod store;
mod tail;
mod traits;
mod writer;

pub use backup::restore;
pub use config::Config;
#[cfg(feature = "sabotage")]
pub use crashpoint::CRASH_POINTS;
pub use schema::SCHEMA_VERSION;
pub use stats::Stats;
pub use store::SqliteStore;

/// The database inside the data folder.
pub const DATABASE_FILE: &str = "servo.db";
