//! Signals: recorded as accepted with their effect, or as rejected with the reason. Idempotent by id.
//!
//! A run that has ended accepts nothing but a retry, and records nothing: its log is closed.

use servo_model::event::{EventBody, SignalAccepted, SignalRejected};
use servo_model::limits::{CONTROLLED_SIGNALS_PER_RUN_MAX, REJECTED_SIGNALS_PER_RUN_MAX, SIGNALS_PER_RUN_MAX, clip};
use servo_model::{RunState, RunStatus, Timestamp};

use crate::command::{Policy, Signal, SignalKind};
use crate::decision::{Action, Decision};
use crate::execution::{message, reopen};
use crate::refusal::Refusal;
use crate::start::approved;
use crate::{cancel, pause, resume, retry, skip};

pub(crate) fn decide(state: &RunState, signal: &Signal, policy: &Policy, now: Timestamp) -> Result<Decision, Refusal> {
    if state.signals.contains_key(&signal.signal_id) {
        return Ok(Decision::default());
    }
    let skips = matches!(signal.kind, SignalKind::SkipStep(_)) && state.entrypoint().is_some();
    let reopens = skips || matches!(signal.kind, SignalKind::RetryRun | SignalKind::RetryStep(_));
    if state.status.is_terminal() && !(state.status == RunStatus::Failed && reopens) {
        return Err(Refusal::Closed(state.status));
    }
    let mut effect = Decision::default();
    let outcome = match &signal.denied {
        Some(reason) => Err(Refusal::Denied(reason.clone())),
        None if state.signals_accepted >= accepted_max(&signal.kind) => {
            return Err(Refusal::SignalLimit(accepted_max(&signal.kind)));
        }
        None => apply(state, signal, policy, now, &mut effect),
    };
    match outcome {
        Ok(()) => {
            let mut decision = Decision::default();
            decision.fact(EventBody::SignalAccepted(SignalAccepted {
                signal_id: signal.signal_id.clone(),
                signal_type: signal.kind.signal_type(),
                logical_attempt_id: state.signals_accepted + 1,
                decided_by: signal.by.clone(),
                step_id: signal.kind.step_id().cloned(),
                reason: signal.reason.as_deref().map(|text| clip(text).to_owned()),
            }));
            decision.facts.append(&mut effect.facts);
            decision.actions.append(&mut effect.actions);
            Ok(decision)
        }
        // A closed log stays closed, also for a retry that names the wrong step.
        Err(refusal) if state.status.is_terminal() => Err(refusal),
        Err(refusal) if state.signals_rejected >= REJECTED_SIGNALS_PER_RUN_MAX => Err(refusal),
        Err(refusal) => Ok(rejected(state, signal, refusal)),
    }
}

/// A cancellation ends the run, so there is one of it at most.
fn accepted_max(kind: &SignalKind) -> u32 {
    match kind {
        SignalKind::Message { .. } => SIGNALS_PER_RUN_MAX,
        SignalKind::Cancel => u32::MAX,
        _ => CONTROLLED_SIGNALS_PER_RUN_MAX,
    }
}

fn apply(
    state: &RunState,
    signal: &Signal,
    policy: &Policy,
    now: Timestamp,
    effect: &mut Decision,
) -> Result<(), Refusal> {
    let reason = signal.reason.as_deref().map(clip);
    if let Some(execution) = state.execution.as_deref()
        && matches!(signal.kind, SignalKind::RetryRun | SignalKind::RetryStep(_) | SignalKind::SkipStep(_))
    {
        if state.entrypoint().is_none() {
            return Err(Refusal::NotForExecutions);
        }
        return match &signal.kind {
            SignalKind::RetryStep(step) => reopen::step(state, execution, step, effect, now),
            SignalKind::SkipStep(step) => reopen::skip(state, execution, step, effect, now),
            _ => reopen::run(state, reason.unwrap_or("retry of the run"), effect, now),
        };
    }
    match &signal.kind {
        SignalKind::Message { name, payload } => {
            message::receive(state, &signal.signal_id, (name, payload.as_deref()), effect)
        }
        SignalKind::Pause => pause::decide(state, reason, policy, now, effect),
        SignalKind::Resume => resume::decide(state, policy, now, effect),
        SignalKind::Cancel => cancel::decide(state, &signal.by, reason, effect),
        SignalKind::Approve => approve(state, &signal.by, now, effect),
        SignalKind::RetryRun => retry::run(state, effect, now),
        SignalKind::RetryStep(step) => retry::step(state, step, effect, now),
        SignalKind::SkipStep(step) => skip::decide(state, step, reason, effect),
    }
}

fn approve(state: &RunState, by: &str, now: Timestamp, effect: &mut Decision) -> Result<(), Refusal> {
    if state.status == RunStatus::Pending && !state.approval_required {
        return Err(Refusal::NoApprovalNeeded);
    }
    state.status.next(servo_model::run::RunChange::Approved)?;
    effect.fact(approved(state.round, Some(by)));
    effect.act(Action::Enqueue { not_before: state.not_before.map_or(now, |at| at.max(now)) });
    Ok(())
}

fn rejected(state: &RunState, signal: &Signal, refusal: Refusal) -> Decision {
    let mut decision = Decision::default();
    decision.fact(EventBody::SignalRejected(SignalRejected {
        signal_id: signal.signal_id.clone(),
        signal_type: signal.kind.signal_type(),
        logical_attempt_id: state.signals_rejected + 1,
        decided_by: signal.by.clone(),
        step_id: signal.kind.step_id().cloned(),
        code: refusal.code().code.to_owned(),
        reason: clip(&refusal.to_string()).to_owned(),
    }));
    decision.refusal = Some(refusal);
    decision
}
