//! What a search has met: a search that never paused a run says nothing about pauses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use servo_machine::{Action, Decision, Refusal};

use super::reference::Run;
use crate::op::{Op, Sign};
use crate::text;

pub(crate) const STATES: [Run; 8] =
    [Run::Absent, Run::Pending, Run::Approved, Run::Running, Run::Paused, Run::Completed, Run::Failed, Run::Cancelled];

pub(crate) const COMMANDS: [&str; 17] = [
    "new",
    "begin",
    "start",
    "take",
    "ok",
    "fail",
    "pause",
    "resume",
    "cancel",
    "approve",
    "retry-run",
    "retry",
    "skip",
    "denied",
    "repeated",
    "tick",
    "terminate",
];

pub(crate) const REFUSALS: [&str; 16] = [
    "Exists",
    "NoRun",
    "NoStep",
    "RunState",
    "StepState",
    "Closed",
    "Superseded",
    "Orphaned",
    "NotRunning",
    "NotReady",
    "NeedsApproval",
    "NoApprovalNeeded",
    "NotFailed",
    "Denied",
    "EventLimit",
    "SignalLimit",
];

/// Types of facts and kinds of actions that the machine has.
pub(crate) const ANSWERS: [&str; 28] = [
    "RunQueued",
    "RunApproved",
    "RunStarted",
    "StepStarted",
    "StepCompleted",
    "StepFailed",
    "StepSkipped",
    "SignalAccepted",
    "SignalRejected",
    "RunPaused",
    "RunResumed",
    "RunCompleted",
    "RunFailed",
    "RunCancelled",
    "StepRetryScheduled",
    "StepTakenOver",
    "DrainTimedOut",
    "TaskOrphaned",
    ">enqueue",
    ">dequeue",
    ">dispatch",
    ">withdraw",
    ">notify",
    ">adopt",
    ">deliver",
    ">abandon",
    ">cancel",
    ">alert",
];

#[derive(Debug, Clone, Default)]
pub(crate) struct Coverage {
    pub sequences: u64,
    /// Commands put to the machine.
    pub transitions: u64,
    /// Per state and command: accepted and refused.
    pairs: BTreeMap<(Run, &'static str), (u64, u64)>,
    refusals: BTreeMap<&'static str, u64>,
    answers: BTreeSet<String>,
}

impl Coverage {
    pub(crate) fn note(&mut self, state: Run, command: &'static str, outcome: &Result<Decision, Refusal>) {
        self.transitions += 1;
        let pair = self.pairs.entry((state, command)).or_default();
        let refusal = match outcome {
            Ok(decision) => decision.refusal.as_ref(),
            Err(refusal) => Some(refusal),
        };
        match refusal {
            None => pair.0 += 1,
            Some(refusal) => {
                pair.1 += 1;
                *self.refusals.entry(text::kind(refusal)).or_default() += 1;
            }
        }
        if let Ok(decision) = outcome {
            for fact in &decision.facts {
                if !self.answers.contains(fact.body.event_type()) {
                    self.answers.insert(fact.body.event_type().to_owned());
                }
            }
            for action in &decision.actions {
                if !self.answers.contains(action_name(action)) {
                    self.answers.insert(action_name(action).to_owned());
                }
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.sequences += other.sequences;
        self.transitions += other.transitions;
        for (key, (accepted, refused)) in &other.pairs {
            let pair = self.pairs.entry(*key).or_default();
            *pair = (pair.0 + accepted, pair.1 + refused);
        }
        for (key, count) in &other.refusals {
            *self.refusals.entry(key).or_default() += count;
        }
        self.answers.extend(other.answers.iter().cloned());
    }

    /// Share of the pairs of state and command that were met. All are possible, except that a run that does not exist
    /// has seen no signal that could be repeated.
    pub(crate) fn pairs_met(&self) -> f64 {
        let possible = STATES.len() * COMMANDS.len() - 1;
        let met = self.pairs.keys().filter(|key| **key != (Run::Absent, "repeated")).count();
        f64::from(u32::try_from(met).expect("few pairs")) / f64::from(u32::try_from(possible).expect("few pairs"))
    }

    pub(crate) fn refusals_missed(&self) -> Vec<&'static str> {
        REFUSALS.into_iter().filter(|name| !self.refusals.contains_key(name)).collect()
    }

    pub(crate) fn answers_missed(&self) -> Vec<&'static str> {
        ANSWERS.into_iter().filter(|name| !self.answers.contains(*name)).collect()
    }

    /// Per state and command how many were accepted and refused, and how often each refusal was met.
    pub(crate) fn table(&self) -> String {
        let mut table = format!("{} sequences, {} transitions\n{:10}", self.sequences, self.transitions, "");
        for state in STATES {
            let _ = write!(table, "{:>16}", format!("{state:?}"));
        }
        for command in COMMANDS {
            let _ = write!(table, "\n{command:10}");
            for state in STATES {
                let (accepted, refused) = self.pairs.get(&(state, command)).copied().unwrap_or_default();
                let _ = write!(table, "{:>16}", format!("{accepted}/{refused}"));
            }
        }
        let refusals: Vec<String> = self.refusals.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let _ = write!(table, "\n{:.1} % of the pairs; refusals: {}", self.pairs_met() * 100.0, refusals.join(", "));
        table
    }
}

pub(crate) fn command_name(op: &Op, repeated: bool) -> &'static str {
    match op {
        Op::New { .. } => "new",
        Op::Begin => "begin",
        Op::Start { .. } => "start",
        Op::Take(_) => "take",
        Op::Ok { .. } => "ok",
        Op::Fail { .. } => "fail",
        Op::Tick => "tick",
        Op::Terminate => "terminate",
        Op::Signal(_) if repeated => "repeated",
        Op::Signal(signed) if signed.denied => "denied",
        Op::Signal(signed) => match signed.sign {
            Sign::Pause => "pause",
            Sign::Resume => "resume",
            Sign::Cancel => "cancel",
            Sign::Approve => "approve",
            Sign::RetryRun => "retry-run",
            Sign::Retry(_) => "retry",
            Sign::Skip(_) => "skip",
        },
        Op::Clock(_) | Op::Max(_) | Op::Drain(_) | Op::Orphans => panic!("no command: {op}"),
    }
}

fn action_name(action: &Action) -> &'static str {
    match action {
        Action::Enqueue { .. } => ">enqueue",
        Action::Dequeue => ">dequeue",
        Action::Dispatch { .. } => ">dispatch",
        Action::Withdraw { .. } => ">withdraw",
        Action::Notify { .. } => ">notify",
        Action::Adopt { .. } => ">adopt",
        Action::Deliver { .. } => ">deliver",
        Action::Abandon { .. } => ">abandon",
        Action::Spawn(_) => ">spawn",
        Action::CancelInFlight => ">cancel",
        Action::Alert { .. } => ">alert",
    }
}
