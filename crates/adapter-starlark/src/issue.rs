//! What is wrong with a source, where, and what to do about it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceIssue {
    /// From 1.
    pub line: u64,
    /// From 1.
    pub column: u64,
    pub message: String,
    pub suggestion: Option<String>,
}

impl SourceIssue {
    /// About the source as a whole.
    pub(crate) fn whole(message: impl Into<String>, suggestion: Option<&str>) -> Self {
        Self { line: 1, column: 1, message: message.into(), suggestion: suggestion.map(str::to_owned) }
    }
}
