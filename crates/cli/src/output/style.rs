//! Colour, time and length as people read them. Colour only ever repeats what the words say.

use std::time::Duration;

use servo_model::Timestamp;

use crate::args::TimeFormat;

/// Everything that the look of a view depends on, so that views are pure.
#[derive(Debug, Clone)]
pub struct Style {
    pub(crate) color: bool,
    /// `None`: each view's own choice.
    pub(crate) time: Option<TimeFormat>,
    pub(crate) now: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    Red,
    Green,
    Yellow,
    Blue,
    Dim,
    Bold,
}

/// Puts colour on text, or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    pub(crate) fn new(color: bool) -> Self {
        Self(color)
    }

    pub(crate) fn apply(self, color: Color, text: &str) -> String {
        let code = match color {
            _ if !self.0 => return text.to_owned(),
            Color::Red => "31",
            Color::Green => "32",
            Color::Yellow => "33",
            Color::Blue => "34",
            Color::Dim => "2",
            Color::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

impl Style {
    #[cfg(test)]
    pub(crate) fn plain(now: &str) -> Self {
        Self { color: false, time: None, now: Timestamp::parse(now).unwrap() }
    }

    pub(crate) fn paint(&self) -> Paint {
        Paint::new(self.color)
    }

    /// A time in a table: how long ago, unless asked otherwise.
    pub(crate) fn time(&self, at: Timestamp) -> String {
        self.time_as(at, self.time.unwrap_or(TimeFormat::Relative))
    }

    /// A time in a log of events: exact, unless asked otherwise.
    pub(crate) fn log_time(&self, at: Timestamp) -> String {
        self.time_as(at, self.time.unwrap_or(TimeFormat::Iso))
    }

    fn time_as(&self, at: Timestamp, format: TimeFormat) -> String {
        match format {
            TimeFormat::Iso => at.to_string(),
            TimeFormat::Raw => at.as_millis().to_string(),
            // Clocks of two machines differ a little; what just happened is not in the future.
            TimeFormat::Relative if at.since(self.now).as_secs() > 0 => format!("in {}", rough(at.since(self.now))),
            TimeFormat::Relative => format!("{} ago", rough(self.now.since(at))),
        }
    }
}

/// The colour that goes with a status word.
pub(crate) fn status_color(status: &str) -> Color {
    match status {
        "COMPLETED" | "SUCCESS" | "ok" | "succeeded" | "active" => Color::Green,
        "FAILED" | "P1" | "fail" | "failed" | "dead_lettered" => Color::Red,
        "RUNNING" | "running" => Color::Blue,
        "PAUSED" | "APPROVED" | "P2" | "warn" | "suspended" | "compensating" | "deprecated" => Color::Yellow,
        _ => Color::Dim,
    }
}

/// One unit, rounded down: `59s`, `3m`, `2h`, `5d`.
fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long something took: `12ms`, `1.2s`, `3m 4s`, `2h 5m`, `4d 3h`.
pub(crate) fn took(duration: Duration) -> String {
    let (millis, seconds) = (duration.as_millis(), duration.as_secs());
    match seconds {
        _ if millis < 1_000 => format!("{millis}ms"),
        0..60 => format!("{}.{}s", seconds, duration.subsec_millis() / 100),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// `512 B`, `1.5 KiB`, `20.0 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut unit = 0;
    let mut scale = 1_024_u64;
    while unit + 1 < UNITS.len() && bytes / scale >= 1_024 {
        scale *= 1_024;
        unit += 1;
    }
    format!("{}.{} {}", bytes / scale, bytes % scale * 10 / scale, UNITS[unit])
}

/// `1 run`, `2 runs`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Text from elsewhere on one line and without control characters, which could drive the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_forms() {
        let mut style = Style::plain("2026-02-11T10:30:00Z");
        let at = |text| Timestamp::parse(text).unwrap();
        for (time, expected) in [
            ("2026-02-11T10:30:00Z", "0s ago"),
            ("2026-02-11T10:30:00.999Z", "0s ago"),
            ("2026-02-11T10:29:01Z", "59s ago"),
            ("2026-02-11T09:31:00Z", "59m ago"),
            ("2026-02-10T10:31:00Z", "23h ago"),
            ("2026-02-01T10:30:00Z", "10d ago"),
            ("2026-02-11T10:32:30Z", "in 2m"),
        ] {
            assert_eq!(style.time(at(time)), expected);
        }
        assert_eq!(style.log_time(at("2026-02-11T10:30:00Z")), "2026-02-11T10:30:00.000Z");
        style.time = Some(TimeFormat::Raw);
        assert_eq!(style.time(at("1970-01-01T00:00:01Z")), "1000");
        assert_eq!(style.log_time(at("1970-01-01T00:00:01Z")), "1000");
    }

    #[test]
    fn lengths_and_sizes_are_short() {
        let cases = [(12, "12ms"), (1_250, "1.2s"), (59_999, "59.9s"), (184_000, "3m 4s"), (7_500_000, "2h 5m")];
        for (millis, expected) in cases {
            assert_eq!(took(Duration::from_millis(millis)), expected);
        }
        assert_eq!(took(Duration::from_secs(4 * 86_400 + 3 * 3_600)), "4d 3h");
        let cases =
            [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (20 << 20, "20.0 MiB"), (u64::MAX, "16777215.9 TiB")];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn text_from_elsewhere_cannot_drive_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\nc\u{9b}d"), "a [31mb c d");
    }
}
