//! JSON text to values. Objects become [`Object`]s, whose fields read as attributes too.

use std::borrow::Cow;

use num_bigint::BigInt;
use starlark::values::dict::AllocDict;
use starlark::values::{Heap, Value};

use super::DEPTH_MAX;
use crate::worker::object::Object;

pub(crate) fn read<'v>(text: &str, heap: &'v Heap) -> Result<Value<'v>, String> {
    let mut reader = Reader { text, at: 0, heap };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.wrong("nothing more"));
    }
    Ok(value)
}

struct Reader<'t, 'v> {
    text: &'t str,
    at: usize,
    heap: &'v Heap,
}

impl<'t, 'v> Reader<'t, 'v> {
    fn value(&mut self, depth: usize) -> Result<Value<'v>, String> {
        if depth > DEPTH_MAX {
            return Err(format!("the JSON is nested deeper than {DEPTH_MAX} levels"));
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => {
                let text = self.string()?;
                Ok(self.heap.alloc(text.as_ref()))
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::new_bool(true)),
            Some(b'f') => self.word("false", Value::new_bool(false)),
            Some(b'n') => self.word("null", Value::new_none()),
            _ => Err(self.wrong("a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value<'v>, String> {
        self.at += 1;
        let mut fields: Vec<(Value<'v>, Value<'v>)> = Vec::new();
        self.space();
        if !self.take(b'}') {
            loop {
                self.space();
                if self.peek() != Some(b'"') {
                    return Err(self.wrong("a key in quotes"));
                }
                let key = self.string()?;
                let key = self.heap.alloc(key.as_ref());
                self.space();
                if !self.take(b':') {
                    return Err(self.wrong("':'"));
                }
                fields.push((key, self.value(depth + 1)?));
                self.space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.wrong("',' or '}'"));
                }
            }
        }
        let dict = self.heap.alloc(AllocDict(fields));
        Ok(self.heap.alloc(Object::new(dict)))
    }

    fn array(&mut self, depth: usize) -> Result<Value<'v>, String> {
        self.at += 1;
        let mut items: Vec<Value<'v>> = Vec::new();
        self.space();
        if !self.take(b']') {
            loop {
                items.push(self.value(depth + 1)?);
                self.space();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.wrong("',' or ']'"));
                }
            }
        }
        Ok(self.heap.alloc(items))
    }

    /// A string that begins here. Only one with escapes is copied.
    fn string(&mut self) -> Result<Cow<'t, str>, String> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        let mut plain = true;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    plain = false;
                    at += 2;
                }
                Some(byte) => {
                    plain &= *byte >= 0x20;
                    at += 1;
                }
                None => return Err(self.wrong("the end of the string")),
            }
        }
        self.at = at + 1;
        if plain {
            return Ok(Cow::Borrowed(&self.text[start + 1..at]));
        }
        serde_json::from_str::<String>(&self.text[start..=at])
            .map(Cow::Owned)
            .map_err(|error| format!("the string at byte {start} of the JSON is wrong: {error}"))
    }

    fn number(&mut self) -> Result<Value<'v>, String> {
        let rest = &self.text[self.at..];
        let is_part = |byte: u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let length = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let number = &rest[..length];
        // Its grammar is checked by a reader that knows it well.
        if serde_json::from_str::<&serde_json::value::RawValue>(number).is_err() {
            return Err(self.wrong("a number"));
        }
        self.at += length;
        if number.contains(['.', 'e', 'E']) {
            let float: f64 = number.parse().map_err(|_| format!("{number} is no number"))?;
            if !float.is_finite() {
                return Err(format!("the number {number} is too large"));
            }
            return Ok(self.heap.alloc(float));
        }
        if let Ok(integer) = number.parse::<i64>() {
            return Ok(self.heap.alloc(integer));
        }
        let integer: BigInt = number.parse().map_err(|_| format!("{number} is no integer"))?;
        Ok(self.heap.alloc(integer))
    }

    fn word(&mut self, word: &str, value: Value<'v>) -> Result<Value<'v>, String> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.wrong("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn wrong(&self, expected: &str) -> String {
        format!("the JSON is wrong at byte {}: expected {expected}", self.at)
    }
}
