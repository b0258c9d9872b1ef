//! How no is said: every error becomes a problem with a code of the public table. Server faults are logged with their
//! cause and answered without it.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use servo_model::Invalid;
use servo_model::codes::{self, Code};
use servo_store::checksum::CHECKSUM_DIFFERS;
use servo_wire::Problem;

/// An answer that is no. Path and request id are filled in by whoever wraps the handlers (`request`).
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub problem: Box<Problem>,
    /// For the log only.
    pub cause: Option<String>,
    /// Seconds for the `Retry-After` header.
    pub retry_after: Option<u64>,
}

pub(crate) type Answer<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(code: Code) -> Self {
        let retry_after = retry_after(code.status);
        Self { problem: Box::new(Problem::new(code)), cause: None, retry_after }
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.problem = Box::new(self.problem.detail(detail));
        self
    }

    pub(crate) fn cause(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// A parameter of the path, the query or a header.
    pub(crate) fn parameter(name: &str, reason: &str) -> Self {
        let mut error = Self::new(codes::INVALID_PARAMETER);
        error.problem = Box::new(error.problem.parameter(name, reason));
        error
    }

    /// More at once than may be.
    pub(crate) fn busy(what: &str) -> Self {
        Self::new(codes::OVERLOADED).detail(what)
    }

    pub(crate) fn forbidden(detail: &str) -> Self {
        Self::new(codes::FORBIDDEN).detail(detail)
    }
}

/// Whatever is short of something now may have it again in a moment; room on a disk takes somebody who makes it.
pub(crate) fn retry_after(status: u16) -> Option<u64> {
    match status {
        429 | 503 => Some(1),
        507 => Some(5),
        _ => None,
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        let mut error = Self::new(codes::SCHEMA_VALIDATION_FAILED);
        error.problem = Box::new(error.problem.field(&invalid));
        error
    }
}

impl From<servo_store::Error> for ApiError {
    fn from(error: servo_store::Error) -> Self {
        servo_runtime::Error::from(error).into()
    }
}

impl From<servo_runtime::Error> for ApiError {
    fn from(error: servo_runtime::Error) -> Self {
        use servo_runtime::Error as E;
        let code = error.code();
        match &error {
            E::Invalid(invalid) => invalid.clone().into(),
            E::DigestMismatch { .. } => {
                let mut answer = Self::new(code);
                let invalid = Invalid::new("planRef/sha256", error.to_string());
                answer.problem = Box::new(answer.problem.field(&invalid));
                answer
            }
            E::EngineUnknown { .. } => {
                let mut answer = Self::new(code);
                let invalid = Invalid::new("plan/engineType", error.to_string());
                answer.problem = Box::new(answer.problem.field(&invalid));
                answer
            }
            E::Overloaded { retry_after } => {
                let mut answer = Self::new(code).detail(error.to_string());
                let seconds = retry_after.as_millis().div_ceil(1_000).max(1);
                answer.retry_after = Some(u64::try_from(seconds).unwrap_or(u64::MAX));
                answer
            }
            // What is wrong with the log is told in the run's row and in an alert; here it could name anything. Only a checksum's word
            // has nothing but the event and the run.
            E::Quarantined(reason) => Self::new(code).detail(if reason.ends_with(CHECKSUM_DIFFERS) {
                format!("the run is set aside: {reason}")
            } else {
                "the run is set aside; its list entry and an alert say why".to_owned()
            }),
            E::Refused(_) | E::Store(_) | E::RequestMismatch | E::Contention(_) | E::ShuttingDown => {
                Self::new(code).detail(error.to_string()).cause(&error)
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
