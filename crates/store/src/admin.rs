//! Maintenance: retention, deletion, quarantine, export and import, backup, integrity.

use std::path::Path;

use async_trait::async_trait;
use serde::Serialize;
use servo_model::{RunId, Timestamp};

use crate::error::{Error, Result};
use crate::log::StoredEvent;
use crate::runs::{RunRow, Scope};

/// What kind of store this is and how large.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreInfo {
    /// `memory`, `sqlite` or `postgres`.
    pub kind: &'static str,
    pub engine_version: String,
    pub schema_version: u32,
    /// One process only: a new one knows that the old one is gone.
    pub single_process: bool,
    pub size_bytes: u64,
    /// Settings that durability rests on, as read back from the running store.
    pub settings: Vec<(String, String)>,
}

/// What a check of the whole store has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Integrity {
    /// In words, one each; none if nothing was found.
    pub problems: Vec<String>,
    /// Events that an earlier version wrote, without a checksum to compare them with.
    pub without_checksum: u64,
}

/// How a store stands, from what its last writes met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    Good,
    /// There is no room for writes. They are refused with [`Error::Full`] until there is; reads are answered.
    Full { detail: String, since: Timestamp },
    /// The disk reported an error. Nothing more is written until the store is opened again: a second try could report
    /// success for what the first one lost.
    Stopped { detail: String, since: Timestamp },
}

#[async_trait]
pub trait AdminStore: Send + Sync {
    async fn info(&self) -> Result<StoreInfo>;

    /// From memory: the answer needs neither the disk nor the database, and waits for nothing. A store that has no such
    /// states of its own is always good.
    fn condition(&self) -> Condition {
        Condition::Good
    }

    /// A key made when the store was made, for signing what leaves the server and comes back (paging cursors).
    async fn secret(&self) -> Result<[u8; 32]>;

    /// Sets a run aside: its row carries the reason, its timer, queue row and open dispatches are removed.
    async fn quarantine(&self, run_id: &RunId, reason: &str) -> Result<()>;

    /// Removes runs that finished before a time, a few at a time so that writers never wait long. Says how many went;
    /// fewer than `limit` means that no more are due.
    async fn retire(&self, finished_before: Timestamp, limit: u32) -> Result<u32>;

    /// Removes one run with everything it has, whatever its state. `NotFound` if it is not there.
    async fn delete_run(&self, scope: &Scope, run_id: &RunId) -> Result<()>;

    /// Removes facts of the system stream, and finished operator dispatches, older than a time. Says how many events went.
    async fn trim_system(&self, before: Timestamp, limit: u32) -> Result<u32>;

    /// Puts a whole run back: its row and its events with the sequences and times they had. `RunExists` if it is there.
    /// Positions are new: a reader of the log sees the events as they come in.
    async fn import_run(&self, row: RunRow, events: Vec<StoredEvent>) -> Result<()>;

    /// A consistent copy to a new file, taken while the store works.
    async fn backup(&self, path: &Path) -> Result<()>;

    /// Asks the database to check itself, reads every event and compares it with its checksum.
    async fn integrity(&self) -> Result<Integrity>;

    /// Finishes what was begun and closes. Later calls answer `Closed`.
    async fn close(&self) -> Result<()>;
}

/// What must hold of an imported run before anything is written: at least one event, sequences that grow, no key twice,
/// all of the same run.
pub fn check_import(row: &RunRow, events: &[StoredEvent]) -> Result<()> {
    let invalid = |index: usize, field: &str, reason: &str| Error::Invalid {
        field: format!("events/{index}/{field}"),
        reason: reason.to_owned(),
    };
    row.check()?;
    if events.is_empty() {
        return Err(Error::Invalid { field: "events".to_owned(), reason: "a run has at least one event".to_owned() });
    }
    let mut last = 0;
    let mut keys = std::collections::BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        if event.run_id != row.run_id {
            return Err(invalid(index, "runId", "is another run's"));
        }
        if event.run_seq <= last {
            return Err(invalid(index, "runSeq", "does not grow"));
        }
        if !keys.insert(event.idempotency_key) {
            return Err(invalid(index, "idempotencyKey", "stands twice"));
        }
        last = event.run_seq;
    }
    Ok(())
}
