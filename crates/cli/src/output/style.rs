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

/// How long ago or how long from now, rounded: `59s`, `3m`, `2h 5m`, `1d 23h`, `90d`.
fn rough(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_570 => format!("{}m", (seconds + 30) / 60),
        3_570..3_600 => "1h".to_owned(),
        seconds if seconds < 10 * DAY => two_units(duration),
        seconds => format!("{}d", (seconds + DAY / 2) / DAY),
    }
}

/// How long something took: `12ms`, `1.2s`, `3m 4s`, `2h 5m`, `4d 3h`.
pub(crate) fn took(duration: Duration) -> String {
    let millis = duration.as_millis();
    // Rounded, as all that follows: what is a moment short of a minute is a minute.
    let tenths = (millis + 50) / 100;
    match millis {
        0..1_000 => format!("{millis}ms"),
        _ if tenths < 600 => format!("{}.{}s", tenths / 10, tenths % 10),
        _ => two_units(duration),
    }
}

const DAY: u64 = 86_400;

/// The two largest units, rounded to the smaller one. A second unit of zero is left out.
fn two_units(duration: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(DAY, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let seconds = duration.as_secs() + u64::from(duration.subsec_millis() >= 500);
    for (at, pair) in UNITS.windows(2).enumerate() {
        let [(large, name), (small, next)] = [pair[0], pair[1]];
        if seconds < large {
            continue;
        }
        let rounded = (seconds + small / 2) / small * small;
        // Rounding up to the next larger unit has left nothing of the smaller one.
        if at > 0 && rounded >= UNITS[at - 1].0 {
            return format!("1{}", UNITS[at - 1].1);
        }
        return match rounded % large / small {
            0 => format!("{}{name}", rounded / large),
            rest => format!("{}{name} {rest}{next}", rounded / large),
        };
    }
    format!("{seconds}s")
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
            ("2026-02-10T10:31:00Z", "23h 59m ago"),
            ("2026-02-10T10:30:10Z", "1d ago"),
            ("2026-02-01T10:30:00Z", "10d ago"),
            ("2026-02-11T10:32:30Z", "in 3m"),
            ("2026-02-11T11:29:40Z", "in 1h"),
            ("2026-02-13T10:29:59Z", "in 2d"),
            ("2026-02-13T09:20:00Z", "in 1d 23h"),
            ("2026-05-12T10:29:59.500Z", "in 90d"),
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
        let cases = [
            (12, "12ms"),
            (1_250, "1.3s"),
            (59_900, "59.9s"),
            (59_999, "1m"),
            (3_599_700, "1h"),
            (184_000, "3m 4s"),
            (7_500_000, "2h 5m"),
        ];
        for (millis, expected) in cases {
            assert_eq!(took(Duration::from_millis(millis)), expected);
        }
        assert_eq!(took(Duration::from_secs(4 * 86_400 + 3 * 3_600)), "4d 3h");
        assert_eq!(took(Duration::from_secs(2 * 86_400 - 1)), "2d");
        assert_eq!(took(Duration::from_secs(86_400 - 1)), "1d");
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
