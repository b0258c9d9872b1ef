//! Cursors over the global log, failed publications, dead letters, and alerts.
//!
//! The log itself is the outbox. A row of its own exists only for an event whose publication failed.

use async_trait::async_trait;
use servo_model::alert::{Alert, AlertCode};
use servo_model::{EventId, RunId, TenantId, Timestamp};

use crate::error::Result;
use crate::lease::Fence;
use crate::position::Position;
use crate::runs::Scope;

/// A named reader's place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorRow {
    pub name: String,
    pub position: Position,
    pub last_event_id: Option<EventId>,
    /// Where a bounded reading (a replay) ends.
    pub target: Option<Position>,
    /// A replay was requested where no authority could be told; the next one will see it here.
    pub deferred: bool,
}

impl CursorRow {
    pub fn at(name: &str, position: Position) -> Self {
        Self { name: name.to_owned(), position, last_event_id: None, target: None, deferred: false }
    }
}

/// A publication that failed and will be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow {
    pub position: Position,
    pub run_id: RunId,
    pub run_seq: u64,
    pub tenant: TenantId,
    pub attempts: u32,
    pub next_at: Timestamp,
    pub last_error: String,
}

/// A publication that was given up; kept until an operator redrives it or its run is retired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub position: Position,
    pub run_id: RunId,
    pub run_seq: u64,
    pub tenant: TenantId,
    pub attempts: u32,
    pub last_error: String,
    pub buried_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewAlert {
    pub code: AlertCode,
    pub subject: String,
    pub run_id: Option<RunId>,
    pub tenant: TenantId,
    pub message: String,
}

#[async_trait]
pub trait RelayStore: Send + Sync {
    async fn cursor(&self, name: &str) -> Result<Option<CursorRow>>;

    /// Moves a cursor if it still is where the caller saw it (`CursorMoved`), under a fence if given.
    async fn move_cursor(&self, from: Option<Position>, to: CursorRow, fence: Option<Fence>) -> Result<()>;

    /// Notes a failed publication, or updates the note.
    async fn outbox_put(&self, row: OutboxRow) -> Result<()>;

    /// Notes whose time has come, oldest first.
    async fn outbox_due(&self, limit: u32) -> Result<Vec<OutboxRow>>;

    /// How many notes there are.
    async fn outbox_len(&self) -> Result<u64>;

    /// The publication succeeded.
    async fn outbox_done(&self, position: Position) -> Result<()>;

    /// The publication is given up: the note becomes a dead letter, in one transaction.
    async fn outbox_bury(&self, row: OutboxRow) -> Result<()>;

    /// Dead letters, oldest first, after a position.
    async fn dead_letters(&self, after: Position, limit: u32) -> Result<Vec<DeadLetter>>;

    /// Makes dead letters due again with no attempts counted: one by position, or all. Says how many.
    async fn redrive(&self, position: Option<Position>) -> Result<u64>;

    /// Raises an alert, or counts it up if the same (code, tenant, subject) stands.
    async fn raise_alert(&self, alert: NewAlert) -> Result<()>;

    /// Latest first.
    async fn alerts(&self, scope: &Scope, limit: u32) -> Result<Vec<Alert>>;

    /// Removes an alert whose condition has ended.
    async fn clear_alert(&self, code: AlertCode, tenant: &TenantId, subject: &str) -> Result<()>;
}
