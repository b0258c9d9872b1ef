//! Time that the service keeps: whole seconds, up to years.

use crate::DurableError;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// What the service takes: a leap year.
pub(crate) const SECONDS_MAX: u64 = 31_622_400;

/// A length of time in whole seconds. A month has 30 days and a year 365.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    seconds: u64,
}

impl Duration {
    pub const fn from_seconds(seconds: u64) -> Self {
        Self { seconds }
    }

    pub const fn from_minutes(minutes: u64) -> Self {
        Self { seconds: minutes.saturating_mul(MINUTE) }
    }

    pub const fn from_hours(hours: u64) -> Self {
        Self { seconds: hours.saturating_mul(HOUR) }
    }

    pub const fn from_days(days: u64) -> Self {
        Self { seconds: days.saturating_mul(DAY) }
    }

    pub const fn from_weeks(weeks: u64) -> Self {
        Self { seconds: weeks.saturating_mul(7 * DAY) }
    }

    pub const fn from_months(months: u64) -> Self {
        Self { seconds: months.saturating_mul(30 * DAY) }
    }

    pub const fn from_years(years: u64) -> Self {
        Self { seconds: years.saturating_mul(365 * DAY) }
    }

    pub const fn to_seconds(self) -> u64 {
        self.seconds
    }

    /// The seconds, if the service can wait for so long.
    pub(crate) fn checked_wait(self) -> Result<u64, DurableError> {
        match self.seconds {
            0 => Err(DurableError::validation("a wait takes at least 1 second; leave out a wait of 0 seconds")),
            seconds if seconds > SECONDS_MAX => Err(DurableError::validation(format!(
                "a wait of {seconds} seconds is longer than {SECONDS_MAX} (a year); wait several times"
            ))),
            seconds => Ok(seconds),
        }
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        Self::from_secs(duration.seconds)
    }
}

/// Rounds up: nothing is waited for less than asked.
impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Self { seconds: duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0)) }
    }
}
