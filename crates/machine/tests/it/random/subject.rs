//! What is under test: the machine, or the machine with one deliberate fault. Every fault must be noticed (`controls`),
//! or a search that finds nothing would prove nothing.

use servo_machine::{Action, Command, Decision, Fact, Policy, Refusal, Run, StepResult, decide};
use servo_model::event::{EventBody, StepCompleted, StepStarted};
use servo_model::step::StepChange;
use servo_model::{RunState, StepStatus, Timestamp};

use crate::world::run_id;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    None,
    /// Every 50th `Dispatch` is forgotten.
    DropDispatch,
    /// What waits when the run is paused or cancelled stays handed out.
    DropWithdraw,
    /// A retry with a delay is handed out at once as well.
    DispatchEarly,
    /// The report on an attempt that was never started is taken.
    CompletePending,
    /// A step starts before those it depends on are done.
    StartUnready,
    /// The report of a hand-over that was replaced is taken.
    AcceptOldEngine,
    /// Every pause is the first.
    ForgetOccurrence,
    /// Nothing ends the run.
    ForgetEnd,
    /// A run that ended records signals.
    RecordWhenClosed,
    /// A finished step's report counts again.
    CompleteTwice,
    /// A pause is answered, and the run goes on.
    ForgetPause,
}

#[derive(Debug, Clone)]
pub(crate) struct Subject {
    damage: Damage,
    dispatches: u64,
}

impl Subject {
    /// The plan decides which dispatches are the 50th: a run has fewer than that.
    pub(crate) fn new(damage: Damage, plan: &str) -> Self {
        Self { damage, dispatches: plan.bytes().map(u64::from).sum() }
    }

    pub(crate) fn decide(
        &mut self,
        state: Option<&RunState>,
        command: &Command,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Decision, Refusal> {
        let new = run_id();
        let honest = decide(state.map_or(Run::New(&new), Run::Known), command, policy, now);
        match (self.damage, state) {
            (Damage::None, _) => honest,
            (Damage::DropDispatch, _) => honest.map(|decision| self.drop_some(decision)),
            (Damage::DropWithdraw, _) => without(honest, |action| matches!(action, Action::Withdraw { .. })),
            (Damage::DispatchEarly, _) => honest.map(dispatch_early),
            (Damage::ForgetOccurrence, _) => rewrite(honest, |body| {
                if let EventBody::RunPaused(paused) = body {
                    paused.logical_attempt_id = 1;
                }
                true
            }),
            (Damage::ForgetEnd, _) => {
                rewrite(honest, |body| !matches!(body, EventBody::RunCompleted(_) | EventBody::RunFailed(_)))
            }
            (Damage::ForgetPause, _) => rewrite(honest, |body| !matches!(body, EventBody::RunPaused(_))),
            (damage, Some(state)) => lenient(damage, state, command, policy, now, honest),
            (_, None) => honest,
        }
    }

    fn drop_some(&mut self, mut decision: Decision) -> Decision {
        decision.actions.retain(|action| {
            let dispatch = matches!(action, Action::Dispatch { .. });
            self.dispatches += u64::from(dispatch);
            !dispatch || !self.dispatches.is_multiple_of(50)
        });
        decision
    }
}

fn without(honest: Result<Decision, Refusal>, gone: impl Fn(&Action) -> bool) -> Result<Decision, Refusal> {
    honest.map(|mut decision| {
        decision.actions.retain(|action| !gone(action));
        decision
    })
}

/// Changes facts; `false` drops one.
fn rewrite(honest: Result<Decision, Refusal>, edit: impl Fn(&mut EventBody) -> bool) -> Result<Decision, Refusal> {
    honest.map(|mut decision| {
        decision.facts.retain_mut(|fact| edit(&mut fact.body));
        decision
    })
}

fn dispatch_early(mut decision: Decision) -> Decision {
    let delayed = decision.facts.iter().filter_map(|fact| match &fact.body {
        EventBody::StepRetryScheduled(b) if b.not_before.is_some() => {
            Some(Action::Dispatch { step_id: b.step_id.clone(), attempt: b.logical_attempt_id })
        }
        _ => None,
    });
    let mut early: Vec<Action> = delayed.collect();
    decision.actions.append(&mut early);
    decision
}

/// Faults that accept what is to be refused.
fn lenient(
    damage: Damage,
    state: &RunState,
    command: &Command,
    policy: &Policy,
    now: Timestamp,
    honest: Result<Decision, Refusal>,
) -> Result<Decision, Refusal> {
    let Err(refusal) = &honest else { return honest };
    let fact = |body| Ok(Decision { facts: vec![Fact { body, occurred_at: None }], ..Decision::default() });
    match (damage, command, refusal) {
        (
            Damage::CompletePending,
            Command::FinishStep { step_id, attempt, result: StepResult::Success { .. }, .. },
            Refusal::StepState { illegal, .. },
        ) if illegal.from == StepStatus::Pending => fact(completed(step_id, *attempt)),
        (
            Damage::CompleteTwice,
            Command::FinishStep { step_id, attempt, result: StepResult::Success { .. }, .. },
            Refusal::StepState { illegal, .. },
        ) if illegal.from == StepStatus::Success && illegal.change == StepChange::Completed => {
            fact(completed(step_id, *attempt))
        }
        (Damage::StartUnready, Command::StartStep { step_id, attempt, .. }, Refusal::NotReady { .. }) => {
            fact(EventBody::StepStarted(StepStarted {
                step_id: step_id.clone(),
                status: StepStatus::Running,
                logical_attempt_id: *attempt,
                engine_attempt_id: Some(1),
            }))
        }
        (Damage::AcceptOldEngine, Command::FinishStep { step_id, attempt, result, .. }, Refusal::Superseded { .. }) => {
            let Some(current) = state.step_number(step_id).map(|number| &state.step(number).attempt) else {
                return honest;
            };
            let engine_attempt = current.engine_attempt_id.unwrap_or(1);
            let (step_id, attempt, result) = (step_id.clone(), *attempt, result.clone());
            decide(Run::Known(state), &Command::FinishStep { step_id, attempt, engine_attempt, result }, policy, now)
        }
        (Damage::RecordWhenClosed, Command::Signal(signal), Refusal::Closed(_)) => {
            fact(EventBody::SignalRejected(servo_model::event::SignalRejected {
                signal_id: signal.signal_id.clone(),
                signal_type: signal.kind.signal_type(),
                logical_attempt_id: state.signals_rejected + 1,
                decided_by: signal.by.clone(),
                step_id: None,
                code: refusal.code().code.to_owned(),
                reason: refusal.to_string(),
            }))
        }
        _ => honest,
    }
}

fn completed(step_id: &servo_model::StepId, attempt: u32) -> EventBody {
    EventBody::StepCompleted(StepCompleted {
        step_id: step_id.clone(),
        status: StepStatus::Success,
        logical_attempt_id: attempt,
        engine_attempt_id: Some(1),
        artifacts: Vec::new(),
    })
}
