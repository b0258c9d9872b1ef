//! The one error of parsing: which field is wrong, and why.

use std::fmt;

/// A value that does not fit its type. `field` is a JSON-Pointer-like path, so that an API answer can name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    pub field: String,
    pub reason: String,
}

impl Invalid {
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// Puts a parent path in front of the field: `id` inside `steps/3` becomes `steps/3/id`.
    #[must_use]
    pub fn inside(mut self, parent: &str) -> Self {
        self.field = if self.field.is_empty() { parent.to_owned() } else { format!("{parent}/{}", self.field) };
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() { f.write_str(&self.reason) } else { write!(f, "{}: {}", self.field, self.reason) }
    }
}

impl std::error::Error for Invalid {}
