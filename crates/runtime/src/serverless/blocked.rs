//! Why an invocation does not go on, in the words of its record.

use servo_entrypoint::BlockedBy;
use servo_model::RunState;
use servo_model::execution::Execution;
use servo_model::waiting::{Wait, waits};

pub(super) fn blocked_by(state: &RunState, execution: &Execution) -> Vec<BlockedBy> {
    waits(state, execution).into_iter().map(told).collect()
}

fn told(wait: Wait<'_>) -> BlockedBy {
    let target = wait.operation.and_then(|operation| operation.chained.as_ref()?.target.as_ref());
    BlockedBy {
        cause: wait.cause,
        name: wait.operation.and_then(|operation| operation.name.clone()),
        reason: wait.reason(),
        invocation_id: target.map(|target| target.run_id.to_string()),
        since: wait.since(),
        until: wait.until,
    }
}
