//! The members of a small request body, taken one by one, so that one answer names all that is wrong with it. Members that
//! nobody asked for are refused: a misspelt `dry_run` must not start a run.

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
    pub(super) fn any(&mut self, name: &str) -> Value {
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

    /// One of the words, if it is there.
    pub(super) fn word<T>(&mut self, name: &str, words: &[&str], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(name)?;
        let parsed = parse(&text);
        if parsed.is_none() {
            let message = format!("`{}` is none of the values", text.chars().take(64).collect::<String>());
            let issue = ValidationIssue::new("schema_mismatch", format!("$.{name}"), message);
            self.issues.push(issue.suggest(format!("one of: {}", words.join(", "))));
        }
        parsed
    }

    pub(super) fn wrong(&mut self, name: &str, message: impl Into<String>) {
        self.issue("invalid_value", name, message);
    }

    pub(super) fn missing(&mut self, name: &str, values: &str) {
        let issue = ValidationIssue::new("missing_field", format!("$.{name}"), "this is missing");
        self.issues.push(issue.suggest(format!("one of: {values}")));
    }

    pub(super) fn is_clean(&self) -> bool {
        self.issues.is_empty()
    }

    /// Refuses all that was found wrong, and what is left.
    pub(super) fn done(mut self) -> Answer<()> {
        let unknown: Vec<String> = self.members.keys().take(20).cloned().collect();
        for name in unknown {
            self.issue("unknown_field", &name, "there is no such field here");
        }
        if self.issues.is_empty() {
            return Ok(());
        }
        Err(RuntimeErrorPayload::from(ValidationError::new(self.issues)).into())
    }
}
