//! Lines on stderr for the person who watches, written by a thread of their own: a terminal that is slow, or a pipe that nobody
//! reads, holds nothing else up. What does not fit is counted and said.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};

use servo_cli::args::ColorChoice;

/// Lines that wait to be written.
const WAITING_MAX: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Blue,
    Dim,
}

/// A handle: cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    lines: SyncSender<String>,
    left_out: Arc<AtomicU64>,
    coloured: bool,
}

/// Lines wait until this is dropped, so that whatever is said first stands first.
#[derive(Debug)]
pub(crate) struct Held(#[expect(dead_code, reason = "its end is the message")] SyncSender<()>);

impl Printer {
    pub(crate) fn on_stderr(choice: ColorChoice) -> (Self, Held) {
        let coloured = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => crate::log::colour(),
        };
        let (lines, waiting) = mpsc::sync_channel(WAITING_MAX);
        let (held, released) = mpsc::sync_channel(0);
        let left_out = Arc::new(AtomicU64::new(0));
        let printer = Self { lines, left_out: left_out.clone(), coloured };
        let note = printer.clone();
        std::thread::spawn(move || {
            // Nothing is ever sent: this ends when the holder lets go.
            let _ = released.recv();
            write_all(&waiting, &left_out, |count| note.left_out_line(count));
        });
        (printer, Held(held))
    }

    /// Hands a line over without waiting.
    pub(crate) fn line(&self, text: String) {
        if self.lines.try_send(text).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn paint(&self, colour: Colour, text: &str) -> String {
        let code = match colour {
            _ if !self.coloured || text.is_empty() => return text.to_owned(),
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Blue => "34",
            Colour::Dim => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// The line that stands for lines that are not there.
    pub(crate) fn left_out_line(&self, count: u64) -> String {
        let noun = if count == 1 { "line" } else { "lines" };
        self.paint(Colour::Yellow, &format!("… {count} {noun} left out; the console has them all"))
    }

    #[cfg(test)]
    pub(super) fn plain() -> (Self, Receiver<String>) {
        let (lines, waiting) = mpsc::sync_channel(WAITING_MAX);
        (Self { lines, left_out: Arc::default(), coloured: false }, waiting)
    }
}

fn write_all(lines: &Receiver<String>, left_out: &AtomicU64, note: impl Fn(u64) -> String) {
    while let Ok(line) = lines.recv() {
        let missed = left_out.swap(0, Ordering::Relaxed);
        let mut stderr = std::io::stderr().lock();
        if missed > 0 {
            let _ = writeln!(stderr, "{}", note(missed));
        }
        // A closed stderr is no reason not to serve.
        let _ = writeln!(stderr, "{line}");
    }
}

/// Text from elsewhere on one line and without control characters, which could drive the terminal.
pub(super) fn clean(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_CHARS_MAX + 1).collect();
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Longest text from elsewhere in one line.
const TEXT_CHARS_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_nobody_waits() {
        let (printer, waiting) = Printer::plain();
        for number in 0..WAITING_MAX + 7 {
            printer.line(number.to_string());
        }
        assert_eq!(printer.left_out.load(Ordering::Relaxed), 7);
        assert_eq!(waiting.try_iter().count(), WAITING_MAX);
        assert!(printer.left_out_line(7).contains("7 lines left out"));
    }

    #[test]
    fn text_from_elsewhere_cannot_drive_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\nc"), "a [31mb c");
        assert_eq!(clean(&"x".repeat(500)).chars().count(), TEXT_CHARS_MAX + 1);
    }
}
