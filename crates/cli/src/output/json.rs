//! JSON as text: indented or compacted without being parsed into values, so that numbers, key order and fields that this
//! version does not know come out as they came in.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::failure::{Failure, exit};

/// The members of an array field, each as it stands in the document.
pub(crate) fn items(document: &str, field: &str) -> Result<Vec<Box<RawValue>>, Failure> {
    let wrong =
        |error: serde_json::Error| Failure::new(exit::ERROR, format!("the answer has no list `{field}`: {error}"));
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(document).map_err(wrong)?;
    match fields.get(field) {
        Some(list) => serde_json::from_str(list.get()).map_err(wrong),
        None => Ok(Vec::new()),
    }
}

/// Without white space between tokens, on one line.
pub(crate) fn compact(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for token in Tokens::new(document) {
        out.push_str(token);
    }
    out
}

/// Two spaces per level, one member per line.
pub(crate) fn indent(document: &str) -> String {
    let mut out = String::with_capacity(document.len() * 2);
    let mut depth = 0;
    let mut tokens = Tokens::new(document).peekable();
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if let Some(end) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    out.push_str(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push_str(token);
            }
            "," => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            _ => out.push_str(token),
        }
    }
    out
}

/// Strings, words (numbers, `true`, `null`) and punctuation. The document is trusted to be JSON; anything else comes out
/// ugly, not wrong.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn new(document: &'a str) -> Self {
        Self { rest: document }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next()?;
        let length = match first {
            '"' => string_length(self.rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => self.rest.find(|c: char| c.is_whitespace() || "{}[],:\"".contains(c)).unwrap_or(self.rest.len()),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(token)
    }
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str =
        r#" {"b" : [1.50, 12345678901234567890123, {}], "a":{"quote":"\"{[,:]}\\", "ü":[] } ,"n":null}"#;

    #[test]
    fn indenting_changes_white_space_only() {
        let expected = r#"{
  "b": [
    1.50,
    12345678901234567890123,
    {}
  ],
  "a": {
    "quote": "\"{[,:]}\\",
    "ü": []
  },
  "n": null
}"#;
        assert_eq!(indent(DOCUMENT), expected);
        let one_line = r#"{"b":[1.50,12345678901234567890123,{}],"a":{"quote":"\"{[,:]}\\","ü":[]},"n":null}"#;
        assert_eq!(compact(DOCUMENT), one_line);
        assert_eq!(compact(expected), one_line);
        assert_eq!(indent("\"x\""), "\"x\"");
    }

    #[test]
    fn items_are_taken_out_as_they_stand() {
        let found = items(r#"{"items":[{"z":1.0,"new":true}, 2],"nextCursor":"x"}"#, "items").unwrap();
        assert_eq!(found.iter().map(|item| item.get()).collect::<Vec<_>>(), [r#"{"z":1.0,"new":true}"#, "2"]);
        assert!(items("[1]", "items").is_err());
    }
}
