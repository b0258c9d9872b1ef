//! Everything that is wrong with a document, each with its place and what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servo_model::invocation::errors;

use super::{RuntimeErrorCategory, RuntimeErrorPayload};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationError {
    pub message: String,
    /// Always `non_retryable`.
    pub category: RuntimeErrorCategory,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
    /// At least one.
    pub issues: Vec<ValidationIssue>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ValidationIssue {
    /// Such as `missing_field`, `schema_mismatch`, `invalid_format`.
    pub error_type: String,
    pub location: ValidationLocation,
    pub message: String,
    #[serde(default)]
    pub suggestion: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ValidationLocation {
    /// Such as `$.traits.limits.timeout_seconds`.
    pub path: String,
    /// In source code.
    #[serde(default)]
    pub line: Option<u64>,
    #[serde(default)]
    pub column: Option<u64>,
}

/// With line and column, where it has them.
impl fmt::Display for ValidationLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        Ok(())
    }
}

impl ValidationIssue {
    pub fn new(error_type: &str, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            error_type: error_type.to_owned(),
            location: ValidationLocation { path: path.into(), line: None, column: None },
            message: message.into(),
            suggestion: None,
        }
    }

    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// In source code; both count from 1.
    #[must_use]
    pub fn at(mut self, line: u64, column: u64) -> Self {
        (self.location.line, self.location.column) = (Some(line), Some(column));
        self
    }
}

impl ValidationError {
    pub fn new(issues: Vec<ValidationIssue>) -> Self {
        let message = match issues.as_slice() {
            [one] => format!("{}: {}", one.location, one.message),
            [first, rest @ ..] => format!("{}: {} (and {} more)", first.location, first.message, rest.len()),
            [] => "the document is not valid".to_owned(),
        };
        Self { message, category: RuntimeErrorCategory::NonRetryable, details: None, issues }
    }

    /// The issues of an error that holds some.
    pub fn of(error: &RuntimeErrorPayload) -> Option<Self> {
        if error.error_type_id != errors::VALIDATION {
            return None;
        }
        let issues = serde_json::from_value(error.details.get("issues")?.clone()).ok()?;
        Some(Self { message: error.message.clone(), category: error.category, details: None, issues })
    }
}

/// The issues are in `details.issues`.
impl From<ValidationError> for RuntimeErrorPayload {
    fn from(error: ValidationError) -> Self {
        let mut payload = RuntimeErrorPayload::new(errors::VALIDATION, error.category, error.message);
        payload.details = error.details.unwrap_or_default();
        let issues = serde_json::to_value(&error.issues).unwrap_or_else(|_| Value::Array(Vec::new()));
        payload.details.insert("issues".to_owned(), issues);
        payload
    }
}
