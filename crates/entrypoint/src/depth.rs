//! How deep a document is nested.

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
