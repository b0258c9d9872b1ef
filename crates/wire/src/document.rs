//! Documents that others send, read strictly: a struct is an object, and what does not fit is told by its field, in words of
//! JSON and not of our source.

use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_path_to_error::{Path, Segment};

use crate::object::Objects;

/// Characters of a reason; it may quote what was sent.
const REASON_CHARS_MAX: usize = 300;

/// Why a document was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// It is no JSON.
    Malformed(String),
    /// It is JSON, with a field that is missing or holds something else.
    Wrong { field: String, reason: String },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(reason) => write!(f, "not valid JSON: {reason}"),
            Self::Wrong { field, reason } if field.is_empty() => f.write_str(reason),
            Self::Wrong { field, reason } => write!(f, "{field}: {reason}"),
        }
    }
}

impl std::error::Error for Unfit {}

/// The document in this text. What fits is read once; what does not is looked at again for the reason.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Unfit> {
    let mut json = serde_json::Deserializer::from_str(text);
    let read = T::deserialize(Objects(&mut json)).and_then(|document| json.end().map(|()| document));
    read.map_err(|error| explain::<T>(text, &error))
}

fn explain<T: DeserializeOwned>(text: &str, error: &serde_json::Error) -> Unfit {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Unfit::Malformed(error.to_string());
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let wrong = serde_path_to_error::deserialize::<_, T>(Objects(&mut json)).err();
    let mut field = wrong.as_ref().map_or_else(String::new, |error| name_of(error.path()));
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(reason, _)| reason);
    let reason = match said.split_once(' ') {
        Some(("missing", rest)) => in_object(&mut field, rest, "is missing"),
        Some(("duplicate", rest)) => in_object(&mut field, rest, "is given twice"),
        Some(("unknown", rest)) => rest
            .strip_prefix("variant ")
            .and_then(|rest| rest.rsplit_once(", expected "))
            .map(|(name, known)| format!("{} is not known, expected {known}", cut(name.to_owned()))),
        Some(("invalid", rest)) => rest.split_once(": ").map(|(_, rest)| unexpected(rest)),
        _ => None,
    };
    Unfit::Wrong { field, reason: cut(reason.unwrap_or_else(|| said.to_owned())) }
}

/// A path as people write it: `Updates[0].Type`.
fn name_of(path: &Path) -> String {
    let mut name = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => name.push_str(&format!("[{index}]")),
            Segment::Map { key: part } | Segment::Enum { variant: part } => push(&mut name, part),
            Segment::Unknown => {}
        }
    }
    name
}

fn push(name: &mut String, part: &str) {
    if !name.is_empty() {
        name.push('.');
    }
    name.push_str(part);
}

/// What is wrong with a field itself is told at the object around it.
fn in_object(field: &mut String, rest: &str, reason: &str) -> Option<String> {
    let (name, _) = rest.strip_prefix("field `")?.split_once('`')?;
    push(field, name);
    Some(reason.to_owned())
}

fn unexpected(said: &str) -> String {
    let Some((found, expected)) = said.rsplit_once(", expected ") else { return said.to_owned() };
    let found = match found {
        "sequence" => "an array",
        "map" => "an object",
        other => other,
    };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "an array",
        "a map" => "an object",
        other => other,
    };
    format!("{} where {expected} belongs", cut(found.to_owned()))
}

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(REASON_CHARS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}
