//! What a caller of the engine can get. Each maps to a code of the public table.

use servo_machine::Refusal;
use servo_model::Invalid;
use servo_model::codes::{self, Code};

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Store(servo_store::Error),
    #[error("the run is set aside: {0}")]
    Quarantined(String),
    #[error("as many runs are active as may be")]
    Overloaded { retry_after: std::time::Duration },
    #[error("this runRequestId was used for another request")]
    RequestMismatch,
    #[error("the plan's digest is {actual}, not {expected}")]
    DigestMismatch { expected: String, actual: String },
    /// Nothing was recorded: no engine was asked, so there is no reference to record.
    #[error("no engine `{engine}` is installed here, {}", known_engines(installed))]
    EngineUnknown { engine: String, installed: Vec<String> },
    #[error("the run changed {0} times while the command was decided")]
    Contention(u32),
    #[error("the runtime is stopping")]
    ShuttingDown,
}

impl From<servo_store::Error> for Error {
    fn from(error: servo_store::Error) -> Self {
        match error {
            servo_store::Error::Invalid { field, reason } => Error::Invalid(Invalid { field, reason }),
            other => Error::Store(other),
        }
    }
}

impl Error {
    /// Whether nothing is wrong with the call and it may go well in a moment: the database is away or full, other nodes were
    /// faster too often, or this node stops and others do not. Every API says so by a status of its own, and when to come back.
    pub fn is_for_now(&self) -> bool {
        matches!(self.code().status, 503 | 507)
    }

    pub fn code(&self) -> Code {
        use servo_store::Error as S;
        match self {
            Error::Refused(refusal) => refusal.code(),
            Error::Invalid(_) => codes::SCHEMA_VALIDATION_FAILED,
            Error::Quarantined(_) => codes::RUN_QUARANTINED,
            Error::Overloaded { .. } => codes::OVERLOADED,
            Error::RequestMismatch => codes::RUN_REQUEST_MISMATCH,
            Error::DigestMismatch { .. } => codes::PLAN_DIGEST_MISMATCH,
            Error::EngineUnknown { .. } => codes::ENGINE_UNKNOWN,
            Error::Contention(_) => codes::STORE_UNAVAILABLE,
            Error::ShuttingDown => codes::SHUTTING_DOWN,
            Error::Store(store) => match store {
                S::NotFound => codes::RUN_NOT_FOUND,
                S::KeyExists { .. } => codes::IDEMPOTENCY_KEY_EXISTS,
                S::RequestExists { .. } | S::RunExists { .. } => codes::RUN_REQUEST_MISMATCH,
                S::EntrypointExists { .. } => codes::ILLEGAL_TRANSITION,
                S::Fenced { .. } => codes::AUTHORITY_FENCED,
                S::AuthorityHeld { .. } => codes::AUTHORITY_HELD,
                S::AuthorityNotHeld { .. } => codes::AUTHORITY_NOT_HELD,
                S::DispatchNotFound { .. } => codes::DISPATCH_NOT_FOUND,
                S::DispatchMove { .. } => codes::DISPATCH_ILLEGAL_MOVE,
                S::Limit { .. } => codes::LIMIT_EXCEEDED,
                S::Invalid { .. } => codes::SCHEMA_VALIDATION_FAILED,
                S::Full { .. } => codes::STORE_FULL,
                S::Corrupt { .. } => codes::STORE_CORRUPT,
                S::TooNew { .. } => codes::STORE_TOO_NEW,
                S::InUse { .. } => codes::STORE_IN_USE,
                S::Unsupported { .. } => codes::UNSUPPORTED,
                S::Closed => codes::SHUTTING_DOWN,
                S::Unavailable { .. }
                | S::Conflict { .. }
                | S::RevisionMoved { .. }
                | S::CursorMoved { .. }
                | S::LeaseLost { .. } => codes::STORE_UNAVAILABLE,
            },
        }
    }
}

fn known_engines(installed: &[String]) -> String {
    if installed.is_empty() { "and no other one either".to_owned() } else { format!("only {}", installed.join(", ")) }
}
