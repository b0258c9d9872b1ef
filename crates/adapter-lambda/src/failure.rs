//! How failures are worded, and how the error documents of Lambda runtimes are read.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use servo_adapter::{FailureKind, HandlerFailure};
use servo_model::limits::TEXT_BYTES_MAX;
use servo_model::operation::ErrorObject;

pub(crate) const ADDRESS: &str = "Runtime.AddressNotAllowed";
pub(crate) const CONNECTION: &str = "Runtime.ConnectionError";
pub(crate) const EXIT: &str = "Runtime.ExitError";
pub(crate) const INVALID_PARAMETER: &str = "InvalidParameterValueException";
pub(crate) const INVALID_RESPONSE: &str = "Runtime.InvalidResponse";
pub(crate) const NO_WORKER: &str = "Runtime.NoWorker";
pub(crate) const NOT_FOUND: &str = "ResourceNotFoundException";
const RESPONSE_TOO_LARGE: &str = "Function.ResponseSizeTooLarge";
pub(crate) const TIMED_OUT: &str = "Sandbox.Timedout";
pub(crate) const TOO_MANY: &str = "TooManyRequests";

const FRAMES_MAX: usize = 64;

/// What runtimes write about an error. They do not all write all of it, nor with the same types.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    error_type: Option<Value>,
    error_message: Option<Value>,
    stack_trace: Option<Value>,
}

/// The error in a body, as far as it has one; `fallback_type` is what a header said.
pub(crate) fn read(body: &[u8], fallback_type: Option<&str>) -> ErrorObject {
    let document: Document = serde_json::from_slice(body).unwrap_or_default();
    let fallback = fallback_type.unwrap_or("Runtime.UnknownError");
    let message = match document.error_message {
        Some(value) => text(value),
        None => excerpt(body),
    };
    ErrorObject {
        error_type: Some(document.error_type.map_or_else(|| fallback.to_owned(), text)),
        error_message: Some(message),
        stack_trace: document.stack_trace.map(frames),
        ..ErrorObject::default()
    }
}

/// The same, short: of an error that nobody's call is known to have caused, and that is told to all that wait.
pub(crate) fn clipped(error: ErrorObject) -> ErrorObject {
    const TYPE_BYTES: usize = 128;
    const MESSAGE_BYTES: usize = 1_024;
    const FRAMES: usize = 16;
    let clip = |bytes: usize| {
        move |mut text: String| {
            text.truncate(text.floor_char_boundary(bytes));
            text
        }
    };
    ErrorObject {
        error_type: error.error_type.map(clip(TYPE_BYTES)),
        error_message: error.error_message.map(clip(MESSAGE_BYTES)),
        stack_trace: error.stack_trace.map(|frames| frames.into_iter().take(FRAMES).map(clip(TYPE_BYTES)).collect()),
        ..ErrorObject::default()
    }
}

/// Some emulators answer 200 without a mark when the handler failed; then only the body tells.
pub(crate) fn is_error_document(body: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(body) else { return false };
    fields.contains_key("errorType") && fields.contains_key("errorMessage") && !fields.contains_key("Status")
}

/// What the function's runtime said about its failure: whoever called a plain function gets it as it is, if it is JSON.
pub(crate) fn raised(body: &[u8], fallback_type: Option<&str>) -> HandlerFailure {
    let error = read(body, fallback_type);
    let document = std::str::from_utf8(body).ok().filter(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    match document {
        Some(document) => {
            HandlerFailure::new(FailureKind::Raised, ErrorObject { error_data: Some(document.to_owned()), ..error })
        }
        None => crashed(error),
    }
}

/// An answer that is too large would be as large the next time.
pub(crate) fn too_large(message: String) -> HandlerFailure {
    HandlerFailure::new(FailureKind::Failed, ErrorObject::new(RESPONSE_TOO_LARGE, message))
}

pub(crate) fn crashed(error: ErrorObject) -> HandlerFailure {
    HandlerFailure::new(FailureKind::Crashed, error)
}

/// In the words that callers of Lambda know.
pub(crate) fn timed_out(timeout: Duration) -> HandlerFailure {
    HandlerFailure::crashed(TIMED_OUT, format!("Task timed out after {:.2} seconds", timeout.as_secs_f64()))
}

/// The beginning of something that was not expected, for a message.
pub(crate) fn excerpt(body: &[u8]) -> String {
    const EXCERPT_BYTES: usize = 256;
    String::from_utf8_lossy(&body[..body.len().min(EXCERPT_BYTES)]).into_owned()
}

fn text(value: Value) -> String {
    let mut text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

fn frames(value: Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(frames) => frames.into_iter().take(FRAMES_MAX).map(text).collect(),
        single => vec![text(single)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_documents_are_read_as_far_as_they_go() {
        let error = read(br#"{"errorType":"E","errorMessage":"m","stackTrace":["a",{"b":1}]}"#, Some("H"));
        assert_eq!((error.error_type.as_deref(), error.error_message.as_deref()), (Some("E"), Some("m")));
        assert_eq!(error.stack_trace, Some(vec!["a".to_owned(), r#"{"b":1}"#.to_owned()]));
        let error = read(b"boom", Some("H"));
        assert_eq!((error.error_type.as_deref(), error.error_message.as_deref()), (Some("H"), Some("boom")));
        let long = format!(r#"{{"errorMessage":"{}"}}"#, "ä".repeat(TEXT_BYTES_MAX));
        assert_eq!(read(long.as_bytes(), None).error_message.map(|m| m.len()), Some(TEXT_BYTES_MAX));
    }

    #[test]
    fn a_document_is_kept_as_it_was_sent() {
        let sent = "{ \"errorType\":\"E\", \"errorMessage\":\"m\", \"trace\":[\"at f\"], \"own\":1.50 }\n";
        let failure = raised(sent.as_bytes(), None);
        assert_eq!((failure.kind, failure.error.error_data.as_deref()), (FailureKind::Raised, Some(sent)));
        assert_eq!(failure.error.error_type.as_deref(), Some("E"));
        for no_json in [&b"boom"[..], b"", b"{", b"\"\xff\""] {
            let failure = raised(no_json, Some("H"));
            assert_eq!((failure.kind, &failure.error.error_data), (FailureKind::Crashed, &None));
            assert_eq!(failure.error.error_type.as_deref(), Some("H"));
        }
    }

    #[test]
    fn an_envelope_is_no_error_document() {
        assert!(is_error_document(r#"{"errorType":"E","errorMessage":"m"}"#));
        assert!(!is_error_document(r#"{"Status":"FAILED","errorType":"E","errorMessage":"m"}"#));
        assert!(!is_error_document(r#""errorType""#));
    }
}
