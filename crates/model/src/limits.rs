//! A limit on everything that grows. Those an operator may change are the defaults of `Limits`; the rest are constants.

use serde::{Deserialize, Serialize};

/// Longest run, tenant, plan or signal id.
pub const ID_CHARS_MAX: usize = 128;
/// Step ids enter every idempotency key and every index, so they stay short.
pub const STEP_ID_CHARS_MAX: usize = 256;
/// What the longest step id takes in UTF-8.
pub const STEP_ID_BYTES_MAX: usize = 4 * STEP_ID_CHARS_MAX;
/// Free text that we write into events (reasons, error messages); longer text is cut, because losing the end of a
/// message is better than losing the event that carries it.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Free text that we accept in events. The published schemas count characters, so this does too.
pub const TEXT_CHARS_MAX: usize = TEXT_BYTES_MAX;
pub const URI_CHARS_MAX: usize = 2 * 1024;
pub const URI_BYTES_MAX: usize = 4 * URI_CHARS_MAX;
/// Short labels in events: artifact kinds, error codes, emitters.
pub const LABEL_CHARS_MAX: usize = 256;
/// The largest integer that every reader of JSON keeps exactly (2^53 - 1).
pub const INTEGER_MAX: u64 = 9_007_199_254_740_991;
/// Payloads above this size live in the blob table, so that scans of the log stay short.
pub const INLINE_PAYLOAD_BYTES_MAX: usize = 64 * 1024;
/// A stored snapshot is written when at least this many events have accrued since the last one.
pub const SNAPSHOT_EVERY_EVENTS: u64 = 500;
/// After a large snapshot more events must accrue: one for so many of its bytes. About what a small event takes in the log.
pub const SNAPSHOT_BYTES_PER_EVENT: u64 = 512;
pub const ARTIFACTS_PER_STEP_MAX: usize = 1_000;
pub const PAGE_SIZE_MAX: u32 = 1_000;
pub const PAGE_SIZE_DEFAULT: u32 = 100;
/// Deepest JSON that is read from outside.
pub const JSON_DEPTH_MAX: usize = 64;
/// Accepted signals, after which a run takes no more messages. Their ids are remembered for the life of the run so that a
/// repeated signal changes nothing.
pub const SIGNALS_PER_RUN_MAX: u32 = 10_000;
/// Accepted signals, after which a run is not controlled any more, but for its cancellation: messages never use up what those
/// who operate it need.
pub const CONTROLLED_SIGNALS_PER_RUN_MAX: u32 = 2 * SIGNALS_PER_RUN_MAX;
/// Rejected signals that are recorded; further ones are answered in the same way and leave no trace. Apart from the
/// accepted ones: somebody who may send nothing must not use up what those who may have.
pub const REJECTED_SIGNALS_PER_RUN_MAX: u32 = 1_000;
/// Longest name of a function: it is part of addresses.
pub const FUNCTION_NAME_CHARS_MAX: usize = 64;
/// What a function is registered with.
pub const FUNCTION_DOCUMENT_BYTES_MAX: usize = 256 * 1024;
pub const VERSIONS_PER_FUNCTION_MAX: u64 = 10_000;
pub const ALIASES_PER_FUNCTION_MAX: usize = 1_000;
/// Longest GTS address of an entrypoint.
pub const ENTRYPOINT_ADDRESS_CHARS_MAX: usize = 1_024;
/// What an entrypoint is kept as: the largest definition that may be sent (1 MiB), and the defaults that are added to it.
pub const ENTRYPOINT_DOCUMENT_BYTES_MAX: usize = 1024 * 1024 + 16 * 1024;
pub const TAGS_PER_ENTRYPOINT_MAX: usize = 64;
/// Comparisons, values and connectives in one filter of runs.
pub const RUN_FILTER_TERMS_MAX: usize = 500;
/// Plans that one list of runs may ask for.
pub const PLANS_PER_QUERY_MAX: usize = 100;
/// Keys that are neither revoked nor expired.
pub const KEYS_PER_TENANT_MAX: usize = 1_000;
/// Audit entries written together.
pub const AUDIT_BATCH_MAX: usize = 500;
/// A log line of user code; a longer one is cut.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// Retries of one step that a plan may ask for.
pub const STEP_ATTEMPTS_MAX: u32 = 1_000;

/// Limits that are configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Events in one run. The last `EVENTS_RESERVED` are kept for ending it.
    pub events_per_run_max: u64,
    /// What a caller or a handler hands over, as it counts it. The event that holds it may be larger, see
    /// [`Limits::event_bytes_max`].
    pub payload_bytes_max: usize,
    /// Sum of payloads in one append.
    pub transaction_bytes_max: usize,
    /// Sum of payloads in one page of a list. A page ends before it, but never without its first item.
    pub page_bytes_max: usize,
    pub steps_per_plan_max: usize,
    /// Log lines that a run keeps, and the bytes of their texts: the latest stay.
    pub lines_per_run_max: u64,
    pub lines_bytes_per_run_max: usize,
    pub request_body_bytes_max: usize,
}

/// What an event has beside its payload.
const EVENT_FRAME_BYTES: usize = 64 * 1024;

/// Room left below `events_per_run_max` for the events that end a run: a full run can always be closed.
pub const EVENTS_RESERVED: u64 = 64;

impl Default for Limits {
    fn default() -> Self {
        Self {
            events_per_run_max: 250_000,
            payload_bytes_max: 6 * 1024 * 1024,
            transaction_bytes_max: 16 * 1024 * 1024,
            page_bytes_max: 16 * 1024 * 1024,
            steps_per_plan_max: 10_000,
            lines_per_run_max: 10_000,
            lines_bytes_per_run_max: 4 * 1024 * 1024,
            request_body_bytes_max: 8 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// The event of a run at which an operator is told of it, of those that it may have: far enough from the last one to do
    /// something about it.
    pub fn events_warned_at(most: u64) -> u64 {
        most / 5
    }

    /// The largest event. It holds its payload as text in a document, where every quote of it takes two bytes; a payload that
    /// is allowed must not be refused for the way it is kept.
    pub fn event_bytes_max(&self) -> usize {
        self.payload_bytes_max.saturating_mul(2).saturating_add(EVENT_FRAME_BYTES)
    }
}

/// Whether text has at most `max` characters, counted as JSON Schema counts them.
pub fn fits(text: &str, max: usize) -> bool {
    text.len() <= max || text.chars().count() <= max
}

/// Cuts text to the limit at a character boundary.
pub fn clip(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whether JSON text is nested deeper than `levels`. Counts brackets outside strings, without recursion: it stands before
/// parsers that have some.
pub fn is_deeper_than(json: &str, levels: usize) -> bool {
    // Too few brackets to be deep, wherever they stand: the loop that says so is done many bytes at a time.
    if json.bytes().map(|byte| usize::from(byte == b'{' || byte == b'[')).sum::<usize>() <= levels {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    json.bytes().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > levels
    })
}
