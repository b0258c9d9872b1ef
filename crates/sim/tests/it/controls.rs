//! Worlds that are wrong on purpose. A check that finds nothing in them proves nothing elsewhere.

use servo_sim::Sabotage;
use servo_sim::campaign::{Options, simulate};

/// The violations of the first seed in which the sabotage shows in these words.
fn first_violation(sabotage: Sabotage, words: &str) -> Option<String> {
    (1..=60).find_map(|seed| {
        let report = simulate(Options { sabotage, ..Options::of(seed) });
        report.violations.into_iter().find(|violation| violation.contains(words))
    })
}

/// Without the fence, a node that was paused across its lease writes as if it still held it.
#[test]
fn a_missing_fence_is_found() {
    assert!(first_violation(Sabotage::StripFence, "wrote under epoch").is_some());
}

#[test]
fn a_lost_dispatch_is_found() {
    assert!(first_violation(Sabotage::LoseDispatch("/s1/1"), "does not end").is_some());
}

#[test]
fn a_lost_timer_is_found() {
    assert!(first_violation(Sabotage::LoseTimers, "does not end").is_some());
}

/// The same for executions: a wait, or a step that is to be tried again, never comes to its end.
#[test]
fn a_lost_timer_of_an_execution_is_found() {
    let found = (1..=20).any(|seed| {
        let options = Options { sabotage: Sabotage::LoseTimers, ..Options::with_handlers(seed) };
        let report = simulate(options);
        let stuck =
            |run: &str| report.violations.iter().any(|text| text.contains(run) && text.contains("does not end"));
        // Its history is in the report because it is stuck.
        report.history.iter().any(|line| line.contains("ExecutionStarted") && line.split(' ').next().is_some_and(stuck))
    });
    assert!(found, "executions without timers went unnoticed");
}
