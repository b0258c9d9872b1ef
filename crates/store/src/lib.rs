//! The store: one append-only event log and the few rows that make it fast to act on.
//!
//! `append` is the only write the engine makes. It takes the events of one or several runs together with every row
//! that must change in the same transaction: the visible status, the run's timer, its queue row, its dispatches, the
//! authority. Everything else here reads, or maintains.
//!
//! Backends live in their own crates and know this one; the engine knows only `dyn Store`. `mem` is the reference
//! model: naive, obviously right, and what the others are compared with.

pub mod admin;
pub mod audit;
pub mod checksum;
pub mod crashpoints;
pub mod dispatch;
pub mod entrypoints;
pub mod error;
pub mod identity;
pub mod lease;
pub mod lines;
pub mod log;
pub mod mem;
pub mod page;
pub mod position;
pub mod registry;
pub mod relay;
pub mod resync;
pub mod runs;

#[cfg(feature = "testkit")]
pub mod testkit;

use std::sync::Arc;

use servo_model::Timestamp;

pub use admin::{AdminStore, Integrity};
pub use audit::AuditStore;
pub use dispatch::{DispatchChange, DispatchRow, WorkStore};
pub use entrypoints::{EntrypointRow, EntrypointStore};
pub use error::{Error, Result};
pub use identity::IdentityStore;
pub use lease::{AuthorityChange, AuthorityRow, Fence};
pub use lines::LineStore;
pub use log::{Append, Appended, Expected, LogStore, NewEvent, StoredEvent, StreamAppend, Unreadable};
pub use position::Position;
pub use registry::RegistryStore;
pub use relay::RelayStore;
pub use runs::{RunRow, RunStore, Scope};

/// A whole store.
pub trait Store:
    LogStore
    + RunStore
    + WorkStore
    + RelayStore
    + RegistryStore
    + EntrypointStore
    + LineStore
    + IdentityStore
    + AuditStore
    + AdminStore
{
}

impl<T> Store for T where
    T: LogStore
        + RunStore
        + WorkStore
        + RelayStore
        + RegistryStore
        + EntrypointStore
        + LineStore
        + IdentityStore
        + AuditStore
        + AdminStore
{
}

/// Where a store takes the time from. Embedded stores are given one; Postgres uses the database's clock unless a test
/// injects another. Leases, timers and `emittedAt` are all judged by it.
pub type TimeSource = Arc<dyn Fn() -> Timestamp + Send + Sync>;
