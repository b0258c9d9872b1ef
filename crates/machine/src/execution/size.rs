//! How much an execution may return: the same whether its handler returns it or records it by a checkpoint.

use servo_model::event::ExecutionStarted;

/// Of an operation's payload, of what a chained execution returns, and of the result of one that nobody waits for.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// Of a result that goes straight to its caller, and of a run of an entrypoint, which is asked for its result.
const RESULT_BYTES_MAX: usize = 6 * 1024 * 1024;

fn result_bytes_max(start: &ExecutionStarted) -> usize {
    let fetched = start.synchronous || start.entrypoint.is_some() || !start.durable;
    if fetched && start.parent.is_none() { RESULT_BYTES_MAX } else { PAYLOAD_BYTES_MAX }
}

/// Why this cannot be the execution's result, in the service's words.
pub(crate) fn too_large(start: &ExecutionStarted, result: Option<&str>) -> Option<String> {
    let max = result_bytes_max(start);
    // What is no execution of its own to its caller is only the call of it.
    let what = if start.parent.is_some() && !start.durable { "CHAINED_INVOKE" } else { "Execution" };
    result.filter(|result| result.len() > max).map(|_| message(what, "output", max))
}

pub(crate) fn message(what: &str, payload: &str, max: usize) -> String {
    format!("{what} {payload} payload size must be less than or equal to {max} bytes.")
}
