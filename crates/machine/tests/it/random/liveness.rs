//! From wherever a run is, a fair schedule ends it: it is approved, begun and resumed, every dispatch that waits is
//! handed out and reported on, and time passes. It acts on rows alone, so a dispatch or timer that was forgotten shows
//! as a run that is stuck.

use super::checker::{Checker, Done};
use super::generate::{fresh, work};
use super::reference::Run;
use super::rng::Rng;
use super::rows::Dispatch;
use crate::op::{Op, Sign};

/// Far above what eight steps with three tries and a few rounds need.
const MOVES_MAX: u32 = 2_000;

pub(crate) fn finish(checker: &mut Checker, rng: &mut Rng) -> Result<(), String> {
    if checker.model.run == Run::Absent {
        return Ok(());
    }
    for _ in 0..MOVES_MAX {
        let Some(state) = checker.state() else { return Err("the run is gone".to_owned()) };
        if state.status.is_terminal() {
            return ended(checker);
        }
        for op in next(checker, rng)? {
            match checker.step(&op)? {
                Done::Accepted => {}
                // Nobody may use the last events but to end the run.
                Done::Refused("EventLimit" | "SignalLimit") if !checker_is_over(checker) => {
                    checker.step(&Op::Terminate)?;
                }
                Done::Refused("EventLimit" | "Orphaned") => {}
                Done::Refused(other) => return Err(format!("a fair schedule was refused at `{op}`: {other}")),
            }
        }
    }
    Err("the run does not come to an end".to_owned())
}

fn checker_is_over(checker: &Checker) -> bool {
    checker.state().is_some_and(|state| state.status.is_terminal())
}

fn next(checker: &Checker, rng: &mut Rng) -> Result<Vec<Op>, String> {
    let status = checker.state().map(|state| state.status);
    let approval = checker.state().is_some_and(|state| state.approval_required);
    use servo_model::RunStatus as S;
    match status {
        Some(S::Pending) if approval => Ok(vec![Op::signal(Sign::Approve, fresh(checker))]),
        Some(S::Pending | S::Approved) => {
            let Some(not_before) = checker.rows.queue else { return Err(stuck(checker)) };
            Ok(vec![Op::Clock((not_before - checker.model.now).max(0)), Op::Begin])
        }
        Some(S::Paused) => {
            let report = if rng.percent(50) { work(rng, checker) } else { None };
            Ok(vec![report.unwrap_or_else(|| Op::signal(Sign::Resume, fresh(checker)))])
        }
        _ => match (work(rng, checker), checker.rows.timer) {
            (Some(op), _) => Ok(vec![op]),
            (None, Some(timer)) => Ok(vec![Op::Clock((timer - checker.model.now).max(0)), Op::Tick]),
            (None, None) => Err(stuck(checker)),
        },
    }
}

fn stuck(checker: &Checker) -> String {
    let summary: Vec<String> = checker.state().map_or_else(Vec::new, |state| {
        let step = |step: &servo_model::state::StepState| {
            format!("{}#{}:{}", step.step_id, step.attempt.logical_attempt_id, step.attempt.status.as_str())
        };
        std::iter::once(state.status.as_str().to_owned()).chain(state.steps.iter().map(step)).collect()
    });
    format!("the run is stuck: {} with {:?}", summary.join(" "), checker.rows)
}

/// A run that ended leaves nothing behind that somebody would wait for.
fn ended(checker: &Checker) -> Result<(), String> {
    let rows = &checker.rows;
    let waiting = rows.with(Dispatch::Pending).len() + rows.with(Dispatch::Notified).len();
    if rows.queue.is_some() || rows.timer.is_some() || waiting > 0 {
        return Err(format!("the run ended and left {rows:?}"));
    }
    Ok(())
}
