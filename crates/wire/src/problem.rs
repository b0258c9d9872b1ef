//! Errors over HTTP: RFC 9457 problem documents with a stable code.

use serde::{Deserialize, Serialize};
use servo_model::Invalid;
use servo_model::codes::Code;

/// The media type of a problem.
pub const CONTENT_TYPE: &str = "application/problem+json";

/// One answer that says no. Programs match on `code`; people read `title` and `detail`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// `urn:servo:error:<CODE>`.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What is wrong with this request. Never there when the fault is the server's (5xx).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The path that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    pub code: String,
    /// The serverless runtime API calls it `trace_id`.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "trace_id")]
    pub request_id: Option<String>,
    /// The fields that are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// What may have been meant instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// Seconds after which to try again, as in the `Retry-After` header.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "retry_after_seconds")]
    pub retry_after: Option<u64>,
}

/// One field that is wrong. The pointer is a JSON Pointer into the body, or the name of a parameter; in the serverless runtime
/// API it is a JSON path, and both have other names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldProblem {
    #[serde(alias = "path")]
    pub pointer: String,
    #[serde(alias = "message")]
    pub detail: String,
    /// Where the field is source code: the place in it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
}

impl Problem {
    pub fn new(code: Code) -> Self {
        Self {
            kind: format!("urn:servo:error:{}", code.code),
            title: code.title.to_owned(),
            status: code.status,
            detail: None,
            instance: None,
            code: code.code.to_owned(),
            request_id: None,
            errors: Vec::new(),
            suggestions: Vec::new(),
            retry_after: None,
        }
    }

    /// Says what is wrong. Server faults keep their details to themselves, so there it does nothing.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        if self.status < 500 {
            self.detail = Some(detail.into());
        }
        self
    }

    /// Names a field of the body.
    #[must_use]
    pub fn field(self, invalid: &Invalid) -> Self {
        let pointer = if invalid.field.is_empty() { String::new() } else { format!("/{}", invalid.field) };
        self.detail(invalid.to_string()).with_field(pointer, &invalid.reason)
    }

    /// Names a parameter of the query or path.
    #[must_use]
    pub fn parameter(self, name: &str, reason: &str) -> Self {
        self.detail(format!("{name}: {reason}")).with_field(name.to_owned(), reason)
    }

    fn with_field(mut self, pointer: String, reason: &str) -> Self {
        if self.status < 500 {
            self.errors.push(FieldProblem { pointer, detail: reason.to_owned(), line: None, column: None });
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_model::codes;

    #[test]
    fn a_problem_names_the_field_as_a_json_pointer() {
        let problem = Problem::new(codes::SCHEMA_VALIDATION_FAILED).field(&Invalid::new("planRef/uri", "is missing"));
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(json["type"], "urn:servo:error:SCHEMA_VALIDATION_FAILED");
        assert_eq!(json["status"], 422);
        assert_eq!(json["errors"], serde_json::json!([{"pointer": "/planRef/uri", "detail": "is missing"}]));
        assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
    }

    #[test]
    fn server_faults_carry_no_detail() {
        let problem =
            Problem::new(codes::INTERNAL).detail("secret").field(&Invalid::new("x", "secret")).parameter("y", "secret");
        assert!(!serde_json::to_string(&problem).unwrap().contains("secret"));
    }
}
