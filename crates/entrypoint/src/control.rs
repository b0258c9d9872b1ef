//! Which control action is possible in which status. The engine decides the rest, such as whether a step can be skipped.

use servo_model::invocation::{EntrypointKind, Failure, InvocationStatus};

use crate::errors;
use crate::types::InvocationControlAction;

/// Whether an action is possible. `retry` is for failed runs; dead-lettered ones are redriven, see [`may_redrive`].
pub fn is_possible(action: &InvocationControlAction, status: InvocationStatus, kind: EntrypointKind) -> bool {
    use InvocationControlAction as A;
    use InvocationStatus as S;
    let workflow = kind == EntrypointKind::Workflow;
    match action {
        A::Cancel => matches!(status, S::Queued | S::Running | S::Suspended),
        A::Suspend => workflow && status == S::Running,
        A::Resume => status == S::Suspended,
        A::Retry => status == S::Failed,
        A::Replay => matches!(status, S::Succeeded | S::Failed),
        // A step is tried again with its run, which has failed with it; before that its own retries go on.
        A::RetryStep { .. } => workflow && status == S::Failed,
        A::SkipStep { .. } => workflow && matches!(status, S::Running | S::Suspended | S::Failed),
    }
}

/// Whether a run may be taken out of the dead letters, by a bulk `retry` that asks for them.
pub fn may_redrive(status: InvocationStatus) -> bool {
    status == InvocationStatus::DeadLettered
}

pub fn check(action: &InvocationControlAction, status: InvocationStatus, kind: EntrypointKind) -> Result<(), Failure> {
    if is_possible(action, status, kind) {
        return Ok(());
    }
    let from: Vec<_> = InvocationStatus::ALL
        .into_iter()
        .filter(|status| is_possible(action, *status, kind))
        .map(InvocationStatus::as_str)
        .collect();
    let name = action.as_str();
    let message = if from.is_empty() {
        format!("`{name}` is for workflows, and this is a function")
    } else {
        format!(
            "`{name}` is not possible while the invocation is `{}`, only from: {}",
            status.as_str(),
            from.join(", ")
        )
    };
    Err(errors::conflict(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SR-386, SR-387, SR-388, SR-389, SR-390, SR-393, SR-394, SR-396: the whole matrix, for both kinds.
    #[test]
    fn every_action_in_every_status() {
        use InvocationControlAction as A;
        use InvocationStatus as S;
        let step = || "charge".to_owned();
        let rows = [
            (A::Cancel, vec![S::Queued, S::Running, S::Suspended], vec![S::Queued, S::Running, S::Suspended]),
            (A::Suspend, vec![S::Running], vec![]),
            (A::Resume, vec![S::Suspended], vec![S::Suspended]),
            (A::Retry, vec![S::Failed], vec![S::Failed]),
            (A::Replay, vec![S::Succeeded, S::Failed], vec![S::Succeeded, S::Failed]),
            (A::RetryStep { step_id: step() }, vec![S::Failed], vec![]),
            (A::SkipStep { step_id: step() }, vec![S::Running, S::Suspended, S::Failed], vec![]),
        ];
        assert_eq!(rows.clone().map(|(action, _, _)| action.as_str()), A::NAMES);
        for (action, workflow, function) in rows {
            for (kind, allowed) in [(EntrypointKind::Workflow, workflow), (EntrypointKind::Function, function)] {
                for status in S::ALL {
                    let expected = allowed.contains(&status);
                    assert_eq!(is_possible(&action, status, kind), expected, "{action:?} {status:?} {kind:?}");
                    match check(&action, status, kind) {
                        Ok(()) => assert!(expected),
                        Err(failure) => assert_eq!(failure.error_type_id, errors::CONFLICT),
                    }
                }
            }
        }
        assert_eq!(S::ALL.into_iter().filter(|s| may_redrive(*s)).collect::<Vec<_>>(), [S::DeadLettered]);
    }
}
