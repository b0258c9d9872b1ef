//! The store on PostgreSQL 15 or newer.
//!
//! Appends of many callers are written together: two writer tasks each take what has gathered while the last batch was
//! under way and commit it in one transaction (`batch`, `append`). A batch takes an advisory lock per run before it gets
//! its transaction id, so a run's events have growing transaction ids too, and a reader who orders by transaction and
//! stays below every open one sees each run in order and misses nothing (`sql::log`).
//!
//! Rows are guarded twice: queries name the tenant, and row security lets a connection see only the tenants that its
//! transaction has named (`pool`, `migrations/`). All tables are in the schema `servo`. Polling is the truth; LISTEN and
//! NOTIFY only shorten a wait (`hint`).
//!
//! This crate starts tasks of its own (two writers, the hint's listener and notifier), all in `tasks`, all gone after
//! `close`.

#[macro_use]
mod crashpoint;

mod access;
mod append;
mod batch;
mod config;
mod error;
mod hint;
mod inspect;
mod migrate;
mod pipeline;
mod pool;
mod rows;
mod sql;
mod store;
mod tasks;
mod tls;

pub use access::exposure;
pub use config::Config;
#[cfg(feature = "sabotage")]
pub use crashpoint::CRASH_POINTS;
pub use inspect::{Inspection, inspect};
pub use store::PostgresStore;
