//! The status that callers see. What follows what is a consequence of the facts; `machine`'s tests hold the published table
//! against it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationStatus {
    Queued,
    Running,
    Suspended,
    Succeeded,
    Failed,
    Canceled,
    Compensating,
    Compensated,
    DeadLettered,
}

impl InvocationStatus {
    pub const ALL: [InvocationStatus; 9] = [
        InvocationStatus::Queued,
        InvocationStatus::Running,
        InvocationStatus::Suspended,
        InvocationStatus::Succeeded,
        InvocationStatus::Failed,
        InvocationStatus::Canceled,
        InvocationStatus::Compensating,
        InvocationStatus::Compensated,
        InvocationStatus::DeadLettered,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            InvocationStatus::Queued => "queued",
            InvocationStatus::Running => "running",
            InvocationStatus::Suspended => "suspended",
            InvocationStatus::Succeeded => "succeeded",
            InvocationStatus::Failed => "failed",
            InvocationStatus::Canceled => "canceled",
            InvocationStatus::Compensating => "compensating",
            InvocationStatus::Compensated => "compensated",
            InvocationStatus::DeadLettered => "dead_lettered",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SR-121, SR-123: the nine short words.
    #[test]
    fn statuses_are_spelled_in_one_way() {
        for status in InvocationStatus::ALL {
            assert_eq!(InvocationStatus::parse(status.as_str()), Some(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert_eq!(InvocationStatus::parse("paused"), None);
    }
}
