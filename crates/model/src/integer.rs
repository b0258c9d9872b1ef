//! Reading integers from JSON. JSON Schema takes `1.0` and `1e0` for the integer 1, and some writers print them so, so a
//! reader that refused them would disagree with the published schemas. Nothing is rounded: `1.5` is refused.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Unexpected, Visitor};

use crate::limits::INTEGER_MAX;

/// An integer of at most `MAX`. The check runs while the number is being read, so that an error knows its position.
struct Integer<const MAX: u64>(u64);

impl<'de, const MAX: u64> Deserialize<'de> for Integer<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Read::<MAX>).map(Integer)
    }
}

struct Read<const MAX: u64>;

impl<const MAX: u64> Visitor<'_> for Read<MAX> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer from 0 to {MAX}")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        if number > MAX { Err(E::invalid_value(Unexpected::Unsigned(number), &self)) } else { Ok(number) }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<u64, E> {
        // Below 2^53 a float holds every integer, so nothing is lost on the way.
        if number.fract() == 0.0 && (0.0..=INTEGER_MAX as f64).contains(&number) {
            self.visit_u64(number as u64)
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }
}

const U32_MAX: u64 = u32::MAX as u64;

fn narrow(Integer(number): Integer<U32_MAX>) -> u32 {
    u32::try_from(number).expect("checked while it was read")
}

fn wide(Integer(number): Integer<INTEGER_MAX>) -> u64 {
    number
}

pub(crate) fn u64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Integer::deserialize(deserializer).map(wide)
}

pub(crate) fn some_u64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(wide))
}

pub(crate) fn u32<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Integer::deserialize(deserializer).map(narrow)
}

pub(crate) fn some_u32<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(narrow))
}
