//! Retry strategies.

use std::time::Duration;

use proptest::prelude::*;
use servo_replay::{Backoff, Failure, Jitter, RetryContext, RetryDecision, RetryStrategy, chance};

fn context(attempt: u32, jitter: f64) -> RetryContext<'static> {
    RetryContext { failure: Failure { error_type: "Timeout", message: "m", interrupted: false }, attempt, jitter }
}

/// DX-023: six attempts, 5 s doubling to 60 s.
#[test]
fn the_default_is_six_attempts_up_to_a_minute() {
    let delays: Vec<_> =
        (1..=6).map(|attempt| Backoff::default().decide(&context(attempt, 1.0)).delay_seconds()).collect();
    assert_eq!(delays, [Some(5), Some(10), Some(20), Some(40), Some(60), None]);
}

/// DX-023: errors that are not worth another attempt, and rules that are closures.
#[test]
fn errors_can_be_excluded_and_rules_can_be_closures() {
    let refused = Backoff { non_retryable: vec!["Timeout".into()], ..Backoff::default() };
    assert_eq!(refused.decide(&context(1, 1.0)), RetryDecision::GiveUp);
    let rule = |context: &RetryContext<'_>| match context.attempt {
        1 => RetryDecision::Retry(Duration::from_secs(7)),
        _ => RetryDecision::GiveUp,
    };
    let boxed: Box<dyn RetryStrategy> = Box::new(rule);
    assert_eq!(boxed.clone().decide(&context(1, 0.0)), RetryDecision::Retry(Duration::from_secs(7)));
    assert_eq!(boxed.decide(&context(2, 0.0)), RetryDecision::GiveUp);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A delay is never under one second, never over the ceiling, and grows with the random part.
    #[test]
    fn delays_stay_in_their_bounds(attempt in 1_u32..2_000_000_000, low in 0.0..1.0_f64, high in 0.0..1.0_f64) {
        let (low, high) = if low <= high { (low, high) } else { (high, low) };
        for jitter in [Jitter::None, Jitter::Half, Jitter::Full] {
            let rule = Backoff { max_attempts: u32::MAX, jitter, ..Backoff::default() };
            let (small, large) = (rule.decide(&context(attempt, low)), rule.decide(&context(attempt, high)));
            let (small, large) = (small.delay_seconds().unwrap(), large.delay_seconds().unwrap());
            prop_assert!((1..=60).contains(&small) && small <= large && large <= 60);
        }
    }

    /// The random part is the same on every replay and lies between 0 and 1.
    #[test]
    fn chance_is_stable(arn in ".{0,40}", id in "[a-f0-9]{64}", attempt in any::<u32>()) {
        let value = chance(&arn, &id, attempt);
        prop_assert!((0.0..=1.0).contains(&value));
        prop_assert_eq!(value.to_bits(), chance(&arn, &id, attempt).to_bits());
    }
}
