//! How calls that went wrong are worded.

use std::time::Duration;

use servo_adapter::{FailureKind, HandlerFailure, Reply, Usage};
use servo_model::invocation::{ErrorCategory, Failure, errors};
use servo_model::operation::ErrorObject;
use servo_wire::lambda::DurableExecutionInvocationOutput;

use crate::child::Ended;
use crate::worker::STACK_MB;

const CRASHED: &str = "Starlark.Crashed";
const BUSY: &str = "TooManyRequests";

/// The function's own error: as an error of a plain function, as the outcome of a workflow.
pub(crate) fn of_user(error: ErrorObject, durable: bool, usage: Usage) -> Result<Reply, HandlerFailure> {
    if durable {
        return reply(&DurableExecutionInvocationOutput::failed(Some(error)), usage);
    }
    Err(HandlerFailure { error, kind: FailureKind::Failed, usage })
}

pub(crate) fn reply(output: &DurableExecutionInvocationOutput, usage: Usage) -> Result<Reply, HandlerFailure> {
    match serde_json::to_string(output) {
        Ok(text) => Ok(Reply { text, usage }),
        Err(error) => Err(crashed(format!("the answer cannot be written: {error}"))),
    }
}

/// Nobody is to blame in the source; another try may go better.
pub(crate) fn crashed(message: impl Into<String>) -> HandlerFailure {
    HandlerFailure::crashed(CRASHED, message)
}

/// It did not run, and will when there is room.
pub(crate) fn busy(children_max: usize) -> HandlerFailure {
    let message = format!("all {children_max} Starlark children were busy for as long as the call may take");
    HandlerFailure::unreached(BUSY, message)
}

pub(crate) fn timed_out(timeout: Duration) -> Failure {
    let seconds = timeout.as_secs_f64();
    let mut failure =
        Failure::new(errors::TIMEOUT, ErrorCategory::Timeout, format!("the call took longer than {seconds} seconds"));
    failure.details.insert("limit".to_owned(), "timeout_seconds".into());
    failure.details.insert("value".to_owned(), seconds.into());
    failure
}

pub(crate) fn limit(name: &str, value: u64, message: &str) -> Failure {
    let mut failure = Failure::new(errors::RESOURCE_LIMIT, ErrorCategory::ResourceLimit, message);
    failure.details.insert("limit".to_owned(), name.into());
    failure.details.insert("value".to_owned(), value.into());
    failure
}

pub(crate) fn out_of_memory(memory_mb: u64) -> Failure {
    let message = format!(
        "the program needs more than {memory_mb} MB of memory; within a call no value is freed, also not what a loop has left behind: \
         give it more memory_mb, or have parts of the work done by calls of their own (ctx.invoke)"
    );
    limit("memory_mb", memory_mb, &message)
}

/// What the server keeps for it counts as well.
pub(crate) fn too_many_records(memory_mb: u64) -> Failure {
    let message = format!(
        "what one call has recorded needs more than {memory_mb} MB of the server's memory; give it more memory_mb, record less \
         (ctx.step around many small operations), or have parts of the work done by calls of their own (ctx.invoke)"
    );
    limit("memory_mb", memory_mb, &message)
}

/// It is called again, and goes on behind what is recorded.
pub(crate) fn no_room_for_records() -> HandlerFailure {
    crashed("programs that run have recorded as much as the server keeps at the same time; the call comes again")
}

/// The limit that ended a child, if it was one.
pub(crate) fn limit_of(ended: &Ended, memory_mb: u64, cpu_ms: u64) -> Option<Failure> {
    let said = |text: &str| ended.last_words.contains(text);
    match ended.signal {
        Some(libc::SIGPROF | libc::SIGXCPU) => {
            let message = format!("the program needs more than {cpu_ms} ms of CPU time");
            Some(limit("cpu_ms", cpu_ms, &message))
        }
        Some(libc::SIGABRT | libc::SIGSEGV | libc::SIGTRAP) if said("overflowed its stack") => {
            let message = format!("the program, or a value in it, is nested deeper than {STACK_MB} MB of stack allow");
            Some(limit("stack_mb", STACK_MB, &message))
        }
        // Starlark's maps use what they are given without a look, also when it is nothing: checked builds abort there, others
        // end at the address zero.
        Some(libc::SIGABRT | libc::SIGTRAP) if said("memory allocation of") || said("NonNull::new_unchecked") => {
            Some(out_of_memory(memory_mb))
        }
        Some(libc::SIGSEGV | libc::SIGBUS) => Some(out_of_memory(memory_mb)),
        _ => None,
    }
}

/// Messages of panics that mean: no memory.
pub(crate) fn is_about_memory(panic: &str) -> bool {
    ["capacity overflow", "out of memory", "memory allocation", "AlignedSize", "overflow"]
        .iter()
        .any(|word| panic.contains(word))
}
