//! When a group of branches is done.

use proptest::prelude::*;
use servo_replay::{Completion, CompletionConfig, CompletionReason, Progress};

/// Feeds outcomes one by one and says after how many the group was done, and why.
fn play(config: CompletionConfig, outcomes: &[bool]) -> (usize, CompletionReason) {
    let mut progress = Progress { total: outcomes.len(), succeeded: 0, failed: 0 };
    for (index, succeeded) in outcomes.iter().enumerate() {
        if let Completion::Done(reason) = config.decide(progress) {
            return (index, reason);
        }
        if *succeeded { progress.succeeded += 1 } else { progress.failed += 1 }
    }
    match config.decide(progress) {
        Completion::Done(reason) => (outcomes.len(), reason),
        Completion::Continue => panic!("all branches have ended and the group goes on"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// DX-055: done at the M-th success, never before and never after.
    #[test]
    fn min_successful_ends_at_that_success(outcomes in prop::collection::vec(any::<bool>(), 1..40), min in 1_usize..10) {
        let config = CompletionConfig { min_successful: Some(min), ..CompletionConfig::default() };
        let at = outcomes.iter().scan(0, |count, ok| { *count += usize::from(*ok); Some(*count) }).position(|count| count >= min);
        let (ended, reason) = play(config, &outcomes);
        match at {
            Some(index) if index + 1 < outcomes.len() => {
                prop_assert_eq!((ended, reason), (index + 1, CompletionReason::MinSuccessfulReached));
            }
            _ => prop_assert_eq!((ended, reason), (outcomes.len(), CompletionReason::AllCompleted)),
        }
    }

    /// A count is exceeded by one more, a percentage by anything over it; equality is tolerated.
    #[test]
    fn tolerance_is_exceeded_and_not_met(outcomes in prop::collection::vec(any::<bool>(), 1..40), tolerated in 0_usize..10) {
        let total = outcomes.len();
        let by_count = CompletionConfig { tolerated_failure_count: Some(tolerated), ..CompletionConfig::default() };
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let percentage = (tolerated.min(total) as f64 / total as f64) * 100.0;
        let by_part = CompletionConfig { tolerated_failure_percentage: Some(percentage), ..CompletionConfig::default() };
        let at = outcomes.iter().scan(0, |count, ok| { *count += usize::from(!*ok); Some(*count) }).position(|count| count > tolerated);
        let expected = match at {
            Some(index) => (index + 1, CompletionReason::FailureToleranceExceeded),
            None => (total, CompletionReason::AllCompleted),
        };
        prop_assert_eq!(play(by_count, &outcomes), expected);
        prop_assert_eq!(play(by_part, &outcomes), expected);
    }
}

/// DX-021: the three ready-made rules.
#[test]
fn ready_made_rules_behave_as_named() {
    let outcomes = [false, true, false, true];
    let done = CompletionReason::AllCompleted;
    assert_eq!(play(CompletionConfig::first_successful(), &outcomes), (2, CompletionReason::MinSuccessfulReached));
    assert_eq!(play(CompletionConfig::all_completed(), &outcomes), (4, done));
    assert_eq!(play(CompletionConfig::all_successful(), &outcomes), (1, CompletionReason::FailureToleranceExceeded));
    assert_eq!(play(CompletionConfig::all_successful(), &[true, true]), (2, done));
    assert_eq!(play(CompletionConfig::all_successful(), &[]), (0, done));
}

#[test]
fn a_percentage_is_from_0_to_100() {
    let config =
        |percentage| CompletionConfig { tolerated_failure_percentage: Some(percentage), ..CompletionConfig::default() };
    assert!(config(100.0).problem().is_none());
    assert!(config(100.1).problem().is_some());
    assert!(config(-0.1).problem().is_some());
    assert!(config(f64::NAN).problem().is_some());
}
