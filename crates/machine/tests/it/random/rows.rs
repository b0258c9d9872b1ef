//! The rows that actions become: the run queue, dispatches and the timer, with the moves that the store allows.

use servo_machine::Action;
use servo_model::StepId;

use super::reference::{Reference, Run, Step};
use crate::op::At;
use crate::text::EPOCH_MS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dispatch {
    Pending,
    Notified,
    Delivered,
    Failed,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    pub queue: Option<i64>,
    pub timer: Option<i64>,
    pub dispatches: Vec<(At, Dispatch)>,
}

/// Why an append with these actions would not be taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RowError {
    /// No such dispatch.
    NotFound(At),
    Move(At, &'static str, Dispatch),
}

fn at(step: &StepId, attempt: u32) -> At {
    At { step: step.as_str().chars().next().expect("a letter"), attempt }
}

impl Rows {
    /// All or nothing, like an append.
    pub(crate) fn perform(&self, actions: &[Action]) -> Result<Self, RowError> {
        let mut rows = self.clone();
        for action in actions {
            match action {
                Action::Enqueue { not_before } => rows.queue = Some(not_before.as_millis() - EPOCH_MS),
                Action::Dequeue => rows.queue = None,
                Action::Dispatch { step_id, attempt } => {
                    let at = at(step_id, *attempt);
                    if rows.get(at).is_none() {
                        rows.dispatches.push((at, Dispatch::Pending));
                    }
                }
                Action::Withdraw { step_id, attempt } => {
                    let gone = (at(step_id, *attempt), Dispatch::Pending);
                    rows.dispatches.retain(|row| *row != gone);
                }
                Action::Notify { step_id, attempt } => {
                    rows.go(at(step_id, *attempt), "notify", Dispatch::Pending, Dispatch::Notified)?;
                }
                Action::Adopt { step_id, attempt } => {
                    rows.go(at(step_id, *attempt), "adopt", Dispatch::Notified, Dispatch::Notified)?;
                }
                Action::Deliver { step_id, attempt } => {
                    rows.go(at(step_id, *attempt), "deliver", Dispatch::Notified, Dispatch::Delivered)?;
                }
                Action::Abandon { step_id, attempt, .. } => {
                    rows.go(at(step_id, *attempt), "abandon", Dispatch::Notified, Dispatch::Failed)?;
                }
                Action::Spawn(_) | Action::CancelInFlight | Action::Alert { .. } => {}
            }
        }
        Ok(rows)
    }

    fn go(&mut self, at: At, name: &'static str, from: Dispatch, to: Dispatch) -> Result<(), RowError> {
        let row = self.dispatches.iter_mut().find(|(key, _)| *key == at).ok_or(RowError::NotFound(at))?;
        if row.1 != from {
            return Err(RowError::Move(at, name, row.1));
        }
        row.1 = to;
        Ok(())
    }

    pub(crate) fn get(&self, at: At) -> Option<Dispatch> {
        self.dispatches.iter().find(|(key, _)| *key == at).map(|(_, state)| *state)
    }

    pub(crate) fn with(&self, state: Dispatch) -> Vec<At> {
        self.dispatches.iter().filter(|(_, found)| *found == state).map(|(at, _)| *at).collect()
    }

    /// What the rows must be for this state of the run: nothing waits without a row, and no row waits for nothing.
    pub(crate) fn check(&self, model: &Reference) -> Result<(), String> {
        let waits = match model.run {
            Run::Pending => !model.needs_approval,
            Run::Approved => true,
            _ => false,
        };
        if self.queue.is_some() != waits {
            return Err(format!("a {:?} run has the queue row {:?}", model.run, self.queue));
        }
        let mut handed_out = Vec::new();
        for step in 0..model.plan.len() {
            let (attempt, current) = (model.attempt(step), model.current(step));
            let at = At { step: model.plan[step].name, attempt };
            if current.step == Step::Running && matches!(model.run, Run::Running | Run::Paused) {
                handed_out.push(at);
            }
            let row = self.get(at);
            if model.run == Run::Running && model.is_ready(step) {
                let timed = current.due.is_some_and(|due| self.timer.is_some_and(|timer| timer <= due));
                if row.is_none() && !timed {
                    return Err(format!("{at} is ready and neither a dispatch nor a timer waits for it"));
                }
            } else if row == Some(Dispatch::Pending) {
                return Err(format!("{at} may not start (the run is {:?}) and its dispatch waits", model.run));
            }
        }
        let known = |at: &At| model.number(at.step).is_some_and(|step| model.attempt(step) == at.attempt);
        if let Some(stray) = self.with(Dispatch::Pending).into_iter().find(|at| !known(at)) {
            return Err(format!("the dispatch of {stray} waits, and that attempt is over"));
        }
        let mut notified = self.with(Dispatch::Notified);
        notified.sort_by_key(|at| at.step);
        handed_out.sort_by_key(|at| at.step);
        if notified != handed_out {
            return Err(format!("in flight are {handed_out:?}, handed out are {notified:?}"));
        }
        Ok(())
    }
}
