//! The status that callers see, and what may follow what.

use serde::{Deserialize, Serialize};

use super::EntrypointKind;

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

    /// The transitions of the published status machine, and one more: a dead-lettered run can be redriven.
    pub fn may_become(self, next: Self, kind: EntrypointKind) -> bool {
        use InvocationStatus as S;
        let workflow = kind == EntrypointKind::Workflow;
        match self {
            S::Queued => matches!(next, S::Running | S::Canceled),
            S::Running => matches!(next, S::Succeeded | S::Failed | S::Canceled) || (workflow && next == S::Suspended),
            S::Suspended => workflow && matches!(next, S::Running | S::Canceled | S::Failed),
            S::Failed => matches!(next, S::Queued | S::DeadLettered) || (workflow && next == S::Compensating),
            S::Canceled => workflow && next == S::Compensating,
            S::Compensating => matches!(next, S::Compensated | S::DeadLettered),
            S::DeadLettered => next == S::Queued,
            S::Succeeded | S::Compensated => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SR-124, SR-125, SR-126, SR-127, SR-128, SR-129, SR-130, SR-131, SR-132, SR-133, SR-134, SR-135, SR-136, SR-137,
    /// SR-138, SR-139, SR-140, SR-141, SR-142, SR-143, SR-144, SR-145, SR-146, SR-147, SR-148, SR-222: every pair of
    /// statuses, for both kinds. The way out of `dead_lettered` is redrive alone.
    #[test]
    fn every_transition_is_allowed_or_forbidden() {
        use InvocationStatus as S;
        let allowed = |kind: EntrypointKind, from: S| -> Vec<S> {
            S::ALL.into_iter().filter(|to| from.may_become(*to, kind)).collect()
        };
        let workflow = [
            (S::Queued, vec![S::Running, S::Canceled]),
            (S::Running, vec![S::Suspended, S::Succeeded, S::Failed, S::Canceled]),
            (S::Suspended, vec![S::Running, S::Failed, S::Canceled]),
            (S::Succeeded, vec![]),
            (S::Failed, vec![S::Queued, S::Compensating, S::DeadLettered]),
            (S::Canceled, vec![S::Compensating]),
            (S::Compensating, vec![S::Compensated, S::DeadLettered]),
            (S::Compensated, vec![]),
            (S::DeadLettered, vec![S::Queued]),
        ];
        for (from, to) in workflow {
            assert_eq!(allowed(EntrypointKind::Workflow, from), to, "{from:?}");
        }
        for from in S::ALL {
            let function = allowed(EntrypointKind::Function, from);
            assert!(!function.contains(&S::Suspended) && !function.contains(&S::Compensating), "{from:?}");
        }
    }

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
