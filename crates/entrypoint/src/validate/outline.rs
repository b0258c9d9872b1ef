//! What an unchecked document names, so that it can be looked up before the document is checked.

use serde_json::Value;

use super::{kinds, payload};
use crate::types::ValidationIssue;

/// Best effort: what is missing or of another type is reported by the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outline<'a> {
    pub address: Option<&'a str>,
    pub adapter: Option<&'a str>,
    pub on_failure: Option<&'a str>,
    pub on_cancel: Option<&'a str>,
    /// Language and source, if the adapter could run it.
    pub code: Option<(&'a str, &'a str)>,
    /// The adapter's own name of what it runs.
    pub definition_id: Option<&'a str>,
}

impl<'a> Outline<'a> {
    pub fn of(document: &'a Value) -> Self {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
        let kind = text("/implementation/kind");
        let adapter = text("/implementation/adapter");
        let runs = |(language, _): &(&str, &str)| adapter.is_none_or(|adapter| payload::runs_code(adapter, language));
        let code = text("/implementation/code/language").zip(text("/implementation/code/source")).filter(runs);
        Self {
            address: text("/entrypoint_id"),
            adapter,
            on_failure: text("/traits/workflow/compensation/on_failure"),
            on_cancel: text("/traits/workflow/compensation/on_cancel"),
            code: code.filter(|_| kind == Some("code")),
            definition_id: text("/implementation/adapter_ref/definition_id").filter(|_| kind == Some("adapter_ref")),
        }
    }

    /// Addresses of handlers, each once.
    pub fn handlers(&self) -> Vec<&'a str> {
        let mut all: Vec<_> = self.on_failure.into_iter().chain(self.on_cancel).collect();
        all.dedup();
        all
    }
}

/// What an adapter found in the source code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceIssue {
    /// Both count from 1.
    pub line: u64,
    pub column: u64,
    pub message: String,
    pub suggestion: Option<String>,
}

impl SourceIssue {
    pub(super) fn issue(&self) -> ValidationIssue {
        let path = "$.implementation.code.source";
        let mut issue = ValidationIssue::new(kinds::SYNTAX_ERROR, path, &self.message).at(self.line, self.column);
        issue.suggestion.clone_from(&self.suggestion);
        issue
    }
}
