//! What can go wrong, and what to do about it.

use servo_runtime::executions::Refused;
use servo_sdk::ErrorObject;
use servo_wire::lambda::ExecutionStatus;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Builder(String),
    #[error("{place}: {error}; {hint}")]
    Store { place: String, error: servo_store::Error, hint: &'static str },
    #[error("no function `{name}`; this program has: {known}")]
    NoFunction { name: String, known: String },
    #[error("{0}")]
    Refused(Refused),
    /// The execution came to an end, and not to a good one.
    #[error("{0}")]
    Ended(Box<Ended>),
    #[error("{what}: {reason}")]
    Json { what: &'static str, reason: String },
}

/// How an execution ended that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub status: ExecutionStatus,
    pub error: Option<ErrorObject>,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the execution ended as {}", self.status.as_str())?;
        let Some(error) = &self.error else { return Ok(()) };
        let kind = error.error_type.as_deref().unwrap_or("Error");
        write!(f, " with {kind}: {}", error.error_message.as_deref().unwrap_or("no message"))
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Error {
    pub(crate) fn store(place: &str, error: servo_store::Error) -> Self {
        use servo_store::Error as S;
        let hint = match &error {
            S::InUse { .. } => "stop that program, or use another folder; programs that share a store need Postgres",
            S::TooNew { .. } => "start a version that is at least as new as the one that wrote it",
            S::Corrupt { .. } => "keep a copy, and restore a backup into an empty folder",
            S::Full { .. } => "free some space and start again; nothing acknowledged is lost",
            S::Unavailable { .. } => "check that it is there and reachable, and start again",
            _ => "docs/operate.md says what a store needs",
        };
        Self::Store { place: place.to_owned(), error, hint }
    }

    pub(crate) fn json(what: &'static str, error: &serde_json::Error) -> Self {
        Self::Json { what, reason: error.to_string() }
    }
}
