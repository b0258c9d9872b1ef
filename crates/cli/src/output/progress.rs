//! How far work on many things has come, on stderr: a bar on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal, Write};

/// Fewer than these are done before anybody could read a line about it.
const LINES_FROM: u64 = 20;
const WIDTH: u64 = 24;

#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    /// `None`: nobody knows how many there will be.
    total: Option<u64>,
    done: u64,
    look: Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Nothing,
    Bar,
    Lines,
}

impl Progress {
    /// `what` is being done to each, such as `cancel`.
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Self {
        let is_terminal = io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { what, total, done: 0, look: look(total, is_terminal) }
    }

    pub(crate) fn advance(&mut self, by: u64) {
        let before = self.done;
        self.done += by;
        let text = match self.look {
            _ if by == 0 => return,
            Look::Nothing => return,
            Look::Bar => format!("\r\x1b[K{}", self.bar()),
            Look::Lines if is_worth_a_line(before, self.done, self.total) => format!("{}\n", self.line()),
            Look::Lines => return,
        };
        write(&text);
    }

    /// Makes room for something else on stderr. The next advance draws the bar again.
    pub(crate) fn hide(&self) {
        if self.look == Look::Bar {
            write("\r\x1b[K");
        }
    }

    fn bar(&self) -> String {
        match self.total.filter(|total| *total > 0) {
            Some(total) => {
                let full = (self.done * WIDTH / total).min(WIDTH);
                let bar: String = (0..WIDTH).map(|at| if at < full { '#' } else { '.' }).collect();
                format!("{}  [{bar}]  {} of {total}", self.what, self.done)
            }
            None => self.line(),
        }
    }

    fn line(&self) -> String {
        match self.total {
            Some(total) => format!("{}: {} of {total}", self.what, self.done),
            None => format!("{}: {}", self.what, self.done),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.hide();
    }
}

fn look(total: Option<u64>, is_terminal: bool) -> Look {
    match total {
        Some(0 | 1) => Look::Nothing,
        _ if is_terminal => Look::Bar,
        Some(total) if total < LINES_FROM => Look::Nothing,
        _ => Look::Lines,
    }
}

/// At every tenth of a known total; of an unknown one, whenever something was done.
fn is_worth_a_line(before: u64, done: u64, total: Option<u64>) -> bool {
    total.is_none_or(|total| before * 10 / total != done * 10 / total)
}

fn write(text: &str) {
    // Nobody is there to be told when this fails.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_work_says_nothing_and_much_says_little() {
        assert_eq!(look(Some(1), true), Look::Nothing);
        assert_eq!(look(Some(2), true), Look::Bar);
        assert_eq!(look(Some(19), false), Look::Nothing);
        assert_eq!(look(Some(20), false), Look::Lines);
        assert_eq!(look(None, false), Look::Lines);
        let lines = (1..=400).filter(|done| is_worth_a_line(done - 1, *done, Some(400))).count();
        assert_eq!(lines, 10);
    }

    #[test]
    fn a_bar_fills_and_a_line_counts() {
        let mut progress = Progress { what: "cancel", total: Some(48), done: 12, look: Look::Nothing };
        assert_eq!(progress.bar(), "cancel  [######..................]  12 of 48");
        assert_eq!(progress.line(), "cancel: 12 of 48");
        progress.total = None;
        assert_eq!(progress.bar(), "cancel: 12");
    }
}
