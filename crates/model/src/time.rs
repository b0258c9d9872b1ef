//! Absolute time in milliseconds. Durations are `std::time::Duration`; the two never mix.

use std::fmt;
use std::time::Duration;

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

    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let instant: jiff::Timestamp =
            text.parse().map_err(|_| Invalid::new("", "not an RFC 3339 time such as 2026-02-11T10:30:00.000Z"))?;
        let millis = instant.as_millisecond();
        if !(0..=MILLIS_MAX).contains(&millis) {
            return Err(Invalid::new("", "time is outside 1970 to 9999"));
        }
        Ok(Self(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => f.write_str("9999-12-31T23:59:59.999Z"),
        }
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
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
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
    }

    #[test]
    fn durations_never_go_negative() {
        let (a, b) = (Timestamp::from_millis(5), Timestamp::from_millis(9));
        assert_eq!(a.since(b), Duration::ZERO);
        assert_eq!(b.since(a), Duration::from_millis(4));
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
    }
}
