//! SHA-256 digests and their one text form. A digest here names content; it is not a secret, so comparison is ordinary
//! and not constant-time, and there is no keyed variant.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use crate::Error;

/// A SHA-256 digest. Its text form, in `Display`, `Debug` and serde alike, is 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// SHA-256 of the value's canonical form.
pub fn fingerprint<T: Serialize + ?Sized>(value: &T) -> Result<Digest, Error> {
    Ok(Digest::of(crate::to_canonical(value)?.as_bytes()))
}

impl Digest {
    /// Hashes `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Hashes `parts` joined by `separator`, without building the joined string.
    ///
    /// The separator is not escaped: a part that contains it can collide with other parts, so callers restrict the
    /// alphabet of their parts or accept that.
    pub fn of_parts(parts: &[&str], separator: char) -> Digest {
        let mut utf8 = [0; 4];
        let separator = separator.encode_utf8(&mut utf8).as_bytes();
        let mut hasher = Sha256::new();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                hasher.update(separator);
            }
            hasher.update(part.as_bytes());
        }
        Digest(hasher.finalize().into())
    }

    /// The raw digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Takes a digest that was computed or stored elsewhere.
    pub fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// Reads exactly 64 lower-case hexadecimal digits. Upper case is refused, so that a digest has one spelling and
    /// stored texts can be compared as texts.
    pub fn parse(text: &str) -> Result<Digest, Error> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(Error::NotADigest);
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = nibble(*high)? << 4 | nibble(*low)?;
        }
        Ok(Digest(bytes))
    }

    /// Calls `f` with the text form, which lives on the stack.
    fn with_hex<R>(&self, f: impl FnOnce(&str) -> R) -> R {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]];
        }
        f(str::from_utf8(&hex).expect("hexadecimal digits are ascii"))
    }
}

fn nibble(digit: u8) -> Result<u8, Error> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(Error::NotADigest),
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_hex(|hex| f.pad(hex))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_hex(|hex| f.write_str(hex))
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Digest, Error> {
        Digest::parse(text)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_hex(|hex| serializer.serialize_str(hex))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Digest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 lower-case hexadecimal digits")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Digest, E> {
                Digest::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}
