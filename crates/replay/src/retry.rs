//! Whether and when a failed attempt is tried again. Pure: the random part of a delay is a number that the caller brings.

use std::fmt;
use std::time::Duration;

use servo_canon::Digest;

/// Delays travel in whole seconds of at least one, and the service takes no more than about a year.
const DELAY_MIN: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(31_622_400);

/// What went wrong, as far as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    pub error_type: &'a str,
    pub message: &'a str,
    /// The process ended in the middle of an at-most-once attempt.
    pub interrupted: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct RetryContext<'a> {
    pub failure: Failure<'a>,
    /// The attempt that has just failed, from 1.
    pub attempt: u32,
    /// From 0 to 1, for the random part of a delay.
    pub jitter: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Try again after this long, rounded up to whole seconds.
    Retry(Duration),
    GiveUp,
}

impl RetryDecision {
    /// The delay as the service takes it.
    pub fn delay_seconds(self) -> Option<u64> {
        match self {
            RetryDecision::Retry(delay) => {
                let delay = delay.clamp(DELAY_MIN, DELAY_MAX);
                Some(delay.as_secs() + u64::from(delay.subsec_nanos() > 0))
            }
            RetryDecision::GiveUp => None,
        }
    }
}

/// A rule for failed attempts. A closure from [`RetryContext`] to [`RetryDecision`] is one.
pub trait RetryStrategy: RetryClone + Send + Sync {
    fn decide(&self, context: &RetryContext<'_>) -> RetryDecision;
}

/// Lets a boxed strategy be cloned with the configuration that holds it. Implemented for everything that can be.
pub trait RetryClone {
    fn clone_box(&self) -> Box<dyn RetryStrategy>;
}

impl<S: RetryStrategy + Clone + 'static> RetryClone for S {
    fn clone_box(&self) -> Box<dyn RetryStrategy> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn RetryStrategy> {
    fn clone(&self) -> Self {
        self.as_ref().clone_box()
    }
}

impl fmt::Debug for dyn RetryStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RetryStrategy")
    }
}

impl<F> RetryStrategy for F
where
    F: Fn(&RetryContext<'_>) -> RetryDecision + Clone + Send + Sync + 'static,
{
    fn decide(&self, context: &RetryContext<'_>) -> RetryDecision {
        self(context)
    }
}

/// How much of a delay is left to chance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Jitter {
    None,
    /// Between half of the delay and the delay.
    Half,
    /// Between nothing and the delay.
    #[default]
    Full,
}

/// Delays that grow by a factor up to a ceiling. The default is what all SDKs of the service use for steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Backoff {
    /// All attempts, the first one included.
    pub max_attempts: u32,
    pub initial: Duration,
    pub max: Duration,
    pub factor: f64,
    pub jitter: Jitter,
    /// Error types that are not worth another attempt.
    pub non_retryable: Vec<String>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            max_attempts: 6,
            initial: Duration::from_secs(5),
            max: Duration::from_secs(60),
            factor: 2.0,
            jitter: Jitter::Full,
            non_retryable: Vec::new(),
        }
    }
}

impl Backoff {
    /// One attempt and no other.
    pub fn none() -> Self {
        Self { max_attempts: 1, ..Self::default() }
    }

    /// The same delay between all attempts.
    pub fn fixed(max_attempts: u32, delay: Duration) -> Self {
        Self { max_attempts, initial: delay, max: delay, factor: 1.0, jitter: Jitter::None, non_retryable: Vec::new() }
    }
}

impl RetryStrategy for Backoff {
    fn decide(&self, context: &RetryContext<'_>) -> RetryDecision {
        let refused = self.non_retryable.iter().any(|refused| refused == context.failure.error_type);
        if refused || context.attempt >= self.max_attempts {
            return RetryDecision::GiveUp;
        }
        let delay = exponential_delay(self.initial, self.max, self.factor, context.attempt);
        RetryDecision::Retry(spread(delay, self.jitter, context.jitter))
    }
}

/// `initial × factor^(attempt-1)`, at most `max`.
pub fn exponential_delay(initial: Duration, max: Duration, factor: f64, attempt: u32) -> Duration {
    let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
    let seconds = initial.as_secs_f64() * factor.powi(exponent);
    // Not a number and infinity are both past the ceiling.
    if seconds < max.as_secs_f64() { Duration::from_secs_f64(seconds.max(0.0)) } else { max }
}

/// Applies the random part. `chance` lies between 0 and 1.
pub fn spread(delay: Duration, jitter: Jitter, chance: f64) -> Duration {
    let chance = if chance.is_nan() { 1.0 } else { chance.clamp(0.0, 1.0) };
    match jitter {
        Jitter::None => delay,
        Jitter::Half => delay.mul_f64(0.5 + chance / 2.0),
        Jitter::Full => delay.mul_f64(chance),
    }
}

/// A number from 0 to 1 that differs between executions, operations and attempts, yet not between replays.
pub fn chance(execution: &str, operation: &str, attempt: u32) -> f64 {
    let digest = Digest::of_parts(&[execution, operation, &attempt.to_string()], '\n');
    let [a, b, c, d, ..] = digest.as_bytes();
    f64::from(u32::from_be_bytes([*a, *b, *c, *d])) / f64::from(u32::MAX)
}
