//! Which of the queued updates go into the next call. The order never changes: an update waits rather than overtakes, so a
//! child's record cannot arrive before its parent's START.

use std::collections::BTreeMap;

use servo_model::operation::{OperationAction, OperationType};
use servo_wire::lambda::{CHECKPOINT_BYTES_MAX, OperationUpdate, UPDATES_MAX};

/// What JSON puts around an update's texts: field names, quotes, an id and the options. Generous on purpose.
const OVERHEAD_BYTES: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    pub bytes: usize,
    pub updates: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { bytes: CHECKPOINT_BYTES_MAX, updates: UPDATES_MAX }
    }
}

/// What an update weighs in a call.
pub fn size_of(update: &OperationUpdate) -> usize {
    let text = |field: &Option<String>| field.as_ref().map_or(0, String::len);
    let error = update.error.as_ref().map_or(0, |error| error.len());
    let function = update
        .chained_invoke_options
        .as_ref()
        .map_or(0, |options| options.function_name.len() + text(&options.tenant_id) + text(&options.trace_id));
    OVERHEAD_BYTES + text(&update.payload) + text(&update.name) + error + function
}

/// How many updates from the front of the queue make the next call. One at least if there is any: what is too large
/// for every call is for the service to refuse, with its reason.
pub fn plan<'a>(queue: impl IntoIterator<Item = &'a OperationUpdate>, limits: BatchLimits) -> usize {
    let mut last_action: BTreeMap<&str, OperationAction> = BTreeMap::new();
    let mut bytes = 0;
    let mut count = 0;
    let mut execution = false;
    for update in queue {
        bytes += size_of(update);
        // One update for each operation, except that a START may be followed by what ends it.
        let repeats = match last_action.get(update.id.as_str()) {
            None => false,
            Some(OperationAction::Start) => {
                update.action == OperationAction::Start || !may_close(update.operation_type)
            }
            Some(_) => true,
        };
        let full = count >= limits.updates.max(1) || (count > 0 && bytes > limits.bytes);
        if full || repeats || execution {
            break;
        }
        // Nothing may follow the end of the execution.
        execution = update.operation_type == OperationType::Execution;
        last_action.insert(&update.id, update.action);
        count += 1;
    }
    count
}

fn may_close(operation_type: OperationType) -> bool {
    matches!(operation_type, OperationType::Step | OperationType::Context)
}
