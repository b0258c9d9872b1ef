//! The status of one step attempt and the one function that says how it may change.
//!
//! A retry never changes an attempt: it makes the next one, which starts at `PENDING`.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StepStatus {
    /// Defined by the plan or made by a retry; out by `StepStarted` and `StepSkipped`.
    Pending,
    /// In by `StepStarted`; out by `StepCompleted` and `StepFailed`.
    Running,
    /// In by `StepCompleted`; final for the attempt.
    Success,
    /// In by `StepFailed`; final for the attempt.
    Failed,
    /// In by `StepSkipped`; final for the attempt.
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepChange {
    Started,
    Completed,
    Failed,
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {} attempt cannot be {}", .from.as_str(), .change.as_str())]
pub struct IllegalStepChange {
    pub from: StepStatus,
    pub change: StepChange,
}

impl StepStatus {
    pub const ALL: [StepStatus; 5] =
        [StepStatus::Pending, StepStatus::Running, StepStatus::Success, StepStatus::Failed, StepStatus::Skipped];

    /// The whole machine of one attempt. Every pair that is not listed is refused.
    pub fn next(self, change: StepChange) -> Result<StepStatus, IllegalStepChange> {
        use StepChange as C;
        use StepStatus as S;
        let next = match self {
            S::Pending => match change {
                C::Started => Some(S::Running),
                C::Skipped => Some(S::Skipped),
                C::Completed | C::Failed => None,
            },
            S::Running => match change {
                C::Completed => Some(S::Success),
                C::Failed => Some(S::Failed),
                C::Started | C::Skipped => None,
            },
            S::Success | S::Failed | S::Skipped => None,
        };
        next.ok_or(IllegalStepChange { from: self, change })
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, StepStatus::Success | StepStatus::Failed | StepStatus::Skipped)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            StepStatus::Pending => "PENDING",
            StepStatus::Running => "RUNNING",
            StepStatus::Success => "SUCCESS",
            StepStatus::Failed => "FAILED",
            StepStatus::Skipped => "SKIPPED",
        }
    }
}

impl StepChange {
    pub const ALL: [StepChange; 4] =
        [StepChange::Started, StepChange::Completed, StepChange::Failed, StepChange::Skipped];

    pub fn as_str(self) -> &'static str {
        match self {
            StepChange::Started => "started",
            StepChange::Completed => "completed",
            StepChange::Failed => "failed",
            StepChange::Skipped => "skipped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ES-035, ES-036, ES-037: the table in full.
    #[test]
    fn the_attempt_machine_is_this_table() {
        let mut table = String::new();
        for from in StepStatus::ALL {
            let legal: Vec<_> = StepChange::ALL
                .into_iter()
                .filter_map(|change| from.next(change).ok().map(|to| format!("{}->{}", change.as_str(), to.as_str())))
                .collect();
            table.push_str(&format!("{}: {}\n", from.as_str(), legal.join(", ")));
        }
        let expected = "\
PENDING: started->RUNNING, skipped->SKIPPED
RUNNING: completed->SUCCESS, failed->FAILED
SUCCESS: 
FAILED: 
SKIPPED: 
";
        assert_eq!(table, expected);
    }
}
