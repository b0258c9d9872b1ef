//! What this process and a child say to each other: frames of a JSON head and a body of raw bytes, each with its length in
//! front. The body keeps payloads out of the head, so that they are neither escaped nor parsed on the way.

use serde::{Deserialize, Serialize};
use servo_model::invocation::{Checkpointing, RetryRule};
use servo_model::operation::ErrorObject;

/// The two lengths in front of a frame, little-endian.
pub(crate) const PREFIX_BYTES: usize = 8;
pub(crate) const HEAD_BYTES_MAX: usize = 256 * 1024;
/// Most heads are smaller, and most bodies.
const HEAD_BYTES_USUAL: usize = 512;
/// The largest body from a child: a result or a batch of updates, which have smaller limits of their own.
pub(crate) const FROM_CHILD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The largest body to a child: a page of state, in which a text may take several times its size.
pub(crate) const TO_CHILD_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToChild {
    /// The body is the source that `Check` or `Call` mean.
    Load,
    Check {
        cpu_ms: u64,
    },
    Call(Box<CallHead>),
    /// A page of recorded operations, as a JSON array; more pages may follow.
    Page {
        more: bool,
    },
    /// The right to checkpoint is gone: end quietly.
    Withdrawn,
    /// A checkpoint was refused for good.
    Refused {
        error: ErrorObject,
    },
    Now {
        millis: i64,
    },
    /// The body is the response's body.
    Http {
        status: u16,
        headers: Vec<(String, String)>,
    },
    HttpFailed {
        message: String,
        retryable: bool,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallHead {
    pub(crate) durable: bool,
    /// Where replay-safe numbers come from: the execution, or for a plain function its request.
    pub(crate) seed: String,
    pub(crate) retry: RetryRule,
    pub(crate) checkpointing: Checkpointing,
    pub(crate) cpu_ms: u64,
    pub(crate) output_bytes_max: usize,
    pub(crate) log_bytes_max: usize,
    /// A step that runs for longer is told before it ends.
    pub(crate) step_told_after_ms: u64,
    /// Of a durable call: pages follow.
    pub(crate) more: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromChild {
    /// Hardened, and as large as this without any user code.
    Ready {
        vm_bytes: u64,
        /// Of these, what can be written to and is not in use, but for the stack.
        store_bytes: u64,
        /// What it took of the processor to get there, which is no call's.
        cpu_us: u64,
        /// Whether it has left the server's namespaces.
        is_apart: bool,
    },
    Checked {
        issues: Vec<crate::SourceIssue>,
    },
    /// The body is the line.
    Log,
    Now,
    /// The body is the request's body.
    Http(Box<HttpHead>),
    /// The body is a JSON array of updates.
    Checkpoint,
    /// The same, but nobody waits for an answer: a step runs that has not ended for a while. What came of it is told with the next
    /// checkpoint.
    Began,
    /// The body is the result, if there is one.
    Done {
        outcome: Outcome,
        usage: ChildUsage,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HttpHead {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Vec<Part>)>,
    pub(crate) timeout_ms: Option<u64>,
}

/// A piece of a text that may hold secrets. The child knows only their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    Text(String),
    Secret(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Returned,
    Failed {
        error: ErrorObject,
    },
    Suspended,
    /// The interpreter panicked; the child ends after this.
    Panicked {
        message: String,
    },
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct ChildUsage {
    pub(crate) cpu_us: u64,
    pub(crate) peak_kb: u64,
    /// Of the child's whole life, for the limit of its next call.
    pub(crate) cpu_total_us: u64,
    pub(crate) vm_bytes: u64,
}

/// A head as bytes with both lengths in front; the body follows as it is.
pub(crate) fn encode<T: Serialize>(head: &T, body_len: usize) -> serde_json::Result<Vec<u8>> {
    let mut frame = Vec::with_capacity(PREFIX_BYTES + HEAD_BYTES_USUAL + body_len.min(HEAD_BYTES_USUAL));
    frame.resize(PREFIX_BYTES, 0);
    serde_json::to_writer(&mut frame, head)?;
    // Both are far below 4 GiB: heads are small and bodies are checked by whoever makes them.
    let head_len = u32::try_from(frame.len() - PREFIX_BYTES).unwrap_or(u32::MAX);
    let body_len = u32::try_from(body_len).unwrap_or(u32::MAX);
    frame[..4].copy_from_slice(&head_len.to_le_bytes());
    frame[4..PREFIX_BYTES].copy_from_slice(&body_len.to_le_bytes());
    Ok(frame)
}

/// The lengths of head and body, if both are within their limits.
pub(crate) fn lengths(prefix: [u8; PREFIX_BYTES], body_max: usize) -> Option<(usize, usize)> {
    let [a, b, c, d, e, f, g, h] = prefix;
    let head = u32::from_le_bytes([a, b, c, d]) as usize;
    let body = u32::from_le_bytes([e, f, g, h]) as usize;
    (head <= HEAD_BYTES_MAX && body <= body_max).then_some((head, body))
}
