//! Lines that say the same again: written once a minute, with how often they came meanwhile. What fails for everybody fails many
//! times a second, and a log of it would fill the disk that is full, or the pipe that nobody reads fast enough.
//!
//! Two rules, for lines of level info and above: the same line to the letter, and, of warnings and errors, more than some from
//! one place of the program that differ only in what they are about. Reads no clock.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use tracing::Level;
use tracing::callsite::Identifier;

const WINDOW: Duration = Duration::from_secs(60);
/// Different lines that are remembered; more are written as they come.
const SAME_MAX: usize = 1_024;
/// Warnings and errors of one place in a window.
const PER_SITE_MAX: u32 = 100;

#[derive(Default)]
pub(super) struct Folds {
    same: HashMap<u64, Held>,
    sites: HashMap<Identifier, Held>,
    /// Lines that were not written and not yet told of.
    untold: u64,
}

struct Held {
    since: Duration,
    written: u32,
    more: u64,
    line: Box<[u8]>,
}

/// Lines that were not written, as the last of them and how many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) line: Box<[u8]>,
    pub(super) more: u64,
    /// Whether they were this line to the letter.
    pub(super) are_same: bool,
}

impl Folds {
    /// Whether a line is to be written now; `told` gets what is to be written before it.
    pub(super) fn passes(
        &mut self,
        now: Duration,
        site: &Identifier,
        level: Level,
        line: &[u8],
        told: &mut Vec<Told>,
    ) -> bool {
        if level > Level::INFO {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        let hash = hasher.finish();
        if self.same.len() >= SAME_MAX && !self.same.contains_key(&hash) {
            self.end_windows(now, told);
        }
        if let Some(held) = self.same.get_mut(&hash).filter(|held| *held.line == *line) {
            if now.saturating_sub(held.since) < WINDOW {
                held.more += 1;
                self.untold += 1;
                return false;
            }
            let held = self.same.remove(&hash);
            self.untold -= held.map_or(0, |held| tell(held, true, told));
        }
        if level <= Level::WARN {
            let held = self.sites.entry(site.clone()).or_insert_with(|| Held { written: 0, ..Held::new(now, line) });
            if now.saturating_sub(held.since) >= WINDOW {
                let ended = std::mem::replace(held, Held::new(now, line));
                self.untold -= tell(ended, false, told);
            } else if held.written >= PER_SITE_MAX {
                held.more += 1;
                held.line = line.into();
                self.untold += 1;
                return false;
            } else {
                held.written += 1;
            }
        }
        if self.same.len() < SAME_MAX {
            self.same.insert(hash, Held::new(now, line));
        }
        true
    }

    /// Whether there is something to be told at the end of a window.
    pub(super) fn has_untold(&self) -> bool {
        self.untold > 0
    }

    /// What is to be told of windows that have ended.
    pub(super) fn end_windows(&mut self, now: Duration, told: &mut Vec<Told>) {
        let has_ended = |held: &Held| now.saturating_sub(held.since) >= WINDOW;
        for (_, held) in self.same.extract_if(|_, held| has_ended(held)) {
            self.untold -= tell(held, true, told);
        }
        for (_, held) in self.sites.extract_if(|_, held| has_ended(held)) {
            self.untold -= tell(held, false, told);
        }
    }

    /// The same of all windows.
    pub(super) fn end(&mut self, told: &mut Vec<Told>) {
        self.end_windows(Duration::MAX, told);
    }
}

impl Held {
    fn new(now: Duration, line: &[u8]) -> Self {
        Self { since: now, written: 1, more: 0, line: line.into() }
    }
}

fn tell(held: Held, are_same: bool, told: &mut Vec<Told>) -> u64 {
    let Held { more, line, .. } = held;
    if more > 0 {
        told.push(Told { line, more, are_same });
    }
    more
}

#[cfg(test)]
mod tests {
    use tracing::callsite::DefaultCallsite;
    use tracing::metadata::Kind;

    use super::*;

    static SITE: DefaultCallsite = DefaultCallsite::new(&META);
    static META: tracing::Metadata<'static> = tracing::metadata! {
        name: "site",
        target: "test",
        level: Level::WARN,
        fields: &[],
        callsite: &SITE,
        kind: Kind::EVENT,
    };

    struct Log {
        folds: Folds,
        told: Vec<Told>,
    }

    impl Log {
        fn new() -> Self {
            Self { folds: Folds::default(), told: Vec::new() }
        }

        fn line(&mut self, second: u64, level: Level, line: &str) -> bool {
            let site = &META.callsite();
            self.folds.passes(Duration::from_secs(second), site, level, line.as_bytes(), &mut self.told)
        }

        fn told(&mut self) -> Vec<(String, u64, bool)> {
            let text = |told: Told| (String::from_utf8_lossy(&told.line).into_owned(), told.more, told.are_same);
            self.told.drain(..).map(text).collect()
        }
    }

    #[test]
    fn the_same_line_is_written_once_a_minute_with_its_count() {
        let mut log = Log::new();
        let written = (0..120).filter(|second| log.line(*second, Level::INFO, "the same")).count();
        assert_eq!(written, 2);
        assert_eq!(log.told(), [("the same".to_owned(), 59, true)]);
        assert!(log.line(100, Level::INFO, "another"));
        assert!(log.folds.has_untold());
        log.folds.end_windows(Duration::from_secs(119), &mut log.told);
        assert_eq!(log.told(), []);
        log.folds.end_windows(Duration::from_secs(120), &mut log.told);
        assert_eq!(log.told(), [("the same".to_owned(), 59, true)]);
        assert!(!log.folds.has_untold());
    }

    #[test]
    fn warnings_of_one_place_are_counted_from_the_hundred_and_first_on() {
        let mut log = Log::new();
        let written = (0..1_000).filter(|number| log.line(1, Level::WARN, &format!("run {number}"))).count();
        assert_eq!(written, 100);
        log.folds.end(&mut log.told);
        assert_eq!(log.told(), [("run 999".to_owned(), 900, false)]);
        assert!(log.line(61, Level::WARN, "run 1000"));
    }

    /// What people ask for to follow step by step is left as it is.
    #[test]
    fn lines_below_info_and_different_lines_of_info_pass() {
        let mut log = Log::new();
        assert!((0..500).all(|_| log.line(1, Level::DEBUG, "again")));
        assert!((0..5_000).all(|number| log.line(1, Level::INFO, &format!("run {number}"))));
        log.folds.end(&mut log.told);
        assert_eq!(log.told(), []);
        assert!(log.folds.same.len() <= SAME_MAX);
    }
}
