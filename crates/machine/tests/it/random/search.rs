//! Sequences by seed, the search over many of them, and the shortest sequence that still fails.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::checker::{Checker, Checks};
use super::coverage::Coverage;
use super::generate;
use super::liveness::finish;
use super::rng::Rng;
use super::subject::Damage;
use crate::op::Op;

/// A sequence after which something does not hold.
#[derive(Debug)]
pub(crate) struct Failure {
    pub seed: u64,
    plan: String,
    ops: Vec<Op>,
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ops: Vec<String> = self.ops.iter().map(Op::to_string).collect();
        write!(f, "seed {}\n  plan: {}\n  given: {}\n  {}", self.seed, self.plan, ops.join("; "), self.message)
    }
}

/// How the rest of a sequence is scheduled, also when the sequence was shortened.
fn fair(seed: u64) -> Rng {
    Rng::new(seed ^ 0xfa1e)
}

/// Plays the sequence of a seed to its end.
pub(crate) fn sequence(seed: u64, damage: Damage, checks: Checks, coverage: &mut Coverage) -> Result<(), Box<Failure>> {
    let mut rng = Rng::new(seed);
    let plan = generate::plan(&mut rng);
    let mut checker = Checker::new(&plan, damage, checks);
    let mut ops = Vec::new();
    let mut outcome = Ok(());
    let mut play = |checker: &mut Checker, op: Op| {
        let outcome = checker.step(&op);
        ops.push(op);
        outcome.map(drop)
    };
    for op in generate::policy(&mut rng) {
        outcome = outcome.and_then(|()| play(&mut checker, op));
    }
    let length = 3 + rng.below(30);
    for _ in 0..length {
        if outcome.is_err() {
            break;
        }
        let op = generate::op(&mut rng, &checker);
        outcome = play(&mut checker, op);
    }
    let outcome = outcome.and_then(|()| finish(&mut checker, &mut fair(seed)));
    coverage.sequences += 1;
    coverage.merge(&checker.coverage);
    outcome.map_err(|message| Box::new(shortest(Failure { seed, plan, ops, message }, damage, checks)))
}

fn replay(failure: &Failure, ops: &[Op], damage: Damage, checks: Checks) -> Option<String> {
    let mut checker = Checker::new(&failure.plan, damage, checks);
    let played = ops.iter().try_for_each(|op| checker.step(op).map(drop));
    played.and_then(|()| finish(&mut checker, &mut fair(failure.seed))).err()
}

/// Leaves out operations, in ever smaller pieces, as long as something still fails.
fn shortest(mut failure: Failure, damage: Damage, checks: Checks) -> Failure {
    let mut piece = failure.ops.len().div_ceil(2);
    while piece > 0 {
        let mut from = 0;
        let mut shortened = false;
        while from < failure.ops.len() {
            let mut ops = failure.ops.clone();
            ops.drain(from..(from + piece).min(ops.len()));
            match replay(&failure, &ops, damage, checks) {
                Some(message) => {
                    (failure.ops, failure.message) = (ops, message);
                    shortened = true;
                }
                None => from += piece,
            }
        }
        if !shortened || piece > 1 {
            piece /= 2;
        }
    }
    failure
}

/// Plays sequences on all cores until there were enough, or some failed.
pub(crate) fn search(sequences: u64, transitions: u64, damage: Damage, checks: Checks) -> (Coverage, Vec<Failure>) {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8)) as u64;
    let (played, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let worker = |first: u64| {
        let mut coverage = Coverage::default();
        let mut failures = Vec::new();
        let mut seed = first;
        loop {
            let enough = coverage.sequences * threads >= sequences && played.load(Ordering::Relaxed) >= transitions;
            if enough || failed.load(Ordering::Relaxed) >= 3 {
                return (coverage, failures);
            }
            let before = coverage.transitions;
            if let Err(failure) = sequence(seed, damage, checks, &mut coverage) {
                failed.fetch_add(1, Ordering::Relaxed);
                failures.push(*failure);
            }
            played.fetch_add(coverage.transitions - before, Ordering::Relaxed);
            seed += threads;
        }
    };
    let mut coverage = Coverage::default();
    let mut failures = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || worker(first))).collect();
        for one in workers {
            let (met, mut found) = one.join().expect("a worker does not panic");
            coverage.merge(&met);
            failures.append(&mut found);
        }
    });
    (coverage, failures)
}
