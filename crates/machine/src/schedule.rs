//! Which steps may go, and whether the run is done: the state as it will be once this decision is recorded.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::event::{EventBody, RootCause, RunCompleted, RunFailed, SkipCause, StepSkipped};
use servo_model::{RunState, RunStatus, StepError, StepStatus, Timestamp};

use crate::decision::{Action, Decision};

/// The state, overlaid with what this decision changes. Copying the state would cost as much as the plan is large, for
/// every step.
pub(crate) struct View<'a> {
    pub state: &'a RunState,
    changed: BTreeMap<u32, Change>,
}

#[derive(Clone)]
enum Change {
    Success,
    Failed(StepError),
    SkippedByOperator,
    SkippedUpstream,
    /// A new attempt with this number.
    Pending(u32),
}

impl<'a> View<'a> {
    pub(crate) fn new(state: &'a RunState) -> Self {
        Self { state, changed: BTreeMap::new() }
    }

    pub(crate) fn succeed(&mut self, number: u32) {
        self.changed.insert(number, Change::Success);
    }

    pub(crate) fn fail(&mut self, number: u32, error: &StepError) {
        self.changed.insert(number, Change::Failed(error.clone()));
    }

    pub(crate) fn skip(&mut self, number: u32) {
        self.changed.insert(number, Change::SkippedByOperator);
    }

    pub(crate) fn pend(&mut self, number: u32, attempt: u32) {
        self.changed.insert(number, Change::Pending(attempt));
    }

    fn is_satisfied(&self, number: u32) -> bool {
        match self.changed.get(&number) {
            Some(Change::Success | Change::SkippedByOperator) => true,
            Some(Change::Failed(_) | Change::SkippedUpstream | Change::Pending(_)) => false,
            None => self.state.is_satisfied(number),
        }
    }

    fn status(&self, number: u32) -> StepStatus {
        match self.changed.get(&number) {
            Some(Change::Success) => StepStatus::Success,
            Some(Change::Failed(_)) => StepStatus::Failed,
            Some(Change::SkippedByOperator | Change::SkippedUpstream) => StepStatus::Skipped,
            Some(Change::Pending(_)) => StepStatus::Pending,
            None => self.state.step(number).attempt.status,
        }
    }

    pub(crate) fn is_skipped_upstream(&self, number: u32) -> bool {
        match self.changed.get(&number) {
            Some(change) => matches!(change, Change::SkippedUpstream),
            None => self.state.step(number).attempt.skip == Some(SkipCause::UpstreamFailed),
        }
    }

    /// A step before it failed, or was skipped for such a reason.
    pub(crate) fn is_behind_failure(&self, number: u32) -> bool {
        let Some(plan) = &self.state.plan else { return false };
        let stops = |on: &u32| self.status(*on) == StepStatus::Failed || self.is_skipped_upstream(*on);
        plan.dependencies(number).iter().any(stops)
    }

    fn attempt(&self, number: u32) -> u32 {
        match self.changed.get(&number) {
            Some(Change::Pending(attempt)) => *attempt,
            _ => self.state.step(number).attempt.logical_attempt_id,
        }
    }

    /// Pending, and all it depends on is satisfied.
    fn is_ready(&self, number: u32) -> bool {
        let Some(plan) = &self.state.plan else { return false };
        self.status(number) == StepStatus::Pending && plan.dependencies(number).iter().all(|&on| self.is_satisfied(on))
    }

    pub(crate) fn dispatch(&self, number: u32, decision: &mut Decision) {
        let step_id = self.state.step(number).step_id.clone();
        decision.act(Action::Dispatch { step_id, attempt: self.attempt(number) });
    }

    /// Dependents of a step that just became satisfied. A step becomes ready once, when the last of its dependencies
    /// does, so nothing is handed out twice.
    pub(crate) fn dispatch_dependents(&self, number: u32, decision: &mut Decision) {
        let Some(plan) = &self.state.plan else { return };
        for &next in plan.dependents(number) {
            if self.is_ready(next) {
                self.dispatch(next, decision);
            }
        }
    }

    fn ready_now(&self, now: Timestamp) -> impl Iterator<Item = u32> + '_ {
        let steps = u32::try_from(self.state.steps.len()).unwrap_or(u32::MAX);
        (0..steps).filter(move |&number| {
            let delayed = !self.changed.contains_key(&number)
                && self.state.step(number).attempt.not_before.is_some_and(|due| due > now);
            !delayed && self.is_ready(number)
        })
    }

    pub(crate) fn dispatch_all_ready(&self, decision: &mut Decision, now: Timestamp) {
        for number in self.ready_now(now) {
            self.dispatch(number, decision);
        }
    }

    pub(crate) fn withdraw_all_ready(&self, decision: &mut Decision) {
        for number in self.ready_now(Timestamp::MAX) {
            let step_id = self.state.step(number).step_id.clone();
            decision.act(Action::Withdraw { step_id, attempt: self.attempt(number) });
        }
    }

    /// Skips everything that waits, directly or not, for a step that failed for good.
    pub(crate) fn skip_downstream(&mut self, failed: u32, decision: &mut Decision) {
        let Some(plan) = self.state.plan.clone() else { return };
        let upstream = self.state.step(failed).step_id.clone();
        let mut seen = BTreeSet::new();
        let mut open = vec![failed];
        while let Some(step) = open.pop() {
            for &next in plan.dependents(step) {
                if self.status(next) != StepStatus::Pending || !seen.insert(next) {
                    continue;
                }
                decision.fact(EventBody::StepSkipped(StepSkipped {
                    step_id: self.state.step(next).step_id.clone(),
                    status: StepStatus::Skipped,
                    logical_attempt_id: self.attempt(next),
                    cause: SkipCause::UpstreamFailed,
                    reason: format!("step `{upstream}` failed"),
                    upstream_step_id: Some(upstream.clone()),
                }));
                open.push(next);
            }
        }
        for number in seen {
            self.changed.insert(number, Change::SkippedUpstream);
        }
    }

    /// Ends the run when no step is open any more.
    pub(crate) fn finish_if_done(&self, decision: &mut Decision) {
        let was_open = |number: &u32| !self.state.step(*number).attempt.status.is_terminal();
        let is_open = |number: &u32| !self.status(*number).is_terminal();
        let closed = self.changed.keys().filter(|n| was_open(n) && !is_open(n)).count();
        let reopened = self.changed.keys().filter(|n| !was_open(n) && is_open(n)).count();
        if self.state.open_steps as usize + reopened > closed {
            return;
        }
        let was_failed = |n: &u32| self.state.step(*n).attempt.status == StepStatus::Failed;
        let now_failed = self.changed.iter().filter(|(_, change)| matches!(change, Change::Failed(_))).count();
        let repaired = self.changed.keys().filter(|n| was_failed(n)).count();
        let body = if self.state.failed_steps as usize + now_failed > repaired {
            EventBody::RunFailed(RunFailed {
                status: RunStatus::Failed,
                logical_attempt_id: self.state.round,
                root_cause: self.root_cause(),
            })
        } else {
            EventBody::RunCompleted(RunCompleted { status: RunStatus::Completed, logical_attempt_id: self.state.round })
        };
        decision.fact(body);
    }

    /// The first failure of this round that still stands, else the one that this decision records.
    fn root_cause(&self) -> RootCause {
        let standing = self.state.first_failure.filter(|n| self.status(*n) == StepStatus::Failed);
        let number = standing
            .or_else(|| self.changed.iter().find_map(|(n, c)| matches!(c, Change::Failed(_)).then_some(*n)))
            .or_else(|| {
                let failed = self.state.steps.iter().position(|s| s.attempt.status == StepStatus::Failed)?;
                u32::try_from(failed).ok()
            });
        let Some(number) = number else {
            return RootCause { step_id: None, code: "UNKNOWN".to_owned(), message: "a step failed".to_owned() };
        };
        let error = match self.changed.get(&number) {
            Some(Change::Failed(error)) => Some(error),
            _ => self.state.step(number).attempt.error.as_ref(),
        };
        RootCause {
            step_id: Some(self.state.step(number).step_id.clone()),
            code: error.map_or_else(|| "UNKNOWN".to_owned(), |e| e.code.clone()),
            message: error.map_or_else(String::new, |e| e.message.clone()),
        }
    }
}
