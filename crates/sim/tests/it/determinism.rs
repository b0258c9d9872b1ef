//! The same seed gives the same trace; and if it did not, this would be seen.

use servo_sim::campaign::{Options, simulate};

fn trace(seed: u64, leak: bool) -> (u64, String) {
    let report = simulate(Options { leak, actions: 25, ..Options::of(seed) });
    (report.trace, format!("{:?}", report.counts))
}

/// R6
#[test]
fn the_same_seed_takes_the_same_steps() {
    for seed in 1..=4 {
        assert_eq!(trace(seed, false), trace(seed, false), "seed {seed}");
    }
    let handlers = || simulate(Options { actions: 25, ..Options::with_handlers(5) });
    assert_eq!(handlers().trace, handlers().trace);
    assert!(handlers().counts.handled.invocations > 0);
}

#[test]
fn another_seed_takes_others() {
    assert_ne!(trace(1, false).0, trace(2, false).0);
}

/// Control: randomness that does not come from the seed shows in the trace.
#[test]
fn a_leak_of_randomness_is_seen() {
    assert_ne!(trace(3, true).0, trace(3, true).0);
}
