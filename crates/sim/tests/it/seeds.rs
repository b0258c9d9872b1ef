//! Seeds. `SERVO_SIM_SEEDS` says how many, `SERVO_SIM_FIRST` which is the first.
//!
//! One seed again: `SERVO_SIM_FIRST=17 SERVO_SIM_SEEDS=1 cargo nextest run -p servo-sim lane`

use servo_sim::campaign::{Counts, Options, simulate};

const SEEDS: u64 = 40;
/// Tests that share the seeds, so that they run beside each other.
const LANES: u64 = 4;

#[expect(clippy::disallowed_methods, reason = "this is how a person asks for more seeds")]
fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[expect(clippy::print_stdout, reason = "a report for whoever asks for more seeds")]
fn lane(number: u64, of: fn(u64) -> Options) -> (u64, Counts) {
    let first = from_environment("SERVO_SIM_FIRST", 1);
    let count = from_environment("SERVO_SIM_SEEDS", SEEDS);
    let mut total = Counts::default();
    let mut played = 0;
    for seed in (first..first + count).filter(|seed| seed % LANES == number) {
        let report = simulate(of(seed));
        assert!(report.violations.is_empty(), "{report}");
        add(&mut total, &report.counts);
        played += 1;
    }
    println!("{played} seeds: {total:?}");
    if played >= 5 {
        vacuity(played, &total);
    }
    (played, total)
}

/// R6, R13, R15 for executions: nodes and workers die, answers are lost, clocks are wrong; what a handler was told stays so.
fn lane_with_handlers(number: u64) {
    let (seeds, total) = lane(number, Options::with_handlers);
    let handled = total.handled;
    if seeds < 5 {
        return;
    }
    assert!(total.succeeded >= 2 * seeds, "only {} executions succeeded in {seeds} seeds", total.succeeded);
    assert!(handled.invocations > total.succeeded && handled.waits >= seeds, "{handled:?}");
    for (what, count) in [("deaths", handled.deaths), ("repeated calls", handled.repeated)] {
        assert!(count > 0, "no {what}: {handled:?}");
    }
}

fn add(total: &mut Counts, counts: &Counts) {
    total.runs += counts.runs;
    total.completed += counts.completed;
    total.results += counts.results;
    total.executions += counts.executions;
    total.take_overs += counts.take_overs;
    total.epochs += counts.epochs;
    total.kills += counts.kills;
    total.pauses += counts.pauses;
    total.clock_steps += counts.clock_steps;
    total.starts_ok += counts.starts_ok;
    total.signals_ok += counts.signals_ok;
    total.refusals_by_bus += counts.refusals_by_bus;
    total.outages_of_bus += counts.outages_of_bus;
    total.succeeded += counts.succeeded;
    total.handled.invocations += counts.handled.invocations;
    total.handled.deaths += counts.handled.deaths;
    total.handled.refused += counts.handled.refused;
    total.handled.repeated += counts.handled.repeated;
    total.handled.waits += counts.handled.waits;
    for (fault, count) in &counts.faults {
        *total.faults.entry(*fault).or_default() += count;
    }
}

/// Every kind of trouble must have happened, and enough must have gone well.
fn vacuity(seeds: u64, total: &Counts) {
    for fault in servo_sim::Fault::ALL {
        assert!(total.faults.contains_key(&fault), "{fault:?} never happened");
    }
    let least = [
        ("runs", total.runs, 5),
        ("completed", total.completed, 2),
        ("results", total.results, 10),
        ("epochs", total.epochs, 3),
        ("kills", total.kills, 1),
        ("pauses", total.pauses, 1),
        ("clock steps", total.clock_steps, 1),
        ("signals", total.signals_ok, 3),
        ("refusals", total.refusals_by_bus, 1),
        ("outages", total.outages_of_bus, 1),
    ];
    for (what, count, each) in least {
        assert!(count >= seeds * each, "only {count} {what} in {seeds} seeds");
    }
    assert!(total.take_overs > 0, "nothing was ever taken over");
}

#[test]
fn lane_0() {
    lane(0, Options::of);
}

#[test]
fn lane_0_with_handlers() {
    lane_with_handlers(0);
}

#[test]
fn lane_1() {
    lane(1, Options::of);
}

#[test]
fn lane_1_with_handlers() {
    lane_with_handlers(1);
}

#[test]
fn lane_2() {
    lane(2, Options::of);
}

#[test]
fn lane_2_with_handlers() {
    lane_with_handlers(2);
}

#[test]
fn lane_3() {
    lane(3, Options::of);
}

#[test]
fn lane_3_with_handlers() {
    lane_with_handlers(3);
}

/// Seeds that failed once, kept for ever: the same fact recorded under the same key twice, a bus that was slow to drain.
#[test]
fn seeds_that_failed_once() {
    for seed in [1_039, 3_356] {
        let report = simulate(Options::of(seed));
        assert!(report.violations.is_empty(), "{report}");
    }
}
