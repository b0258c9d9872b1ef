//! Puts an operation to the machine and compares everything that comes of it: with the naive model, with the watcher of
//! facts, and with the rows that the actions become.

use servo_machine::{Action, Decision};
use servo_model::{RunState, RunStatus, StepStatus};

use super::coverage::{Coverage, command_name};
use super::reference::{Answer, Reference, Run, Step};
use super::rows::{RowError, Rows};
use super::subject::{Damage, Subject};
use super::watch::Watch;
use crate::op::{At, Op};
use crate::text::{self, EPOCH_MS};
use crate::world::{World, steps};

/// Which comparisons are made. The search makes all; a control switches some off to show that another one notices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checks {
    /// The answer and the state are those of the naive model.
    pub model: bool,
    /// Each fact is legal where it stands.
    pub watch: bool,
    /// Each fact is valid, has a key of its own and folds as it was meant.
    pub log: bool,
    /// The rows are those that the state needs.
    pub rows: bool,
}

impl Checks {
    pub(crate) const ALL: Self = Self { model: true, watch: true, log: true, rows: true };
    pub(crate) const NONE: Self = Self { model: false, watch: false, log: false, rows: false };
}

#[derive(Debug, Clone)]
pub(crate) struct Checker {
    world: World,
    pub model: Reference,
    watch: Watch,
    pub rows: Rows,
    subject: Subject,
    checks: Checks,
    pub coverage: Coverage,
}

/// How a command came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    Accepted,
    Refused(&'static str),
}

impl Checker {
    pub(crate) fn new(plan: &str, damage: Damage, checks: Checks) -> Self {
        let plan_steps = steps(plan);
        Self {
            world: World::new(plan),
            watch: Watch::new(&plan_steps),
            model: Reference::new(plan_steps),
            rows: Rows::default(),
            subject: Subject::new(damage, plan),
            checks,
            coverage: Coverage::default(),
        }
    }

    pub(crate) fn state(&self) -> Option<&RunState> {
        self.world.state.as_ref()
    }

    pub(crate) fn step(&mut self, op: &Op) -> Result<Done, String> {
        self.try_step(op).map_err(|wrong| format!("at `{op}`: {wrong}"))
    }

    fn try_step(&mut self, op: &Op) -> Result<Done, String> {
        let repeated = matches!(op, Op::Signal(s) if s.id.is_some_and(|id| self.model.signals.contains(&id)));
        let mut model = self.model.clone();
        let wanted = model.answer(op);
        let Some(command) = self.world.command(op) else {
            self.model = model;
            return Ok(Done::Accepted);
        };
        let outcome = self.subject.decide(self.world.state.as_ref(), &command, &self.world.policy, self.world.now);
        self.coverage.note(self.model.run, command_name(op, repeated), &outcome);
        let (decision, refusal) = match &outcome {
            Ok(decision) => (decision, decision.refusal.as_ref().map(text::kind)),
            Err(refusal) => (&Decision::default(), Some(text::kind(refusal))),
        };
        let done = refusal.map_or(Done::Accepted, Done::Refused);
        self.compare(&wanted, decision, refusal)?;
        if outcome.is_err() {
            return Ok(done);
        }
        let rows = match self.rows.perform(&decision.actions) {
            Ok(rows) => rows,
            // Started before its delay was over: the machine does not forbid it, and the append finds no dispatch.
            Err(RowError::NotFound(at)) if self.is_delayed(op, at) => return Ok(done),
            // The store is not there to notice in place of the machine.
            Err(_) if !self.checks.rows => self.rows.clone(),
            Err(error) => return Err(format!("the append would fail: {error:?}")),
        };
        if refusal == Some("Orphaned")
            && decision.facts.iter().all(|fact| self.world.keys.contains(&self.world.key(&fact.body)))
        {
            // The same report again: the store has the event and writes nothing.
            return Ok(done);
        }
        if self.checks.watch {
            for fact in &decision.facts {
                self.watch.see(&fact.body).map_err(|wrong| format!("`{}`: {wrong}", text::fact(fact)))?;
            }
            self.watch.settled()?;
            self.never_early(decision, &rows)?;
        }
        let recorded = self.world.record(decision);
        if self.checks.log {
            recorded?;
        }
        self.model = model;
        self.rows = rows;
        if !decision.facts.is_empty() || !decision.actions.is_empty() || *op == Op::Tick {
            let due = self.world.state.as_ref().and_then(|state| state.next_due(self.world.now));
            self.rows.timer = due.map(|due| due.as_millis() - EPOCH_MS);
            if self.checks.model && self.rows.timer != self.model.timer() {
                return Err(format!("the timer is {:?} and not {:?}", self.rows.timer, self.model.timer()));
            }
        }
        if self.checks.model {
            self.same_state()?;
        }
        if self.checks.rows {
            self.rows.check(&self.model)?;
        }
        Ok(done)
    }

    fn compare(&self, wanted: &Answer, decision: &Decision, refusal: Option<&'static str>) -> Result<(), String> {
        if !self.checks.model {
            return Ok(());
        }
        let mut found: Vec<String> = decision
            .facts
            .iter()
            .map(|fact| {
                let line = text::fact(fact);
                line.split_once(" occurred=").map_or(line.clone(), |(line, _)| line.to_owned())
            })
            .collect();
        let mut expected = wanted.facts.clone();
        found.sort_unstable();
        expected.sort_unstable();
        if (&found, refusal) != (&expected, wanted.refusal) {
            return Err(format!("answered {found:?} {refusal:?}, and not {expected:?} {:?}", wanted.refusal));
        }
        Ok(())
    }

    fn is_delayed(&self, op: &Op, at: At) -> bool {
        let Op::Start { at: started, .. } = op else { return false };
        let step = self.model.number(at.step);
        *started == at && step.is_some_and(|step| self.model.current(step).due.is_some())
    }

    /// No attempt is handed out before its time or for another attempt than the current one.
    fn never_early(&self, decision: &Decision, rows: &Rows) -> Result<(), String> {
        let waits_until = decision.facts.iter().filter_map(|fact| match &fact.body {
            servo_model::event::EventBody::StepRetryScheduled(b) => {
                Some((&b.step_id, b.logical_attempt_id, b.not_before))
            }
            _ => None,
        });
        let waits_until: Vec<_> = waits_until.collect();
        for action in &decision.actions {
            let Action::Dispatch { step_id, attempt } = action else { continue };
            let new = waits_until.iter().find(|(id, number, _)| (*id, number) == (step_id, attempt));
            let known = || {
                let state = self.world.state.as_ref()?;
                let current = &state.step(state.step_number(step_id)?).attempt;
                (current.logical_attempt_id == *attempt).then_some(current.not_before)
            };
            let due = new.map(|(_, _, due)| *due).or_else(known).flatten();
            if due.is_some_and(|due| due > self.world.now) {
                return Err(format!("{step_id}#{attempt} is handed out before its time; rows {rows:?}"));
            }
        }
        Ok(())
    }

    /// The folded state and the naive model say the same.
    fn same_state(&self) -> Result<(), String> {
        let (Some(state), model) = (&self.world.state, &self.model) else { return Ok(()) };
        let status = match model.run {
            Run::Absent => return Err("a run that nothing created".to_owned()),
            Run::Pending => RunStatus::Pending,
            Run::Approved => RunStatus::Approved,
            Run::Running => RunStatus::Running,
            Run::Paused => RunStatus::Paused,
            Run::Completed => RunStatus::Completed,
            Run::Failed => RunStatus::Failed,
            Run::Cancelled => RunStatus::Cancelled,
        };
        let count = |step| u32::try_from(model.count(step)).expect("few steps");
        let found = (state.status, state.last_event_seq, state.round, state.is_draining(), state.signals.len());
        let wanted = (status, model.seq, model.round, model.is_draining(), model.signals.len());
        if found != wanted {
            return Err(format!("the state is {found:?} and not {wanted:?}"));
        }
        let found = (state.in_flight, state.open_steps, state.failed_steps);
        let open = count(Step::Pending) + count(Step::Running);
        let wanted = (count(Step::Running), open, count(Step::Failed));
        if found != wanted {
            return Err(format!("in flight, open and failed are {found:?} and not {wanted:?}"));
        }
        for (number, step) in state.steps.iter().enumerate() {
            let current = model.current(number);
            let status = match current.step {
                Step::Pending => StepStatus::Pending,
                Step::Running => StepStatus::Running,
                Step::Success => StepStatus::Success,
                Step::Failed => StepStatus::Failed,
                Step::SkippedByOperator | Step::SkippedUpstream => StepStatus::Skipped,
            };
            let due = step.attempt.not_before.map(|due| due.as_millis() - EPOCH_MS);
            let engine = step.attempt.engine_attempt_id.unwrap_or(0);
            let found = (step.attempt.status, step.attempt.logical_attempt_id, engine, step.past.len() + 1, due);
            let wanted = (status, model.attempt(number), current.engine, model.tries[number].len(), current.due);
            if found != wanted {
                return Err(format!("{} is {found:?} and not {wanted:?}", step.step_id));
            }
        }
        Ok(())
    }
}
