//! The members of a small request body, taken one by one, so that one answer names all that is wrong with it.

use serde_json::{Map, Value};
use servo_entrypoint::{RuntimeErrorPayload, ValidationError, ValidationIssue};

use super::refused::Answer;

pub(super) struct Fields {
    members: Map<String, Value>,
    issues: Vec<ValidationIssue>,
}

impl Fields {
    pub(super) fn new(members: Map<String, Value>) -> Self {
        Self { members, issues: Vec::new() }
    }

    fn issue(&mut self, kind: &str, name: &str, message: impl Into<String>) {
        self.issues.push(ValidationIssue::new(kind, format!("$.{name}"), message));
    }

    /// Whatever stands there; `null` when nothing does.
    fn any(&mut self, name: &str) -> Value {
        self.members.remove(name).unwrap_or_default()
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        match self.any(name) {
            Value::Null => None,
            Value::String(text) => Some(text),
            _ => {
                self.issue("schema_mismatch", name, "this is a text");
                None
            }
        }
    }

    pub(super) fn needed_text(&mut self, name: &str) -> String {
        let before = self.issues.len();
        let text = self.text(name);
        if text.is_none() && self.issues.len() == before {
            self.issue("missing_field", name, "this is missing");
        }
        text.unwrap_or_default()
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        match self.any(name) {
            Value::Null => false,
            Value::Bool(flag) => flag,
            _ => {
                self.issue("schema_mismatch", name, "this is true or false");
                false
            }
        }
    }

    pub(super) fn number(&mut self, name: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let value = self.any(name);
        if value.is_null() {
            return None;
        }
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|n| range.contains(n));
        if number.is_none() {
            let message = format!("this is a whole number from {} to {}", range.start(), range.end());
            self.issue("schema_mismatch", name, message);
        }
        number
    }

    pub(super) fn wrong(&mut self, name: &str, message: impl Into<String>) {
        self.issue("invalid_value", name, message);
    }

    /// Refuses all that was found wrong.
    pub(super) fn done(self) -> Answer<()> {
        if self.issues.is_empty() {
            return Ok(());
        }
        Err(RuntimeErrorPayload::from(ValidationError::new(self.issues)).into())
    }
}
