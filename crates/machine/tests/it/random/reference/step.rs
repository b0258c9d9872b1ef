//! The naive model: attempts.

use super::{Reference, Run, Step, Try, Verdict};
use crate::op::At;

impl Reference {
    fn set(&mut self, step: usize, to: Step) {
        self.tries[step].last_mut().expect("a step has an attempt").step = to;
    }

    /// The step, if the run is open and this attempt is its current one.
    fn open(&self, at: At) -> Result<usize, &'static str> {
        if self.is_over() {
            return Err("Closed");
        }
        let step = self.number(at.step).ok_or("NoStep")?;
        if self.attempt(step) == at.attempt { Ok(step) } else { Err("Superseded") }
    }

    pub(super) fn start(&mut self, at: At, facts: &mut Vec<String>) -> Verdict {
        let step = self.open(at)?;
        if self.run != Run::Running {
            return Err("NotRunning");
        }
        if self.current(step).step != Step::Pending {
            return Err("StepState");
        }
        if !self.is_ready(step) {
            return Err("NotReady");
        }
        self.set(step, Step::Running);
        self.tries[step].last_mut().expect("a step has an attempt").engine = 1;
        facts.push(format!("StepStarted {at}/1"));
        Ok(())
    }

    pub(super) fn take(&mut self, at: At, facts: &mut Vec<String>) -> Verdict {
        let step = self.open(at)?;
        if self.current(step).step != Step::Running {
            return Err("StepState");
        }
        let engine = self.current(step).engine + 1;
        self.tries[step].last_mut().expect("a step has an attempt").engine = engine;
        facts.push(format!("StepTakenOver {at}/{engine}"));
        Ok(())
    }

    /// `failure` is whether the error may be retried; `None` for a success.
    pub(super) fn finish(&mut self, at: At, engine: u32, failure: Option<bool>, facts: &mut Vec<String>) -> Verdict {
        let step = self.open(at)?;
        if self.current(step).step != Step::Running {
            return Err("StepState");
        }
        if self.current(step).engine != engine {
            return Err("Superseded");
        }
        if self.run == Run::Paused && self.drain_over && self.rules.orphans {
            facts.push(format!("TaskOrphaned {at}/{engine}"));
            return Err("Orphaned");
        }
        match failure {
            None => {
                self.set(step, Step::Success);
                facts.push(format!("StepCompleted {at}/{engine}"));
            }
            Some(retryable) => {
                self.set(step, Step::Failed);
                facts.push(format!("StepFailed {at}/{engine} BOOM"));
                let tries = self.plan[step].tries.unwrap_or(1);
                if retryable && at.attempt < tries {
                    let delay = i64::try_from(self.plan[step].delay_ms).expect("a small number");
                    self.try_again(step, (delay > 0).then_some(self.now + delay), facts);
                } else {
                    self.failures.push(step);
                    self.skip_blocked(step, facts);
                }
            }
        }
        self.end_if_done(facts);
        Ok(())
    }

    pub(super) fn try_again(&mut self, step: usize, due: Option<i64>, facts: &mut Vec<String>) {
        self.failures.retain(|failed| *failed != step);
        self.tries[step].push(Try { step: Step::Pending, engine: 0, due });
        let due = due.map_or_else(String::new, |due| format!(" not-before=t{due:+}"));
        facts.push(format!("StepRetryScheduled {}#{}{due}", self.plan[step].name, self.attempt(step)));
    }

    /// Skips pending steps behind a failure until there is none.
    fn skip_blocked(&mut self, because: usize, facts: &mut Vec<String>) {
        let next = |model: &Self| {
            (0..model.tries.len()).find(|&step| model.current(step).step == Step::Pending && model.is_blocked(step))
        };
        while let Some(step) = next(self) {
            self.set(step, Step::SkippedUpstream);
            let (name, attempt) = (self.plan[step].name, self.attempt(step));
            facts.push(format!("StepSkipped {name}#{attempt} UPSTREAM_FAILED by={}", self.plan[because].name));
        }
    }

    pub(super) fn skip(&mut self, name: char, facts: &mut Vec<String>) -> Verdict {
        let step = self.number(name).ok_or("NoStep")?;
        if self.current(step).step != Step::Pending {
            return Err("StepState");
        }
        self.set(step, Step::SkippedByOperator);
        facts.push(format!("StepSkipped {name}#{} OPERATOR", self.attempt(step)));
        self.end_if_done(facts);
        Ok(())
    }

    /// New attempts for failed steps, then for everything that was skipped and is behind no failure any more.
    pub(super) fn reopen(&mut self, failed: &[usize], facts: &mut Vec<String>) {
        for &step in failed {
            self.try_again(step, None, facts);
        }
        let next = |model: &Self| {
            let skipped = |step: &usize| model.current(*step).step == Step::SkippedUpstream;
            (0..model.tries.len()).find(|step| skipped(step) && !model.is_blocked(*step))
        };
        while let Some(step) = next(self) {
            self.try_again(step, None, facts);
        }
    }

    /// Attempts that nobody will report on any more fail and get a successor.
    pub(super) fn replace_running(&mut self, code: &str, facts: &mut Vec<String>) {
        for step in 0..self.tries.len() {
            let current = self.current(step);
            if current.step == Step::Running {
                self.set(step, Step::Failed);
                let (name, attempt) = (self.plan[step].name, self.attempt(step));
                facts.push(format!("StepFailed {name}#{attempt}/{} {code}", current.engine));
                self.try_again(step, None, facts);
            }
        }
    }
}
