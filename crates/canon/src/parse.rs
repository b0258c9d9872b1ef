//! Reads JSON text (RFC 8259, strictly) and writes its canonical form in one pass. It builds no tree and offers no
//! access to the data; whoever wants values uses an ordinary reader.

use std::borrow::Cow;

use crate::writer::Writer;
use crate::{Error, number};

/// The canonical form of a JSON text.
///
/// Refuses what is not exactly one JSON value, nesting that reaches [`DEPTH_LIMIT`](crate::DEPTH_LIMIT), a key that
/// occurs twice in an object, an unpaired surrogate and a number beyond the range of a double.
pub fn canonicalize(json: &str) -> Result<String, Error> {
    let mut writer = Writer::default();
    // Canonical text is at most about as long as its source: it loses white space and escapes.
    writer.out.reserve(json.len());
    write_text(&mut writer, json)?;
    Ok(writer.out)
}

/// Writes a whole JSON text as one value at the writer's current depth.
pub(crate) fn write_text(writer: &mut Writer, json: &str) -> Result<(), Error> {
    let mut parser = Parser { text: json, at: 0, writer };
    parser.value()?;
    parser.skip_space();
    if parser.at == json.len() { Ok(()) } else { Err(parser.error("unexpected text after the value")) }
}

struct Parser<'a, 'w> {
    text: &'a str,
    at: usize,
    writer: &'w mut Writer,
}

impl<'a> Parser<'a, '_> {
    fn value(&mut self) -> Result<(), Error> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => {
                let text = self.string()?;
                self.writer.string(&text);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => Err(self.error("expected a value")),
        }
    }

    fn object(&mut self) -> Result<(), Error> {
        self.at += 1;
        let mut object = self.writer.begin_object()?;
        self.skip_space();
        if !self.eat(b'}') {
            loop {
                self.skip_space();
                if self.peek() != Some(b'"') {
                    return Err(self.error("expected a key"));
                }
                let key = self.string()?;
                self.writer.key(&mut object, key);
                self.skip_space();
                if !self.eat(b':') {
                    return Err(self.error("expected a colon"));
                }
                self.value()?;
                self.skip_space();
                if self.eat(b'}') {
                    break;
                }
                if !self.eat(b',') {
                    return Err(self.error("expected a comma or the end of the object"));
                }
            }
        }
        self.writer.end_object(object)
    }

    fn array(&mut self) -> Result<(), Error> {
        self.at += 1;
        let mut array = self.writer.begin_array()?;
        self.skip_space();
        if !self.eat(b']') {
            loop {
                self.writer.element(&mut array);
                self.value()?;
                self.skip_space();
                if self.eat(b']') {
                    break;
                }
                if !self.eat(b',') {
                    return Err(self.error("expected a comma or the end of the array"));
                }
            }
        }
        self.writer.end_array();
        Ok(())
    }

    fn number(&mut self) -> Result<(), Error> {
        let start = self.at;
        self.eat(b'-');
        // A digit after a leading zero is not consumed, so it fails as text after the value.
        if !self.eat(b'0') {
            self.digits()?;
        }
        let mut integer = true;
        if self.eat(b'.') {
            integer = false;
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            integer = false;
            let _ = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        let token = &self.text[start..self.at];
        if integer {
            number::write_integer_token(&mut self.writer.out, token)
        } else {
            number::write_float_token(&mut self.writer.out, token)
        }
    }

    fn digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("expected a digit")) } else { Ok(()) }
    }

    fn literal(&mut self, word: &str) -> Result<(), Error> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        self.writer.out.push_str(word);
        Ok(())
    }

    /// Reads the string that begins here. It is borrowed unless it holds an escape.
    fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        self.at += 1;
        let mut decoded = Cow::Borrowed("");
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
                self.at += 1;
            }
            // Both ends are beside an ASCII character or the end, hence character boundaries. Adding to an empty
            // `Cow` borrows.
            decoded += &self.text[start..self.at];
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => {
                    let escaped = self.escape()?;
                    decoded.to_mut().push(escaped);
                }
                Some(_) => return Err(self.error("control character in a string")),
                None => return Err(self.error("unterminated string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        self.at += 1;
        let escaped = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error("unknown escape")),
        };
        self.at += 1;
        Ok(escaped)
    }

    fn unicode_escape(&mut self) -> Result<char, Error> {
        let start = self.at;
        let lone = Error::Syntax { offset: start, reason: "unpaired surrogate" };
        let first = self.code_unit()?;
        let code = match first {
            0xd800..0xdc00 => {
                if !self.eat(b'\\') || self.peek() != Some(b'u') {
                    return Err(lone);
                }
                match self.code_unit()? {
                    second @ 0xdc00..0xe000 => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => return Err(lone),
                }
            }
            other => other,
        };
        // What is left to fail is a low surrogate without a high one before it.
        char::from_u32(code).ok_or(lone)
    }

    /// The four digits after `u`, where the parser stands.
    fn code_unit(&mut self) -> Result<u32, Error> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit << 4 | digit.ok_or_else(|| self.error("expected four hexadecimal digits"))?;
            self.at += 1;
        }
        Ok(unit)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn error(&self, reason: &'static str) -> Error {
        Error::Syntax { offset: self.at, reason }
    }
}
