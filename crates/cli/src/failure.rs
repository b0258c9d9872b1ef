//! How a command fails: one line what happened, one line what to do next, the code and the request id, an exit code.

use servo_model::Invalid;
use servo_model::codes::Code;
use servo_wire::Problem;

/// Exit codes. They are a contract with scripts.
pub mod exit {
    pub const OK: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const AUTH: u8 = 3;
    pub const NOT_FOUND: u8 = 4;
    pub const CONFLICT: u8 = 5;
    pub const LIMIT: u8 = 6;
    pub const RUN_FAILED: u8 = 7;
    pub const TIMED_OUT: u8 = 8;
    pub const UNAVAILABLE: u8 = 9;
    pub const INTERRUPTED: u8 = 130;
}

/// Why a command did not do what it was asked.
#[derive(Debug, Clone)]
pub struct Failure {
    pub exit: u8,
    /// What happened, in one line.
    pub what: String,
    /// What to do next, in one line.
    pub hint: Option<String>,
    /// The server's own words, or the same shape made here.
    pub problem: Option<Box<Problem>>,
}

impl Failure {
    pub fn new(exit: u8, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), hint: None, problem: None }
    }

    /// Something is wrong with what the caller gave; `Invalid` names the field.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(exit::USAGE, what)
    }

    /// A failure with a code of the table: what a server would have answered, and the exit code it would have led to.
    pub fn code(code: Code, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        // Not `Problem::detail`, which keeps the details of server faults from remote callers: this caller is local.
        let problem = Problem { detail: Some(detail.clone()), ..Problem::new(code) };
        let what = format!("{}: {detail}", code.title);
        let exit = servo_client::exit_code(code.status);
        Self { exit, what, hint: None, problem: Some(Box::new(problem)) }
    }

    /// A document that is not what it should be.
    pub fn invalid(code: Code, invalid: &Invalid) -> Self {
        let problem = Problem::new(code).field(invalid);
        Self {
            exit: exit::USAGE,
            what: format!("{}: {invalid}", code.title),
            hint: None,
            problem: Some(Box::new(problem)),
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}
