//! Absolute time in milliseconds. Durations are `std::time::Duration`; the two never mix.

use std::fmt;
use std::time::Duration;

use jiff::civil::DateTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Invalid;

/// Milliseconds since 1970-01-01T00:00:00Z. Printed as RFC 3339 in UTC with three decimals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// 9999-12-31T23:59:59.999Z, the last instant RFC 3339 can print.
const MILLIS_MAX: i64 = 253_402_300_799_999;

impl Timestamp {
    pub const EPOCH: Self = Self(0);
    pub const MAX: Self = Self(MILLIS_MAX);

    /// Clamps to what RFC 3339 can print, so that no stored number can make a record unreadable.
    pub const fn from_millis(millis: i64) -> Self {
        if millis < 0 {
            Self(0)
        } else if millis > MILLIS_MAX {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Saturates: a deadline past the end of time is the end of time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// Time since `earlier`; zero when the clock went backwards, never negative.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads RFC 3339: `2026-02-11T10:30:00Z`, with up to nine decimals, or with an offset such as `+01:00`. Looser forms
    /// of ISO 8601 are refused, so that every reader of a document agrees on whether it holds a time.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let instant =
            read(text).ok_or_else(|| Invalid::new("", "not an RFC 3339 time such as 2026-02-11T10:30:00.000Z"))?;
        // An offset could push the first and the last day over the edge. A rule about days is one that the published
        // schemas can state as well.
        let edge = text.starts_with("1970-01-01") || text.starts_with("9999-12-31");
        if text < "1970" || (edge && !text.ends_with('Z')) {
            return Err(Invalid::new("", "time is outside 1970 to 9999"));
        }
        Ok(Self::from_millis(instant))
    }
}

const MIDNIGHT_1970: DateTime = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);

/// Milliseconds since 1970, from a text that has the shape of RFC 3339 and names a day that exists.
fn read(text: &str) -> Option<i64> {
    let (head, tail) = text.as_bytes().split_at_checked(19)?;
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|&(at, byte)| head[at] != byte) {
        return None;
    }
    let year = i16::try_from(digits(&head[..4])?).ok()?;
    let pair = |bytes: &[u8], at: usize| i8::try_from(digits(&bytes[at..at + 2])?).ok();
    let (month, day) = (pair(head, 5)?, pair(head, 8)?);
    let (hour, minute, second) = (pair(head, 11)?, pair(head, 14)?, pair(head, 17)?);
    let (nanos, zone) = fraction(tail)?;
    let local = DateTime::new(year, month, day, hour, minute, second, nanos).ok()?;
    let offset = match *zone {
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (i64::from(pair(zone, 1)?), i64::from(pair(zone, 4)?));
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if sign == b'-' { -60_000 } else { 60_000 }
        }
        _ => return None,
    };
    let since = i64::try_from(local.duration_since(MIDNIGHT_1970).as_millis()).ok()?;
    Some(since - offset)
}

/// Nanoseconds of `.123`, which may be absent, and what follows.
fn fraction(tail: &[u8]) -> Option<(i32, &[u8])> {
    let Some(decimals) = tail.strip_prefix(b".") else { return Some((0, tail)) };
    let length = decimals.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (decimals, zone) = decimals.split_at(length);
    if decimals.is_empty() || decimals.len() > 9 {
        return None;
    }
    let missing = 9 - u32::try_from(decimals.len()).ok()?;
    Some((i32::try_from(digits(decimals)? * 10_u32.pow(missing)).ok()?, zone))
}

fn digits(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0_u32, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = MIDNIGHT_1970.saturating_add(jiff::SignedDuration::from_millis(self.0));
        write!(f, "{local:.3}Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::text::parse(deserializer, "an RFC 3339 time", Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_three_decimals() {
        let t = Timestamp::parse("2026-02-11T10:30:00Z").unwrap();
        assert_eq!(t.to_string(), "2026-02-11T10:30:00.000Z");
        assert_eq!(Timestamp::parse("2026-02-11T11:30:00.5+01:00").unwrap().to_string(), "2026-02-11T10:30:00.500Z");
        assert!(Timestamp::parse("yesterday").is_err());
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::EPOCH.to_string(), "1970-01-01T00:00:00.000Z");
    }

    /// What is printed is read back, also where `jiff::Timestamp` ends (26 hours earlier).
    #[test]
    fn every_time_round_trips() {
        let step = MILLIS_MAX / 10_007;
        for millis in (0..=MILLIS_MAX).step_by(usize::try_from(step).unwrap()).chain([MILLIS_MAX - 1, MILLIS_MAX]) {
            let time = Timestamp::from_millis(millis);
            assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
            if let Ok(instant) = jiff::Timestamp::from_millisecond(millis) {
                assert_eq!(time.to_string(), format!("{instant:.3}"));
            }
        }
    }

    #[test]
    fn only_rfc_3339_is_a_time() {
        for text in [
            "2026-02-11T10:30:00.1Z",
            "2026-02-11T10:30:00.123456789Z",
            "2026-02-11T10:30:00-00:00",
            "2026-02-11T10:30:00+23:59",
            "2024-02-29T00:00:00Z",
            "9999-12-30T23:59:59-23:59",
            "1970-01-02T00:00:00+23:59",
        ] {
            assert!(Timestamp::parse(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "Z",
            "2026-02-11",
            "2026-02-11T10:30Z",
            "2026-02-11 10:30:00Z",
            "2026-02-11t10:30:00Z",
            "20260211T103000Z",
            "2026-02-11T10:30:00",
            "2026-02-11T10:30:00z",
            "2026-02-11T10:30:00+01",
            "2026-02-11T10:30:00+0100",
            "2026-02-11T10:30:00+24:00",
            "2026-02-11T10:30:00.Z",
            "2026-02-11T10:30:00.1234567890Z",
            "2026-02-11T10:30:00,5Z",
            "2026-02-30T10:30:00Z",
            "2025-02-29T10:30:00Z",
            "2026-02-11T24:00:00Z",
            "2026-02-11T10:30:60Z",
            "+026-02-11T10:30:00Z",
            "2026-02-11T10:30:00Z[UTC]",
            "2026-02-11T10:30:00ZZ",
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:59:59-01:00",
            "1970-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "äääääääääääZ",
            "2026-02-11T10:30:00ä",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_never_go_negative() {
        let (a, b) = (Timestamp::from_millis(5), Timestamp::from_millis(9));
        assert_eq!(a.since(b), Duration::ZERO);
        assert_eq!(b.since(a), Duration::from_millis(4));
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
    }
}
