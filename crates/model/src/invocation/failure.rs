//! How a run fails, in the words of the REST API, and how that travels in the error of a handler.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::operation::ErrorObject;

/// What may be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCategory {
    Retryable,
    NonRetryable,
    ResourceLimit,
    Timeout,
    Canceled,
}

impl ErrorCategory {
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCategory::Retryable => "retryable",
            ErrorCategory::NonRetryable => "non_retryable",
            ErrorCategory::ResourceLimit => "resource_limit",
            ErrorCategory::Timeout => "timeout",
            ErrorCategory::Canceled => "canceled",
        }
    }
}

/// Ids of the errors that the platform itself knows.
pub mod errors {
    macro_rules! error_ids {
        ($($name:ident = $short:literal;)*) => {
            $(pub const $name: &str =
                concat!("gts.x.core.serverless.err.v1~x.core.serverless.err.", $short, ".v1~");)*
            /// All of them.
            pub const ALL: &[&str] = &[$($name),*];
        };
    }

    error_ids! {
        VALIDATION = "validation";
        RATE_LIMITED = "rate_limited";
        NOT_FOUND = "not_found";
        NOT_ACTIVE = "not_active";
        QUOTA_EXCEEDED = "quota_exceeded";
        CONFLICT = "conflict";
        UNAUTHENTICATED = "unauthenticated";
        FORBIDDEN = "forbidden";
        BAD_REQUEST = "bad_request";
        INTERNAL = "internal";
        EXECUTION = "execution";
        TIMEOUT = "timeout";
        RESOURCE_LIMIT = "resource_limit";
        CANCELED = "canceled";
    }
}

/// An error of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub error_type_id: String,
    pub message: String,
    pub category: ErrorCategory,
    #[serde(default)]
    pub details: Map<String, Value>,
}

/// Where `details` holds the name that user code gave an error which has no id of its own.
const ERROR_TYPE: &str = "error_type";

/// What an error object carries beside type and message.
#[derive(Serialize, Deserialize)]
struct Data {
    category: ErrorCategory,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    details: Map<String, Value>,
}

impl Failure {
    pub fn new(error_type_id: &str, category: ErrorCategory, message: impl Into<String>) -> Self {
        Self { error_type_id: error_type_id.to_owned(), message: message.into(), category, details: Map::new() }
    }

    /// What user code calls it, and what it can be listed by in a retry policy beside its id.
    pub fn user_type(&self) -> Option<&str> {
        self.details.get(ERROR_TYPE).and_then(Value::as_str)
    }

    /// As handlers report it: the category rides in the error's data.
    pub fn to_error(&self) -> ErrorObject {
        let data = Data { category: self.category, details: self.details.clone() };
        ErrorObject {
            error_type: Some(self.error_type_id.clone()),
            error_message: Some(self.message.clone()),
            error_data: serde_json::to_string(&data).ok(),
            stack_trace: None,
        }
    }

    /// Reads an error that says itself what may be done about it; those of foreign handlers do not.
    pub fn of_ours(error: &ErrorObject) -> Option<Self> {
        let data: Data = serde_json::from_str(error.error_data.as_deref()?).ok()?;
        let failure = Self::new(errors::EXECUTION, data.category, message_of(error));
        let mut failure = Self { details: data.details, ..failure };
        match error.error_type.as_deref() {
            None | Some("") => {}
            Some(id) if is_type_id(id) => id.clone_into(&mut failure.error_type_id),
            Some(name) => {
                failure.details.insert(ERROR_TYPE.to_owned(), name.into());
            }
        }
        Some(failure)
    }

    /// Reads any handler's error: one of ours keeps its category, the rest are told apart by the words that Lambda and its
    /// runtimes use. An error nobody classified may pass, so it is worth trying again. An id is one in any case: a name that user
    /// code made up stands in the details.
    pub fn of(error: &ErrorObject) -> Self {
        if let Some(failure) = Self::of_ours(error) {
            return failure;
        }
        let (name, message) = (error.error_type.as_deref().unwrap_or_default(), message_of(error));
        let (id, category) = match name {
            "Sandbox.Timedout" | "ExecutionTimedOut" => (errors::TIMEOUT, ErrorCategory::Timeout),
            "Execution.Stopped" => (errors::CANCELED, ErrorCategory::Canceled),
            "Runtime.OutOfMemory" => (errors::RESOURCE_LIMIT, ErrorCategory::ResourceLimit),
            "InvalidParameterValueException" | "ResourceNotFoundException" => {
                (errors::EXECUTION, ErrorCategory::NonRetryable)
            }
            id if is_type_id(id) => (id, ErrorCategory::Retryable),
            _ => (errors::EXECUTION, ErrorCategory::Retryable),
        };
        let mut details = Map::new();
        if !name.is_empty() && name != id {
            details.insert(ERROR_TYPE.to_owned(), name.into());
        }
        if let Some(data) = &error.error_data {
            details.insert("data".to_owned(), data.as_str().into());
        }
        Self { error_type_id: id.to_owned(), message, category, details }
    }
}

fn message_of(error: &ErrorObject) -> String {
    error.error_message.clone().unwrap_or_else(|| "the function failed without a message".to_owned())
}

/// Whether it has the shape of a GTS id of a type.
fn is_type_id(name: &str) -> bool {
    name.starts_with("gts.") && name.ends_with('~')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SR-242: a name that user code made up is no id: callers find the base of such errors, and the name where all details are.
    #[test]
    fn made_up_names_stand_in_the_details() {
        let named = |name: &str| {
            let mut failure = Failure::new(name, ErrorCategory::NonRetryable, "no");
            failure.details.insert("card".to_owned(), 4711.into());
            Failure::of(&failure.to_error())
        };
        let declined = named("CardDeclined");
        assert_eq!((declined.error_type_id.as_str(), declined.user_type()), (errors::EXECUTION, Some("CardDeclined")));
        assert_eq!((&declined.details["card"], declined.category), (&4711.into(), ErrorCategory::NonRetryable));
        assert_eq!(Failure::of(&declined.to_error()), declined);
        for broken in ["gts", "gts.", "gts.a.b", "a.gts.v1~"] {
            assert_eq!(named(broken).error_type_id, errors::EXECUTION, "{broken}");
        }
        let known = named("gts.a.b.c.v1~");
        assert_eq!((known.error_type_id.as_str(), known.user_type()), ("gts.a.b.c.v1~", None));
    }

    #[test]
    fn a_failure_survives_the_way_through_a_handlers_error() {
        let mut failure = Failure::new(errors::RESOURCE_LIMIT, ErrorCategory::ResourceLimit, "over 64 MB");
        failure.details.insert("limit".to_owned(), "memory_mb".into());
        assert_eq!(Failure::of(&failure.to_error()), failure);
    }

    #[test]
    fn foreign_errors_are_classified_by_their_names() {
        let of = |name: &str| {
            let failure = Failure::of(&ErrorObject::new(name, "m"));
            (failure.error_type_id, failure.category)
        };
        assert_eq!(of("Sandbox.Timedout"), (errors::TIMEOUT.to_owned(), ErrorCategory::Timeout));
        assert_eq!(of("Runtime.OutOfMemory"), (errors::RESOURCE_LIMIT.to_owned(), ErrorCategory::ResourceLimit));
        assert_eq!(of("ValueError"), (errors::EXECUTION.to_owned(), ErrorCategory::Retryable));
        assert_eq!(of("gts.x.y.z.v1~"), ("gts.x.y.z.v1~".to_owned(), ErrorCategory::Retryable));
        let failure = Failure::of(&ErrorObject::new("ValueError", "m"));
        assert_eq!(failure.details["error_type"], "ValueError");
    }
}
