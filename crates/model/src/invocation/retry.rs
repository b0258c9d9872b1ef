//! When a failed attempt is followed by another.

use serde::{Deserialize, Serialize};

use super::{ErrorCategory, Failure};

/// The retry policy of an entrypoint as runs keep it. The multiplier counts in thousandths, so that it is an exact number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryRule {
    /// Attempts in all; the first one always runs.
    pub max_attempts: u32,
    pub initial_delay_ms: u64,
    pub max_delay_ms: u64,
    pub backoff_permille: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable_errors: Vec<String>,
}

impl RetryRule {
    /// One attempt and no more.
    pub fn never() -> Self {
        Self {
            max_attempts: 1,
            initial_delay_ms: 0,
            max_delay_ms: 0,
            backoff_permille: 1_000,
            non_retryable_errors: Vec::new(),
        }
    }

    /// How long to wait before the next attempt after `attempts` of them, in milliseconds; `None` if there is none.
    pub fn next_delay_ms(&self, attempts: u32, failure: &Failure) -> Option<u64> {
        let worth_it = failure.category == ErrorCategory::Retryable && !self.lists(failure);
        (worth_it && attempts < self.max_attempts).then(|| self.delay_ms(attempts))
    }

    /// By its id, or by what user code calls it.
    fn lists(&self, failure: &Failure) -> bool {
        let is_it = |listed: &String| *listed == failure.error_type_id || Some(listed.as_str()) == failure.user_type();
        self.non_retryable_errors.iter().any(is_it)
    }

    fn delay_ms(&self, attempts: u32) -> u64 {
        let mut delay = u128::from(self.initial_delay_ms);
        let max = u128::from(self.max_delay_ms);
        for _ in 1..attempts {
            if delay >= max || self.backoff_permille <= 1_000 {
                break;
            }
            delay = delay * u128::from(self.backoff_permille) / 1_000;
        }
        u64::try_from(delay.min(max)).unwrap_or(self.max_delay_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::super::errors;
    use super::*;

    fn rule() -> RetryRule {
        RetryRule {
            max_attempts: 9,
            initial_delay_ms: 200,
            max_delay_ms: 10_000,
            backoff_permille: 2_000,
            non_retryable_errors: vec!["gts.a.b.c.v1~".to_owned()],
        }
    }

    fn failure(id: &str, category: ErrorCategory) -> Failure {
        Failure::new(id, category, "m")
    }

    /// SR-047: delays grow by the multiplier and end at the cap.
    #[test]
    fn delays_grow_to_the_cap() {
        let failure = failure(errors::EXECUTION, ErrorCategory::Retryable);
        let delays: Vec<_> = (1..9).map(|attempts| rule().next_delay_ms(attempts, &failure).unwrap()).collect();
        assert_eq!(delays, [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        assert_eq!(rule().next_delay_ms(9, &failure), None);
    }

    /// SR-045, SR-046, SR-052: the first attempt always runs, so 0 and 1 are alike.
    #[test]
    fn attempts_count_the_first_one() {
        let failure = failure(errors::EXECUTION, ErrorCategory::Retryable);
        for max_attempts in [0, 1] {
            assert_eq!(RetryRule { max_attempts, ..rule() }.next_delay_ms(1, &failure), None);
        }
        let two = RetryRule { max_attempts: 2, ..rule() };
        assert!(two.next_delay_ms(1, &failure).is_some() && two.next_delay_ms(2, &failure).is_none());
    }

    /// SR-048, SR-049, SR-050: attempts remain, the category says so, and the error is not listed.
    #[test]
    fn all_three_conditions_are_needed() {
        use ErrorCategory as C;
        for category in [C::Retryable, C::NonRetryable, C::ResourceLimit, C::Timeout, C::Canceled] {
            for id in [errors::EXECUTION, "gts.a.b.c.v1~"] {
                for attempts in [1, 9] {
                    let again = rule().next_delay_ms(attempts, &failure(id, category)).is_some();
                    let expected = category == C::Retryable && id == errors::EXECUTION && attempts == 1;
                    assert_eq!(again, expected, "{category:?} {id} {attempts}");
                }
            }
        }
    }

    /// SR-050: what user code made up is listed by its own name, while the rest of its kind is tried again.
    #[test]
    fn made_up_names_can_be_listed() {
        let rule = RetryRule { non_retryable_errors: vec!["CardDeclined".to_owned()], ..rule() };
        let of = |name: &str| Failure::of(&failure(name, ErrorCategory::Retryable).to_error());
        assert_eq!(of("CardDeclined").error_type_id, of("BankAsleep").error_type_id);
        assert_eq!(rule.next_delay_ms(1, &of("CardDeclined")), None);
        assert_eq!(rule.next_delay_ms(1, &of("BankAsleep")), Some(200));
    }

    #[test]
    fn huge_policies_do_not_overflow() {
        let rule = RetryRule {
            max_attempts: u32::MAX,
            initial_delay_ms: u64::MAX,
            max_delay_ms: u64::MAX,
            backoff_permille: u32::MAX,
            non_retryable_errors: Vec::new(),
        };
        let failure = failure(errors::EXECUTION, ErrorCategory::Retryable);
        assert_eq!(rule.next_delay_ms(1_000_000, &failure), Some(u64::MAX));
    }
}
