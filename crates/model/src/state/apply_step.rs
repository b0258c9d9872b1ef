//! Applying step events.

use super::{Applied, Attempt, RunState};
use crate::event::{StepCompleted, StepFailed, StepRetryScheduled, StepSkipped, StepTakenOver};
use crate::step::StepChange;
use crate::{StepId, StepStatus, Timestamp};

impl RunState {
    pub(super) fn step_started(
        &mut self,
        step_id: &StepId,
        attempt: u32,
        engine_attempt: Option<u32>,
        at: Timestamp,
    ) -> Applied {
        let number = self.step_or_new(step_id);
        match self.enter(number, attempt, StepChange::Started) {
            Ok(()) => {
                let current = &mut self.steps[number as usize].attempt;
                current.started_at = Some(at);
                current.engine_attempt_id = engine_attempt;
                self.inversion(number)
            }
            Err(applied) => applied,
        }
    }

    pub(super) fn step_completed(&mut self, body: &StepCompleted, at: Timestamp) -> Applied {
        let number = self.step_or_new(&body.step_id);
        match self.enter(number, body.logical_attempt_id, StepChange::Completed) {
            Ok(()) => {
                let current = &mut self.steps[number as usize].attempt;
                current.completed_at = Some(at);
                current.engine_attempt_id = body.engine_attempt_id.or(current.engine_attempt_id);
                current.artifacts.clone_from(&body.artifacts);
                self.inversion(number)
            }
            Err(applied) => applied,
        }
    }

    pub(super) fn step_failed(&mut self, body: &StepFailed, at: Timestamp) -> Applied {
        let number = self.step_or_new(&body.step_id);
        match self.enter(number, body.logical_attempt_id, StepChange::Failed) {
            Ok(()) => {
                let current = &mut self.steps[number as usize].attempt;
                current.completed_at = Some(at);
                current.engine_attempt_id = body.engine_attempt_id.or(current.engine_attempt_id);
                current.error = Some(body.error.clone());
                self.failures.push(number);
                self.first_failure = self.failures.first().copied();
                Applied::Changed
            }
            Err(applied) => applied,
        }
    }

    pub(super) fn step_skipped(&mut self, body: &StepSkipped, at: Timestamp) -> Applied {
        let number = self.step_or_new(&body.step_id);
        match self.enter(number, body.logical_attempt_id, StepChange::Skipped) {
            Ok(()) => {
                let current = &mut self.steps[number as usize].attempt;
                current.completed_at = Some(at);
                current.skip = Some(body.cause);
                current.skip_reason = Some(body.reason.clone());
                Applied::Changed
            }
            Err(applied) => applied,
        }
    }

    pub(super) fn step_retried(&mut self, body: &StepRetryScheduled) -> Applied {
        let number = self.step_or_new(&body.step_id);
        if body.logical_attempt_id <= self.step(number).attempt.logical_attempt_id {
            return Applied::Duplicate;
        }
        self.next_attempt(number, body.logical_attempt_id, body.not_before);
        Applied::Changed
    }

    pub(super) fn step_taken_over(&mut self, body: &StepTakenOver) -> Applied {
        let number = self.step_or_new(&body.step_id);
        let current = &mut self.steps[number as usize].attempt;
        let newer = body.engine_attempt_id > current.engine_attempt_id.unwrap_or(0);
        if body.logical_attempt_id != current.logical_attempt_id || !newer {
            return Applied::Duplicate;
        }
        if current.status != StepStatus::Running {
            return Applied::Illegal(format!("a {} attempt cannot be taken over", current.status.as_str()));
        }
        current.engine_attempt_id = Some(body.engine_attempt_id);
        Applied::Changed
    }

    fn step_or_new(&mut self, step_id: &StepId) -> u32 {
        match self.step_number(step_id) {
            Some(number) => number,
            None => self.add_step(step_id.clone()),
        }
    }

    /// Moves the attempt along and keeps the counters. A result whose start was never recorded implies the start: the
    /// log says that the step ended, and an ending has a beginning.
    fn enter(&mut self, number: u32, attempt: u32, change: StepChange) -> Result<(), Applied> {
        let current = &self.step(number).attempt;
        if attempt < current.logical_attempt_id {
            return Err(Applied::Duplicate);
        }
        if attempt > current.logical_attempt_id {
            self.next_attempt(number, attempt, None);
        }
        let from = self.step(number).attempt.status;
        let implied = match (from, change) {
            (StepStatus::Pending, StepChange::Completed | StepChange::Failed) => StepStatus::Running,
            _ => from,
        };
        let Ok(to) = implied.next(change) else {
            return Err(if has_happened(from, change) {
                Applied::Duplicate
            } else {
                Applied::Illegal(format!("a {} attempt cannot be {}", from.as_str(), change.as_str()))
            });
        };
        self.leave(number);
        self.count(to, 1);
        self.steps[number as usize].attempt.status = to;
        Ok(())
    }

    fn next_attempt(&mut self, number: u32, attempt: u32, not_before: Option<Timestamp>) {
        self.leave(number);
        let step = &mut self.steps[number as usize];
        let finished = std::mem::replace(&mut step.attempt, Attempt::pending(attempt, not_before));
        step.past.push(finished);
        self.count(StepStatus::Pending, 1);
        self.failures.retain(|failed| *failed != number);
        self.first_failure = self.failures.first().copied();
        if let Some(due) = not_before {
            self.delayed.insert((due, number));
        }
    }

    /// Takes the current attempt out of the counters.
    fn leave(&mut self, number: u32) {
        let attempt = &self.step(number).attempt;
        let (status, not_before) = (attempt.status, attempt.not_before);
        if let Some(due) = not_before {
            self.delayed.remove(&(due, number));
        }
        self.count(status, -1);
    }

    fn count(&mut self, status: StepStatus, by: i32) {
        let add = |counter: &mut u32| *counter = counter.saturating_add_signed(by);
        match status {
            StepStatus::Pending => add(&mut self.open_steps),
            StepStatus::Running => {
                add(&mut self.open_steps);
                add(&mut self.in_flight);
            }
            StepStatus::Failed => add(&mut self.failed_steps),
            StepStatus::Success | StepStatus::Skipped => {}
        }
    }

    /// A step that moved although a step it depends on is not satisfied.
    fn inversion(&self, number: u32) -> Applied {
        let Some(plan) = self.plan.as_ref().filter(|plan| (number as usize) < plan.steps.len()) else {
            return Applied::Changed;
        };
        match plan.dependencies(number).iter().find(|&&on| !self.is_satisfied(on)) {
            Some(&on) => {
                Applied::Inverted { step: self.step(number).step_id.clone(), dependency: self.step(on).step_id.clone() }
            }
            None => Applied::Changed,
        }
    }
}

/// Whether a change that is not possible now is one that the attempt already has behind it.
fn has_happened(status: StepStatus, change: StepChange) -> bool {
    match change {
        StepChange::Started => matches!(status, StepStatus::Running | StepStatus::Success | StepStatus::Failed),
        StepChange::Completed => status == StepStatus::Success,
        StepChange::Failed => status == StepStatus::Failed,
        StepChange::Skipped => status == StepStatus::Skipped,
    }
}
