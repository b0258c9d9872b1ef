//! A naive model of a run: lists and full scans, written from the contract and not from the machine. It says which
//! facts a command leads to, or why it is refused. Times are milliseconds after the start of the world.

mod signal;
mod step;

use std::sync::Arc;

use crate::op::{Gate, Op};
use crate::world::PlanStep;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Run {
    Absent,
    Pending,
    Approved,
    Running,
    Paused,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Pending,
    Running,
    Success,
    Failed,
    SkippedByOperator,
    SkippedUpstream,
}

/// One attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Try {
    pub step: Step,
    pub engine: u32,
    pub due: Option<i64>,
}

/// The policy as numbers.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub events_max: u64,
    pub drain_ms: i64,
    pub orphans: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub plan: Arc<Vec<PlanStep>>,
    pub rules: Rules,
    pub now: i64,
    pub run: Run,
    pub round: u32,
    pub needs_approval: bool,
    /// Per step, all attempts; the last is the current one.
    pub tries: Vec<Vec<Try>>,
    pub seq: u64,
    pub pauses: u32,
    pub resumes: u32,
    pub drain_until: Option<i64>,
    pub drain_over: bool,
    pub signals: Vec<u32>,
    pub accepted: u32,
    pub rejected: u32,
    /// Steps that failed in this round, in order, and still stand.
    pub failures: Vec<usize>,
}

/// What a command should lead to. With a refusal and no facts the command is refused and records nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Answer {
    pub facts: Vec<String>,
    pub refusal: Option<&'static str>,
}

type Verdict = Result<(), &'static str>;

impl Reference {
    pub(crate) fn new(plan: Vec<PlanStep>) -> Self {
        let tries = plan.iter().map(|_| vec![Try { step: Step::Pending, engine: 0, due: None }]).collect();
        Self {
            plan: Arc::new(plan),
            rules: Rules { events_max: 250_000, drain_ms: 1_000, orphans: false },
            now: 0,
            run: Run::Absent,
            round: 0,
            needs_approval: false,
            tries,
            seq: 0,
            pauses: 0,
            resumes: 0,
            drain_until: None,
            drain_over: false,
            signals: Vec::new(),
            accepted: 0,
            rejected: 0,
            failures: Vec::new(),
        }
    }

    /// Moves to the state after the command and says what it should record.
    pub(crate) fn answer(&mut self, op: &Op) -> Answer {
        let before = self.clone();
        let mut facts = Vec::new();
        let verdict = match op {
            Op::Clock(ms) => {
                self.now += ms;
                return Answer::default();
            }
            Op::Max(max) => {
                self.rules.events_max = *max;
                return Answer::default();
            }
            Op::Drain(ms) => {
                self.rules.drain_ms = i64::try_from(*ms).expect("a small number");
                return Answer::default();
            }
            Op::Orphans => {
                self.rules.orphans = true;
                return Answer::default();
            }
            Op::New { gate, approval } if self.run == Run::Absent => {
                self.create(*gate, *approval, &mut facts);
                self.seq = facts.len() as u64;
                return Answer { facts, refusal: None };
            }
            _ if self.run == Run::Absent => Err("NoRun"),
            Op::New { .. } => Err("Exists"),
            Op::Begin => self.begin(&mut facts),
            Op::Start { at, .. } => self.start(*at, &mut facts),
            Op::Take(at) => self.take(*at, &mut facts),
            Op::Ok { at, engine } => self.finish(*at, *engine, None, &mut facts),
            Op::Fail { at, engine, retryable } => self.finish(*at, *engine, Some(*retryable), &mut facts),
            Op::Signal(signed) => self.signal(signed, &mut facts),
            Op::Tick => {
                self.tick(&mut facts);
                Ok(())
            }
            Op::Terminate => self.cancel("root", Some("enough"), &mut facts).map_err(|_| "Closed"),
        };
        if verdict.is_err() && facts.is_empty() {
            *self = before;
            return Answer { facts, refusal: verdict.err() };
        }
        let answer = self.within_limit(&before, op, Answer { facts, refusal: verdict.err() });
        self.seq = before.seq + answer.facts.len() as u64;
        answer
    }

    /// The last 64 events are for ending the run: other events may not use them, and a step's command that would ends
    /// the run instead. What nobody asks for twice (a begin, a drain timeout) is let through.
    fn within_limit(&mut self, before: &Self, op: &Op, answer: Answer) -> Answer {
        let after = before.seq + answer.facts.len() as u64;
        let of_step = matches!(op, Op::Start { .. } | Op::Take(_) | Op::Ok { .. } | Op::Fail { .. });
        let fits = after + 64 <= self.rules.events_max;
        let ends = self.is_over() && (after <= self.rules.events_max || !of_step);
        if answer.facts.is_empty() || fits || ends || matches!(op, Op::Begin | Op::Tick) {
            return answer;
        }
        *self = before.clone();
        if !of_step {
            return Answer { facts: Vec::new(), refusal: Some("EventLimit") };
        }
        self.run = Run::Failed;
        Answer { facts: vec![format!("RunFailed r{} LIMIT_EXCEEDED", self.round)], refusal: Some("EventLimit") }
    }

    fn create(&mut self, gate: Gate, approval: bool, facts: &mut Vec<String>) {
        self.run = Run::Pending;
        self.round = 1;
        self.needs_approval = approval;
        let approval_text = if approval { " approval" } else { "" };
        let delay = match gate {
            Gate::Delay(ms) => format!(" not-before=t{:+}", self.now + ms),
            Gate::Now | Gate::Queue => String::new(),
        };
        facts.push(format!("RunQueued r1 plan{approval_text}{delay}"));
        if gate == Gate::Now && !approval {
            facts.push("RunApproved r1".to_owned());
            self.run_started(facts);
        }
    }

    fn run_started(&mut self, facts: &mut Vec<String>) {
        facts.push(format!("RunStarted r{} mock mock:run t{:+}", self.round, self.now));
        self.run = Run::Running;
    }

    fn begin(&mut self, facts: &mut Vec<String>) -> Verdict {
        match self.run {
            Run::Pending if self.needs_approval => return Err("NeedsApproval"),
            Run::Pending => facts.push(format!("RunApproved r{}", self.round)),
            Run::Approved => {}
            Run::Running | Run::Paused => return Err("RunState"),
            Run::Absent | Run::Completed | Run::Failed | Run::Cancelled => return Err("Closed"),
        }
        self.run_started(facts);
        self.end_if_done(facts);
        Ok(())
    }

    fn tick(&mut self, facts: &mut Vec<String>) {
        if self.is_draining() && self.drain_until.is_some_and(|until| until <= self.now) {
            facts.push(format!("DrainTimedOut {} in-flight={}", self.pauses, self.count(Step::Running)));
            self.drain_over = true;
        }
    }

    fn cancel(&mut self, by: &str, reason: Option<&str>, facts: &mut Vec<String>) -> Verdict {
        if self.is_over() {
            return Err("RunState");
        }
        let reason = reason.map_or_else(String::new, |reason| format!(" reason={reason}"));
        facts.push(format!("RunCancelled r{} by={by}{reason}", self.round));
        self.run = Run::Cancelled;
        Ok(())
    }

    /// A running run without open steps ends.
    fn end_if_done(&mut self, facts: &mut Vec<String>) {
        if self.run != Run::Running || self.count(Step::Pending) + self.count(Step::Running) > 0 {
            return;
        }
        if self.count(Step::Failed) == 0 {
            facts.push(format!("RunCompleted r{}", self.round));
            self.run = Run::Completed;
            return;
        }
        let standing = (0..self.tries.len()).find(|&step| self.current(step).step == Step::Failed);
        let cause = self.failures.first().copied().or(standing).expect("a step failed");
        facts.push(format!("RunFailed r{} BOOM step={}", self.round, self.plan[cause].name));
        self.run = Run::Failed;
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.run, Run::Completed | Run::Failed | Run::Cancelled)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.run == Run::Paused && self.count(Step::Running) > 0 && !self.drain_over
    }

    pub(crate) fn count(&self, step: Step) -> usize {
        self.tries.iter().filter(|tries| tries.last().is_some_and(|last| last.step == step)).count()
    }

    pub(crate) fn current(&self, step: usize) -> Try {
        *self.tries[step].last().expect("a step has an attempt")
    }

    pub(crate) fn attempt(&self, step: usize) -> u32 {
        u32::try_from(self.tries[step].len()).expect("few attempts")
    }

    pub(crate) fn number(&self, name: char) -> Option<usize> {
        self.plan.iter().position(|step| step.name == name)
    }

    fn dependencies(&self, step: usize) -> Vec<Step> {
        let after = self.plan[step].after.iter();
        after.map(|name| self.current(self.number(*name).expect("a step of the plan")).step).collect()
    }

    /// Pending, and everything before it succeeded or was skipped by an operator.
    pub(crate) fn is_ready(&self, step: usize) -> bool {
        let satisfied = |step: &Step| matches!(step, Step::Success | Step::SkippedByOperator);
        self.current(step).step == Step::Pending && self.dependencies(step).iter().all(satisfied)
    }

    /// Something before it failed, or was skipped for that reason.
    fn is_blocked(&self, step: usize) -> bool {
        self.dependencies(step).iter().any(|step| matches!(step, Step::Failed | Step::SkippedUpstream))
    }

    /// When something happens by itself, looking from `now`.
    pub(crate) fn timer(&self) -> Option<i64> {
        match self.run {
            Run::Paused if self.is_draining() => self.drain_until,
            Run::Running => {
                let waiting = (0..self.tries.len()).filter(|&step| self.current(step).step == Step::Pending);
                waiting.filter_map(|step| self.current(step).due).filter(|due| *due > self.now).min()
            }
            _ => None,
        }
    }
}
