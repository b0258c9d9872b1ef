//! ES-022, R4: random commands, legal and not, over random plans and policies, with a clock that moves. After each the
//! machine is compared with a naive model, each fact is watched, and the actions are played as rows; at the end a fair
//! schedule must finish the run from wherever it is.
//!
//! A test run makes at least 10,000 sequences and 100,000 transitions. `SERVO_MACHINE_TRANSITIONS=N` asks for N of them;
//! a million take half a minute with `cargo test --release -p servo-machine --test it no_sequence -- --nocapture`, which
//! also prints the table of what was met. `SERVO_MACHINE_SEED=N` repeats one sequence. A failure prints its seed and the
//! shortest sequence found, in the notation of `op`, ready to become a table test.

pub(crate) mod checker;
mod coverage;
mod generate;
mod liveness;
mod reference;
mod rng;
mod rows;
pub(crate) mod search;
pub(crate) mod subject;
mod watch;

use checker::{Checker, Checks};
use coverage::Coverage;
use search::{search, sequence};
use subject::Damage;

use crate::op::{Op, Sign, Signed};

const SEQUENCES_MIN: u64 = 10_000;
const TRANSITIONS_MIN: u64 = 100_000;

#[expect(clippy::disallowed_methods, reason = "how long to search is chosen by whoever starts the test")]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// ES-022
#[test]
fn no_sequence_of_commands_leads_to_an_illegal_state() {
    if let Some(seed) = setting("SERVO_MACHINE_SEED") {
        let mut coverage = Coverage::default();
        sequence(seed, Damage::None, Checks::ALL, &mut coverage).unwrap_or_else(|failure| panic!("{failure}"));
        return;
    }
    let transitions = setting("SERVO_MACHINE_TRANSITIONS").unwrap_or(0).max(TRANSITIONS_MIN);
    let (mut coverage, failures) = search(SEQUENCES_MIN, transitions, Damage::None, Checks::ALL);
    let report: Vec<String> = failures.iter().map(|failure| failure.to_string()).collect();
    assert!(report.is_empty(), "{} sequences fail, the first of them:\n{}", failures.len(), report.join("\n"));
    coverage.merge(&as_many_signals_as_a_run_takes());
    println!("{}", coverage.table());
    assert!(coverage.sequences >= SEQUENCES_MIN && coverage.transitions >= transitions, "the search ended early");
    assert!(coverage.pairs_met() >= 0.95, "too few pairs of state and command were met:\n{}", coverage.table());
    assert_eq!(coverage.refusals_missed(), [""; 0], "refusals that were never met:\n{}", coverage.table());
    assert_eq!(coverage.answers_missed(), [""; 0], "facts and actions that were never met");
}

/// A random sequence is too short to meet this limit.
fn as_many_signals_as_a_run_takes() -> Coverage {
    let mut checker = Checker::new("a", Damage::None, Checks::ALL);
    checker.step(&Op::New { gate: crate::op::Gate::Now, approval: false }).expect("accepted");
    for id in 1..=20_001 {
        let sign = if id % 2 == 1 { Sign::Pause } else { Sign::Resume };
        let done = checker.step(&Op::signal(sign, id)).expect("as the model says");
        let wanted = if id <= 20_000 { checker::Done::Accepted } else { checker::Done::Refused("SignalLimit") };
        assert_eq!(done, wanted, "signal {id}");
    }
    for id in 30_001..=31_001 {
        let denied = Op::Signal(Signed { sign: Sign::Pause, id: Some(id), denied: true, reason: None });
        let done = checker.step(&denied).expect("as the model says");
        assert_eq!(done, checker::Done::Refused("Denied"), "signal {id}");
    }
    let cancelled = checker.step(&Op::signal(Sign::Cancel, 40_000)).expect("as the model says");
    assert_eq!(cancelled, checker::Done::Accepted, "a run can always be cancelled");
    checker.coverage
}
