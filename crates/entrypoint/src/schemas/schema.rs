//! A schema that was compiled.

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// Ready to check documents, from many threads. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Schema {
    validator: Validator,
    detail_depth: usize,
}

impl Schema {
    pub(super) fn new(validator: Validator, detail_depth: usize) -> Self {
        Self { validator, detail_depth }
    }

    /// Costs as much as the document is large, whatever the schema.
    pub fn is_valid(&self, document: &Value) -> bool {
        self.validator.is_valid(document)
    }

    /// Every fault, at most `max`; `None` for a wrong document that is too deep for a schema that refers to itself in several
    /// ways, because finding the faults could take hours.
    pub(crate) fn faults<'a>(&'a self, document: &'a Value, max: usize) -> Option<Vec<ValidationError<'a>>> {
        if self.is_valid(document) {
            return Some(Vec::new());
        }
        let is_shallow = self.detail_depth == usize::MAX || !crate::depth::is_deeper_than(document, self.detail_depth);
        is_shallow.then(|| self.validator.iter_errors(document).take(max).collect())
    }
}
