//! Applying run-level events.

use std::sync::Arc;

use super::{Attempt, RunState, SignalRecord, StepState};
use crate::event::{EventBody, RunQueued, RunStarted};
use crate::plan::Plan;
use crate::run::RunChange;
use crate::{Event, StepId};

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
    Inverted { step: StepId, dependency: StepId },
}

impl RunState {
    /// One event. Takes the state and gives the next one: nobody holds a state that changes under their hands.
    #[must_use]
    pub fn apply(mut self, event: &Event) -> (Self, Applied) {
        if event.run_seq <= self.last_event_seq {
            return (self, Applied::Duplicate);
        }
        let applied = self.apply_body(event);
        self.last_event_seq = event.run_seq;
        (self, applied)
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

    fn run_queued(&mut self, event: &Event, body: &RunQueued) -> Applied {
        if body.logical_attempt_id <= self.round {
            return Applied::Duplicate;
        }
        if self.round > 0 {
            let applied = self.change(self.round, RunChange::Requeued);
            if applied != Applied::Changed {
                return applied;
            }
        }
        self.round = body.logical_attempt_id;
        self.queued_at = Some(event.at());
        self.completed_at = None;
        self.root_cause = None;
        self.first_failure = None;
        self.reason.clone_from(&body.reason);
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

    fn adopt_plan(&mut self, plan: Plan) {
        for step in &plan.steps {
            self.add_step(step.step_id.clone());
        }
        self.plan = Some(Arc::new(plan));
    }

    pub(super) fn add_step(&mut self, step_id: StepId) -> u32 {
        let number = u32::try_from(self.steps.len()).expect("plans are limited far below u32::MAX steps");
        self.index.insert(step_id.clone(), number);
        self.steps.push(StepState { step_id, attempt: Attempt::pending(1, None), past: Vec::new() });
        self.open_steps += 1;
        number
    }

    fn run_started(&mut self, body: &RunStarted) -> Applied {
        // A log may begin with `RunStarted` (written elsewhere, without queue and approval): the contract's rule is
        // that it sets the status.
        let applied = if self.round == 0 {
            self.round = body.logical_attempt_id;
            self.status = crate::RunStatus::Running;
            Applied::Changed
        } else {
            self.change(body.logical_attempt_id, RunChange::Started)
        };
        if applied == Applied::Changed {
            self.engine_run_ref = Some(body.engine_run_ref.clone());
            self.engine_type = Some(body.engine_type.clone());
            self.started_at = Some(body.started_at);
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
        signal_type: crate::event::SignalType,
        step_id: Option<&StepId>,
        rejection: Option<(String, String)>,
    ) -> Applied {
        let record = SignalRecord { signal_type, step_id: step_id.cloned(), run_seq: event.run_seq, rejection };
        self.signals.insert(id.clone(), record);
        Applied::Changed
    }
}
