//! One run, its policy and its clock: commands are decided, and what they record is folded as the store would hold it.

use std::collections::BTreeSet;

use serde_json::json;
use servo_canon::Digest;
use servo_machine::{
    Admission, Command, Decision, Policy, Refusal, Run, Signal, SignalKind, StartRun, StepResult, decide,
};
use servo_model::event::{EventBody, idempotency_key};
use servo_model::ids::Name;
use servo_model::state::Applied;
use servo_model::{
    ArtifactRef, Event, EventId, PlanId, PlanRef, RunContext, RunId, RunState, SignalId, StepError, StepId, TenantId,
    Timestamp,
};

use crate::op::{At, Gate, Op, Sign, Signed};
use crate::text::EPOCH_MS;

#[derive(Debug, Clone)]
pub(crate) struct World {
    plan: String,
    plan_ref: PlanRef,
    pub policy: Policy,
    pub now: Timestamp,
    pub state: Option<RunState>,
    pub keys: BTreeSet<Digest>,
    /// Every event, if it is to be kept.
    pub log: Option<Vec<Event>>,
    next_signal: u32,
}

/// Of every world.
pub(crate) fn run_id() -> RunId {
    RunId::parse("run").expect("a run id")
}

/// A step as the notation gives it: `b*3~500<a` is tried three times, 500 ms apart, and waits for `a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanStep {
    pub name: char,
    pub tries: Option<u32>,
    pub delay_ms: u64,
    pub after: Vec<char>,
}

/// Reads `a b<a c*3~500<a,b`; `@name` sets the engine.
pub(crate) fn steps(notation: &str) -> Vec<PlanStep> {
    let words = notation.split_whitespace().filter(|word| !word.starts_with('@'));
    let read = |word: &str| {
        let (head, after) = word.split_once('<').unwrap_or((word, ""));
        let (head, delay) = head.split_once('~').unwrap_or((head, "0"));
        let (name, tries) = head.split_once('*').map_or((head, None), |(name, tries)| (name, Some(tries)));
        PlanStep {
            name: name.parse().expect("a step is one letter"),
            tries: tries.map(|tries| tries.parse().expect("a number of tries")),
            delay_ms: delay.parse().expect("a delay in milliseconds"),
            after: after
                .split(',')
                .filter(|name| !name.is_empty())
                .map(|name| name.parse().expect("a letter"))
                .collect(),
        }
    };
    words.map(read).collect()
}

pub(crate) fn step_id(step: char) -> StepId {
    StepId::parse(step.encode_utf8(&mut [0; 4])).expect("a letter is a step id")
}

fn document(notation: &str) -> String {
    let engine = notation.split_whitespace().find_map(|word| word.strip_prefix('@')).unwrap_or("mock");
    let steps: Vec<_> = steps(notation)
        .into_iter()
        .map(|step| {
            let after: Vec<String> = step.after.iter().map(char::to_string).collect();
            let retry = step.tries.map(|tries| json!({"maxAttempts": tries, "delayMs": step.delay_ms}));
            let mut doc = json!({"stepId": step.name.to_string(), "dependsOn": after});
            if let Some(retry) = retry {
                doc["retry"] = retry;
            }
            doc
        })
        .collect();
    json!({"planId": "p", "planVersion": "1", "schemaVersion": "v1", "engineType": engine, "steps": steps}).to_string()
}

impl World {
    pub(crate) fn new(notation: &str) -> Self {
        let plan = document(notation);
        let plan_ref = PlanRef {
            uri: "file:///plans/p.json".to_owned(),
            sha256: Digest::of(plan.as_bytes()),
            schema_version: "v1".to_owned(),
            plan_id: PlanId::parse("p").expect("a plan id"),
            plan_version: "1".to_owned(),
        };
        Self {
            plan,
            plan_ref,
            policy: Policy { drain_timeout_ms: 1_000, ..Policy::default() },
            now: Timestamp::from_millis(EPOCH_MS),
            state: None,
            keys: BTreeSet::new(),
            log: None,
            next_signal: 1,
        }
    }

    /// The command that an operation stands for; `None` for those that move the clock or the policy, which it does.
    pub(crate) fn command(&mut self, op: &Op) -> Option<Command> {
        Some(match op {
            Op::New { gate, approval } => Command::Start(Box::new(self.start(*gate, *approval))),
            Op::Begin => Command::Begin,
            Op::Start { at, late } => Command::StartStep {
                step_id: step_id(at.step),
                attempt: at.attempt,
                occurred_at: late.map(|ms| Timestamp::from_millis(EPOCH_MS + ms)),
            },
            Op::Take(at) => Command::TakeOver { step_id: step_id(at.step), attempt: at.attempt },
            Op::Ok { at, engine } => finish(*at, *engine, StepResult::Success { artifacts: vec![artifact(*at)] }),
            Op::Fail { at, engine, retryable } => {
                let error = StepError::new("BOOM", "it broke", *retryable);
                finish(*at, *engine, StepResult::Failure { error })
            }
            Op::Signal(signed) => Command::Signal(self.signal(signed)),
            Op::Tick => Command::Tick,
            Op::Terminate => Command::Terminate { by: "root".to_owned(), reason: "enough".to_owned() },
            Op::Clock(ms) => {
                self.now = Timestamp::from_millis(self.now.as_millis() + ms);
                return None;
            }
            Op::Max(max) => {
                self.policy.events_per_run_max = *max;
                return None;
            }
            Op::Drain(ms) => {
                self.policy.drain_timeout_ms = *ms;
                return None;
            }
            Op::Orphans => {
                self.policy.late_results = servo_machine::LateResults::Reject;
                return None;
            }
        })
    }

    fn start(&self, gate: Gate, approval_required: bool) -> StartRun {
        let name = |text: &str| Name::parse(text).expect("a name");
        StartRun {
            plan_ref: self.plan_ref.clone().into(),
            plan: serde_json::value::RawValue::from_string(self.plan.clone()).expect("the plan is JSON"),
            context: RunContext {
                tenant_id: TenantId::parse("acme").expect("a tenant"),
                project_id: name("shop"),
                environment_id: name("prod"),
                triggered_by: None,
                trigger_source: None,
            }
            .into(),
            run_request_id: None,
            request_digest: None,
            approval_required,
            admission: match gate {
                Gate::Now => Admission::Now,
                Gate::Queue => Admission::Queue,
                Gate::Delay(ms) => Admission::Delay { until: Timestamp::from_millis(self.now.as_millis() + ms) },
            },
        }
    }

    fn signal(&mut self, signed: &Signed) -> Signal {
        let id = signed.id.unwrap_or(self.next_signal);
        self.next_signal = self.next_signal.max(id + 1);
        Signal {
            signal_id: SignalId::parse(&format!("s{id}")).expect("a signal id"),
            kind: match signed.sign {
                Sign::Pause => SignalKind::Pause,
                Sign::Resume => SignalKind::Resume,
                Sign::Cancel => SignalKind::Cancel,
                Sign::Approve => SignalKind::Approve,
                Sign::RetryRun => SignalKind::RetryRun,
                Sign::Retry(step) => SignalKind::RetryStep(step_id(step)),
                Sign::Skip(step) => SignalKind::SkipStep(step_id(step)),
            },
            by: "ann".to_owned(),
            reason: signed.reason.as_ref().map(|text| if text == "long" { "é".repeat(9_000) } else { text.clone() }),
            denied: signed.denied.then(|| "ann may not do this".to_owned()),
        }
    }

    pub(crate) fn decide(&self, command: &Command) -> Result<Decision, Refusal> {
        let run_id = run_id();
        let run = self.state.as_ref().map_or(Run::New(&run_id), Run::Known);
        decide(run, command, &self.policy, self.now)
    }

    /// Folds what a decision records, and says what is wrong with any of it: an invalid body, a key that the log has,
    /// a fact that the fold does not take as it was meant, a body that does not survive storage.
    pub(crate) fn record(&mut self, decision: &Decision) -> Result<(), String> {
        for fact in &decision.facts {
            let line = crate::text::fact(fact);
            fact.body.check().map_err(|invalid| format!("`{line}` is no valid event: {invalid}"))?;
            let event = self.event(fact.body.clone(), fact.occurred_at);
            if !self.keys.insert(event.idempotency_key) {
                return Err(format!("`{line}` has the idempotency key of an earlier event"));
            }
            let stored = EventBody::decode(event.body.event_type(), &event.body.encode());
            if stored.as_ref() != Ok(&event.body) {
                return Err(format!("`{line}` reads back as {stored:?}"));
            }
            let state = self.state.take().unwrap_or_else(|| RunState::new(event.run_id.clone()));
            let (state, applied) = state.apply(&event);
            self.state = Some(state);
            // An orphaned task is recorded for audit and says nothing about the run's state.
            let wanted =
                if matches!(fact.body, EventBody::TaskOrphaned(_)) { Applied::NoEffect } else { Applied::Changed };
            if applied != wanted {
                return Err(format!("`{line}` was folded as {applied:?}"));
            }
            if let Some(log) = &mut self.log {
                log.push(event);
            }
        }
        Ok(())
    }

    fn event(&self, body: EventBody, occurred_at: Option<Timestamp>) -> Event {
        let run_id = run_id();
        let run_seq = self.state.as_ref().map_or(0, |state| state.last_event_seq) + 1;
        let (step, number) = body.key_parts();
        let key = idempotency_key(&run_id, step, number, body.event_type(), &self.plan_ref.plan_version);
        Event {
            event_id: EventId::from_u128(u128::from(run_seq)),
            run_id,
            run_seq,
            idempotency_key: key,
            emitted_at: self.now,
            emitted_by: "test".to_owned(),
            occurred_at,
            body,
        }
    }

    /// The key that an event of this decision would have.
    pub(crate) fn key(&self, body: &EventBody) -> Digest {
        self.event(body.clone(), None).idempotency_key
    }
}

fn finish(at: At, engine_attempt: u32, result: StepResult) -> Command {
    Command::FinishStep { step_id: step_id(at.step), attempt: at.attempt, engine_attempt, result }
}

fn artifact(at: At) -> ArtifactRef {
    let uri = format!("s3://bucket/{}-{}", at.step, at.attempt);
    ArtifactRef { uri, kind: "table".to_owned(), sha256: None, size_bytes: None, expires_at: None }
}
