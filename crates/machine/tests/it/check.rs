//! Given a plan and what happened so far, when a command comes, then this is the answer.

use servo_machine::{Decision, Refusal};
use servo_model::{RunState, StepStatus};

use crate::op::{Op, op, ops};
use crate::text::answer;
use crate::world::World;

/// The whole contract of a case. `expected` is compared line by line; `nothing` for an answer without facts and
/// actions. A refused command must leave the world as it was, and everything recorded must fold as it was meant.
#[track_caller]
pub(crate) fn check(plan: &str, given: &str, command: &str, expected: &str) -> World {
    let mut world = given_world(plan, given);
    let lines = play(&mut world, &op(command));
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(
        lines,
        expected,
        "\n  plan: {plan}\n  given: {given}\n  when: {command}\n  then:\n{}\n",
        lines.join("\n")
    );
    world
}

/// Plays operations that must all be accepted. One that is refused on purpose is marked with `?`.
#[track_caller]
pub(crate) fn given_world(plan: &str, given: &str) -> World {
    let mut world = World::new(plan);
    world.log = Some(Vec::new());
    for part in given.split([';', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
        let (text, may_be_refused) = part.strip_prefix('?').map_or((part, false), |text| (text, true));
        let [given] = ops(text).try_into().expect("one operation");
        let outcome = decide(&mut world, &given);
        let Some(outcome) = outcome else { continue };
        let refusal = match &outcome {
            Ok(decision) => decision.refusal.as_ref(),
            Err(refusal) => Some(refusal),
        };
        assert_eq!(refusal.is_some(), may_be_refused, "`{part}` in `{given}`: {outcome:?}");
    }
    world
}

#[track_caller]
fn play(world: &mut World, op: &Op) -> Vec<String> {
    let outcome = decide(world, op).expect("the case is about a command");
    answer(&outcome)
}

#[track_caller]
fn decide(world: &mut World, op: &Op) -> Option<Result<Decision, Refusal>> {
    let command = world.command(op)?;
    let outcome = world.decide(&command);
    if let Ok(decision) = &outcome
        && let Err(wrong) = world.record(decision)
    {
        panic!("`{op}`: {wrong}");
    }
    Some(outcome)
}

impl World {
    pub(crate) fn state(&self) -> &RunState {
        self.state.as_ref().expect("the run exists")
    }

    /// Run status and the current attempt of every step: `RUNNING a#1:SUCCESS b#1:PENDING`.
    pub(crate) fn summary(&self) -> String {
        let state = self.state();
        let steps = state.steps.iter().map(|step| {
            let (name, attempt) = (&step.step_id, &step.attempt);
            format!(" {name}#{}:{}", attempt.logical_attempt_id, StepStatus::as_str(attempt.status))
        });
        format!("{}{}", state.status.as_str(), steps.collect::<String>())
    }
}
