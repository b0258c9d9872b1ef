//! Watches the facts one by one, with tables of its own: whatever led to a fact, it must be legal where it stands in the
//! log.

use std::collections::BTreeMap;

use servo_model::event::{EventBody, SkipCause};
use servo_model::{RunStatus, StepId};

use crate::world::{PlanStep, step_id};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Pending,
    Running(u32),
    /// Ended; whether dependents may go on.
    Ended(bool),
    Failed,
}

#[derive(Debug, Clone)]
pub(crate) struct Watch {
    status: Option<RunStatus>,
    round: u32,
    steps: BTreeMap<StepId, Watched>,
    counts: [u32; 4],
}

#[derive(Debug, Clone)]
struct Watched {
    after: Vec<StepId>,
    /// Attempts so far.
    number: u32,
    attempt: Attempt,
}

/// The moves of a run, as a list: whatever is not here is illegal.
const RUN_MOVES: &[(RunStatus, &str, RunStatus)] = &[
    (RunStatus::Pending, "RunApproved", RunStatus::Approved),
    (RunStatus::Pending, "RunFailed", RunStatus::Failed),
    (RunStatus::Pending, "RunCancelled", RunStatus::Cancelled),
    (RunStatus::Approved, "RunStarted", RunStatus::Running),
    (RunStatus::Approved, "RunCancelled", RunStatus::Cancelled),
    (RunStatus::Running, "RunPaused", RunStatus::Paused),
    (RunStatus::Running, "RunCompleted", RunStatus::Completed),
    (RunStatus::Running, "RunFailed", RunStatus::Failed),
    (RunStatus::Running, "RunCancelled", RunStatus::Cancelled),
    (RunStatus::Paused, "RunResumed", RunStatus::Running),
    (RunStatus::Paused, "RunFailed", RunStatus::Failed),
    (RunStatus::Paused, "RunCancelled", RunStatus::Cancelled),
    (RunStatus::Failed, "RunQueued", RunStatus::Pending),
];

impl Watch {
    pub(crate) fn new(plan: &[PlanStep]) -> Self {
        let steps = plan.iter().map(|step| {
            let after = step.after.iter().map(|name| step_id(*name)).collect();
            (step_id(step.name), Watched { after, number: 1, attempt: Attempt::Pending })
        });
        Self { status: None, round: 0, steps: steps.collect(), counts: [0; 4] }
    }

    /// Takes the next fact of the log.
    pub(crate) fn see(&mut self, body: &EventBody) -> Result<(), String> {
        use EventBody as B;
        match body {
            B::RunQueued(b) => {
                self.round += 1;
                if b.logical_attempt_id != self.round {
                    return Err(format!("round {} follows {}", b.logical_attempt_id, self.round - 1));
                }
                self.go(body.event_type())
            }
            B::RunApproved(b) => self.in_round(b.logical_attempt_id, body),
            B::RunStarted(b) => self.in_round(b.logical_attempt_id, body),
            B::RunCompleted(b) => {
                self.ends_clean(false)?;
                self.in_round(b.logical_attempt_id, body)
            }
            B::RunFailed(b) => {
                if b.root_cause.code != "LIMIT_EXCEEDED" {
                    self.ends_clean(true)?;
                }
                self.in_round(b.logical_attempt_id, body)
            }
            B::RunCancelled(b) => self.in_round(b.logical_attempt_id, body),
            B::RunPaused(b) => {
                self.counted(0, b.logical_attempt_id)?;
                self.go(body.event_type())
            }
            B::RunResumed(b) => {
                self.counted(1, b.logical_attempt_id)?;
                self.go(body.event_type())
            }
            // Recorded; they move nothing by themselves.
            B::SignalAccepted(b) => self.counted(2, b.logical_attempt_id),
            B::SignalRejected(b) => {
                if self.status.is_some_and(RunStatus::is_terminal) {
                    return Err("a run that ended records a signal".to_owned());
                }
                self.counted(3, b.logical_attempt_id)
            }
            B::DrainTimedOut(b) => {
                if self.status != Some(RunStatus::Paused) || b.logical_attempt_id != self.counts[0] {
                    return Err("a drain times out in the pause it belongs to".to_owned());
                }
                Ok(())
            }
            B::StepStarted(b) => {
                if self.status != Some(RunStatus::Running) {
                    return Err(format!("a step starts in a run that is {:?}", self.status));
                }
                let waits_for = self.steps[&b.step_id].after.iter().find(|id| !self.satisfied(id)).cloned();
                if let Some(open) = waits_for {
                    return Err(format!("{} starts before {open} is done", b.step_id));
                }
                let engine = b.engine_attempt_id.unwrap_or(0);
                self.step(&b.step_id, b.logical_attempt_id, Attempt::Pending, Attempt::Running(engine))
            }
            B::StepTakenOver(b) => {
                let before = self.running(&b.step_id)?;
                if b.engine_attempt_id <= before {
                    return Err(format!("engine attempt {} follows {before}", b.engine_attempt_id));
                }
                let to = Attempt::Running(b.engine_attempt_id);
                self.step(&b.step_id, b.logical_attempt_id, Attempt::Running(before), to)
            }
            B::StepCompleted(b) => {
                let from = Attempt::Running(b.engine_attempt_id.unwrap_or(0));
                self.step(&b.step_id, b.logical_attempt_id, from, Attempt::Ended(true))
            }
            B::StepFailed(b) => {
                let from = Attempt::Running(b.engine_attempt_id.unwrap_or(0));
                self.step(&b.step_id, b.logical_attempt_id, from, Attempt::Failed)
            }
            B::StepSkipped(b) => {
                let ended = Attempt::Ended(b.cause == SkipCause::Operator);
                self.step(&b.step_id, b.logical_attempt_id, Attempt::Pending, ended)
            }
            B::StepRetryScheduled(b) => self.retried(&b.step_id, b.logical_attempt_id),
            B::TaskOrphaned(_) => Ok(()),
            B::ExecutionStarted(_)
            | B::HandlerInvoked(_)
            | B::HandlerReturned(_)
            | B::OperationUpdated(_)
            | B::OperationResolved(_)
            | B::CallbackHeartbeat(_)
            | B::ExecutionEnded(_)
            | B::MessageReceived(_)
            | B::CompensationStarted(_)
            | B::CompensationEnded(_)
            | B::RunDeadLettered(_)
            | B::RunImported(_) => Err(format!("a plan made {}", body.event_type())),
            B::Runtime(_) | B::Unknown(_) => Err("no fact of a run".to_owned()),
        }
    }

    fn in_round(&mut self, round: u32, body: &EventBody) -> Result<(), String> {
        if round != self.round {
            return Err(format!("an event of round {round} in round {}", self.round));
        }
        self.go(body.event_type())
    }

    fn go(&mut self, event: &str) -> Result<(), String> {
        let next = match self.status {
            None => (event == "RunQueued").then_some(RunStatus::Pending),
            Some(from) => RUN_MOVES.iter().find(|(at, name, _)| (*at, *name) == (from, event)).map(|(_, _, to)| *to),
        };
        self.status = Some(next.ok_or_else(|| format!("{event} in a run that is {:?}", self.status))?);
        Ok(())
    }

    /// Numbers of things that recur go up by one.
    fn counted(&mut self, kind: usize, number: u32) -> Result<(), String> {
        self.counts[kind] += 1;
        if number == self.counts[kind] {
            return Ok(());
        }
        Err(format!("occurrence {number} follows {}", self.counts[kind] - 1))
    }

    fn running(&self, step: &StepId) -> Result<u32, String> {
        match self.steps[step].attempt {
            Attempt::Running(engine) => Ok(engine),
            other => Err(format!("{step} is {other:?} and not running")),
        }
    }

    fn step(&mut self, id: &StepId, number: u32, from: Attempt, to: Attempt) -> Result<(), String> {
        let step = self.steps.get_mut(id).ok_or_else(|| format!("no step {id}"))?;
        if step.number != number {
            return Err(format!("attempt {number} of {id}, whose attempt is {}", step.number));
        }
        if step.attempt != from {
            return Err(format!("{id}#{number} goes to {to:?} and is {:?}, not {from:?}", step.attempt));
        }
        step.attempt = to;
        Ok(())
    }

    /// Logical attempts go up by one, and only after one that did not do the step's work.
    fn retried(&mut self, id: &StepId, number: u32) -> Result<(), String> {
        let step = self.steps.get_mut(id).ok_or_else(|| format!("no step {id}"))?;
        if number != step.number + 1 || !matches!(step.attempt, Attempt::Failed | Attempt::Ended(false)) {
            return Err(format!("{id}#{number} follows attempt {}, which is {:?}", step.number, step.attempt));
        }
        (step.number, step.attempt) = (number, Attempt::Pending);
        Ok(())
    }

    fn satisfied(&self, id: &StepId) -> bool {
        self.steps[id].attempt == Attempt::Ended(true)
    }

    fn ends_clean(&self, failed: bool) -> Result<(), String> {
        if !self.nothing_open() {
            return Err("the run ends with steps open".to_owned());
        }
        let any = self.steps.values().any(|step| step.attempt == Attempt::Failed);
        if any == failed { Ok(()) } else { Err(format!("failed steps: {any}, and the run says {failed}")) }
    }

    fn nothing_open(&self) -> bool {
        self.steps.values().all(|step| matches!(step.attempt, Attempt::Ended(_) | Attempt::Failed))
    }

    /// After a whole decision: a run that is neither paused nor queued and has nothing to do has ended.
    pub(crate) fn settled(&self) -> Result<(), String> {
        if self.status == Some(RunStatus::Running) && self.nothing_open() {
            return Err("no step is open and the run goes on".to_owned());
        }
        Ok(())
    }
}
