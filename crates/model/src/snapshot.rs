//! The public view of a run: what `GET /v1/runs/{id}` answers.

use serde::{Deserialize, Serialize};

use crate::event::RootCause;
use crate::invocation::Failure;
use crate::listing::{self, OperationSnapshot};
use crate::state::Attempt;
use crate::waiting::{Wait, waits};
use crate::{ArtifactRef, RunId, RunState, RunStatus, StepError, StepId, StepStatus, Timestamp};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSnapshot {
    pub run_id: RunId,
    pub status: RunStatus,
    /// `DRAINING` while a paused run waits for steps in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substatus: Option<Substatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub last_event_seq: u64,
    pub steps: Vec<StepSnapshot>,
    pub artifacts: Vec<ArtifactRef>,
    pub failed_steps: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<RootCause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_run_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_duration_ms: Option<u64>,
    /// Who put the run into this store, if it came out of a file: then its events say what the file said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_at: Option<Timestamp>,
    /// Why a run that is not running waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<BlockedBy>,
    /// What a workflow or a durable function has recorded, in the order in which it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationSnapshot>,
    /// How many there are, where not all are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations_total: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Substatus {
    Draining,
}

/// A cause of waiting and the earliest time at which it can end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockedBy {
    pub cause: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    /// Of the operation that waits, or of what is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the cause alone does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when this is waited for, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_at: Option<Timestamp>,
}

impl BlockedBy {
    pub fn cause(cause: &str, earliest_at: Option<Timestamp>) -> Self {
        Self { cause: cause.to_owned(), step_id: None, name: None, reason: None, since: None, earliest_at }
    }
}

/// One attempt of a step. A retried step appears once per attempt, so that the failed ones stay visible.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSnapshot {
    pub step_id: StepId,
    pub status: StepStatus,
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_attempt_id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    pub artifacts: Vec<ArtifactRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
}

impl From<&RunState> for RunSnapshot {
    fn from(state: &RunState) -> Self {
        let steps = state.steps.iter().flat_map(|step| {
            step.past.iter().chain([&step.attempt]).map(|attempt| StepSnapshot::new(&step.step_id, attempt))
        });
        let artifacts = if state.status == RunStatus::Completed { state.artifacts() } else { Vec::new() };
        let duration = state.started_at.zip(state.completed_at).map(|(start, end)| end.since(start));
        Self {
            run_id: state.run_id.clone(),
            status: state.status,
            substatus: state.is_draining().then_some(Substatus::Draining),
            message: message(state),
            last_event_seq: state.last_event_seq,
            steps: steps.collect(),
            artifacts,
            failed_steps: state.failed_steps,
            root_cause: state.root_cause.clone(),
            engine_run_ref: state.engine_run_ref.clone(),
            engine_type: state.engine_type.clone(),
            queued_at: state.queued_at,
            started_at: state.started_at,
            completed_at: state.completed_at,
            total_duration_ms: duration.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
            imported_by: state.imported.as_ref().map(|imported| imported.by.clone()),
            imported_at: state.imported.as_ref().map(|imported| imported.at),
            blocked_by: blocked_by(state),
            operations: Vec::new(),
            operations_total: None,
        }
    }
}

impl RunSnapshot {
    /// With all that people ask of one run: its operations, since when it waits, and why it could not be undone.
    pub fn whole(state: &RunState) -> Self {
        let mut snapshot = Self::from(state);
        let Some(execution) = state.execution.as_deref() else { return snapshot };
        let (operations, total) = listing::list(execution);
        snapshot.operations_total = (operations.len() < total).then_some(total);
        snapshot.operations = operations;
        if let Some(error) = execution.not_undone() {
            snapshot.message = Some(format!("could not be undone: {}", Failure::of(error).message));
        }
        if state.status == RunStatus::Running {
            // The same waits in the same order.
            for (blocked, wait) in snapshot.blocked_by.iter_mut().zip(waits(state, execution)) {
                blocked.since = wait.since();
            }
        }
        snapshot
    }
}

impl StepSnapshot {
    fn new(step_id: &StepId, attempt: &Attempt) -> Self {
        Self {
            step_id: step_id.clone(),
            status: attempt.status,
            logical_attempt_id: attempt.logical_attempt_id,
            engine_attempt_id: attempt.engine_attempt_id,
            started_at: attempt.started_at,
            completed_at: attempt.completed_at,
            artifacts: attempt.artifacts.clone(),
            error: attempt.error.clone(),
            skip_reason: attempt.skip_reason.clone(),
        }
    }
}

fn message(state: &RunState) -> Option<String> {
    if state.is_draining() {
        let tasks = if state.in_flight == 1 { "task" } else { "tasks" };
        return Some(format!("Workflow paused. Waiting for {} in-flight {tasks} to complete.", state.in_flight));
    }
    state.reason.clone()
}

fn blocked_by(state: &RunState) -> Vec<BlockedBy> {
    let blocked = BlockedBy::cause;
    match state.status {
        RunStatus::Pending if state.approval_required => vec![blocked("approval", state.not_before)],
        RunStatus::Pending if state.not_before.is_some() => vec![blocked("delay", state.not_before)],
        RunStatus::Pending | RunStatus::Approved => vec![blocked("capacity", None)],
        RunStatus::Paused if state.is_draining() => vec![blocked("draining", state.drain_until)],
        RunStatus::Paused => vec![blocked("pause", None)],
        RunStatus::Running if let Some(execution) = &state.execution => {
            let told = |wait: Wait<'_>| {
                let name = wait.operation.and_then(|operation| operation.name.clone());
                BlockedBy { name, reason: wait.reason(), ..blocked(wait.cause.as_str(), wait.until) }
            };
            waits(state, execution).into_iter().map(told).collect()
        }
        RunStatus::Running => match state.waits_until() {
            Some(due) => vec![blocked("retry", Some(due))],
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}
