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

    /// Reads any handler's error: one of ours keeps its category, the rest are told apart by the words that Lambda and its
    /// runtimes use. An error nobody classified may pass, so it is worth trying again.
    pub fn of(error: &ErrorObject) -> Self {
        let name = error.error_type.as_deref().unwrap_or_default();
        let message = error.error_message.clone().unwrap_or_else(|| "the function failed without a message".to_owned());
        if let Some(data) = error.error_data.as_deref().and_then(|data| serde_json::from_str::<Data>(data).ok()) {
            let id = if name.is_empty() { errors::EXECUTION } else { name };
            return Self { error_type_id: id.to_owned(), message, category: data.category, details: data.details };
        }
        let (id, category) = match name {
            "Sandbox.Timedout" | "ExecutionTimedOut" => (errors::TIMEOUT, ErrorCategory::Timeout),
            "Execution.Stopped" => (errors::CANCELED, ErrorCategory::Canceled),
            "Runtime.OutOfMemory" => (errors::RESOURCE_LIMIT, ErrorCategory::ResourceLimit),
            "InvalidParameterValueException" | "ResourceNotFoundException" => {
                (errors::EXECUTION, ErrorCategory::NonRetryable)
            }
            id if id.starts_with("gts.") => (id, ErrorCategory::Retryable),
            _ => (errors::EXECUTION, ErrorCategory::Retryable),
        };
        let mut details = Map::new();
        if !name.is_empty() && name != id {
            details.insert("error_type".to_owned(), name.into());
        }
        if let Some(data) = &error.error_data {
            details.insert("data".to_owned(), data.as_str().into());
        }
        Self { error_type_id: id.to_owned(), message, category, details }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
