//! From the driver's errors to the store's. The detail says the SQLSTATE and our own words: the server's messages may
//! quote rows, statements or addresses, and go no further.

use deadpool_postgres::PoolError;
use servo_store::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::tls::{Mode, Refusal};

/// What was under way when it failed: it decides whether the write may have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing could be kept: a read, or a transaction whose commit was not sent.
    Open,
    /// The commit, or a statement that commits by itself.
    Commit,
}

/// A statement or a whole exchange that did not work.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(tokio_postgres::Error),
    /// Our own patience ended, longer than the server's.
    Timeout,
    /// The connection was gone before anything was sent.
    Gone,
}

impl Failure {
    pub(crate) fn state(&self) -> Option<&SqlState> {
        match self {
            Failure::Driver(error) => error.code(),
            Failure::Timeout | Failure::Gone => None,
        }
    }

    pub(crate) fn constraint(&self) -> Option<&str> {
        match self {
            Failure::Driver(error) => error.as_db_error().and_then(|error| error.constraint()),
            Failure::Timeout | Failure::Gone => None,
        }
    }

    /// The server refused a statement and said so: whatever the transaction did is undone. Worse than an error is no refusal: a
    /// server that panics while it commits may have committed.
    pub(crate) fn is_refusal(&self) -> bool {
        let Failure::Driver(error) = self else { return false };
        let severity = error.as_db_error().and_then(DbError::parsed_severity);
        let is_error = severity.is_none_or(|severity| severity == Severity::Error);
        is_error && self.state().is_some_and(|state| !ends_session(state))
    }

    /// This process left its transaction alone for too long, and the server ended it. Nothing of it was kept, not even if
    /// a commit was sent since: the session ended before it came.
    pub(crate) fn was_left_alone(&self) -> bool {
        self.state().is_some_and(|state| *state == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT)
    }

    /// Somebody else has the lock for longer than one transaction waits for it.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        self.state().is_some_and(|state| *state == SqlState::LOCK_NOT_AVAILABLE)
    }

    /// The server has too little of something: the disk, memory, connections.
    pub(crate) fn is_shortage(&self) -> bool {
        self.state().is_some_and(|state| state.code().starts_with("53"))
    }

    /// Two transactions got in each other's way; the same work may succeed at once.
    pub(crate) fn is_contention(&self) -> bool {
        let contended = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::UNIQUE_VIOLATION,
            SqlState::FOREIGN_KEY_VIOLATION,
        ];
        self.state().is_some_and(|state| contended.contains(state))
    }

    /// The SQLSTATE, which names no values.
    pub(crate) fn code(&self) -> Option<&str> {
        self.state().map(SqlState::code)
    }

    /// Something is not as an append expected it, or somebody was faster. Raised by the functions that append, or by the tables.
    pub(crate) fn is_expectation(&self) -> bool {
        self.is_contention() || self.is_lock_timeout() || self.code() == Some("SV001")
    }

    pub(crate) fn into_error(self, phase: Phase) -> Error {
        let unavailable =
            |words: &str, maybe_written: bool| Error::Unavailable { detail: words.to_owned(), maybe_written };
        let in_commit = phase == Phase::Commit;
        let Some(state) = self.state() else {
            let words = match &self {
                Failure::Timeout => "the database does not answer in time",
                Failure::Gone => "the connection to the database had ended",
                Failure::Driver(error) if is_local(error) => return corrupt("an answer could not be read"),
                Failure::Driver(_) => "the connection to the database is lost",
            };
            return unavailable(words, in_commit);
        };
        let code = state.code();
        if in_commit && !self.is_refusal() {
            return unavailable(&format!("the database closes the connection (sqlstate {code})"), true);
        }
        if *state == SqlState::DISK_FULL {
            return Error::Full { detail: format!("the database says so (sqlstate {code})") };
        }
        if *state == SqlState::QUERY_CANCELED {
            return unavailable(&format!("the statement took too long (sqlstate {code})"), in_commit);
        }
        if ends_session(state) {
            return unavailable(&format!("the database closes the connection (sqlstate {code})"), in_commit);
        }
        let later = [SqlState::LOCK_NOT_AVAILABLE, SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::OUT_OF_MEMORY];
        if later.contains(state) || self.is_contention() || self.is_shortage() || is_undone(state) {
            return unavailable(&format!("the database cannot do this now (sqlstate {code})"), false);
        }
        // Row security: for this tenant there is no such row.
        if *state == SqlState::INSUFFICIENT_PRIVILEGE {
            return Error::NotFound;
        }
        let bad_text = [SqlState::CHARACTER_NOT_IN_REPERTOIRE, SqlState::UNTRANSLATABLE_CHARACTER];
        if bad_text.contains(state) {
            return Error::Invalid { field: String::new(), reason: "a text holds a NUL character".to_owned() };
        }
        corrupt(&format!("the database refuses a statement (sqlstate {code})"))
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure::Driver(error)
    }
}

/// Classes 08 and 57P: the connection is broken, or the server is going down or ends the session. 25P03 and 25P04: it ends a
/// session that left its transaction alone, or whose transaction lasts too long.
fn ends_session(state: &SqlState) -> bool {
    let code = state.code();
    code.starts_with("08") || code.starts_with("57P") || code == "25P03" || code == "25P04"
}

/// Classes 40 and 58: the transaction was undone for reasons of the server's, or its machine failed it.
fn is_undone(state: &SqlState) -> bool {
    let code = state.code();
    code.starts_with("40") || code.starts_with("58")
}

/// The server's answer came and this side could not make sense of it.
fn is_local(error: &tokio_postgres::Error) -> bool {
    let words = error.to_string();
    words.starts_with("error deserializing") || words.starts_with("error serializing") || words.starts_with("expected ")
}

pub(crate) fn corrupt(words: &str) -> Error {
    Error::Corrupt { detail: words.to_owned() }
}

/// No connection could be had, so nothing was sent.
pub(crate) fn from_pool(error: PoolError, mode: Mode) -> Error {
    let unavailable = |detail: String| Error::Unavailable { detail, maybe_written: false };
    match error {
        PoolError::Timeout(_) => unavailable("no connection became free in time".to_owned()),
        PoolError::Closed => Error::Closed,
        PoolError::Backend(error) => connecting(&error, mode),
        PoolError::NoRuntimeSpecified => unavailable("there is no runtime".to_owned()),
        PoolError::PostCreateHook(_) => unavailable("a new connection could not be set up".to_owned()),
    }
}

/// The database cannot be reached, or does not let us in.
pub(crate) fn connecting(error: &tokio_postgres::Error, mode: Mode) -> Error {
    let detail = match (error.code(), Refusal::of(error)) {
        (Some(state), _) => {
            format!("the database refuses the connection (sqlstate {}){}", state.code(), next(state, mode))
        }
        (None, Some(refusal)) => refusal.to_string(),
        (None, None) => format!("no connection to the database: {error}"),
    };
    Error::Unavailable { detail, maybe_written: false }
}

/// What may help. The server's own words would quote addresses and names.
fn next(state: &SqlState, mode: Mode) -> &'static str {
    match mode {
        _ if *state == SqlState::INVALID_PASSWORD => ": look at the user and the password in the URL",
        // Its rules for hosts have no line for this user, or none for connections like this one.
        Mode::Disable if *state == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            ": it may take encrypted connections only, and sslmode=disable forbids them; say sslmode=verify-full"
        }
        _ if *state == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            ": its pg_hba.conf does not let this user in from here, or wants a client certificate (sslcert, sslkey)"
        }
        _ if *state == SqlState::INVALID_CATALOG_NAME => ": there is no such database; create it first",
        _ => "",
    }
}
