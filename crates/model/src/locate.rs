//! Which field an error of serde_json is about: it knows a position in the text, people need a name.

use serde_json::error::Error;

use crate::Invalid;

/// The error with the path of the value it is about. The position is dropped from the message: callers often read a text
/// that they cut out of another one.
pub(crate) fn invalid(text: &str, error: &Error) -> Invalid {
    let message = error.to_string();
    let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason);
    let offset = offset_of(text, error);
    let field = match named_field(reason) {
        Some((name, true)) => join(&path_to(text, offset, Target::Object), name),
        Some((name, false)) => join(&path_to(text, offset, Target::Around), name),
        None => path_to(text, offset, Target::Value),
    };
    Invalid::new(field, reason)
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
}

/// A missing (`true`) or unknown (`false`) field stands between backticks.
fn named_field(reason: &str) -> Option<(&str, bool)> {
    let missing = reason.strip_prefix("missing field `");
    let unknown = reason.strip_prefix("unknown field `");
    let (name, _) = missing.or(unknown)?.split_once('`')?;
    Some((name, missing.is_some()))
}

/// How many bytes serde_json had consumed.
fn offset_of(text: &str, error: &Error) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len);
    lines.sum::<usize>() + error.column()
}

#[derive(Clone, Copy, PartialEq)]
enum Target {
    /// The value that ends or begins at the offset.
    Value,
    /// The object that ends at the offset.
    Object,
    /// The object or list around the offset.
    Around,
}

/// An object or list that is open: the names of what stands in it.
enum Open {
    Object { key: String, in_key: bool },
    List { index: usize },
}

/// Walks the text once, without recursion, and remembers only the open objects and lists.
fn path_to(text: &str, offset: usize, target: Target) -> String {
    let bytes = text.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b',' => match open.last_mut() {
                Some(Open::Object { in_key, .. }) => *in_key = true,
                Some(Open::List { index }) => *index += 1,
                None => {}
            },
            b':' => {
                if let Some(Open::Object { in_key, .. }) = open.last_mut() {
                    *in_key = false;
                }
            }
            b'{' | b'[' => {
                if at == offset && target == Target::Value {
                    break;
                }
                open.push(match bytes[at] {
                    b'{' => Open::Object { key: String::new(), in_key: true },
                    _ => Open::List { index: 0 },
                });
            }
            b'}' | b']' => {
                open.pop();
                // Nothing is open but what is around the value that ends here.
                if at + 1 >= offset && target != Target::Around {
                    break;
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            byte => {
                let end = if byte == b'"' { string_end(bytes, at) } else { scalar_end(bytes, at) };
                match open.last_mut() {
                    Some(Open::Object { key, in_key: true }) => {
                        *key = serde_json::from_str(&text[at..end]).unwrap_or_default();
                    }
                    _ if target == Target::Value && (end >= offset || at >= offset) => break,
                    _ => {}
                }
                at = end - 1;
            }
        }
        at += 1;
        if target == Target::Around && at >= offset {
            open.pop();
            break;
        }
    }
    names(&open)
}

fn names(open: &[Open]) -> String {
    let parts: Vec<String> = open
        .iter()
        .map(|part| match part {
            Open::Object { key, .. } => key.clone(),
            Open::List { index } => index.to_string(),
        })
        .collect();
    parts.join("/")
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let length = bytes[start..].iter().position(|b| b",]}".contains(b) || b.is_ascii_whitespace());
    length.map_or(bytes.len(), |length| start + length.max(1))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read by serde")]
    struct Outer {
        name: String,
        #[serde(default)]
        list: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read by serde")]
    struct Inner {
        id: crate::RunId,
        size: u32,
    }

    fn field(text: &str) -> String {
        let error = serde_json::from_str::<Outer>(text).unwrap_err();
        invalid(text, &error).field
    }

    #[test]
    fn wrong_values_are_named() {
        assert_eq!(field(r#"{"name": 5}"#), "name");
        assert_eq!(field(r#"{"name": {"a": 1}}"#), "name");
        assert_eq!(field("{\"name\":\n \"a,:{\\\"\",\n \"list\": 7}"), "list");
        assert_eq!(field(r#"{"list":[{"id":"a","size":1},{"size":2,"id":"a b"}],"name":"x"}"#), "list/1/id");
        assert_eq!(field(r#"{"list":[{"id":"a","size":[1,2]}],"name":"x"}"#), "list/0/size");
        assert_eq!(field(r#"{"list":[{"id":"a","size":-1}],"name":"x"}"#), "list/0/size");
        assert_eq!(field(r#"{"list":[{"id":"a","size":1},[]],"name":"x"}"#), "list/1");
        assert_eq!(field("[]"), "");
        assert_eq!(field("5"), "");
    }

    #[test]
    fn missing_and_unknown_fields_are_named() {
        assert_eq!(field("{}"), "name");
        assert_eq!(field(r#"{"list":[{"id":"a","size":1},{"size":2}],"name":"x"}"#), "list/1/id");
        assert_eq!(field(r#"{"name":"x","extra":1}"#), "extra");
        assert_eq!(field(r#"{"list":[{"id":"a","size":1},{"id":"b","colour":{}}]}"#), "list/1/colour");
    }

    #[test]
    fn broken_text_does_not_panic() {
        let text = r#"{"list":[{"id":"a\"","size":1e5},{"id":"ä","size":2}],"name":"\u00e4"}"#;
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let error = serde_json::from_str::<Outer>(&text[..end]).unwrap_err();
            invalid(&text[..end], &error);
        }
    }
}
