//! Which updates travel in one call.

use proptest::prelude::*;
use servo_model::operation::{OperationAction, OperationType};
use servo_replay::{BatchLimits, plan, size_of};
use servo_wire::lambda::OperationUpdate;

fn update(id: usize, kind: OperationType, action: OperationAction, bytes: usize) -> OperationUpdate {
    OperationUpdate { payload: Some("x".repeat(bytes)), ..OperationUpdate::new(id.to_string(), kind, action) }
}

/// Plans calls until the queue is empty.
fn calls(mut queue: &[OperationUpdate], limits: BatchLimits) -> Vec<&[OperationUpdate]> {
    let mut calls = Vec::new();
    while !queue.is_empty() {
        let count = plan(queue, limits);
        assert!(count > 0, "a queue that is not empty gives a call");
        let (call, rest) = queue.split_at(count);
        calls.push(call);
        queue = rest;
    }
    calls
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// DX-080: the order stays, limits hold, an operation appears once (or START and its end), EXECUTION is last.
    #[test]
    fn calls_keep_order_and_limits(
        shape in prop::collection::vec((0_usize..12, 0_usize..6, 0_usize..5, 0_usize..3_000), 1..80),
        bytes in 2_000_usize..20_000,
        updates in 1_usize..20,
    ) {
        let kinds = [OperationType::Step, OperationType::Context, OperationType::Wait, OperationType::Callback,
            OperationType::ChainedInvoke, OperationType::Execution];
        let actions = [OperationAction::Start, OperationAction::Succeed, OperationAction::Fail, OperationAction::Retry, OperationAction::Cancel];
        let queue: Vec<_> = shape.iter().map(|(id, kind, action, size)| update(*id, kinds[*kind], actions[*action], *size)).collect();
        let limits = BatchLimits { bytes, updates };
        let calls = calls(&queue, limits);
        prop_assert_eq!(calls.concat(), queue.clone());
        for call in calls {
            prop_assert!(call.len() <= updates);
            prop_assert!(call.len() == 1 || call.iter().map(size_of).sum::<usize>() <= bytes);
            let executions = call.iter().filter(|update| update.operation_type == OperationType::Execution).count();
            prop_assert!(executions == 0 || (executions == 1 && call.last().unwrap().operation_type == OperationType::Execution));
            for (index, update) in call.iter().enumerate() {
                let earlier: Vec<_> = call[..index].iter().filter(|other| other.id == update.id).collect();
                let closes = earlier.len() == 1 && earlier[0].action == OperationAction::Start && update.action != OperationAction::Start;
                prop_assert!(earlier.is_empty() || closes);
            }
        }
    }

    /// DX-053: updates of one size that wait together use no more calls than their bytes need.
    #[test]
    fn calls_are_filled(count in 1_usize..200, size in 0_usize..2_000, per_call in 2_usize..40) {
        let queue: Vec<_> = (0..count).map(|id| update(id, OperationType::Step, OperationAction::Succeed, size)).collect();
        let weight = size_of(&queue[0]);
        let limits = BatchLimits { bytes: weight * per_call, updates: usize::MAX };
        prop_assert!(calls(&queue, limits).len() <= (count * weight).div_ceil(limits.bytes));
    }
}

#[test]
fn the_defaults_are_the_services() {
    assert_eq!(BatchLimits::default(), BatchLimits { bytes: 750 * 1024, updates: 250 });
}
