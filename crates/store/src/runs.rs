//! The `runs` row: what lists and filters read. It changes when the visible status changes, never per step.

mod filter;

use std::sync::Arc;

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::limits::{LABEL_CHARS_MAX, PLANS_PER_QUERY_MAX, fits};
use servo_model::{RunId, RunState, RunStatus, TenantId, Timestamp};

use crate::entrypoints::check_texts;
use crate::error::{Error, Result};

pub use filter::{CompareOp, RunField, RunFilter, RunValue};

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
    pub project: Arc<str>,
    pub environment: Arc<str>,
    pub plan_id: Arc<str>,
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
    /// Whether this is a run of an entrypoint. Like the three that follow it belongs to the run's start and stays.
    pub invocation: bool,
    /// How the caller of an entrypoint waits.
    pub mode: Option<InvocationMode>,
    pub correlation_id: Option<String>,
    /// The run with which a tree of runs that start runs began, if this is not that one.
    pub root: Option<RunId>,
}

impl RunRow {
    /// The row that a state stands for.
    pub fn of(state: &RunState, request_key: Option<Digest>, created_at: Timestamp) -> Self {
        let context = state.context.as_ref();
        let plan = state.plan_ref.as_ref();
        let pin = state.entrypoint();
        Self {
            run_id: state.run_id.clone(),
            tenant: state.tenant().cloned().unwrap_or_else(TenantId::system),
            project: context.map(|context| context.project_id.text()).unwrap_or_default(),
            environment: context.map(|context| context.environment_id.text()).unwrap_or_default(),
            plan_id: plan.map(|plan| plan.plan_id.text()).unwrap_or_default(),
            plan_version: plan.map(|plan| plan.plan_version.clone()).unwrap_or_default(),
            status: state.status,
            visible: state.visible(),
            request_key,
            created_at,
            finished_at: if state.status.is_terminal() { state.completed_at } else { None },
            changed_seq: state.last_event_seq,
            quarantined: None,
            // An invocation is called by its run's id, which needs no index of its own.
            name: state.execution.as_ref().filter(|_| pin.is_none()).map(|run| run.head.start.name.clone()),
            outcome: outcome(state),
            invocation: pin.is_some(),
            mode: pin.map(|pin| pin.mode),
            correlation_id: pin.map(|pin| pin.correlation_id.clone()).filter(|id| !id.is_empty()),
            root: state.root().cloned(),
        }
    }

    /// The row with what a run keeps for life: its request, its first moment, how it was called, and being set aside.
    #[must_use]
    pub fn keeping(self, start: &RunRow) -> Self {
        Self {
            request_key: start.request_key,
            created_at: start.created_at,
            quarantined: start.quarantined.clone(),
            invocation: start.invocation,
            mode: start.mode,
            correlation_id: start.correlation_id.clone(),
            root: start.root.clone(),
            ..self
        }
    }

    /// Limits that hold for every backend, checked before the row is written.
    pub fn check(&self) -> Result<()> {
        for (what, text) in [
            ("a run's name", &self.name),
            ("a run's outcome", &self.outcome),
            ("a run's correlation id", &self.correlation_id),
        ] {
            if text.as_ref().is_some_and(|text| !fits(text, LABEL_CHARS_MAX)) {
                return Err(Error::Limit { what, limit: LABEL_CHARS_MAX as u64 });
            }
        }
        Ok(())
    }

    /// Whether the row says what the state says: the test of `servo store verify`.
    pub fn agrees_with(&self, state: &RunState) -> bool {
        self.disagreement(state).is_none()
    }

    /// What the row says otherwise than the state. Its request and its first moment are nowhere else.
    pub fn disagreement(&self, state: &RunState) -> Option<&'static str> {
        let should = Self::of(state, self.request_key, self.created_at);
        [
            ("status", self.status != should.status),
            ("visible status", self.visible != should.visible),
            ("end", self.finished_at != should.finished_at),
            ("project", self.project != should.project),
            ("environment", self.environment != should.environment),
            ("plan", self.plan_id != should.plan_id),
            ("version", self.plan_version != should.plan_version),
            ("name", self.name != should.name),
            ("kind", self.invocation != should.invocation),
            ("mode", self.mode != should.mode),
            ("correlation id", self.correlation_id != should.correlation_id),
            ("root", self.root != should.root),
        ]
        .into_iter()
        .find_map(|(what, differs)| differs.then_some(what))
    }
}

/// The finer word for how an execution ended: `RunStatus` has one word for what failed and for what took too long.
fn outcome(state: &RunState) -> Option<String> {
    let ended = state.execution.as_ref()?.head.ended.as_ref()?;
    Some(ended.status.as_str().to_owned())
}

/// By what a list of runs is ordered, and the value at which it goes on. Run ids break ties.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunOrder {
    /// Run ids sort by time, so this is the order in which runs were started. Fast with every condition.
    #[default]
    RunId,
    /// Fast for the invocations of a tenant; the order to take with an end of the time of creation.
    Created { after: Option<Timestamp> },
    /// By the status's spelling. Fast for the invocations of a tenant.
    Visible { after: Option<InvocationStatus> },
}

/// A value that runs are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SortValue {
    None,
    Time(Timestamp),
    Text(&'static str),
}

impl RunOrder {
    fn value(self, row: &RunRow) -> SortValue {
        match self {
            RunOrder::RunId => SortValue::None,
            RunOrder::Created { .. } => SortValue::Time(row.created_at),
            RunOrder::Visible { .. } => SortValue::Text(row.visible.as_str()),
        }
    }

    fn after(self) -> Option<SortValue> {
        match self {
            RunOrder::RunId => Some(SortValue::None),
            RunOrder::Created { after } => after.map(SortValue::Time),
            RunOrder::Visible { after } => after.map(|after| SortValue::Text(after.as_str())),
        }
    }
}

/// Which runs, and in which order: newest first unless told otherwise. Every condition that is set must hold.
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
    /// Runs of entrypoints only, or all others only.
    pub invocations: Option<bool>,
    pub mode: Option<InvocationMode>,
    pub correlation_id: Option<String>,
    /// Of one of these plans; none stands for any.
    pub plan_ids: Vec<String>,
    /// Whatever else must hold. No index is chosen by it: what the other fields can say is better said there.
    pub filter: Option<RunFilter>,
    pub order: RunOrder,
    /// In ascending order, which is the oldest first where runs are ordered by time.
    pub oldest_first: bool,
    /// Goes on behind this run, in either direction, and behind the value in `order` where there is one: without both
    /// the list begins. The run itself need not be there any more.
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

    /// The plans asked for, each once; `None` stands for any.
    pub fn plan_set(&self) -> Option<Vec<&str>> {
        if self.plan_id.is_none() && self.plan_ids.is_empty() {
            return None;
        }
        let is_asked = |plan: &&str| self.plan_id.as_deref().is_none_or(|asked| asked == *plan);
        let mut set: Vec<_> = match &self.plan_id {
            Some(plan) if self.plan_ids.is_empty() => vec![plan.as_str()],
            _ => self.plan_ids.iter().map(String::as_str).filter(is_asked).collect(),
        };
        set.sort_unstable();
        set.dedup();
        Some(set)
    }

    /// What must hold before a query is asked.
    pub fn check(&self) -> Result<()> {
        if self.plan_ids.len() > PLANS_PER_QUERY_MAX {
            return Err(Error::Limit { what: "the plans of one list", limit: PLANS_PER_QUERY_MAX as u64 });
        }
        let texts = [&self.correlation_id, &self.plan_id, &self.plan_version, &self.name].into_iter().flatten();
        check_texts("query", texts.chain(&self.plan_ids).map(String::as_str))?;
        self.filter.as_ref().map_or(Ok(()), RunFilter::check)
    }

    /// Where the list goes on; `None` for its beginning.
    pub fn place(&self) -> Option<&RunId> {
        self.after.as_ref().filter(|_| self.order.after().is_some())
    }

    /// Whether a row is on the pages that are still to come.
    pub fn is_ahead(&self, row: &RunRow) -> bool {
        let (Some(value), Some(run_id)) = (self.order.after(), &self.after) else { return true };
        let (place, after) = ((self.order.value(row), &row.run_id), (value, run_id));
        if self.oldest_first { place > after } else { place < after }
    }

    /// Puts rows in the order asked for.
    pub fn sort(&self, rows: &mut [RunRow]) {
        rows.sort_unstable_by(|a, b| (self.order.value(a), &a.run_id).cmp(&(self.order.value(b), &b.run_id)));
        if !self.oldest_first {
            rows.reverse();
        }
    }

    /// Whether a row meets every condition, its place in the order aside. The rule that databases put into SQL.
    pub fn matches(&self, row: &RunRow) -> bool {
        let same = |asked: &Option<String>, has: Option<&str>| asked.is_none() || asked.as_deref() == has;
        (self.visible.is_empty() || self.visible.contains(&row.visible))
            && self.outcome.as_ref().is_none_or(|outcomes| outcomes.contains(&row.outcome))
            && same(&self.plan_id, Some(&row.plan_id))
            && same(&self.plan_version, Some(&row.plan_version))
            && same(&self.name, row.name.as_deref())
            && same(&self.correlation_id, row.correlation_id.as_deref())
            && self.invocations.is_none_or(|asked| row.invocation == asked)
            && (self.mode.is_none() || self.mode == row.mode)
            && (self.plan_ids.is_empty() || self.plan_ids.iter().any(|plan| **plan == *row.plan_id))
            && self.filter.as_ref().is_none_or(|filter| filter.matches(row))
            && self.created_from.is_none_or(|from| row.created_at >= from)
            && self.created_until.is_none_or(|until| row.created_at < until)
    }
}

#[async_trait]
pub trait RunStore: Send + Sync {
    async fn get_run(&self, scope: &Scope, run_id: &RunId) -> Result<Option<RunRow>>;

    async fn list_runs(&self, scope: &Scope, query: &RunQuery) -> Result<Vec<RunRow>>;

    async fn find_request(&self, tenant: &TenantId, key: Digest) -> Result<Option<RunId>>;

    /// Frees a request that started this run, so that it may start another. False if it has no such request (any more),
    /// so of several callers one frees it, and none frees what a later run took.
    async fn release_request(&self, tenant: &TenantId, key: Digest, run_id: &RunId) -> Result<bool>;

    /// How many invocations a tenant has in each status, of all its entrypoints or of one, in the order of the statuses
    /// and without those that none is in. Kept with the rows, so asking costs the same however many there are.
    async fn count_by_visible(&self, tenant: &TenantId, plan_id: Option<&str>) -> Result<Vec<(InvocationStatus, u64)>>;

    /// Runs of a tenant that are `RUNNING` or `PAUSED`, counted up to `most`.
    async fn count_active(&self, tenant: &TenantId, most: u32) -> Result<u32>;

    /// Runs of a plan that have not ended, by version, in the order of the versions' bytes: what an old version still has
    /// to do before it can go.
    async fn count_open(&self, tenant: &TenantId, plan_id: &str) -> Result<Vec<(String, u64)>>;

    /// Runs below a root that have not ended, counted up to `most`.
    async fn count_descendants(&self, tenant: &TenantId, root: &RunId, most: u32) -> Result<u32>;

    /// Their ids, in order, behind `after`.
    async fn open_descendants(
        &self,
        tenant: &TenantId,
        root: &RunId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunId>>;
}
