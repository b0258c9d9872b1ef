//! The `runs` row: what lists and filters read. It changes when the visible status changes, never per step.

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::{RunId, RunState, RunStatus, TenantId, Timestamp};

use crate::error::Result;

/// Whose rows a caller may see. A foreign tenant's run does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    Tenant(TenantId),
    /// The engine's own loops.
    System,
}

impl Scope {
    pub fn covers(&self, tenant: &TenantId) -> bool {
        match self {
            Scope::Tenant(own) => own == tenant,
            Scope::System => true,
        }
    }
}

/// The status that people filter by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visible {
    Queued,
    Running,
    Suspended,
    Succeeded,
    Failed,
    Canceled,
}

impl Visible {
    pub const ALL: [Visible; 6] =
        [Visible::Queued, Visible::Running, Visible::Suspended, Visible::Succeeded, Visible::Failed, Visible::Canceled];

    pub fn as_str(self) -> &'static str {
        match self {
            Visible::Queued => "queued",
            Visible::Running => "running",
            Visible::Suspended => "suspended",
            Visible::Succeeded => "succeeded",
            Visible::Failed => "failed",
            Visible::Canceled => "canceled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|visible| visible.as_str() == text)
    }

    pub fn of(state: &RunState) -> Self {
        match state.status {
            RunStatus::Pending | RunStatus::Approved => Visible::Queued,
            RunStatus::Running if state.waits_until().is_some() => Visible::Suspended,
            RunStatus::Running => Visible::Running,
            RunStatus::Paused => Visible::Suspended,
            RunStatus::Completed => Visible::Succeeded,
            RunStatus::Failed => Visible::Failed,
            RunStatus::Cancelled => Visible::Canceled,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub project: String,
    pub environment: String,
    pub plan_id: String,
    pub plan_version: String,
    pub status: RunStatus,
    pub visible: Visible,
    /// Unique: the same request never starts two runs.
    pub request_key: Option<Digest>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// The sequence at which this row was written.
    pub changed_seq: u64,
    /// Set when the run's log cannot be read: the engine leaves the run alone.
    pub quarantined: Option<String>,
}

impl RunRow {
    /// The row that a state stands for.
    pub fn of(state: &RunState, request_key: Option<Digest>, created_at: Timestamp) -> Self {
        let context = state.context.as_ref();
        let plan = state.plan_ref.as_ref();
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        Self {
            run_id: state.run_id.clone(),
            tenant: state.tenant().cloned().unwrap_or_else(TenantId::system),
            project: text(context.map(|c| c.project_id.as_str())),
            environment: text(context.map(|c| c.environment_id.as_str())),
            plan_id: text(plan.map(|p| p.plan_id.as_str())),
            plan_version: text(plan.map(|p| p.plan_version.as_str())),
            status: state.status,
            visible: Visible::of(state),
            request_key,
            created_at,
            finished_at: if state.status.is_terminal() { state.completed_at } else { None },
            changed_seq: state.last_event_seq,
            quarantined: None,
        }
    }

    /// Whether the row says what the state says: the test of `servo store verify`.
    pub fn agrees_with(&self, state: &RunState) -> bool {
        let finished = if state.status.is_terminal() { state.completed_at } else { None };
        self.status == state.status && self.visible == Visible::of(state) && self.finished_at == finished
    }
}

/// Newest first, by run id (run ids sort by time).
#[derive(Debug, Clone, Default)]
pub struct RunQuery {
    pub visible: Option<Visible>,
    pub plan_id: Option<String>,
    /// Runs older than this one.
    pub before: Option<RunId>,
    pub limit: u32,
}

#[async_trait]
pub trait RunStore: Send + Sync {
    async fn get_run(&self, scope: &Scope, run_id: &RunId) -> Result<Option<RunRow>>;

    async fn list_runs(&self, scope: &Scope, query: &RunQuery) -> Result<Vec<RunRow>>;

    async fn find_request(&self, tenant: &TenantId, key: Digest) -> Result<Option<RunId>>;

    /// Runs of a tenant that are `RUNNING` or `PAUSED`, counted up to `most`.
    async fn count_active(&self, tenant: &TenantId, most: u32) -> Result<u32>;
}
