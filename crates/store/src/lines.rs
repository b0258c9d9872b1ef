//! Log lines that user code writes while a run executes. They are kept for people who look at a run, a bounded number of
//! the latest; they are no events, decide nothing, and go with their run.

use async_trait::async_trait;
use servo_model::limits::{LABEL_CHARS_MAX, LINE_BYTES_MAX, Limits, fits};
use servo_model::{RunId, TenantId, Timestamp};

use crate::error::{Error, Result};
use crate::runs::Scope;

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineSource {
    Stdout,
    Stderr,
    /// Written through the handler's own logger.
    Handler,
}

impl LineSource {
    pub const ALL: [LineSource; 3] = [LineSource::Stdout, LineSource::Stderr, LineSource::Handler];

    pub fn as_str(self) -> &'static str {
        match self {
            LineSource::Stdout => "stdout",
            LineSource::Stderr => "stderr",
            LineSource::Handler => "handler",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written, by the writer's clock.
    pub at: Timestamp,
    /// The request to the handler during which it was written.
    pub request_id: String,
    pub source: LineSource,
    pub text: String,
}

#[async_trait]
pub trait LineStore: Send + Sync {
    /// Adds lines behind those that a run has, numbered from 1 on. A run keeps the latest `lines_per_run_max` lines and
    /// `lines_bytes_per_run_max` bytes of text; older ones leave, and their numbers are not given again. A line that is
    /// too long is cut and says so. `NotFound` for an unknown or foreign run.
    ///
    /// Repeating a call after an unknown outcome may write the lines twice.
    async fn put_lines(&self, run_id: &RunId, tenant: &TenantId, lines: Vec<LogLine>) -> Result<()>;

    /// Lines of a run behind a number, in order, with their numbers. `NotFound` for an unknown or foreign run.
    async fn read_lines(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<Vec<(u64, LogLine)>>;
}

/// Ends a line that was cut.
pub const CUT_MARK: &str = " … [cut]";

/// Makes lines fit to be stored: cut where too long, and without NUL, which Postgres cannot store.
pub fn prepare(mut lines: Vec<LogLine>, limits: &Limits) -> Result<Vec<LogLine>> {
    let mut total = 0;
    for line in &mut lines {
        if !fits(&line.request_id, LABEL_CHARS_MAX) {
            return Err(Error::Limit { what: "a line's request id", limit: LABEL_CHARS_MAX as u64 });
        }
        for text in [&mut line.request_id, &mut line.text] {
            if text.contains('\0') {
                *text = text.replace('\0', "\u{fffd}");
            }
        }
        if line.text.len() > LINE_BYTES_MAX {
            line.text.truncate(line.text.floor_char_boundary(LINE_BYTES_MAX - CUT_MARK.len()));
            line.text.push_str(CUT_MARK);
        }
        total += line.text.len();
    }
    if total > limits.transaction_bytes_max {
        return Err(Error::Limit { what: "a transaction", limit: limits.transaction_bytes_max as u64 });
    }
    Ok(lines)
}

/// What a run has of lines: the numbers `first..=last`, with so many bytes of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineHead {
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
}

/// Lines on their way in, with their numbers, and what they leave for older ones. For backends that do not want to read
/// all lines to know which must leave.
#[derive(Debug)]
pub struct Addition {
    pub lines: Vec<(u64, LogLine)>,
    bytes: u64,
    last: u64,
    older_max: u64,
    older_bytes_max: u64,
}

impl LineHead {
    pub const EMPTY: LineHead = LineHead { first: 1, last: 0, bytes: 0 };

    fn count(&self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }

    /// Numbers prepared lines. Those that the later ones of the same call push out get a number and nothing more.
    pub fn add(&self, lines: Vec<LogLine>, limits: &Limits) -> Addition {
        let last = self.last + lines.len() as u64;
        let (mut room, mut bytes_room) = (limits.lines_per_run_max, limits.lines_bytes_per_run_max as u64);
        let is_kept = |line: &&LogLine| {
            let left = (room.checked_sub(1), bytes_room.checked_sub(line.text.len() as u64));
            let (Some(left), Some(bytes_left)) = left else { return false };
            (room, bytes_room) = (left, bytes_left);
            true
        };
        let kept = lines.iter().rev().take_while(is_kept).count();
        let skipped = lines.len() - kept;
        let (older_max, older_bytes_max) = if skipped == 0 { (room, bytes_room) } else { (0, 0) };
        let first = last + 1 - kept as u64;
        let lines: Vec<_> = (first..).zip(lines.into_iter().skip(skipped)).collect();
        let bytes = lines.iter().map(|(_, line)| line.text.len() as u64).sum();
        Addition { lines, bytes, last, older_max, older_bytes_max }
    }

    /// The oldest line, of so many bytes, leaves.
    pub fn drop_first(&mut self, bytes: u64) {
        self.first += 1;
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Whether what is left of the older lines fits beside new ones.
    pub fn has_room_for(&self, addition: &Addition) -> bool {
        self.count() == 0 || (self.count() <= addition.older_max && self.bytes <= addition.older_bytes_max)
    }

    /// The head after the addition.
    #[must_use]
    pub fn with(&self, addition: &Addition) -> LineHead {
        let first = if self.count() == 0 { addition.last + 1 - addition.lines.len() as u64 } else { self.first };
        LineHead { first, last: addition.last, bytes: self.bytes + addition.bytes }
    }
}
