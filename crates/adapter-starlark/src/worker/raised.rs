//! Why an evaluation was left. Starlark has no `try`, so an error runs up to whoever of us called user code; the reason is
//! kept in the session, where user code cannot touch it.

use servo_model::invocation::{ErrorCategory, Failure, errors};
use servo_model::limits::clip;
use servo_model::operation::ErrorObject;
use starlark::ErrorKind;
use starlark::codemap::FileSpan;

use super::session::Session;

const FRAMES_MAX: usize = 64;
const FUNCTION_CHARS_MAX: usize = 100;
/// Where the details of an error hold the calls that led to it.
pub(crate) const CALL_TRACE: &str = "call_trace";

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
        let frames = trace(error);
        object.stack_trace = Some(frames.iter().map(Frame::line).collect());
        // What another handler said is left as it is.
        if let Some(mut failure) = Failure::of_ours(object) {
            failure.details.insert(CALL_TRACE.to_owned(), frames.iter().map(Frame::json).collect());
            object.error_data = failure.to_error().error_data;
        }
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

/// A place in the source that was on the way to an error.
struct Frame {
    function: String,
    file: String,
    line: usize,
    column: usize,
}

impl Frame {
    fn at(function: &str, place: &FileSpan) -> Self {
        let begin = place.resolve_span().begin;
        let function = function.chars().take(FUNCTION_CHARS_MAX).collect();
        Self { function, file: place.filename().to_owned(), line: begin.line + 1, column: begin.column + 1 }
    }

    fn line(&self) -> String {
        format!("in {}, line {}, column {}", self.function, self.line, self.column)
    }

    fn json(&self) -> serde_json::Value {
        let Self { function, file, line, column } = self;
        serde_json::json!({ "function": function, "file": file, "line": line, "column": column })
    }
}

/// From the outermost call to the place of the error.
fn trace(error: &starlark::Error) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut caller = "<module>";
    let calls = &error.call_stack().frames;
    for frame in calls.iter().take(FRAMES_MAX) {
        if let Some(location) = &frame.location {
            frames.push(Frame::at(caller, location));
        }
        caller = &frame.name;
    }
    if let Some(span) = error.span() {
        let last = Frame::at(calls.last().map_or(caller, |frame| &frame.name), span);
        // What is built in has no place of its own: it failed where it was called.
        let is_called_there = |frame: &Frame| (frame.line, frame.column) == (last.line, last.column);
        if !frames.last().is_some_and(is_called_there) {
            frames.push(last);
        }
    }
    frames
}
