//! The journal: identity, replay, orphans.

use proptest::prelude::*;
use servo_model::operation::{OperationStatus, OperationType};
use servo_replay::{Identity, Journal, Operation, SubType};

fn operation(id: &str, identity: &Identity, status: OperationStatus) -> Operation {
    serde_json::from_value::<servo_wire::lambda::Operation<servo_wire::lambda::Millis>>(serde_json::json!({
        "Id": id, "Type": identity.operation_type, "SubType": identity.sub_type, "Name": identity.name,
        "ParentId": identity.parent_id, "Status": status, "StartTimestamp": 1_700_000_000_000_i64,
    }))
    .unwrap()
    .with_time()
}

fn identity() -> impl Strategy<Value = Identity> {
    let kinds = prop_oneof![
        Just((OperationType::Step, SubType::Step)),
        Just((OperationType::Step, SubType::WaitForCondition)),
        Just((OperationType::Wait, SubType::Wait)),
        Just((OperationType::Callback, SubType::Callback)),
        Just((OperationType::ChainedInvoke, SubType::ChainedInvoke)),
        Just((OperationType::Context, SubType::Map)),
        Just((OperationType::Context, SubType::Parallel)),
    ];
    let names = proptest::option::of("[ab]{1,2}");
    (kinds, names, proptest::option::of("[cd]"))
        .prop_map(|((kind, sub), name, parent)| Identity::new(kind, sub, name.as_deref(), parent.as_deref()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// DX-059: a recorded operation answers to its own identity only, and the refusal names both sides.
    #[test]
    fn another_identity_is_a_divergence(recorded in identity(), asked in identity()) {
        let mut journal = Journal::load([operation("x", &recorded, OperationStatus::Succeeded)]);
        match journal.lookup("x", &asked) {
            Ok(found) => {
                prop_assert_eq!(&recorded, &asked);
                prop_assert!(found.is_some());
            }
            Err(divergence) => {
                prop_assert_ne!(&recorded, &asked);
                let text = divergence.to_string();
                prop_assert!(text.contains(&recorded.to_string()) && text.contains(&asked.to_string()), "{}", text);
            }
        }
    }

    /// DX-058: under a finished context, however deep, nothing may be recorded; beside it everything may.
    #[test]
    fn nothing_is_recorded_under_a_finished_context(depth in 1_usize..12, finished in 0_usize..12, by_service in any::<bool>()) {
        let finished = finished % depth;
        let mut journal = Journal::default();
        for level in 0..depth {
            let parent = (level > 0).then(|| format!("c{}", level - 1));
            let identity = Identity::new(OperationType::Context, SubType::RunInChildContext, None, parent.as_deref());
            let id = format!("c{level}");
            journal.open_context(&id, parent.as_deref());
            if by_service {
                let status = if level == finished { OperationStatus::Succeeded } else { OperationStatus::Started };
                journal.merge(operation(&id, &identity, status));
            } else if level == finished {
                journal.finish_context(&id);
            }
        }
        for level in 0..depth {
            let context = format!("c{level}");
            let allowed = journal.check_parent("new", Some(&context));
            prop_assert_eq!(allowed.is_err(), level >= finished);
        }
        prop_assert!(journal.check_parent("new", None).is_ok());
    }
}

/// A context replays until what was recorded has been asked for, or something new is.
#[test]
fn replay_ends_with_the_record() {
    let step = Identity::new(OperationType::Step, SubType::Step, None, None);
    let recorded = || ["a", "b"].map(|id| operation(id, &step, OperationStatus::Succeeded));
    let mut journal = Journal::load(recorded());
    assert!(journal.is_replaying(None));
    journal.lookup("a", &step).unwrap();
    assert!(journal.is_replaying(None));
    journal.lookup("b", &step).unwrap();
    assert!(!journal.is_replaying(None));

    // Somebody raced and the loser is never asked for: the first new operation ends the replay all the same.
    let mut journal = Journal::load(recorded());
    journal.lookup("a", &step).unwrap();
    journal.lookup("c", &step).unwrap();
    assert!(!journal.is_replaying(None));
    assert!(!Journal::default().is_replaying(None));
}

/// What an earlier invocation has started counts as its past, also while it is under way.
#[test]
fn a_context_is_behind_until_it_comes_to_something_new() {
    let step = Identity::new(OperationType::Step, SubType::Step, None, None);
    let wait = Identity::new(OperationType::Wait, SubType::Wait, None, None);
    let recorded =
        || [operation("a", &step, OperationStatus::Succeeded), operation("b", &wait, OperationStatus::Started)];
    let mut journal = Journal::load(recorded());
    journal.lookup("a", &step).unwrap();
    assert!(journal.is_behind(None) && !journal.is_replaying(None));
    assert!(!journal.is_behind(Some("c")));
    journal.lookup("b", &wait).unwrap();
    assert!(!journal.is_behind(None));

    let mut journal = Journal::load(recorded());
    journal.lookup("new", &step).unwrap();
    assert!(!journal.is_behind(None));
}

/// A late page of an earlier answer does not undo an outcome.
#[test]
fn an_outcome_is_final() {
    let step = Identity::new(OperationType::Step, SubType::Step, None, None);
    let mut journal = Journal::default();
    assert!(journal.merge(operation("a", &step, OperationStatus::Started)));
    assert!(journal.merge(operation("a", &step, OperationStatus::Succeeded)));
    assert!(!journal.merge(operation("a", &step, OperationStatus::Started)));
    assert_eq!(journal.get("a").unwrap().status, OperationStatus::Succeeded);
}
