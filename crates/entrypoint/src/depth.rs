//! How deep a document is nested, and how much is in it.

use serde_json::Value;

/// Whether objects and arrays stand more than `levels` deep inside each other.
pub(crate) fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match (value, levels) {
        (Value::Object(_) | Value::Array(_), 0) => true,
        (Value::Object(members), _) => members.values().any(|member| is_deeper_than(member, levels - 1)),
        (Value::Array(items), _) => items.iter().any(|item| is_deeper_than(item, levels - 1)),
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => false,
    }
}

/// Whether a document consists of more than so many values.
pub(crate) fn has_more_parts_than(value: &Value, count: usize) -> bool {
    fn left(value: &Value, count: usize) -> Option<usize> {
        let count = count.checked_sub(1)?;
        match value {
            Value::Object(members) => members.values().try_fold(count, |count, member| left(member, count)),
            Value::Array(items) => items.iter().try_fold(count, |count, item| left(item, count)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(count),
        }
    }
    left(value, count).is_none()
}
