//! When a group of branches (map, parallel) is done. A pure function of the counts, asked after every branch that ends.

use serde::{Deserialize, Serialize};

/// When to stop. Without any criterion every branch runs to its end, whatever the others did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CompletionConfig {
    /// Done as soon as so many branches have succeeded.
    pub min_successful: Option<usize>,
    /// Done as soon as more branches than this have failed.
    pub tolerated_failure_count: Option<usize>,
    /// Done as soon as more than this part of all branches has failed, from 0 to 100.
    pub tolerated_failure_percentage: Option<f64>,
}

impl CompletionConfig {
    pub fn first_successful() -> Self {
        Self { min_successful: Some(1), ..Self::default() }
    }

    pub fn all_completed() -> Self {
        Self::default()
    }

    pub fn all_successful() -> Self {
        Self { tolerated_failure_count: Some(0), tolerated_failure_percentage: Some(0.0), ..Self::default() }
    }

    /// What is wrong with it, if anything.
    pub fn problem(&self) -> Option<String> {
        let percentage = self.tolerated_failure_percentage?;
        let valid = (0.0..=100.0).contains(&percentage);
        (!valid).then(|| format!("tolerated_failure_percentage is {percentage}; give a number from 0 to 100"))
    }

    pub fn decide(&self, progress: Progress) -> Completion {
        let Progress { total, succeeded, failed } = progress;
        let over_count = self.tolerated_failure_count.is_some_and(|tolerated| failed > tolerated);
        // Equality is tolerated.
        let over_part =
            self.tolerated_failure_percentage.is_some_and(|tolerated| percentage(failed, total) > tolerated);
        if over_count || over_part {
            return Completion::Done(CompletionReason::FailureToleranceExceeded);
        }
        if succeeded + failed >= total {
            return Completion::Done(CompletionReason::AllCompleted);
        }
        if self.min_successful.is_some_and(|min| succeeded >= min) {
            return Completion::Done(CompletionReason::MinSuccessfulReached);
        }
        Completion::Continue
    }
}

fn percentage(part: usize, total: usize) -> f64 {
    if total == 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "branches are counted in thousands, not in 2^52")]
    let percentage = part as f64 / total as f64 * 100.0;
    percentage
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub total: usize,
    pub succeeded: usize,
    pub failed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    Continue,
    Done(CompletionReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CompletionReason {
    AllCompleted,
    MinSuccessfulReached,
    FailureToleranceExceeded,
    Suspended,
}
