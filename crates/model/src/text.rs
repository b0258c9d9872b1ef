//! Reading checked text with serde. The check runs while the string is being read, so that an error knows the position of
//! that string and not of the object around it (`locate` turns positions into names).

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

use crate::Invalid;

pub(crate) fn parse<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    kind: &'static str,
    parse: fn(&str) -> Result<T, Invalid>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Text { kind, parse })
}

struct Text<T> {
    kind: &'static str,
    parse: fn(&str) -> Result<T, Invalid>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}
