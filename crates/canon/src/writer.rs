//! The canonical bytes as they grow: strings, arrays and objects in their one spelling. It knows neither JSON text nor
//! serde; the reader of texts and the serializer both write through it, so they cannot disagree.

use std::borrow::Cow;

use crate::Error;

/// Nesting of arrays and objects that is refused: 127 levels pass, the 128th does not.
///
/// It is the limit of `serde_json`'s reader, so whatever has a canonical form here can be read there.
pub const DEPTH_LIMIT: usize = 128;

/// Output of one canonicalisation.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) out: String,
    /// Reused when an object must be put in order.
    scratch: String,
    depth: usize,
}

/// An array that is being written.
pub(crate) struct Array {
    empty: bool,
}

/// An object that is being written. Entries go straight to the output in the order in which they come; if that was not
/// the order of their keys, [`Writer::end_object`] moves them. Each byte is moved at most once per enclosing object
/// whose keys were out of order, and the depth is limited, so the work stays linear in the size of the text.
pub(crate) struct Object<'k> {
    entries: Vec<Entry<'k>>,
    /// Where the first entry begins in the output.
    start: usize,
    ascending: bool,
}

struct Entry<'k> {
    /// The key as data. The written form cannot be compared instead: its escapes sort differently.
    key: Cow<'k, str>,
    /// Where the entry, `"key":value`, begins in the output.
    start: usize,
}

impl Writer {
    pub(crate) fn null(&mut self) {
        self.out.push_str("null");
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.out.push_str(if value { "true" } else { "false" });
    }

    /// A string with no escape but those that JSON requires: quote, backslash and U+0000 to U+001F, in the short form
    /// where there is one, else as `\u00xx` in lower case.
    pub(crate) fn string(&mut self, text: &str) {
        self.out.push('"');
        let mut plain = 0;
        for (index, byte) in text.bytes().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.out.push_str(&text[plain..index]);
            plain = index + 1;
            self.escape(byte);
        }
        self.out.push_str(&text[plain..]);
        self.out.push('"');
    }

    fn escape(&mut self, byte: u8) {
        self.out.push('\\');
        let short = match byte {
            b'"' | b'\\' => char::from(byte),
            0x08 => 'b',
            0x09 => 't',
            0x0a => 'n',
            0x0c => 'f',
            0x0d => 'r',
            _ => {
                self.out.push_str(if byte < 0x10 { "u000" } else { "u001" });
                char::from_digit(u32::from(byte & 0xf), 16).expect("four bits are one hexadecimal digit")
            }
        };
        self.out.push(short);
    }

    pub(crate) fn begin_array(&mut self) -> Result<Array, Error> {
        self.descend()?;
        self.out.push('[');
        Ok(Array { empty: true })
    }

    /// To be called before each element.
    pub(crate) fn element(&mut self, array: &mut Array) {
        if !array.empty {
            self.out.push(',');
        }
        array.empty = false;
    }

    pub(crate) fn end_array(&mut self) {
        self.out.push(']');
        self.depth -= 1;
    }

    pub(crate) fn begin_object<'k>(&mut self) -> Result<Object<'k>, Error> {
        self.descend()?;
        self.out.push('{');
        Ok(Object { entries: Vec::new(), start: self.out.len(), ascending: true })
    }

    /// Writes a key; the caller writes the value next.
    pub(crate) fn key<'k>(&mut self, object: &mut Object<'k>, key: Cow<'k, str>) {
        if let Some(last) = object.entries.last() {
            self.out.push(',');
            object.ascending &= last.key < key;
        }
        let start = self.out.len();
        self.string(&key);
        self.out.push(':');
        object.entries.push(Entry { key, start });
    }

    pub(crate) fn end_object(&mut self, object: Object<'_>) -> Result<(), Error> {
        if !object.ascending {
            self.reorder(object)?;
        }
        self.out.push('}');
        self.depth -= 1;
        Ok(())
    }

    fn reorder(&mut self, object: Object<'_>) -> Result<(), Error> {
        // The last entry ends with the output; a comma separates every other one from its successor.
        let ends: Vec<usize> = object.entries[1..].iter().map(|next| next.start - 1).chain([self.out.len()]).collect();
        let mut entries: Vec<_> = object.entries.into_iter().zip(ends).collect();
        // `str` compares by UTF-8 bytes, which is the order of code points but not that of UTF-16 units.
        entries.sort_unstable_by(|(a, _), (b, _)| a.key.cmp(&b.key));
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0.key == pair[1].0.key) {
            return Err(Error::DuplicateKey { key: pair[0].0.key.to_string() });
        }
        self.scratch.clear();
        for (entry, end) in &entries {
            if !self.scratch.is_empty() {
                self.scratch.push(',');
            }
            self.scratch.push_str(&self.out[entry.start..*end]);
        }
        self.out.truncate(object.start);
        self.out.push_str(&self.scratch);
        Ok(())
    }

    fn descend(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth >= DEPTH_LIMIT { Err(Error::TooDeep) } else { Ok(()) }
    }
}
