//! The `runs` row: what lists and filters read. It changes when the visible status changes, never per step.

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::invocation::InvocationStatus;
use servo_model::limits::{LABEL_CHARS_MAX, fits};
use servo_model::{RunId, RunState, RunStatus, TenantId, Timestamp};

use crate::error::{Error, Result};

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub project: String,
    pub environment: String,
    pub plan_id: String,
    pub plan_version: String,
    pub status: RunStatus,
    pub visible: InvocationStatus,
    /// Unique: the same request never starts two runs.
    pub request_key: Option<Digest>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// The sequence at which this row was written.
    pub changed_seq: u64,
    /// Set when the run's log cannot be read: the engine leaves the run alone.
    pub quarantined: Option<String>,
    /// What the caller calls this run. Not unique: names come again in other plans and, once a run is gone, in the same.
    pub name: Option<String>,
    /// A finer word for how the run ended than its status has.
    pub outcome: Option<String>,
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
            visible: state.visible(),
            request_key,
            created_at,
            finished_at: if state.status.is_terminal() { state.completed_at } else { None },
            changed_seq: state.last_event_seq,
            quarantined: None,
            name: state.execution.as_ref().map(|execution| execution.head.start.name.clone()),
            outcome: outcome(state),
        }
    }

    /// Limits that hold for every backend, checked before the row is written.
    pub fn check(&self) -> Result<()> {
        for (what, text) in [("a run's name", &self.name), ("a run's outcome", &self.outcome)] {
            if text.as_ref().is_some_and(|text| !fits(text, LABEL_CHARS_MAX)) {
                return Err(Error::Limit { what, limit: LABEL_CHARS_MAX as u64 });
            }
        }
        Ok(())
    }

    /// Whether the row says what the state says: the test of `servo store verify`.
    pub fn agrees_with(&self, state: &RunState) -> bool {
        let finished = if state.status.is_terminal() { state.completed_at } else { None };
        self.status == state.status && self.visible == state.visible() && self.finished_at == finished
    }
}

/// The finer word for how an execution ended: `RunStatus` has one word for what failed and for what took too long.
fn outcome(state: &RunState) -> Option<String> {
    let ended = state.execution.as_ref()?.head.ended.as_ref()?;
    Some(ended.status.as_str().to_owned())
}

/// Which runs, and in which direction: by run id, newest first unless told otherwise (run ids sort by time). Every
/// condition that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct RunQuery {
    /// One of these; none stands for any.
    pub visible: Vec<InvocationStatus>,
    /// One of these; `None` in the list stands for runs without one.
    pub outcome: Option<Vec<Option<String>>>,
    pub plan_id: Option<String>,
    pub plan_version: Option<String>,
    /// Created at this time or later.
    pub created_from: Option<Timestamp>,
    /// Created before this time.
    pub created_until: Option<Timestamp>,
    pub name: Option<String>,
    pub oldest_first: bool,
    /// Goes on behind this run, in either direction. The run itself need not be there any more.
    pub after: Option<RunId>,
    pub limit: u32,
}

impl RunQuery {
    /// The statuses asked for, each once.
    pub fn visible_set(&self) -> Vec<InvocationStatus> {
        let mut set = self.visible.clone();
        set.sort_unstable();
        set.dedup();
        set
    }

    /// Whether a row meets every condition, its place in the order aside. The rule that databases put into SQL.
    pub fn matches(&self, row: &RunRow) -> bool {
        let same = |asked: &Option<String>, has: Option<&String>| asked.is_none() || asked.as_ref() == has;
        (self.visible.is_empty() || self.visible.contains(&row.visible))
            && self.outcome.as_ref().is_none_or(|outcomes| outcomes.contains(&row.outcome))
            && same(&self.plan_id, Some(&row.plan_id))
            && same(&self.plan_version, Some(&row.plan_version))
            && same(&self.name, row.name.as_ref())
            && self.created_from.is_none_or(|from| row.created_at >= from)
            && self.created_until.is_none_or(|until| row.created_at < until)
    }
}

#[async_trait]
pub trait RunStore: Send + Sync {
    async fn get_run(&self, scope: &Scope, run_id: &RunId) -> Result<Option<RunRow>>;

    async fn list_runs(&self, scope: &Scope, query: &RunQuery) -> Result<Vec<RunRow>>;

    async fn find_request(&self, tenant: &TenantId, key: Digest) -> Result<Option<RunId>>;

    /// Runs of a tenant that are `RUNNING` or `PAUSED`, counted up to `most`.
    async fn count_active(&self, tenant: &TenantId, most: u32) -> Result<u32>;

    /// Runs of a plan that have not ended, by version, in the order of the versions' bytes: what an old version still has
    /// to do before it can go.
    async fn count_open(&self, tenant: &TenantId, plan_id: &str) -> Result<Vec<(String, u64)>>;
}
