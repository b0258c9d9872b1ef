//! Applying run-level events.

use std::sync::Arc;

use super::{Attempt, Imported, RunState, SignalRecord, StepState};
use crate::event::{EventBody, RunQueued, RunStarted, SignalType};
use crate::execution::Execution;
use crate::plan::Plan;
use crate::run::RunChange;
use crate::{Event, RunStatus, StepId, StepStatus};

/// What an event did to the state. The watermark has advanced in every case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    Changed,
    /// Seen before: same idempotency key, or an older `runSeq`.
    Duplicate,
    /// A type this version does not know, or one that says nothing about the run's state.
    NoEffect,
    /// The state does not allow it; the status stays as it is.
    Illegal(String),
    /// Applied, but a step it depends on is not satisfied yet.
    Inverted {
        step: StepId,
        dependency: StepId,
    },
}

impl RunState {
    /// One event. Takes the state and gives the next one: nobody holds a state that changes under their hands.
    #[must_use]
    pub fn apply(mut self, event: &Event) -> (Self, Applied) {
        let applied = self.advance(event);
        (self, applied)
    }

    /// The same in place, for whoever folds many events: a state is too large to be moved for each of them.
    pub fn advance(&mut self, event: &Event) -> Applied {
        if event.run_seq <= self.last_event_seq {
            return Applied::Duplicate;
        }
        let applied = self.apply_body(event);
        self.last_event_seq = event.run_seq;
        applied
    }

    fn apply_body(&mut self, event: &Event) -> Applied {
        use EventBody as B;
        let at = event.at();
        match &event.body {
            B::RunQueued(body) => self.run_queued(event, body),
            B::RunApproved(body) => self.change(body.logical_attempt_id, RunChange::Approved),
            B::RunStarted(body) => self.run_started(body),
            B::RunPaused(body) => {
                if body.logical_attempt_id <= self.pauses {
                    return Applied::Duplicate;
                }
                let applied = self.change(self.round, RunChange::Paused);
                if applied == Applied::Changed {
                    if let Some(execution) = self.execution.as_deref_mut() {
                        execution.head.suspended_at = Some(at);
                    }
                    self.pauses = body.logical_attempt_id;
                    self.drain_until = body.drain_until;
                    self.reason.clone_from(&body.reason);
                }
                applied
            }
            B::RunResumed(body) => {
                if body.logical_attempt_id <= self.resumes {
                    return Applied::Duplicate;
                }
                let applied = self.change(self.round, RunChange::Resumed);
                if applied == Applied::Changed {
                    self.resumes = body.logical_attempt_id;
                    self.drain_until = None;
                    self.reason = None;
                }
                applied
            }
            B::RunCompleted(body) => self.finish(body.logical_attempt_id, RunChange::Completed, event),
            B::RunFailed(body) => {
                let applied = self.finish(body.logical_attempt_id, RunChange::Failed, event);
                if applied == Applied::Changed {
                    self.root_cause = Some(body.root_cause.clone());
                }
                applied
            }
            B::RunCancelled(body) => {
                let applied = self.finish(body.logical_attempt_id, RunChange::Cancelled, event);
                if applied == Applied::Changed {
                    self.reason.clone_from(&body.reason);
                }
                applied
            }
            B::SignalAccepted(body) => {
                if body.logical_attempt_id <= self.signals_accepted {
                    return Applied::Duplicate;
                }
                self.signals_accepted = body.logical_attempt_id;
                if body.signal_type == SignalType::Resume
                    && self.waits_outside()
                    && let Some(execution) = &mut self.execution
                {
                    // Nobody paused it: its handler looks again (ADR 20).
                    execution.head.retry_at = Some(at);
                }
                self.remember_signal(event, &body.signal_id, body.signal_type, body.step_id.as_ref(), None)
            }
            B::SignalRejected(body) => {
                if body.logical_attempt_id <= self.signals_rejected {
                    return Applied::Duplicate;
                }
                self.signals_rejected = body.logical_attempt_id;
                let rejection = Some((body.code.clone(), body.reason.clone()));
                self.remember_signal(event, &body.signal_id, body.signal_type, body.step_id.as_ref(), rejection)
            }
            B::DrainTimedOut(body) => {
                if body.logical_attempt_id <= self.drain_timed_out {
                    return Applied::Duplicate;
                }
                self.drain_timed_out = body.logical_attempt_id;
                Applied::Changed
            }
            B::StepStarted(body) => {
                self.step_started(&body.step_id, body.logical_attempt_id, body.engine_attempt_id, at)
            }
            B::StepCompleted(body) => self.step_completed(body, at),
            B::StepFailed(body) => self.step_failed(body, at),
            B::StepSkipped(body) => self.step_skipped(body, at),
            B::StepRetryScheduled(body) => self.step_retried(body),
            B::StepTakenOver(body) => self.step_taken_over(body),
            B::HandlerInvoked(_) => {
                let applied = Execution::apply(&mut self.execution, event);
                self.in_flight += u32::from(applied == Applied::Changed);
                applied
            }
            B::HandlerReturned(_) => {
                let applied = Execution::apply(&mut self.execution, event);
                self.in_flight -= u32::from(applied == Applied::Changed);
                applied
            }
            B::ExecutionStarted(_)
            | B::OperationUpdated(_)
            | B::OperationResolved(_)
            | B::CallbackHeartbeat(_)
            | B::ExecutionEnded(_)
            | B::MessageReceived(_)
            | B::CompensationStarted(_)
            | B::CompensationEnded(_)
            | B::RunDeadLettered(_) => Execution::apply(&mut self.execution, event),
            B::RunImported(body) => {
                // Whatever an imported log says about earlier imports, the last one is our own.
                let times = self.imported.as_ref().map_or(0, |imported| imported.times).saturating_add(1);
                let (by, at) = (body.imported_by.clone(), event.emitted_at);
                self.imported = Some(Box::new(Imported { by, at, times }));
                Applied::Changed
            }
            B::TaskOrphaned(_) | B::Runtime(_) | B::Unknown(_) => Applied::NoEffect,
        }
    }

    /// `round` is the event's own number: an event of an earlier round says nothing about this one.
    fn change(&mut self, round: u32, change: RunChange) -> Applied {
        if round < self.round {
            return Applied::Duplicate;
        }
        match self.status.next(change) {
            Ok(next) => {
                self.status = next;
                Applied::Changed
            }
            Err(_) if has_happened(self.status, change) => Applied::Duplicate,
            Err(illegal) => Applied::Illegal(illegal.to_string()),
        }
    }

    fn finish(&mut self, round: u32, change: RunChange, event: &Event) -> Applied {
        let applied = self.change(round, change);
        if applied == Applied::Changed {
            self.completed_at = Some(event.at());
            self.drain_until = None;
        }
        applied
    }

    /// Creates the run, or opens its next round. In a log whose writers overtook each other it may also come after
    /// events that build on it; then it says what the run is, and no longer how it stands.
    fn run_queued(&mut self, event: &Event, body: &RunQueued) -> Applied {
        let first = self.queued_at.is_none();
        if !first && body.logical_attempt_id <= self.round {
            return Applied::Duplicate;
        }
        let creates = first && self.status == RunStatus::Pending;
        let late = first && !creates && body.logical_attempt_id <= self.round.max(1);
        if !creates && !late {
            let applied = self.change(self.round, RunChange::Requeued);
            if applied != Applied::Changed {
                return applied;
            }
            self.completed_at = None;
            self.root_cause = None;
            if let Some(execution) = self.execution.as_deref_mut() {
                execution.reopen(event.at());
            }
            self.first_failure = None;
            self.failures.clear();
        }
        if !late {
            self.reason.clone_from(&body.reason);
        }
        self.round = self.round.max(body.logical_attempt_id);
        self.queued_at = Some(event.at());
        self.approval_required = body.approval_required;
        self.not_before = body.not_before;
        self.plan_ref = Some(body.plan_ref.clone());
        self.context = Some(body.context.clone());
        if self.request_digest.is_none() {
            self.request_digest = body.request_digest;
        }
        if self.plan.is_none()
            && let Some(raw) = &body.plan
        {
            match serde_json::from_str::<Plan>(raw.get()) {
                Ok(plan) => self.adopt_plan(plan),
                Err(error) => return Applied::Illegal(format!("the plan cannot be read: {error}")),
            }
        }
        Applied::Changed
    }

    /// Puts the steps into the plan's order: their numbers are those of the plan. Steps that were seen before the plan
    /// keep what they have done; those that it does not name follow behind.
    fn adopt_plan(&mut self, plan: Plan) {
        let mut seen: Vec<Option<StepState>> = std::mem::take(&mut self.steps).into_iter().map(Some).collect();
        let old = std::mem::take(&mut self.index);
        let failures = std::mem::take(&mut self.failures);
        for step in &plan.steps {
            match old.get(&step.step_id).and_then(|number| seen[*number as usize].take()) {
                Some(state) => self.put_step(state),
                None => self.add_step(step.step_id.clone()),
            };
        }
        for state in seen.into_iter().flatten() {
            self.put_step(state);
        }
        let renumbered = |number: u32| {
            let step = old.iter().find(|(_, old)| **old == number)?.0;
            self.index.get(step).copied()
        };
        self.failures = failures.into_iter().filter_map(renumbered).collect();
        self.first_failure = self.failures.first().copied();
        let waiting = (0u32..).zip(&self.steps).filter(|(_, step)| step.attempt.status == StepStatus::Pending);
        self.delayed = waiting.filter_map(|(number, step)| Some((step.attempt.not_before?, number))).collect();
        self.plan = Some(Arc::new(plan));
    }

    pub(super) fn add_step(&mut self, step_id: StepId) -> u32 {
        self.open_steps += 1;
        self.put_step(StepState { step_id, attempt: Attempt::pending(1, None), past: Vec::new() })
    }

    fn put_step(&mut self, step: StepState) -> u32 {
        let number = u32::try_from(self.steps.len()).expect("plans are limited far below u32::MAX steps");
        self.index.insert(step.step_id.clone(), number);
        self.steps.push(step);
        number
    }

    fn run_started(&mut self, body: &RunStarted) -> Applied {
        // A log may begin with `RunStarted` (written elsewhere, without queue and approval): the contract's rule is
        // that it sets the status.
        let begins = self.round == 0 && matches!(self.status, RunStatus::Pending | RunStatus::Approved);
        let applied = if begins {
            self.round = body.logical_attempt_id;
            self.status = RunStatus::Running;
            Applied::Changed
        } else {
            self.change(body.logical_attempt_id, RunChange::Started)
        };
        if applied == Applied::Changed {
            self.engine_run_ref = Some(body.engine_run_ref.clone());
            self.engine_type = Some(body.engine_type.clone());
            self.started_at = Some(body.started_at);
            // It said why the run waited.
            self.reason = None;
            if self.plan_ref.is_none() {
                self.plan_ref = Some(body.plan_ref.clone());
            }
            if self.context.is_none() {
                self.context = Some(body.context.clone());
            }
        }
        applied
    }

    fn remember_signal(
        &mut self,
        event: &Event,
        id: &crate::SignalId,
        signal_type: SignalType,
        step_id: Option<&StepId>,
        rejection: Option<(String, String)>,
    ) -> Applied {
        let record = SignalRecord { signal_type, step_id: step_id.cloned(), run_seq: event.run_seq, rejection };
        self.signals.insert(id.clone(), record);
        Applied::Changed
    }
}

/// Whether a change that is not possible now is one that the run already has behind it in this round.
fn has_happened(status: RunStatus, change: RunChange) -> bool {
    use RunStatus as S;
    match change {
        RunChange::Approved => matches!(status, S::Approved | S::Running | S::Paused | S::Completed),
        RunChange::Started => matches!(status, S::Running | S::Paused | S::Completed),
        RunChange::Completed => status == S::Completed,
        RunChange::Failed => status == S::Failed,
        RunChange::Cancelled => status == S::Cancelled,
        // These carry a number of their own, by which a second one is known.
        RunChange::Requeued | RunChange::Paused | RunChange::Resumed => false,
    }
}
