//! JSON as the published runner writes it: a space after every comma and colon. Payloads are compared as text.

use std::io;

use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

pub fn spaced(value: &Value) -> String {
    let mut bytes = Vec::new();
    // Neither a value nor memory can refuse to be written.
    let _ = serde::Serialize::serialize(value, &mut Serializer::with_formatter(&mut bytes, Spaced));
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn commas_and_colons_are_followed_by_a_space() {
        assert_eq!(super::spaced(&json!({"a": [1, "x,y"], "b": {}})), r#"{"a": [1, "x,y"], "b": {}}"#);
    }
}
