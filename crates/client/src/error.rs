//! What can go wrong on the way to a server and back, and the exit code that each means to a script.

use std::path::PathBuf;

use servo_wire::Problem;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server said no.
    #[error("{}", said(.problem))]
    Api { status: u16, problem: Box<Problem> },
    /// The Lambda API said no, in that API's words.
    #[error("{message}")]
    Lambda { status: u16, name: String, message: String, request_id: Option<String> },
    /// No answer: whether the request was executed is unknown.
    #[error("{server} does not answer: {reason}")]
    Unreachable { server: String, reason: String },
    /// An answer that is not what this version expects.
    #[error("the answer to {request} cannot be read: {reason}")]
    Decode { request: String, reason: String },
    /// The client was given something that it cannot work with: an address, a key, a certificate.
    #[error("{what}: {reason}")]
    Setup { what: &'static str, reason: String },
    /// A file on this side.
    #[error("{}: {source}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

fn said(problem: &Problem) -> String {
    match &problem.detail {
        Some(detail) => format!("{}: {detail}", problem.title),
        None => problem.title.clone(),
    }
}

impl Error {
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Api { status, .. } | Error::Lambda { status, .. } => exit_code(*status),
            Error::Unreachable { .. } => 9,
            Error::Setup { .. } => 2,
            Error::Decode { .. } | Error::File { .. } => 1,
        }
    }

    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Error::Api { problem, .. } => Some(problem),
            Error::Lambda { .. }
            | Error::Unreachable { .. }
            | Error::Decode { .. }
            | Error::Setup { .. }
            | Error::File { .. } => None,
        }
    }

    /// Whether the same request may succeed later, without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Api { status, .. } | Error::Lambda { status, .. } => matches!(status, 429 | 502 | 503 | 504),
            Error::Unreachable { .. } => true,
            Error::Decode { .. } | Error::Setup { .. } | Error::File { .. } => false,
        }
    }
}

/// The exit code of an HTTP status: 2 invalid input, 3 credentials needed, 4 not found, 5 conflict, 6 limit reached,
/// 9 unavailable, 1 everything else.
pub fn exit_code(status: u16) -> u8 {
    match status {
        200..=299 => 0,
        401 | 403 => 3,
        404 => 4,
        409 | 410 | 412 => 5,
        413 | 429 => 6,
        400 | 405 | 406 | 411 | 414 | 415 | 422 | 428 | 431 => 2,
        502..=504 | 507 => 9,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_model::codes;

    /// The whole table: a new code shows up here and gets its exit code on purpose.
    #[test]
    fn every_code_has_this_exit_code() {
        let mut table = String::new();
        for exit in 0..=9 {
            let of_this: Vec<_> = codes::ALL.iter().filter(|c| exit_code(c.status) == exit).map(|c| c.code).collect();
            if !of_this.is_empty() {
                table.push_str(&format!("{exit}: {}\n", of_this.join(" ")));
            }
        }
        let expected = "\
1: STORE_CORRUPT STORE_TOO_NEW UNSUPPORTED INTERNAL
2: SCHEMA_VALIDATION_FAILED MALFORMED_JSON INVALID_CURSOR INVALID_PARAMETER PLAN_DIGEST_MISMATCH \
ENGINE_UNKNOWN PLAN_SOURCE_NOT_ALLOWED RUN_REQUEST_MISMATCH METHOD_NOT_ALLOWED
3: UNAUTHENTICATED FORBIDDEN
4: RUN_NOT_FOUND FUNCTION_NOT_FOUND KEY_NOT_FOUND STEP_NOT_FOUND NOT_FOUND DISPATCH_NOT_FOUND
5: IDEMPOTENCY_KEY_EXISTS RUN_EXISTS FUNCTION_IN_USE ILLEGAL_TRANSITION SIGNAL_REJECTED ATTEMPT_SUPERSEDED ORPHANED_TASK RUN_CLOSED \
RUN_QUARANTINED AUTHORITY_HELD AUTHORITY_NOT_HELD AUTHORITY_FENCED DISPATCH_ILLEGAL_MOVE STORE_IN_USE
6: OVERLOADED LIMIT_EXCEEDED
9: PLAN_SOURCE_UNAVAILABLE WRITE_BUDGET_EXCEEDED STORE_UNAVAILABLE STORE_FULL SHUTTING_DOWN
";
        assert_eq!(table, expected);
    }

    #[test]
    fn what_is_no_answer_has_an_exit_code_too() {
        let unreachable = Error::Unreachable { server: "http://x".to_owned(), reason: "refused".to_owned() };
        assert_eq!(unreachable.exit_code(), 9);
        assert_eq!(Error::Decode { request: String::new(), reason: String::new() }.exit_code(), 1);
        assert_eq!(Error::Setup { what: "x", reason: String::new() }.exit_code(), 2);
    }
}
