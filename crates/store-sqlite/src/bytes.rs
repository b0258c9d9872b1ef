//! Numbers and texts as bytes: what packs of events and records of the redo file are made of.
//!
//! Numbers are varints, lengths stand before what they measure. Nothing is read before its length is checked, and what is
//! read stays where it lies: passing over a text costs nothing, and a length that is a lie allocates nothing.

use std::fmt;
use std::sync::Arc;

use servo_canon::Digest;
use servo_model::{EventId, Timestamp};

/// What is wrong with some bytes: the end of a sentence that begins with what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) &'static str);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

const CUT: Damage = Damage("ends too early");
const NO_TEXT: Damage = Damage("has a text that is no text");
const TIME_MAX: i64 = Timestamp::MAX.as_millis();

/// What can be written behind what is there.
pub(crate) trait Put {
    fn put_number(&mut self, number: u64);
    fn put_bytes(&mut self, bytes: &[u8]);

    fn put_text(&mut self, text: &str) {
        self.put_bytes(text.as_bytes());
    }

    /// Small numbers of either sign are short.
    fn put_signed(&mut self, number: i64) {
        self.put_number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    fn put_time(&mut self, time: Timestamp) {
        self.put_signed(time.as_millis());
    }

    fn put_flag(&mut self, flag: bool) {
        self.put_number(u64::from(flag));
    }

    /// A flag, and the value if there is one.
    fn put_maybe<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.put_flag(value.is_some());
        if let Some(value) = value {
            put(self, value);
        }
    }
}

impl Put for Vec<u8> {
    fn put_number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.push(number.to_le_bytes()[0]);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_number(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// Reads what was put, in the same order. Whatever does not fit is damage.
#[derive(Debug)]
pub(crate) struct Take<'b> {
    rest: &'b [u8],
    length: usize,
}

impl<'b> Take<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes, length: bytes.len() }
    }

    /// Goes on at a place where an earlier reader of the same bytes was.
    pub(crate) fn at(bytes: &'b [u8], place: usize) -> Self {
        Self { rest: bytes.get(place..).unwrap_or_default(), length: bytes.len() }
    }

    /// How many bytes are read.
    pub(crate) fn place(&self) -> usize {
        self.length - self.rest.len()
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Damage> {
        let (byte, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(*byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Damage> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Damage("has a number that is too large"))
    }

    pub(crate) fn number_u32(&mut self) -> Result<u32, Damage> {
        u32::try_from(self.number()?).map_err(|_| Damage("has a number that is too large"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Damage> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Damage> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damage("has something other than yes or no")),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'b [u8], Damage> {
        let length = usize::try_from(self.number()?).map_err(|_| CUT)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<String, Damage> {
        text(self.bytes()?).map(str::to_owned)
    }

    pub(crate) fn shared(&mut self) -> Result<Arc<str>, Damage> {
        text(self.bytes()?).map(Into::into)
    }

    /// A text that only some parser takes.
    pub(crate) fn parsed<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Damage> {
        parse(text(self.bytes()?)?).ok_or(Damage("has a value that this program does not know"))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, Damage> {
        Ok(Timestamp::from_millis(self.millis_from(0)?))
    }

    /// A time that was put as its distance from another one.
    pub(crate) fn millis_from(&mut self, from: i64) -> Result<i64, Damage> {
        let millis = from.checked_add(self.signed()?).filter(|millis| (0..=TIME_MAX).contains(millis));
        millis.ok_or(Damage("has a time that nobody can write"))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'b [u8; N], Damage> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(CUT)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn digest(&mut self) -> Result<Digest, Damage> {
        Ok(Digest::from_bytes(*self.array()?))
    }

    pub(crate) fn event_id(&mut self) -> Result<EventId, Damage> {
        Ok(EventId::from_bytes(*self.array()?))
    }

    pub(crate) fn maybe<T>(&mut self, take: impl FnOnce(&mut Self) -> Result<T, Damage>) -> Result<Option<T>, Damage> {
        if self.flag()? { take(self).map(Some) } else { Ok(None) }
    }
}

/// Bytes that are to be a text.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Damage> {
    str::from_utf8(bytes).map_err(|_| NO_TEXT)
}

#[cfg(test)]
mod tests;
