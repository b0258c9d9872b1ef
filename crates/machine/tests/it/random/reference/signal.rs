//! The naive model: signals.

use super::{Reference, Run, Step, Verdict};
use crate::op::{Sign, Signed};

/// As many signals as a run takes, and as many rejections as it records.
const ACCEPTED_MAX: u32 = 20_000;
const REJECTED_MAX: u32 = 1_000;

impl Reference {
    pub(super) fn signal(&mut self, signed: &Signed, facts: &mut Vec<String>) -> Verdict {
        let id = signed.id.expect("random signals have ids");
        if self.signals.contains(&id) {
            return Ok(());
        }
        let reopens = matches!(signed.sign, Sign::RetryRun | Sign::Retry(_));
        if self.is_over() && !(self.run == Run::Failed && reopens) {
            return Err("Closed");
        }
        if !signed.denied && self.accepted >= ACCEPTED_MAX && signed.sign != Sign::Cancel {
            return Err("SignalLimit");
        }
        let ended = self.is_over();
        let mut effect = Vec::new();
        let verdict = if signed.denied { Err("Denied") } else { self.carry_out(signed, &mut effect) };
        let (name, step) = match signed.sign {
            Sign::Pause => ("PAUSE", String::new()),
            Sign::Resume => ("RESUME", String::new()),
            Sign::Cancel => ("CANCEL", String::new()),
            Sign::Approve => ("APPROVE", String::new()),
            Sign::RetryRun => ("RETRY_RUN", String::new()),
            Sign::Retry(step) => ("RETRY_STEP", format!(" step={step}")),
            Sign::Skip(step) => ("SKIP_STEP", format!(" step={step}")),
        };
        match verdict {
            Ok(()) => {
                self.signals.push(id);
                self.accepted += 1;
                let reason = reason_text(signed);
                facts.push(format!("SignalAccepted {} s{id} {name}{step}{reason}", self.accepted));
                facts.append(&mut effect);
                Ok(())
            }
            // The log of a run that ended stays closed.
            Err(refusal) if ended => Err(refusal),
            Err(refusal) if self.rejected == REJECTED_MAX => Err(refusal),
            Err(refusal) => {
                self.signals.push(id);
                self.rejected += 1;
                let code = match refusal {
                    "Denied" => "FORBIDDEN",
                    "NoStep" => "STEP_NOT_FOUND",
                    _ => "ILLEGAL_TRANSITION",
                };
                facts.push(format!("SignalRejected {} s{id} {name}{step} {code}", self.rejected));
                Err(refusal)
            }
        }
    }

    fn carry_out(&mut self, signed: &Signed, effect: &mut Vec<String>) -> Verdict {
        match signed.sign {
            Sign::Pause if self.run == Run::Running => {
                self.run = Run::Paused;
                self.pauses += 1;
                self.drain_over = false;
                self.drain_until = (self.count(Step::Running) > 0).then_some(self.now + self.rules.drain_ms);
                let drain = self.drain_until.map_or_else(String::new, |until| format!(" drain=t{until:+}"));
                effect.push(format!("RunPaused {}{drain}{}", self.pauses, reason_text(signed)));
                Ok(())
            }
            Sign::Resume if self.run == Run::Paused => {
                self.run = Run::Running;
                self.resumes += 1;
                effect.push(format!("RunResumed {}", self.resumes));
                if self.drain_over && self.rules.orphans {
                    self.replace_running("ORPHANED_TASK", effect);
                }
                self.end_if_done(effect);
                Ok(())
            }
            Sign::Pause | Sign::Resume => Err("RunState"),
            Sign::Cancel => self.cancel("ann", reason(signed).as_deref(), effect),
            Sign::Approve => match self.run {
                Run::Pending if !self.needs_approval => Err("NoApprovalNeeded"),
                Run::Pending => {
                    self.run = Run::Approved;
                    effect.push(format!("RunApproved r{} by=ann", self.round));
                    Ok(())
                }
                _ => Err("RunState"),
            },
            Sign::RetryRun if self.run == Run::Failed => {
                let failed: Vec<usize> =
                    (0..self.tries.len()).filter(|&step| self.current(step).step == Step::Failed).collect();
                self.queue_again("retry of the run", effect);
                self.reopen(&failed, effect);
                Ok(())
            }
            Sign::RetryRun => Err("RunState"),
            Sign::Retry(name) => {
                let step = self.number(name).ok_or("NoStep")?;
                if self.current(step).step != Step::Failed {
                    return Err("NotFailed");
                }
                match self.run {
                    Run::Running | Run::Paused => {}
                    Run::Failed => self.queue_again(&format!("retry of step `{name}`"), effect),
                    _ => return Err("NotRunning"),
                }
                self.reopen(&[step], effect);
                Ok(())
            }
            Sign::Skip(name) => self.skip(name, effect),
        }
    }

    fn queue_again(&mut self, reason: &str, effect: &mut Vec<String>) {
        self.run = Run::Pending;
        self.round += 1;
        self.needs_approval = false;
        self.failures.clear();
        effect.push(format!("RunQueued r{} reason={reason}", self.round));
        self.replace_running("ATTEMPT_SUPERSEDED", effect);
    }
}

/// Long texts are cut to 8 KiB.
fn reason(signed: &Signed) -> Option<String> {
    signed.reason.as_ref().map(|text| if text == "long" { "8192 bytes".to_owned() } else { text.clone() })
}

fn reason_text(signed: &Signed) -> String {
    reason(signed).map_or_else(String::new, |reason| format!(" reason={reason}"))
}
