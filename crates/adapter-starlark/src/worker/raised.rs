//! Why an evaluation was left. Starlark has no `try`, so an error runs up to whoever of us called user code; the reason is
//! kept in the session, where user code cannot touch it.

use servo_model::invocation::{ErrorCategory, Failure, errors};
use servo_model::limits::clip;
use servo_model::operation::ErrorObject;
use starlark::ErrorKind;

use super::session::Session;

const FRAMES_MAX: usize = 64;

#[derive(Debug, Clone)]
pub(crate) enum Raised {
    /// User code failed. Steps and branches may make something of it.
    Fail(ErrorObject),
    /// The program cannot go on, whatever it would do about errors.
    Fatal(ErrorObject),
    /// It waits; the next invocation comes back to this place.
    Suspend,
    /// Somebody else has the execution.
    Withdrawn,
}

/// What is written where user code would see an error, were there a way to.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Said(String);

/// A mistake in the way something is used.
pub(crate) fn wrong(message: impl Into<String>) -> starlark::Error {
    starlark::Error::new_other(Said(message.into()))
}

pub(crate) fn raise(session: &Session, raised: Raised) -> starlark::Error {
    let text = match &raised {
        Raised::Fail(error) | Raised::Fatal(error) => error.error_message.clone().unwrap_or_default(),
        Raised::Suspend => "suspended".to_owned(),
        Raised::Withdrawn => "withdrawn".to_owned(),
    };
    session.set_raised(raised);
    wrong(text)
}

/// The reason for an error that came out of user code. An evaluation error is as final as the source: the same code on the
/// same data fails in the same way.
pub(crate) fn caught(session: &Session, error: &starlark::Error) -> Raised {
    let mut raised = session.take_raised().unwrap_or_else(|| Raised::Fail(of_evaluation(error).to_error()));
    if let Raised::Fail(object) | Raised::Fatal(object) = &mut raised
        && object.stack_trace.is_none()
    {
        object.stack_trace = Some(trace(error));
    }
    raised
}

fn of_evaluation(error: &starlark::Error) -> Failure {
    let message = error.without_diagnostic().to_string();
    if let ErrorKind::StackOverflow(_) = error.kind() {
        return limit("call_depth", super::run::CALL_DEPTH_MAX as u64, "the calls of the program are nested too deep");
    }
    Failure::new(errors::EXECUTION, ErrorCategory::NonRetryable, clip(&message))
}

/// A failure that names the limit which was reached.
pub(crate) fn limit(name: &str, value: u64, message: &str) -> Failure {
    let message = format!("{message}; the limit {name} is {value}");
    let mut failure = Failure::new(errors::RESOURCE_LIMIT, ErrorCategory::ResourceLimit, message);
    failure.details.insert("limit".to_owned(), name.into());
    failure.details.insert("value".to_owned(), value.into());
    failure
}

/// From the outermost call to the place of the error, each with its line.
fn trace(error: &starlark::Error) -> Vec<String> {
    let mut lines = Vec::new();
    let mut caller = "<module>";
    for frame in error.call_stack().frames.iter().take(FRAMES_MAX) {
        if let Some(location) = &frame.location {
            let at = location.resolve_span().begin;
            lines.push(format!("in {caller}, line {}, column {}", at.line + 1, at.column + 1));
        }
        caller = &frame.name;
    }
    if let Some(span) = error.span() {
        let at = span.resolve_span().begin;
        lines.push(format!("in {caller}, line {}, column {}", at.line + 1, at.column + 1));
    }
    lines
}
