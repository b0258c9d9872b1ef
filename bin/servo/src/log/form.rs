//! How a line of the log looks: its time in front, and notes in the log's own form.

use servo_runtime::{Clock as _, SystemClock};

use super::fold::Told;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text { coloured: bool },
    Json,
}

impl Form {
    /// The line as it is written now. It came without a time, so that equal lines are equal.
    pub(super) fn stamped(self, line: &[u8]) -> Vec<u8> {
        let now = SystemClock.now();
        let (head, line) = match (self, line) {
            (Form::Text { coloured: false }, line) => (format!("{now} "), line),
            (Form::Text { coloured: true }, line) => (format!("\x1b[2m{now}\x1b[0m "), line),
            (Form::Json, [b'{', rest @ ..]) => (format!("{{\"timestamp\":\"{now}\","), rest),
            (Form::Json, line) => (String::new(), line),
        };
        [head.as_bytes(), line].concat()
    }

    /// A line of our own.
    pub(super) fn warning(self, message: &str) -> Vec<u8> {
        match self {
            Form::Text { .. } => format!(" WARN {message}\n").into_bytes(),
            Form::Json => {
                let fields = serde_json::json!({ "message": message });
                format!("{{\"level\":\"WARN\",\"fields\":{fields},\"target\":\"servo::log\"}}\n").into_bytes()
            }
        }
    }

    /// Lines that were not written.
    pub(super) fn told(self, told: &Told) -> Vec<u8> {
        let Told { line, more, are_same } = told;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let tail = match (self, are_same) {
            (Form::Text { .. }, true) => format!(" ({more} more times within a minute)\n"),
            (Form::Text { .. }, false) => format!(" ({more} more lines like this within a minute)\n"),
            (Form::Json, true) => format!(",\"repeated\":{more}}}\n"),
            (Form::Json, false) => format!(",\"more_like_this\":{more}}}\n"),
        };
        let line = if self == Form::Json { line.strip_suffix(b"}").unwrap_or(line) } else { line };
        [line, tail.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json() {
        let told = Told { line: (*b"{\"level\":\"WARN\"}\n").into(), more: 3, are_same: true };
        for line in [Form::Json.told(&told), Form::Json.warning("2 \"lines\"")] {
            let read: serde_json::Value = serde_json::from_slice(&Form::Json.stamped(&line)).unwrap();
            assert_eq!(read["level"], "WARN");
            assert!(read["timestamp"].as_str().unwrap().ends_with('Z'), "{read}");
        }
    }

    #[test]
    fn text_has_its_time_first() {
        let form = Form::Text { coloured: false };
        let line = String::from_utf8(form.stamped(b" WARN the disk is full\n")).unwrap();
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(servo_model::Timestamp::parse(time).is_ok(), "{line}");
        assert_eq!(rest, " WARN the disk is full\n");
    }
}
