//! Work that waits: queued runs, dispatches and timers. Each row was written by the append that made it necessary, so
//! after a crash these rows are all that recovery needs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use async_trait::async_trait;
use servo_model::contract::{Backlog, DispatchState};
use servo_model::{RunId, StepId, TenantId, Timestamp};

use crate::error::{Error, Result};
use crate::lease::AuthorityRow;

/// A change of one dispatch inside an append. Moves are compare-and-set: from another state they are `DispatchMove`,
/// of an unknown one `DispatchNotFound`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DispatchChange {
    /// Adds a pending dispatch. A known `request_id` in any state changes nothing.
    Queue { request_id: String, target: String, step: Option<DispatchStep> },
    /// pending → notified, under an authority epoch (0 for operator commands).
    Notify { request_id: String, channel: String, epoch: u64 },
    /// notified → delivered.
    Deliver { request_id: String },
    /// notified → failed.
    Fail { request_id: String, reason: String },
    /// A notified dispatch of an older epoch is handed out again: it stays notified, under the new epoch.
    Adopt { request_id: String, epoch: u64 },
    /// Removes a pending dispatch whose reason has gone (pause, cancel). In any other state, or unknown: no effect.
    Withdraw { request_id: String },
}

/// What a change makes of a dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    Nothing,
    Row(DispatchRow),
    Gone,
}

impl DispatchChange {
    pub fn request_id(&self) -> &str {
        match self {
            DispatchChange::Queue { request_id, .. }
            | DispatchChange::Notify { request_id, .. }
            | DispatchChange::Deliver { request_id }
            | DispatchChange::Fail { request_id, .. }
            | DispatchChange::Adopt { request_id, .. }
            | DispatchChange::Withdraw { request_id } => request_id,
        }
    }

    /// The dispatch after the change, or why it is refused. Pure, so that stores judge alike.
    pub fn change(
        self,
        before: Option<&DispatchRow>,
        (run_id, tenant): (&RunId, &TenantId),
        now: Timestamp,
    ) -> Result<Changed> {
        let refused = |row: &DispatchRow, to: DispatchState| Error::DispatchMove {
            request_id: row.request_id.clone(),
            from: row.state,
            to,
        };
        let known =
            |request_id: &str| before.ok_or_else(|| Error::DispatchNotFound { request_id: request_id.to_owned() });
        let moved = |request_id: &str, to: DispatchState| -> Result<DispatchRow> {
            let row = known(request_id)?;
            if !row.state.can_become(to) {
                return Err(refused(row, to));
            }
            Ok(DispatchRow { state: to, changed_at: now, ..row.clone() })
        };
        Ok(Changed::Row(match self {
            DispatchChange::Queue { .. } if before.is_some() => return Ok(Changed::Nothing),
            DispatchChange::Queue { request_id, target, step } => DispatchRow {
                request_id,
                run_id: run_id.clone(),
                tenant: tenant.clone(),
                target,
                step,
                state: DispatchState::Pending,
                channel: None,
                reason: None,
                epoch: 0,
                queued_at: now,
                changed_at: now,
            },
            DispatchChange::Notify { request_id, channel, epoch } => {
                DispatchRow { channel: Some(channel), epoch, ..moved(&request_id, DispatchState::Notified)? }
            }
            DispatchChange::Deliver { request_id } => moved(&request_id, DispatchState::Delivered)?,
            DispatchChange::Fail { request_id, reason } => {
                DispatchRow { reason: Some(reason), ..moved(&request_id, DispatchState::Failed)? }
            }
            DispatchChange::Adopt { request_id, epoch } => {
                let row = known(&request_id)?;
                if row.state != DispatchState::Notified || row.epoch >= epoch {
                    return Err(refused(row, DispatchState::Notified));
                }
                DispatchRow { epoch, changed_at: now, ..row.clone() }
            }
            DispatchChange::Withdraw { .. } => {
                let is_pending = before.is_some_and(|row| row.state == DispatchState::Pending);
                return Ok(if is_pending { Changed::Gone } else { Changed::Nothing });
            }
        }))
    }
}

/// The attempt that a dispatch hands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchStep {
    pub step_id: StepId,
    pub logical_attempt: u32,
}

impl DispatchStep {
    /// The request id of an attempt: the same attempt is never queued twice.
    pub fn request_id(&self, run_id: &RunId) -> String {
        let mut id = String::with_capacity(run_id.as_str().len() + self.step_id.as_str().len() + 12);
        // Writing to a string does not fail.
        let _ = write!(id, "{run_id}/{}/{}", self.step_id, self.logical_attempt);
        id
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchRow {
    pub request_id: String,
    /// The stream whose append queued it: a run, or the system stream for operator dispatches.
    pub run_id: RunId,
    pub tenant: TenantId,
    pub target: String,
    pub step: Option<DispatchStep>,
    pub state: DispatchState,
    pub channel: Option<String>,
    pub reason: Option<String>,
    pub epoch: u64,
    pub queued_at: Timestamp,
    pub changed_at: Timestamp,
}

/// Which open dispatches to look at. Open are those of steps that are pending, or notified under an epoch before `epoch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchHeads {
    pub epoch: u64,
    /// Tenants after this one, in the order of their ids.
    pub after: Option<TenantId>,
    /// So many tenants at most.
    pub tenants: u32,
    /// So many of each at most.
    pub each: u32,
}

/// A run that waits to be started, leased to whoever claimed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedRun {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub not_before: Timestamp,
    pub queued_at: Timestamp,
}

/// Which queued runs to claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueClaim {
    pub owner: String,
    pub lease_ms: u64,
    /// Tenants after this one, in the order of their ids.
    pub after: Option<TenantId>,
    /// So many runs at most, and so many tenants.
    pub limit: u32,
}

impl QueueClaim {
    /// A claim that begins with the first tenant.
    pub fn new(owner: &str, lease_ms: u64, limit: u32) -> Self {
        Self { owner: owner.to_owned(), lease_ms, after: None, limit }
    }

    /// How many of each tenant are claimed if so many tenants have some.
    pub fn share(&self, tenants: usize) -> usize {
        self.limit as usize / tenants.max(1)
    }

    /// What is claimed of all that could be: of the first tenants, the same number of each, in turns.
    pub fn choose(&self, free: impl IntoIterator<Item = QueuedRun>) -> Vec<QueuedRun> {
        let mut by_tenant: BTreeMap<TenantId, Vec<QueuedRun>> = BTreeMap::new();
        for run in free {
            if self.after.as_ref().is_none_or(|after| run.tenant > *after) {
                by_tenant.entry(run.tenant.clone()).or_default().push(run);
            }
        }
        let share = self.share(by_tenant.len().min(self.limit as usize));
        let oldest = |mut runs: Vec<QueuedRun>| {
            runs.sort_by(|a, b| (a.queued_at, &a.run_id).cmp(&(b.queued_at, &b.run_id)));
            runs.truncate(share);
            runs
        };
        in_turns(by_tenant.into_values().take(self.limit as usize).flat_map(oldest))
    }
}

/// Every tenant's oldest, then every tenant's second, and so on: the order in which claimed runs are begun.
pub fn in_turns(runs: impl IntoIterator<Item = QueuedRun>) -> Vec<QueuedRun> {
    let mut by_tenant: BTreeMap<TenantId, BTreeMap<(Timestamp, RunId), QueuedRun>> = BTreeMap::new();
    for run in runs {
        by_tenant.entry(run.tenant.clone()).or_default().insert((run.queued_at, run.run_id.clone()), run);
    }
    let in_turn = |runs: BTreeMap<_, QueuedRun>| runs.into_values().enumerate();
    let mut turns: Vec<_> = by_tenant.into_values().flat_map(in_turn).collect();
    turns.sort_by(|(a_turn, a), (b_turn, b)| (a_turn, a.queued_at, &a.run_id).cmp(&(b_turn, b.queued_at, &b.run_id)));
    turns.into_iter().map(|(_, run)| run).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueTimer {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub due_at: Timestamp,
}

/// Timers that are due by the store's clock, and when the next one is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DueTimers {
    pub due: Vec<DueTimer>,
    pub next_at: Option<Timestamp>,
}

#[async_trait]
pub trait WorkStore: Send + Sync {
    /// Leases queued runs whose time has come and that nobody holds: of the first tenants that have some, the same number of
    /// each (see [`QueueClaim::choose`]). Whoever asks again after the last tenant comes to see everybody's, however many
    /// tenants wait in vain. Atomic: no run is given to two owners while a lease lasts.
    async fn claim_queue(&self, claim: &QueueClaim) -> Result<Vec<QueuedRun>>;

    /// Gives a lease back without starting the run, to be tried again not before a time.
    async fn release_queue(&self, run_id: &RunId, owner: &str, not_before: Timestamp) -> Result<()>;

    /// The first open dispatches of every tenant that has any, so that a tenant with a hundred thousand hides nobody's.
    /// By tenant, each tenant's oldest first. What it reads grows with the tenants that have some, not with how many.
    async fn dispatch_heads(&self, heads: &DispatchHeads) -> Result<Vec<DispatchRow>>;

    /// One tenant's open dispatches, oldest first, after `after` (a `(queued_at, request_id)` pair) so that one stuck row
    /// hides no others.
    async fn open_dispatches(
        &self,
        epoch: u64,
        tenant: &TenantId,
        after: Option<(Timestamp, String)>,
        limit: u32,
    ) -> Result<Vec<DispatchRow>>;

    async fn get_dispatch(&self, request_id: &str) -> Result<Option<DispatchRow>>;

    /// Dispatches by state.
    async fn backlog(&self) -> Result<Backlog>;

    /// Timers at or before the store's time, earliest first.
    async fn due_timers(&self, limit: u32) -> Result<DueTimers>;

    /// A run's timer row: what the audit compares with the folded state.
    async fn get_timer(&self, run_id: &RunId) -> Result<Option<Timestamp>>;

    async fn authority(&self) -> Result<Option<AuthorityRow>>;

    /// Ends every lease of queue rows at once. Only for stores that a single process can open: a new process knows
    /// that the old one is gone.
    async fn break_leases(&self) -> Result<()>;
}
