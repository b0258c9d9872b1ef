//! The door: one command in, one decision out.

use std::collections::BTreeSet;

use servo_model::{RunId, RunState, RunStatus, StepId, Timestamp};

use crate::command::{Command, Policy};
use crate::decision::{Action, Decision};
use crate::execution::{self, ExecutionCommand};
use crate::refusal::Refusal;
use crate::{begin, limit, signal, start, step, terminate, tick};

/// What a command is about.
#[derive(Debug, Clone, Copy)]
pub enum Run<'a> {
    /// A run that does not exist yet, by the id that it will have.
    New(&'a RunId),
    Known(&'a RunState),
}

/// Decides about a run. A refused command changes nothing, unless
/// the decision itself carries the refusal (a rejected signal and an orphaned task are recorded).
pub fn decide(run: Run<'_>, command: &Command, policy: &Policy, now: Timestamp) -> Result<Decision, Refusal> {
    let state = match (run, command) {
        (Run::Known(state), _) => state,
        (Run::New(run_id), Command::Start(start)) => return Ok(start::decide(run_id, start, now)),
        (Run::New(run_id), Command::StartExecution(start)) => return Ok(execution::start::decide(run_id, start, now)),
        (Run::New(_), _) => return Err(Refusal::NoRun),
    };
    let mut decision = match command {
        Command::Start(_) | Command::StartExecution(_) => return Err(Refusal::Exists),
        Command::Execution(command) => {
            let execution = state.execution.as_deref().ok_or(Refusal::NoExecution)?;
            execution::decide(state, execution, command, policy, now)?
        }
        Command::Begin => begin::decide(state, now)?,
        Command::StartStep { step_id, attempt, occurred_at } => step::start(state, step_id, *attempt, *occurred_at)?,
        Command::TakeOver { step_id, attempt } => step::take_over(state, step_id, *attempt)?,
        Command::FinishStep { step_id, attempt, engine_attempt, result } => {
            let report = step::Report { step_id, attempt: *attempt, engine_attempt: *engine_attempt, result };
            step::finish(state, &report, policy, now)?
        }
        Command::Signal(signal) => signal::decide(state, signal, policy, now)?,
        Command::Tick => tick::decide(state, now),
        Command::Terminate { by, reason } => terminate::decide(state, by, reason)?,
    };
    // What comes due with it counts as well.
    if let Some(execution) = state.execution.as_deref().filter(|_| !checkpoints(command)) {
        execution::settle::settle(state, execution, &mut decision, now);
    }
    limit::enforce(state, command, policy, &mut decision)?;
    if state.execution.is_none() {
        wake_due(state, &mut decision, now);
    }
    Ok(decision)
}

/// A checkpoint resolves what is due itself, because its answer tells the handler.
fn checkpoints(command: &Command) -> bool {
    matches!(command, Command::Execution(command) if matches!(**command, ExecutionCommand::Checkpoint(_)))
}

/// Whatever the command was, also one whose refusal is recorded: attempts whose delay is over are handed out, because the
/// append that records this decision also replaces the run's timer by the next one after `now`. An attempt that the
/// decision starts or takes back (a pause, a skip, the end of the run) is left alone.
fn wake_due(state: &RunState, decision: &mut Decision, now: Timestamp) {
    let mut due = state.due_steps(now).peekable();
    if state.status != RunStatus::Running || due.peek().is_none() {
        return;
    }
    let settled: BTreeSet<StepId> = decision
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Dispatch { step_id, .. } | Action::Withdraw { step_id, .. } | Action::Notify { step_id, .. } => {
                Some(step_id.clone())
            }
            _ => None,
        })
        .collect();
    for step in due.map(|number| state.step(number)).filter(|step| !settled.contains(&step.step_id)) {
        let attempt = step.attempt.logical_attempt_id;
        decision.actions.push(Action::Dispatch { step_id: step.step_id.clone(), attempt });
    }
}
