//! The run's status and the one function that says how it may change.

use serde::{Deserialize, Serialize};

/// Where a run stands. Each state names the events that enter and leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RunStatus {
    /// In by `RunQueued`; out by `RunApproved`, `RunFailed`, `RunCancelled`.
    Pending,
    /// In by `RunApproved`; out by `RunStarted`, `RunCancelled`.
    Approved,
    /// In by `RunStarted` and `RunResumed`; out by `RunPaused`, `RunCompleted`, `RunFailed`, `RunCancelled`.
    Running,
    /// In by `RunPaused`; out by `RunResumed`, `RunFailed`, `RunCancelled`.
    Paused,
    /// In by `RunCompleted`; final.
    Completed,
    /// In by `RunFailed`; final, except that a retry of the run queues it again (`RunQueued`, next round).
    Failed,
    /// In by `RunCancelled`; final.
    Cancelled,
}

/// The run-level events that change the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunChange {
    /// `RunQueued` of a later round: the first one creates the run and is no change.
    Requeued,
    Approved,
    Started,
    Paused,
    Resumed,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {} run cannot be {}", .from.as_str(), .change.as_str())]
pub struct IllegalRunChange {
    pub from: RunStatus,
    pub change: RunChange,
}

impl RunStatus {
    pub const ALL: [RunStatus; 7] = [
        RunStatus::Pending,
        RunStatus::Approved,
        RunStatus::Running,
        RunStatus::Paused,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ];

    /// The whole machine. Every pair that is not listed is refused.
    pub fn next(self, change: RunChange) -> Result<RunStatus, IllegalRunChange> {
        use RunChange as C;
        use RunStatus as S;
        let next = match self {
            S::Pending => match change {
                C::Approved => Some(S::Approved),
                C::Failed => Some(S::Failed),
                C::Cancelled => Some(S::Cancelled),
                C::Requeued | C::Started | C::Paused | C::Resumed | C::Completed => None,
            },
            S::Approved => match change {
                C::Started => Some(S::Running),
                C::Cancelled => Some(S::Cancelled),
                C::Requeued | C::Approved | C::Paused | C::Resumed | C::Completed | C::Failed => None,
            },
            S::Running => match change {
                C::Paused => Some(S::Paused),
                C::Completed => Some(S::Completed),
                C::Failed => Some(S::Failed),
                C::Cancelled => Some(S::Cancelled),
                C::Requeued | C::Approved | C::Started | C::Resumed => None,
            },
            S::Paused => match change {
                C::Resumed => Some(S::Running),
                C::Failed => Some(S::Failed),
                C::Cancelled => Some(S::Cancelled),
                C::Requeued | C::Approved | C::Started | C::Paused | C::Completed => None,
            },
            S::Failed => match change {
                C::Requeued => Some(S::Pending),
                C::Approved | C::Started | C::Paused | C::Resumed | C::Completed | C::Failed | C::Cancelled => None,
            },
            S::Completed | S::Cancelled => None,
        };
        next.ok_or(IllegalRunChange { from: self, change })
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Pending => "PENDING",
            RunStatus::Approved => "APPROVED",
            RunStatus::Running => "RUNNING",
            RunStatus::Paused => "PAUSED",
            RunStatus::Completed => "COMPLETED",
            RunStatus::Failed => "FAILED",
            RunStatus::Cancelled => "CANCELLED",
        }
    }

    /// `None` for a spelling this version does not know: a reader reports it and never guesses.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl RunChange {
    pub const ALL: [RunChange; 8] = [
        RunChange::Requeued,
        RunChange::Approved,
        RunChange::Started,
        RunChange::Paused,
        RunChange::Resumed,
        RunChange::Completed,
        RunChange::Failed,
        RunChange::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RunChange::Requeued => "queued again",
            RunChange::Approved => "approved",
            RunChange::Started => "started",
            RunChange::Paused => "paused",
            RunChange::Resumed => "resumed",
            RunChange::Completed => "completed",
            RunChange::Failed => "failed",
            RunChange::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ES-020, ES-021: the table in full, so that any change of the machine shows in review.
    #[test]
    fn the_run_machine_is_this_table() {
        let mut table = String::new();
        for from in RunStatus::ALL {
            let legal: Vec<_> = RunChange::ALL
                .into_iter()
                .filter_map(|change| from.next(change).ok().map(|to| format!("{}->{}", change.as_str(), to.as_str())))
                .collect();
            table.push_str(&format!("{}: {}\n", from.as_str(), legal.join(", ")));
        }
        let expected = "\
PENDING: approved->APPROVED, failed->FAILED, cancelled->CANCELLED
APPROVED: started->RUNNING, cancelled->CANCELLED
RUNNING: paused->PAUSED, completed->COMPLETED, failed->FAILED, cancelled->CANCELLED
PAUSED: resumed->RUNNING, failed->FAILED, cancelled->CANCELLED
COMPLETED: 
FAILED: queued again->PENDING
CANCELLED: 
";
        assert_eq!(table, expected);
    }

    #[test]
    fn spellings_are_pinned() {
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::parse(status.as_str()), Some(status));
            assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{}\"", status.as_str()));
        }
        assert_eq!(RunStatus::parse("ARCHIVED"), None);
    }
}
