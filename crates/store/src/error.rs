//! Store errors answer two questions: is it worth trying again, and may the write have happened?

use servo_canon::Digest;
use servo_model::contract::DispatchState;
use servo_model::{EventId, RunId};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Somebody else appended first. Reload, decide again.
    #[error("run {run_id} is at sequence {actual}, not {expected}")]
    Conflict { run_id: RunId, expected: u64, actual: u64 },
    #[error("run {run_id} exists already")]
    RunExists { run_id: RunId },
    /// Only in strict mode; otherwise the existing event is the answer.
    #[error("run {run_id} has an event with idempotency key {key} at sequence {run_seq}")]
    KeyExists { run_id: RunId, key: Digest, run_seq: u64, event_id: EventId },
    /// The request was made before and started this run.
    #[error("the request started run {run_id} before")]
    RequestExists { run_id: RunId },
    /// The address is taken by this entrypoint, of the same tenant or of the system.
    #[error("entrypoint {id} has the address already")]
    EntrypointExists { id: String },
    /// Somebody else changed it first. Load it, decide again.
    #[error("{id} is at revision {actual}, not {expected}")]
    RevisionMoved { id: String, expected: u64, actual: u64 },
    #[error("not found")]
    NotFound,
    /// The writer's authority is no longer the current one.
    #[error("authority epoch {epoch} is no longer current")]
    Fenced { epoch: u64 },
    #[error("{owner} holds the authority until {leased_until}")]
    AuthorityHeld { owner: String, leased_until: String },
    #[error("{owner} does not hold the authority")]
    AuthorityNotHeld { owner: String },
    #[error("no dispatch {request_id}")]
    DispatchNotFound { request_id: String },
    #[error("dispatch {request_id} is {} and cannot become {}", .from.as_str(), .to.as_str())]
    DispatchMove { request_id: String, from: DispatchState, to: DispatchState },
    /// The queue row is leased by somebody else, or gone.
    #[error("the queue lease of run {run_id} is lost")]
    LeaseLost { run_id: RunId },
    /// A cursor moved under the caller.
    #[error("cursor {name} moved")]
    CursorMoved { name: String },
    #[error("{what} exceeds the limit of {limit}")]
    Limit { what: &'static str, limit: u64 },
    #[error("{field}: {reason}")]
    Invalid { field: String, reason: String },
    /// The store does not answer, or the connection broke. `maybe_written` is true when the commit was under way.
    #[error("the store is unavailable: {detail}")]
    Unavailable { detail: String, maybe_written: bool },
    /// No space left. Nothing of the write was kept.
    #[error("the store has no space left: {detail}")]
    Full { detail: String },
    #[error("the store is damaged: {detail}")]
    Corrupt { detail: String },
    /// Its schema, or the format of an event in it.
    #[error("the store has version {found}; this program knows up to {supported}")]
    TooNew { found: u32, supported: u32 },
    #[error("the store is in use by process {pid}")]
    InUse { pid: String },
    #[error("this store does not support {what}")]
    Unsupported { what: &'static str },
    #[error("the store is closed")]
    Closed,
}

/// What a caller should do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The answer will be the same.
    No,
    /// The state has changed: load it and decide again.
    Reload,
    /// The same call may succeed later.
    Later,
}

impl Error {
    pub fn retry(&self) -> Retry {
        match self {
            Error::Conflict { .. } | Error::CursorMoved { .. } | Error::RevisionMoved { .. } => Retry::Reload,
            Error::Unavailable { .. } | Error::Full { .. } => Retry::Later,
            _ => Retry::No,
        }
    }

    /// True if the write may have been committed although the caller got an error: read back by id before repeating.
    pub fn may_have_happened(&self) -> bool {
        matches!(self, Error::Unavailable { maybe_written: true, .. })
    }
}

impl From<servo_model::Invalid> for Error {
    fn from(invalid: servo_model::Invalid) -> Self {
        Error::Invalid { field: invalid.field, reason: invalid.reason }
    }
}
