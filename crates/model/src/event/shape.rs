//! Objects are objects. serde also reads a struct from a list of its fields in order, which no schema allows and which
//! would mean something else as soon as a field is added.

use serde_json::Value;

use crate::{Invalid, locate};

/// Where bodies hold objects; `*` stands for every element of a list.
const OBJECTS: [&str; 9] = [
    "planRef",
    "context",
    "error",
    "rootCause",
    "artifacts/*",
    "plan",
    "plan/steps/*",
    "plan/steps/*/retry",
    "plan/steps/*/secrets/*",
];

pub(super) fn check(payload: &str) -> Result<(), Invalid> {
    let body: Value = serde_json::from_str(payload).map_err(|error| locate::invalid(payload, &error))?;
    OBJECTS.iter().try_for_each(|path| check_path(&body, path))
}

fn check_path(value: &Value, path: &str) -> Result<(), Invalid> {
    let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let next = |name: &str, value: &Value| match rest {
        Some(rest) => check_path(value, rest).map_err(|error| error.inside(name)),
        None if value.is_array() => Err(Invalid::new(name, "is an object, not a list")),
        None => Ok(()),
    };
    match (first, value) {
        ("*", Value::Array(items)) => {
            items.iter().enumerate().try_for_each(|(index, item)| next(&index.to_string(), item))
        }
        (name, value) => value.get(name).map_or(Ok(()), |value| next(name, value)),
    }
}
