//! The fold: a run's state is what its events add up to, and nothing else.
//!
//! `apply` is total. A log may hold duplicates, gaps, unknown types and events in an order that no writer of ours would
//! choose; each advances the watermark, and what it could not mean is reported in `Applied`, never guessed. What a
//! *new* event must satisfy is decided by `servo-machine`, with the strict transition functions of `run` and `step`.

mod apply;
mod apply_step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_canon::Digest;

use crate::event::{Lineage, RootCause, SignalType, SkipCause};
use crate::execution::Execution;
use crate::invocation::{EntrypointPin, InvocationStatus};
use crate::plan::{Plan, PlanRef, RunContext};
use crate::{ArtifactRef, Event, RunId, RunStatus, SignalId, StepError, StepId, StepStatus, TenantId, Timestamp};

pub use apply::Applied;

/// Everything that decisions and views need to know of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    pub run_id: RunId,
    pub status: RunStatus,
    /// Highest `runSeq` applied.
    pub last_event_seq: u64,
    /// How often the run was queued: 1, and one more for each retry of the whole run.
    pub round: u32,
    pub pauses: u32,
    pub resumes: u32,
    pub signals_accepted: u32,
    pub signals_rejected: u32,
    pub plan: Option<Arc<Plan>>,
    pub plan_ref: Option<Arc<PlanRef>>,
    pub context: Option<Arc<RunContext>>,
    pub request_digest: Option<Digest>,
    pub engine_run_ref: Option<String>,
    pub engine_type: Option<String>,
    pub approval_required: bool,
    pub not_before: Option<Timestamp>,
    /// In plan order; steps that no plan names follow in order of appearance.
    pub steps: Vec<StepState>,
    index: BTreeMap<StepId, u32>,
    /// Attempts in `RUNNING`.
    pub in_flight: u32,
    /// Steps whose current attempt is `PENDING` or `RUNNING`.
    pub open_steps: u32,
    /// Steps whose current attempt is `FAILED`.
    pub failed_steps: u32,
    /// Pending attempts that wait for a time, earliest first.
    delayed: BTreeSet<(Timestamp, u32)>,
    /// How each signal was answered, so that a repeated one changes nothing.
    pub signals: BTreeMap<SignalId, SignalRecord>,
    pub queued_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub drain_until: Option<Timestamp>,
    /// The number of the pause whose drain timed out.
    pub drain_timed_out: u32,
    pub reason: Option<String>,
    pub root_cause: Option<RootCause>,
    /// The first step that failed in this round and was not retried since, for the root cause.
    pub first_failure: Option<u32>,
    /// All of them, in order: when the first one is retried, the next one is the cause.
    #[serde(default)]
    failures: Vec<u32>,
    /// Set when the run executes a function instead of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Box<Execution>>,
    /// Set when the run came out of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Box<Imported>>,
}

/// Who put a run into this store, when, and how often that was done to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    pub by: String,
    pub at: Timestamp,
    pub times: u32,
}

/// One step with its current attempt; earlier attempts are kept as they ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepState {
    pub step_id: StepId,
    #[serde(flatten)]
    pub attempt: Attempt,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<Attempt>,
}

/// One logical attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    pub status: StepStatus,
    pub logical_attempt_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_attempt_id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<SkipCause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRecord {
    pub signal_type: SignalType,
    pub step_id: Option<StepId>,
    pub run_seq: u64,
    /// `None` when it was accepted.
    pub rejection: Option<(String, String)>,
}

impl Attempt {
    fn pending(logical_attempt_id: u32, not_before: Option<Timestamp>) -> Self {
        Self {
            status: StepStatus::Pending,
            logical_attempt_id,
            engine_attempt_id: None,
            started_at: None,
            completed_at: None,
            not_before,
            artifacts: Vec::new(),
            error: None,
            skip: None,
            skip_reason: None,
        }
    }
}

impl RunState {
    /// A run of which no event is known.
    pub fn new(run_id: RunId) -> Self {
        Self {
            run_id,
            status: RunStatus::Pending,
            last_event_seq: 0,
            round: 0,
            pauses: 0,
            resumes: 0,
            signals_accepted: 0,
            signals_rejected: 0,
            plan: None,
            plan_ref: None,
            context: None,
            request_digest: None,
            engine_run_ref: None,
            engine_type: None,
            approval_required: false,
            not_before: None,
            steps: Vec::new(),
            index: BTreeMap::new(),
            in_flight: 0,
            open_steps: 0,
            failed_steps: 0,
            delayed: BTreeSet::new(),
            signals: BTreeMap::new(),
            queued_at: None,
            started_at: None,
            completed_at: None,
            drain_until: None,
            drain_timed_out: 0,
            reason: None,
            root_cause: None,
            first_failure: None,
            failures: Vec::new(),
            execution: None,
            imported: None,
        }
    }

    /// Folds a run's events, all of them or those after what this state has seen.
    #[must_use]
    pub fn fold<'a>(self, events: impl IntoIterator<Item = &'a Event>) -> Self {
        events.into_iter().fold(self, |state, event| state.apply(event).0)
    }

    pub fn tenant(&self) -> Option<&TenantId> {
        self.context.as_ref().map(|context| &context.tenant_id)
    }

    pub fn plan_version(&self) -> &str {
        self.plan_ref.as_ref().map_or("", |plan| plan.plan_version.as_str())
    }

    pub fn step_number(&self, step: &StepId) -> Option<u32> {
        self.index.get(step).copied()
    }

    pub fn step(&self, number: u32) -> &StepState {
        &self.steps[number as usize]
    }

    /// Paused with steps still in flight and the drain timeout not reached.
    pub fn is_draining(&self) -> bool {
        self.status == RunStatus::Paused && self.in_flight > 0 && self.drain_timed_out < self.pauses
    }

    /// Whether dependents may go on: the step succeeded, or somebody decided that it need not.
    pub fn is_satisfied(&self, number: u32) -> bool {
        let attempt = &self.step(number).attempt;
        match attempt.status {
            StepStatus::Success => true,
            StepStatus::Skipped => attempt.skip != Some(SkipCause::UpstreamFailed),
            StepStatus::Pending | StepStatus::Running | StepStatus::Failed => false,
        }
    }

    pub fn dependencies_satisfied(&self, number: u32) -> bool {
        let Some(plan) = &self.plan else { return true };
        if number as usize >= plan.steps.len() {
            return true;
        }
        plan.dependencies(number).iter().all(|&on| self.is_satisfied(on))
    }

    /// The next time after `now` at which something happens by itself: the drain timeout, or a delayed attempt. One
    /// timer row per run holds it, so a million waiting runs cost a million rows and no memory. Attempts that are due
    /// already were handed out by the decision made at `now`.
    pub fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        match self.status {
            RunStatus::Paused => {
                let drained = self.drain_until.filter(|_| self.is_draining());
                let waited = self.execution.as_ref().and_then(|execution| execution.suspension_ends());
                [drained, waited.filter(|at| *at > now)].into_iter().flatten().min()
            }
            RunStatus::Running if self.execution.is_some() => self.execution.as_ref()?.next_due(now),
            RunStatus::Running => self.delayed.iter().map(|(due, _)| *due).find(|due| *due > now),
            RunStatus::Failed => self.dead_letter_at().filter(|at| *at > now),
            RunStatus::Pending | RunStatus::Approved | RunStatus::Completed | RunStatus::Cancelled => None,
        }
    }

    /// The entrypoint that this is a run of, as it was when the run started.
    pub fn entrypoint(&self) -> Option<&EntrypointPin> {
        self.execution.as_ref()?.head.start.entrypoint.as_deref()
    }

    /// The run with which a tree of runs that start runs began, if this is not that one.
    pub fn root(&self) -> Option<&RunId> {
        Some(&self.lineage()?.root)
    }

    pub fn lineage(&self) -> Option<&Lineage> {
        self.execution.as_ref()?.head.start.lineage.as_deref()
    }

    /// When a failed run that nobody undoes is given up.
    pub fn dead_letter_at(&self) -> Option<Timestamp> {
        let (head, pin) = (&self.execution.as_ref()?.head, self.entrypoint()?);
        let rests = self.status == RunStatus::Failed && head.compensation.is_none() && !head.dead_lettered;
        let grace = std::time::Duration::from_secs(pin.dead_letter_grace_seconds);
        self.completed_at.filter(|_| rests).map(|at| at.plus(grace))
    }

    /// The status that callers see and filter by.
    pub fn visible(&self) -> InvocationStatus {
        use InvocationStatus as S;
        let ended = match self.status {
            RunStatus::Pending | RunStatus::Approved => return S::Queued,
            RunStatus::Paused => return S::Suspended,
            RunStatus::Completed => return S::Succeeded,
            RunStatus::Running => {
                let Some(execution) = self.execution.as_ref().filter(|_| self.entrypoint().is_some()) else {
                    return if self.is_suspended() { S::Suspended } else { S::Running };
                };
                return match () {
                    () if !execution.has_begun() => S::Queued,
                    () if execution.waits_outside() => S::Suspended,
                    () => S::Running,
                };
            }
            RunStatus::Failed => S::Failed,
            RunStatus::Cancelled => S::Canceled,
        };
        let Some(head) = self.execution.as_ref().map(|execution| &execution.head) else { return ended };
        match &head.compensation {
            _ if head.dead_lettered => S::DeadLettered,
            // What could not be undone is a dead letter by the next event.
            Some(compensation) if !compensation.ended || compensation.error.is_some() => S::Compensating,
            Some(_) => S::Compensated,
            None => ended,
        }
    }

    /// It runs a function that waits for a time, a message or another run, and nobody paused it.
    pub fn waits_outside(&self) -> bool {
        self.status == RunStatus::Running && self.execution.as_ref().is_some_and(|execution| execution.waits_outside())
    }

    /// Nothing is in flight and an attempt waits for a time.
    pub fn waits_until(&self) -> Option<Timestamp> {
        match self.status {
            RunStatus::Running if self.in_flight == 0 => self.delayed.first().map(|(due, _)| *due),
            _ => None,
        }
    }

    /// Nothing runs, and nothing will before a time has come or somebody has acted.
    pub fn is_suspended(&self) -> bool {
        match (&self.execution, self.status) {
            (Some(execution), RunStatus::Running) => execution.is_suspended(),
            (None, RunStatus::Running) => self.waits_until().is_some(),
            (_, status) => status == RunStatus::Paused,
        }
    }

    /// Pending attempts whose time has come.
    pub fn due_steps(&self, now: Timestamp) -> impl Iterator<Item = u32> + '_ {
        self.delayed.iter().take_while(move |(due, _)| *due <= now).map(|(_, number)| *number)
    }

    /// Artifacts of all steps that succeeded, in plan order.
    pub fn artifacts(&self) -> Vec<ArtifactRef> {
        let done = self.steps.iter().filter(|step| step.attempt.status == StepStatus::Success);
        done.flat_map(|step| step.attempt.artifacts.iter().cloned()).collect()
    }

    /// Rough bytes in memory, for the cache's limit.
    pub fn weight_bytes(&self) -> usize {
        let steps: usize = self.steps.iter().map(|s| 400 + s.past.len() * 200 + s.attempt.artifacts.len() * 200).sum();
        let execution = self.execution.as_ref().map_or(0, |execution| execution.weight_bytes());
        1_000 + steps * 2 + self.signals.len() * 150 + execution
    }
}
