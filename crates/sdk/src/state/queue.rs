//! Updates on their way out, and when to send what. First in, first out; one call at a time.

use std::collections::VecDeque;
use std::time::Duration;

use servo_model::Timestamp;
use servo_replay::{BatchLimits, Journal, plan, size_of};
use servo_wire::lambda::{CHECKPOINT_BYTES_MAX, OperationUpdate, UPDATES_MAX};

use super::Stop;
use super::wait::Waiters;
use crate::CheckpointingMode;
use crate::options::Options;

/// Between polls that brought nothing, because the service's clock is behind ours.
const POLL_AGAIN: Duration = Duration::from_millis(250);
const POLL_AGAIN_MAX: Duration = Duration::from_secs(5);

/// What the pump does next.
#[derive(Debug)]
pub(crate) enum Next {
    Stop(Stop),
    /// Call the service. Without updates it is a question for news.
    Send(Vec<OperationUpdate>),
    /// Nothing runs. Suspend, unless somebody stirs.
    Settle(u64),
    Wait {
        version: u64,
        at: Option<Timestamp>,
    },
}

#[derive(Debug)]
pub(super) struct Queue {
    updates: VecDeque<Queued>,
    bytes: usize,
    limits: BatchLimits,
    eager: bool,
    patience: Duration,
    external_poll: Duration,
    /// Updates that were ever put in, and how many of them are recorded.
    pushed: u64,
    recorded: u64,
    last_answer: Timestamp,
    fruitless: u32,
}

#[derive(Debug)]
struct Queued {
    update: OperationUpdate,
    awaited: bool,
    since: Timestamp,
}

impl Queue {
    pub(super) fn new(options: &Options, now: Timestamp) -> Self {
        let limits = BatchLimits {
            bytes: options.batcher.max_batch_size_bytes.min(CHECKPOINT_BYTES_MAX),
            updates: options.batcher.max_batch_operations.min(UPDATES_MAX),
        };
        Self {
            updates: VecDeque::new(),
            bytes: 0,
            limits,
            eager: options.checkpointing_mode == CheckpointingMode::Eager,
            patience: options.batcher.max_batch_time,
            external_poll: options.external_poll,
            pushed: 0,
            recorded: 0,
            last_answer: now,
            fruitless: 0,
        }
    }

    pub(super) fn push(&mut self, update: OperationUpdate, awaited: bool, now: Timestamp) -> u64 {
        self.bytes += size_of(&update);
        self.updates.push_back(Queued { update, awaited, since: now });
        self.pushed += 1;
        self.pushed
    }

    pub(super) fn holds(&self, id: &str) -> bool {
        self.updates.iter().any(|queued| queued.update.id == id)
    }

    pub(super) fn is_recorded(&self, ticket: u64) -> bool {
        ticket <= self.recorded
    }

    pub(super) fn accepted(&mut self, count: usize, now: Timestamp) {
        self.recorded += count as u64;
        self.last_answer = now;
    }

    pub(super) fn answered(&mut self, now: Timestamp, news: bool) {
        self.last_answer = now;
        self.fruitless = if news { 0 } else { self.fruitless.saturating_add(1) };
    }

    /// The next call's updates, if it is time for one.
    pub(super) fn take(&mut self, now: Timestamp, all: bool) -> Option<Vec<OperationUpdate>> {
        if self.updates.is_empty() {
            return None;
        }
        let full = self.updates.len() >= self.limits.updates || self.bytes >= self.limits.bytes;
        let awaited = self.updates.iter().any(|queued| queued.awaited);
        let due = self.flush_at().is_some_and(|at| at <= now);
        if !(all || full || awaited || due || self.eager) {
            return None;
        }
        let count = plan(self.updates.iter().map(|queued| &queued.update), self.limits);
        let updates: Vec<_> = self.updates.drain(..count).map(|queued| queued.update).collect();
        self.bytes -= updates.iter().map(size_of).sum::<usize>();
        Some(updates)
    }

    /// When the oldest update must leave, though nobody waits for it.
    pub(super) fn flush_at(&self) -> Option<Timestamp> {
        self.updates.front().map(|queued| queued.since.plus(self.patience))
    }

    /// When to ask for news of what is waited for.
    pub(super) fn poll_at(&self, journal: &Journal, waiters: &Waiters) -> Option<Timestamp> {
        let mut external = false;
        let due = waiters.resumable().filter_map(|id| {
            let due = journal.next_due([id]);
            external |= due.is_none();
            due
        });
        let due = due.min();
        let asked = external.then(|| self.last_answer.plus(self.external_poll));
        let at = [due, asked].into_iter().flatten().min()?;
        let pause = POLL_AGAIN.saturating_mul(1 << self.fruitless.min(8)).min(POLL_AGAIN_MAX);
        let again = if self.fruitless == 0 { at } else { self.last_answer.plus(pause) };
        Some(at.max(again))
    }
}
