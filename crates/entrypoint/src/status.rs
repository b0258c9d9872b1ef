//! The life of an entrypoint: what each action does in each status, and what each status allows.

use servo_model::invocation::Failure;

use crate::errors;
use crate::types::{DefinitionStatus, EntrypointStatusAction};

/// The status after an action; `None` where the action is refused.
pub fn next(status: DefinitionStatus, action: EntrypointStatusAction) -> Option<DefinitionStatus> {
    use DefinitionStatus as S;
    use EntrypointStatusAction as A;
    match (status, action) {
        (S::Draft, A::Activate) | (S::Disabled, A::Enable) => Some(S::Active),
        (S::Active, A::Deprecate) => Some(S::Deprecated),
        (S::Active | S::Deprecated, A::Disable) => Some(S::Disabled),
        (S::Deprecated | S::Disabled, A::Archive) => Some(S::Archived),
        _ => None,
    }
}

/// As [`next`], with the answer for a refused action, which names those that are allowed.
pub fn apply(status: DefinitionStatus, action: EntrypointStatusAction) -> Result<DefinitionStatus, Failure> {
    next(status, action).ok_or_else(|| refused(action.as_str(), status))
}

fn refused(what: &str, status: DefinitionStatus) -> Failure {
    let allowed: Vec<_> =
        EntrypointStatusAction::ALL.into_iter().filter(|action| next(status, *action).is_some()).collect();
    let hint = match allowed.as_slice() {
        [] => "nothing can be done with it any more".to_owned(),
        some => {
            let names: Vec<_> = some.iter().map(|action| action.as_str()).collect();
            format!("it allows: {}", names.join(", "))
        }
    };
    errors::conflict(format!("`{what}` is not possible while the entrypoint is `{}`; {hint}", status.as_str()))
}

/// What a delete does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The record goes; nothing ever ran it.
    Delete,
    /// The record stays, archived.
    Archive,
}

pub fn remove(status: DefinitionStatus) -> Result<Removal, Failure> {
    if status == DefinitionStatus::Draft {
        return Ok(Removal::Delete);
    }
    match next(status, EntrypointStatusAction::Archive) {
        Some(_) => Ok(Removal::Archive),
        None => Err(refused("delete", status)),
    }
}

pub fn is_callable(status: DefinitionStatus) -> bool {
    matches!(status, DefinitionStatus::Active | DefinitionStatus::Deprecated)
}

/// What makes an entrypoint callable that is not.
pub fn way_to_be_called(status: DefinitionStatus) -> &'static str {
    match status {
        DefinitionStatus::Draft => "`activate` it first",
        DefinitionStatus::Disabled => "`enable` it first",
        DefinitionStatus::Archived => "register the next version of its address",
        DefinitionStatus::Active | DefinitionStatus::Deprecated => "try again",
    }
}

pub fn is_editable(status: DefinitionStatus) -> bool {
    status == DefinitionStatus::Draft
}

#[cfg(test)]
mod tests {
    use super::*;
    use DefinitionStatus as S;
    use EntrypointStatusAction as A;

    /// SR-198, SR-200, SR-201, SR-202, SR-203, SR-204, SR-205, SR-206, SR-207, SR-208, SR-209, SR-210, SR-358: every
    /// action in every status.
    #[test]
    fn every_action_in_every_status() {
        let allowed = [
            (S::Draft, vec![(A::Activate, S::Active)]),
            (S::Active, vec![(A::Deprecate, S::Deprecated), (A::Disable, S::Disabled)]),
            (S::Deprecated, vec![(A::Disable, S::Disabled), (A::Archive, S::Archived)]),
            (S::Disabled, vec![(A::Enable, S::Active), (A::Archive, S::Archived)]),
            (S::Archived, vec![]),
        ];
        assert_eq!(allowed.clone().map(|(status, _)| status), S::ALL);
        for (status, allowed) in allowed {
            for action in A::ALL {
                let expected = allowed.iter().find(|(known, _)| *known == action).map(|(_, to)| *to);
                assert_eq!(next(status, action), expected, "{status:?} {action:?}");
                match apply(status, action) {
                    Ok(to) => assert_eq!(Some(to), expected),
                    Err(failure) => assert_eq!(failure.error_type_id, errors::CONFLICT),
                }
            }
        }
    }

    /// SR-199, SR-207, SR-208, SR-209, SR-210, SR-359, SR-360, SR-362: a draft goes, others are archived or refused.
    #[test]
    fn a_delete_removes_drafts_and_archives_the_rest() {
        assert_eq!(remove(S::Draft), Ok(Removal::Delete));
        assert_eq!(remove(S::Deprecated), Ok(Removal::Archive));
        assert_eq!(remove(S::Disabled), Ok(Removal::Archive));
        for status in [S::Active, S::Archived] {
            assert_eq!(remove(status).unwrap_err().error_type_id, errors::CONFLICT);
        }
    }

    /// What each status is: callable, editable.
    #[test]
    fn each_status_allows_what_it_says() {
        let rows = [
            (S::Draft, false, true),
            (S::Active, true, false),
            (S::Deprecated, true, false),
            (S::Disabled, false, false),
            (S::Archived, false, false),
        ];
        for (status, callable, editable) in rows {
            assert_eq!((is_callable(status), is_editable(status)), (callable, editable));
        }
    }
}
