//! What the writer keeps between groups.

use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_model::contract::DispatchState;
use servo_store::{Error, Result};
use tokio::sync::oneshot;

use super::follow::Stuck;
use super::view::Memory;
use crate::ahead::Ahead;
use crate::ahead::change::Change;

/// What is ahead of the database is handed over when it is this old or this much. The longer it gathers, the more rows
/// have changed more than once and the more events share a pack.
const AHEAD_FOR: Duration = Duration::from_millis(100);
const AHEAD_CHANGES: usize = 16_384;
const AHEAD_BYTES: usize = 8 * 1024 * 1024;

/// What the thread keeps between groups.
#[derive(Default)]
pub(super) struct State {
    pub(super) memory: Memory,
    pub(super) newer: Ahead,
    /// When the first change came into `newer`.
    pub(super) since: Option<Instant>,
    /// What the applier is at, and whether it will be durable.
    pub(super) older: Option<(Arc<Ahead>, bool)>,
    /// Who waits for the database to have a record.
    pub(super) settlers: Vec<(u64, oneshot::Sender<Result<()>>)>,
    /// Room is short: nothing gets ahead of the database.
    pub(super) is_short: bool,
    /// Runs were deleted whose events are still leaving.
    pub(super) has_leftovers: bool,
    /// Why nothing more is written.
    pub(super) stop: Option<Error>,
    /// The database has refused `older`, and nobody is at it.
    pub(super) stuck: Option<Stuck>,
    /// The newest under which a dispatch was handed out, as far as is known.
    pub(super) epoch: u64,
    /// The redo file's use that the database has noted, or is about to.
    pub(super) noted: u64,
    pub(super) body: Vec<u8>,
}

impl State {
    /// Whether a change may be of a dispatch that is open before or after it: pending, or notified under an epoch before the
    /// newest. With a newer epoch all that is handed out becomes open.
    pub(super) fn opens(&mut self, change: &Change) -> bool {
        let Change::Dispatch { row, before, .. } = change else { return false };
        let Some(row) = row else { return true };
        let is_pending = row.state == DispatchState::Pending || *before == Some(DispatchState::Pending);
        let is_adopted = *before == Some(DispatchState::Notified) && row.state == DispatchState::Notified;
        let is_other = row.epoch != self.epoch;
        self.epoch = self.epoch.max(row.epoch);
        is_pending || is_adopted || is_other
    }

    /// What was answered and the database has no room for.
    pub(super) fn unseen(&self) -> Vec<Arc<Ahead>> {
        let older = self.older.as_ref().map(|(older, _)| older.clone());
        // Nothing is added to it until the database takes the older one.
        let newer = (!self.newer.is_empty()).then(|| Arc::new(self.newer.clone()));
        older.into_iter().chain(newer).collect()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether the applier is at something.
    pub(super) fn is_applying(&self) -> bool {
        self.older.is_some() && self.stuck.is_none()
    }

    pub(super) fn get_stuck(&mut self, error: Error) {
        self.fail_settlers(&error);
        self.stuck = Some(Stuck { error, since: Instant::now() });
    }

    /// Whether much is ahead of the database.
    pub(super) fn is_far(&self) -> bool {
        self.newer.changes >= AHEAD_CHANGES || self.newer.bytes >= AHEAD_BYTES
    }

    /// Whether what is ahead of the database should be handed over.
    pub(super) fn is_due(&self) -> bool {
        let is_old = self.since.is_some_and(|since| since.elapsed() >= AHEAD_FOR);
        !self.newer.is_empty() && !self.is_stopped() && (is_old || self.is_far() || !self.settlers.is_empty())
    }

    pub(super) fn other_work_in(&self) -> Option<Duration> {
        if let Some(stuck) = self.stuck.as_ref().filter(|_| !self.is_stopped()) {
            return Some(stuck.again_in());
        }
        if let Some(since) = self.since.filter(|_| self.older.is_none() && !self.is_stopped()) {
            return Some(AHEAD_FOR.saturating_sub(since.elapsed()));
        }
        (self.has_leftovers && !self.is_stopped() && self.older.is_none()).then_some(Duration::ZERO)
    }

    pub(super) fn answer_settlers(&mut self, applied: u64) {
        for (_, settler) in self.settlers.extract_if(.., |(lsn, _)| *lsn <= applied) {
            let _ = settler.send(Ok(()));
        }
    }

    pub(super) fn fail_settlers(&mut self, error: &Error) {
        for (_, settler) in self.settlers.drain(..) {
            let _ = settler.send(Err(error.clone()));
        }
    }
}
