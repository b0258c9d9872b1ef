//! A schema that was compiled.

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// Ready to check documents, from many threads. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Schema {
    pub(super) validator: Validator,
    /// Deepest document whose faults are described.
    pub(super) detail_depth: usize,
    pub(super) has_alternatives: bool,
    /// The most schemas that apply to one place of which a document may have many.
    pub(super) weight: u64,
}

/// Parts of a document whose faults are all described. Each has many times the size of the part that it is about, and they are made
/// before any is looked at.
const DETAIL_PARTS_MAX: usize = 20_000;
/// Schemas that are applied to all parts of a document together, which take about a second. A document of a million parts reaches it if
/// a hundred schemas apply to each item of a list.
const WORK_MAX: u64 = 100_000_000;

impl Schema {
    /// Whether a document matches. Costs as much as the document is large, whatever the schema; one that would cost too much does not.
    pub fn is_valid(&self, document: &Value) -> bool {
        self.can_be_checked(document) && self.validator.is_valid(document)
    }

    pub(crate) fn can_be_checked(&self, document: &Value) -> bool {
        let parts = usize::try_from(WORK_MAX / self.weight.max(1)).unwrap_or(usize::MAX);
        !crate::depth::has_more_parts_than(document, parts)
    }

    /// Every fault, at most `max`, or the first of a large document; `None` for a wrong document that is too deep for a schema that
    /// refers to itself in several ways, or too large for one with alternatives, because finding the faults could take hours.
    pub(crate) fn faults<'a>(&'a self, document: &'a Value, max: usize) -> Option<Vec<ValidationError<'a>>> {
        if self.is_valid(document) {
            return Some(Vec::new());
        }
        if !self.can_be_checked(document) {
            return None;
        }
        if self.detail_depth != usize::MAX && crate::depth::is_deeper_than(document, self.detail_depth) {
            return None;
        }
        if !crate::depth::has_more_parts_than(document, DETAIL_PARTS_MAX) {
            return Some(self.validator.iter_errors(document).take(max).collect());
        }
        // What is wrong with an alternative is told with the faults of all of them.
        (!self.has_alternatives).then(|| self.validator.validate(document).err().into_iter().collect())
    }
}
