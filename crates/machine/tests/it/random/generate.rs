//! Random plans and random operations: mostly what a runtime would do next, often enough what nobody should.

use std::fmt::Write as _;

use super::checker::Checker;
use super::reference::{Run, Step};
use super::rng::Rng;
use super::rows::Dispatch;
use crate::op::{At, Gate, Op, Sign, Signed};

/// One to eight steps that depend on each other without a cycle, in an order that is not theirs.
pub(crate) fn plan(rng: &mut Rng) -> String {
    let steps = 1 + rng.below(8);
    let mut names: Vec<char> = ('a'..='h').take(usize::try_from(steps).expect("few")).collect();
    for last in (1..names.len()).rev() {
        names.swap(last, usize::try_from(rng.below(last as u64 + 1)).expect("few"));
    }
    let density = rng.pick(&[0, 20, 40, 70]);
    let mut words: Vec<String> = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let mut word = name.to_string();
        if rng.percent(50) {
            let _ = write!(word, "*{}", 1 + rng.below(3));
            if rng.percent(60) {
                let _ = write!(word, "~{}", rng.pick(&[1, 300, 1_000]));
            }
        }
        let after: Vec<String> = names[..number].iter().filter(|_| rng.percent(density)).map(char::to_string).collect();
        if !after.is_empty() {
            let _ = write!(word, "<{}", after.join(","));
        }
        words.push(word);
    }
    words.sort_unstable();
    words.join(" ")
}

/// The policy of a sequence.
pub(crate) fn policy(rng: &mut Rng) -> Vec<Op> {
    let mut ops = vec![Op::Drain(rng.pick(&[0, 200, 1_000]))];
    if rng.percent(40) {
        ops.push(Op::Orphans);
    }
    if rng.percent(15) {
        ops.push(Op::Max(64 + rng.below(40)));
    }
    ops
}

pub(crate) fn op(rng: &mut Rng, checker: &Checker) -> Op {
    match rng.below(100) {
        0..=11 => Op::Clock(i64::try_from(rng.below(1_200)).expect("small")),
        12 => Op::Clock(-i64::try_from(rng.below(400)).expect("small")),
        13 if rng.percent(20) => Op::Max(checker.model.rules.events_max + rng.below(50)),
        13..=79 => sensible(rng, checker),
        _ => wild(rng, checker),
    }
}

fn new(rng: &mut Rng) -> Op {
    let gate = match rng.below(4) {
        0 => Gate::Queue,
        1 => Gate::Delay(i64::try_from(rng.below(500)).expect("small")),
        _ => Gate::Now,
    };
    Op::New { gate, approval: rng.percent(25) }
}

/// What somebody who looks at the run would do.
fn sensible(rng: &mut Rng, checker: &Checker) -> Op {
    let model = &checker.model;
    let id = fresh(checker);
    match model.run {
        Run::Absent => new(rng),
        Run::Pending if model.needs_approval => Op::signal(Sign::Approve, id),
        Run::Pending | Run::Approved => Op::Begin,
        Run::Running | Run::Paused => match rng.below(20) {
            0 => Op::signal(if model.run == Run::Running { Sign::Pause } else { Sign::Resume }, id),
            1..=4 if model.run == Run::Paused => Op::signal(Sign::Resume, id),
            5 => Op::Tick,
            6 => any_step(checker, Step::Pending, rng).map_or(Op::Tick, |at| Op::signal(Sign::Skip(at.step), id)),
            7 | 8 => any_step(checker, Step::Failed, rng).map_or(Op::Tick, |at| Op::signal(Sign::Retry(at.step), id)),
            9 => any_step(checker, Step::Running, rng).map_or(Op::Tick, Op::Take),
            _ => work(rng, checker).unwrap_or(Op::Tick),
        },
        Run::Failed => match any_step(checker, Step::Failed, rng) {
            Some(at) if rng.percent(50) => Op::signal(Sign::Retry(at.step), id),
            _ => Op::signal(Sign::RetryRun, id),
        },
        Run::Completed | Run::Cancelled => wild(rng, checker),
    }
}

/// The next move of a dispatch that waits or is out.
pub(crate) fn work(rng: &mut Rng, checker: &Checker) -> Option<Op> {
    let mut open = checker.rows.with(Dispatch::Notified);
    let running = open.len();
    if checker.model.run == Run::Running {
        open.extend(checker.rows.with(Dispatch::Pending));
    }
    if open.is_empty() {
        return None;
    }
    let chosen = usize::try_from(rng.below(open.len() as u64)).expect("few");
    let at = open[chosen];
    if chosen >= running {
        let late = rng.percent(10).then(|| checker.model.now - 5);
        return Some(Op::Start { at, late });
    }
    let engine = engine(checker, at);
    Some(if rng.percent(60) { Op::Ok { at, engine } } else { Op::Fail { at, engine, retryable: rng.percent(60) } })
}

/// The hand-over that the adapter of this attempt would name.
fn engine(checker: &Checker, at: At) -> u32 {
    let current = checker.state().and_then(|state| {
        let number = state.step_number(&crate::world::step_id(at.step))?;
        state.step(number).attempt.engine_attempt_id
    });
    current.unwrap_or(1)
}

/// Anything at all.
fn wild(rng: &mut Rng, checker: &Checker) -> Op {
    let model = &checker.model;
    let step = if rng.percent(5) {
        'z'
    } else {
        model.plan[usize::try_from(rng.below(model.plan.len() as u64)).expect("few")].name
    };
    let attempt = model.number(step).map_or(1, |number| model.attempt(number));
    let attempt = if rng.percent(15) { attempt + 1 - u32::from(rng.percent(60)) * attempt.min(2) } else { attempt };
    let at = At { step, attempt };
    let engine = if rng.percent(20) { 1 + u32::try_from(rng.below(3)).expect("small") } else { engine(checker, at) };
    match rng.below(24) {
        0 => new(rng),
        1 | 2 => Op::Begin,
        3 | 4 => Op::Start { at, late: None },
        5 | 6 => Op::Take(at),
        7 | 8 => Op::Ok { at, engine },
        9 | 10 => Op::Fail { at, engine, retryable: rng.percent(50) },
        11 | 12 => Op::Tick,
        13 if rng.percent(30) => Op::Terminate,
        _ => signal(rng, checker, step),
    }
}

fn signal(rng: &mut Rng, checker: &Checker, step: char) -> Op {
    let sign = match rng.below(20) {
        0..=3 => Sign::Pause,
        4..=7 => Sign::Resume,
        8 => Sign::Cancel,
        9 | 10 => Sign::Approve,
        11..=13 => Sign::RetryRun,
        14..=16 => Sign::Retry(step),
        _ => Sign::Skip(step),
    };
    let used = &checker.model.signals;
    let id = if !used.is_empty() && rng.percent(15) { rng.pick(used) } else { fresh(checker) };
    let reason = match rng.below(50) {
        0 => Some("long".to_owned()),
        1..=5 => Some("because".to_owned()),
        _ => None,
    };
    Op::Signal(Signed { sign, id: Some(id), denied: rng.percent(12), reason })
}

pub(crate) fn fresh(checker: &Checker) -> u32 {
    checker.model.signals.last().map_or(1, |last| checker.model.signals.iter().max().unwrap_or(last) + 1)
}

fn any_step(checker: &Checker, wanted: Step, rng: &mut Rng) -> Option<At> {
    let model = &checker.model;
    let found: Vec<At> = (0..model.plan.len())
        .filter(|&step| model.current(step).step == wanted)
        .map(|step| At { step: model.plan[step].name, attempt: model.attempt(step) })
        .collect();
    if found.is_empty() { None } else { Some(rng.pick(&found)) }
}
