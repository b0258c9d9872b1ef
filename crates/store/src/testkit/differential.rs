//! The differential test: the same random operations on the reference model and on another store must be answered
//! alike, and must leave the same visible state.
//!
//! `generate` makes operations from a seed, `apply` performs one and puts the answer in words that do not depend on the
//! backend, `state` tells all that can be seen at the end. Positions are compared by their order only: both stores'
//! readers follow the log, and the n-th event one sees is the n-th of the other. Two streams of one run, or one key
//! twice, in the same append are not generated: no rule says how they come out.

mod apply;
mod coverage;
mod entrypoints;
mod functions;
mod generate;
mod identity;
mod op;
mod state;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use servo_model::limits::Limits;

use crate::Store;
use crate::log::StoredEvent;
use crate::mem::MemStore;
use crate::position::Position;
use crate::testkit::clock::ManualClock;
use crate::testkit::conformance::{Backend, yield_now};
use crate::testkit::rng::Rng;

pub use coverage::Coverage;

/// Operations per sequence of `check`.
const OPS: usize = 60;
const SEQUENCES_DEFAULT: u64 = 300;
/// How long the other store's reader may lag behind a commit.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the two stores differ.
#[derive(Debug, Clone)]
pub struct Mismatch {
    pub seed: u64,
    /// Counted from 0; `None` when only the final states differ.
    pub step: Option<usize>,
    pub operation: String,
    pub model: String,
    pub store: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.step.map_or("the end".to_owned(), |step| format!("step {step}"));
        writeln!(f, "seed {} at {step}: {}", self.seed, self.operation)?;
        writeln!(f, "  model: {}", self.model)?;
        writeln!(f, "  store: {}", self.store)?;
        write!(f, "again with SERVO_DIFF_SEED={} SERVO_DIFF_SEQUENCES=1", self.seed)
    }
}

impl std::error::Error for Mismatch {}

/// Runs one sequence on two fresh stores that share `clock`, the first of them the model.
pub async fn run(
    a: &dyn Store,
    b: &dyn Store,
    clock: &ManualClock,
    seed: u64,
    ops: usize,
) -> Result<Coverage, Mismatch> {
    let mut rng = Rng::new(seed);
    let mut memory = generate::Memory::default();
    let mut coverage = Coverage::default();
    let (mut seen_a, mut seen_b) = (Follower::default(), Follower::default());
    for step in 0..ops {
        let advance = if rng.one_in(12) { rng.below(400) } else { 0 };
        clock.advance(1 + i64::try_from(advance).unwrap_or(0));
        let op = generate::next(&mut rng, &mut memory, a, clock, &seen_a).await;
        if matches!(op, op::Op::LogHead) {
            // A reader may lag behind a commit; once it has seen everything, the head is certain.
            let everything = op::Op::Follow { page: 100 };
            seen_a.follow(a, &everything, 0).await;
            seen_b.follow(b, &everything, seen_a.places.len()).await;
        }
        let (answer_a, answer_b) = if matches!(op, op::Op::Follow { .. }) {
            let answer_a = seen_a.follow(a, &op, 0).await;
            (answer_a, seen_b.follow(b, &op, seen_a.places.len()).await)
        } else {
            (apply::apply(&op, a, &seen_a.places).await, apply::apply(&op, b, &seen_b.places).await)
        };
        if answer_a.text != answer_b.text {
            return Err(Mismatch {
                seed,
                step: Some(step),
                operation: format!("{op:?}"),
                model: answer_a.text,
                store: answer_b.text,
            });
        }
        coverage.note(&op, &answer_a);
        memory.note(&op, &answer_a);
    }
    let everything = op::Op::Follow { page: 100 };
    seen_a.follow(a, &everything, 0).await;
    seen_b.follow(b, &everything, seen_a.places.len()).await;
    let (state_a, state_b) =
        (state::visible(a, clock, &seen_a.places).await, state::visible(b, clock, &seen_b.places).await);
    match state::first_difference(&state_a, &state_b) {
        None => Ok(coverage),
        Some((operation, model, store)) => Err(Mismatch { seed, step: None, operation, model, store }),
    }
}

/// Compares many sequences, `SERVO_DIFF_SEQUENCES` of them beginning with the seed `SERVO_DIFF_SEED`, each on a backend
/// of its own. Panics at the first difference, and unless every kind of operation has succeeded at least once.
pub async fn check<B: Backend>(backend: impl Fn() -> B) {
    let sequences = from_environment("SERVO_DIFF_SEQUENCES").unwrap_or(SEQUENCES_DEFAULT);
    let first = from_environment("SERVO_DIFF_SEED").unwrap_or(0);
    let mut coverage = Coverage::default();
    for seed in first..first + sequences {
        let clock = ManualClock::new();
        let model = MemStore::new(clock.time_source(), Limits::default(), [1; 32]);
        let backend = backend();
        let store = backend.open(clock.time_source()).await;
        match run(&model, &*store, &clock, seed, OPS).await {
            Ok(covered) => coverage.merge(covered),
            Err(mismatch) => panic!("{mismatch}"),
        }
        let _ = store.close().await;
    }
    // A handful of sequences, as when one is run again, cannot reach everything.
    if sequences >= SEQUENCES_DEFAULT {
        let missing = coverage.missing();
        assert!(missing.is_empty(), "never reached in {sequences} sequences: {missing:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's length is set from outside, and there is no command line here")]
fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// A reader of one store's log: the n-th place is the n-th event it saw, and place 0 is before all.
#[derive(Debug)]
struct Follower {
    places: Vec<Position>,
    /// One per place after the first.
    events: Vec<StoredEvent>,
}

impl Default for Follower {
    fn default() -> Self {
        Self { places: vec![Position::START], events: Vec::new() }
    }
}

impl Follower {
    /// Reads on until nothing more comes and at least `until` places are known.
    async fn follow(&mut self, store: &dyn Store, op: &op::Op, until: usize) -> apply::Answer {
        let op::Op::Follow { page } = op else { unreachable!("only that operation follows the log") };
        let from = self.places.len();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let at = self.places[self.places.len() - 1];
            let read = match store.read_log(at, *page).await {
                Ok(read) => read,
                Err(error) => return apply::Answer::refused(&error),
            };
            if read.events.is_empty() && (self.places.len() >= until || Instant::now() > deadline) {
                break;
            }
            if read.events.is_empty() {
                yield_now().await;
            }
            for event in read.events {
                self.places.push(event.position);
                self.events.push(Arc::unwrap_or_clone(event));
            }
        }
        let grows = self.places.windows(2).all(|pair| pair[0] < pair[1]);
        let seen: Vec<_> = self.events[from - 1..].iter().map(apply::event_text).collect();
        apply::Answer::ok(format!("positions grow: {grows}, events: {seen:#?}"))
    }
}
