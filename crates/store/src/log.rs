//! The log: appending events with everything that must change together, and reading them.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::event::{EventBody, EventDoc};
use servo_model::limits::Limits;
use servo_model::{Event, EventId, Invalid, RunId, TenantId, Timestamp};

use crate::dispatch::DispatchChange;
use crate::error::{Error, Result};
use crate::lease::{AuthorityChange, Fence};
use crate::position::Position;
use crate::relay::CursorRow;
use crate::runs::{RunRow, Scope};

/// An event to be appended. It has no sequence: only the store assigns one.
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub event_id: EventId,
    pub event_type: Cow<'static, str>,
    pub idempotency_key: Digest,
    pub emitted_by: Arc<str>,
    pub occurred_at: Option<Timestamp>,
    /// The encoded body, a JSON object.
    pub payload: String,
}

/// An event in the log, with its body still encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    pub position: Position,
    /// Of the body: the version of `servo_model::event::FORMAT` with which it was written.
    pub format: u32,
    pub run_id: RunId,
    pub tenant: TenantId,
    pub run_seq: u64,
    pub event_id: EventId,
    pub event_type: Cow<'static, str>,
    pub idempotency_key: Digest,
    pub emitted_at: Timestamp,
    pub emitted_by: Arc<str>,
    pub occurred_at: Option<Timestamp>,
    pub payload: String,
}

impl StoredEvent {
    pub fn decode(&self) -> std::result::Result<Event, Invalid> {
        Ok(Event {
            event_id: self.event_id,
            run_id: self.run_id.clone(),
            run_seq: self.run_seq,
            idempotency_key: self.idempotency_key,
            emitted_at: self.emitted_at,
            emitted_by: self.emitted_by.to_string(),
            occurred_at: self.occurred_at,
            body: EventBody::decode(&self.event_type, &self.payload)?,
        })
    }

    pub fn doc(&self) -> EventDoc<'_> {
        EventDoc {
            event_type: &self.event_type,
            event_id: self.event_id,
            run_id: &self.run_id,
            run_seq: self.run_seq,
            idempotency_key: self.idempotency_key,
            emitted_at: self.emitted_at,
            emitted_by: &self.emitted_by,
            occurred_at: self.occurred_at,
            payload: &self.payload,
        }
    }
}

/// What the writer believes about the run's last sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The run does not exist; the append brings its row.
    New,
    /// The run's last sequence is this one.
    Seq(u64),
    /// Whatever it is: for writers whose events are independent of the state (the system stream, forced ends).
    Any,
}

/// What to do about an idempotency key that the run already has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyMode {
    /// Insert nothing and answer with the existing event. The default of the contract.
    #[default]
    Adopt,
    /// Answer `Error::KeyExists`.
    Strict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimerChange {
    #[default]
    Keep,
    Set(Timestamp),
    Clear,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum QueueChange {
    #[default]
    Keep,
    /// The run waits to be started, not before this time.
    Put { not_before: Timestamp },
    /// The run is started or ended. With an owner, only if that owner holds the row's lease.
    Remove { leased_by: Option<String> },
}

/// The fold of a run, stored so that long runs are read quickly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    pub run_seq: u64,
    /// The encoded `RunState`.
    pub state: String,
}

/// One run's share of an append.
#[derive(Debug, Clone)]
pub struct StreamAppend {
    pub run_id: RunId,
    pub tenant: TenantId,
    pub expected: Expected,
    pub key_mode: KeyMode,
    pub events: Vec<NewEvent>,
    /// The run's row, when its visible status changes (and always with `Expected::New`).
    pub row: Option<RunRow>,
    pub timer: TimerChange,
    pub queue: QueueChange,
    pub dispatches: Vec<DispatchChange>,
    pub snapshot: Option<StoredSnapshot>,
}

impl StreamAppend {
    pub fn new(run_id: RunId, tenant: TenantId, expected: Expected) -> Self {
        Self {
            run_id,
            tenant,
            expected,
            key_mode: KeyMode::Adopt,
            events: Vec::new(),
            row: None,
            timer: TimerChange::Keep,
            queue: QueueChange::Keep,
            dispatches: Vec::new(),
            snapshot: None,
        }
    }
}

/// One transaction.
#[derive(Debug, Clone, Default)]
pub struct Append {
    /// If set, the transaction happens only while this authority is current.
    pub fence: Option<Fence>,
    pub authority: Option<AuthorityChange>,
    pub streams: Vec<StreamAppend>,
    /// Cursors that move with it, last write wins.
    pub cursors: Vec<CursorRow>,
}

impl Append {
    pub fn one(stream: StreamAppend) -> Self {
        Self { streams: vec![stream], ..Self::default() }
    }

    /// Limits that hold for every backend, checked before anything is written.
    pub fn check(&self, limits: &Limits) -> Result<()> {
        let mut total = 0;
        for stream in &self.streams {
            if stream.row.as_ref().is_some_and(|row| row.run_id != stream.run_id || row.tenant != stream.tenant) {
                let reason = "belongs to another run or tenant than its stream".to_owned();
                return Err(Error::Invalid { field: "row".to_owned(), reason });
            }
            if let Some(row) = &stream.row {
                row.check()?;
            }
            for event in &stream.events {
                if event.payload.len() > limits.event_bytes_max() {
                    return Err(Error::Limit { what: "an event's payload", limit: limits.event_bytes_max() as u64 });
                }
                total += event.payload.len();
            }
        }
        if total > limits.transaction_bytes_max {
            return Err(Error::Limit { what: "a transaction", limit: limits.transaction_bytes_max as u64 });
        }
        Ok(())
    }
}

/// How one stream came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOutcome {
    /// One entry per event, in order.
    pub events: Vec<EventOutcome>,
}

/// Where an event is now, and whether this append put it there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOutcome {
    pub run_seq: u64,
    pub event_id: EventId,
    pub emitted_at: Timestamp,
    pub inserted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    pub streams: Vec<StreamOutcome>,
    /// The authority's epoch after an `AuthorityChange`.
    pub epoch: Option<u64>,
}

impl StreamOutcome {
    /// All of it was in the log already.
    fn is_repeated(&self) -> bool {
        !self.events.is_empty() && self.events.iter().all(|event| !event.inserted)
    }
}

impl Appended {
    /// Rule 7, on the runs of the streams and what was expected of each.
    pub fn check_overtaken(&self, streams: &[(RunId, Expected)]) -> Result<()> {
        let outcomes = || streams.iter().zip(&self.streams);
        let begins = |((_, expected), outcome): (&(RunId, Expected), &StreamOutcome)| {
            *expected == Expected::New && outcome.events.iter().any(|event| event.inserted)
        };
        let Some(((run_id, expected), outcome)) = outcomes().find(|(_, outcome)| outcome.is_repeated()) else {
            return Ok(());
        };
        if !outcomes().any(begins) {
            return Ok(());
        }
        let expected = if let Expected::Seq(seq) = expected { *seq } else { 0 };
        let actual = outcome.events.iter().map(|event| event.run_seq).max().unwrap_or(expected);
        Err(Error::Conflict { run_id: run_id.clone(), expected, actual })
    }
}

impl Append {
    /// What [`Appended::check_overtaken`] needs to know; nothing of an append with one stream, which cannot be half repeated.
    pub fn expectations(&self) -> Vec<(RunId, Expected)> {
        if self.streams.len() < 2 {
            return Vec::new();
        }
        self.streams.iter().map(|stream| (stream.run_id.clone(), stream.expected)).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPage {
    pub events: Vec<StoredEvent>,
    /// The run's last sequence, read together with the events.
    pub head_seq: u64,
}

/// All that it takes to go on with a run, of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    pub row: RunRow,
    /// The latest.
    pub snapshot: Option<StoredSnapshot>,
    /// The first events behind the snapshot, or of all.
    pub page: RunPage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// Shared with whoever else follows the log.
    pub events: Vec<Arc<StoredEvent>>,
    /// What lies among them, or behind the last, and is not as it was written. The log goes on past it.
    pub unreadable: Vec<Unreadable>,
    /// Where to read on. Equal to the given position when nothing was there.
    pub next: Position,
}

impl LogPage {
    /// A page on which everything could be read.
    pub fn new(events: Vec<Arc<StoredEvent>>, after: Position) -> Self {
        let next = events.last().map_or(after, |event| event.position);
        Self { events, unreadable: Vec::new(), next }
    }

    /// Nothing was there.
    pub fn is_end(&self) -> bool {
        self.events.is_empty() && self.unreadable.is_empty()
    }
}

/// An event, or several neighbours of one run, that a reader of the log has to pass by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Of the last of them.
    pub position: Position,
    /// Whose they are, where that is certain: what says it may be what has changed.
    pub run: Option<(RunId, TenantId)>,
    pub detail: String,
}

/// # Rules that every backend keeps
///
/// An append is all or nothing. Per stream, in this order:
/// 1. An unknown run (other than with `New`), or one of another tenant, is `NotFound`.
/// 2. If **every** event's key is in the log already, nothing at all of this stream is written and the existing events
///    are the outcome (`Strict`: `KeyExists` for the first of them). That is how a repeated append after an unknown
///    outcome is answered.
/// 3. The sequence must be as expected (`Conflict`, `RunExists`).
/// 4. If some keys exist and others do not: with `Any`, the existing ones are adopted and the others appended; with
///    `Seq`, that is a `Conflict` (`Strict`: `KeyExists`).
/// 5. A new run whose request key is taken is `RequestExists` with the earlier run's id.
/// 6. Events get consecutive sequences after the head, and the store's time as `emitted_at`.
/// 7. An append that would begin a run although another of its streams was in the log already (rule 2) is a `Conflict`. A
///    repeated append finds all that it has begun; this one was overtaken: what it recorded was decided again, and the
///    run that belongs to it is there under another id.
///
/// The fence and the authority change are checked before any stream.
#[async_trait]
pub trait LogStore: Send + Sync {
    /// The store's clock.
    async fn now(&self) -> Result<Timestamp>;

    async fn append(&self, append: Append) -> Result<Appended>;

    /// Events of a run after a sequence, in order. `NotFound` for an unknown or foreign run.
    ///
    /// A page holds at most `limit` events, and ends before the event whose payload would take it beyond
    /// `page_bytes_max` (never without its first): whoever wants all reads on until `head_seq`.
    ///
    /// An event that is not as it was written is `Corrupt`, with its sequence and run in the detail. It takes the page along, and
    /// in SQLite what was written together with it.
    async fn read_run(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage>;

    /// A run's row, its latest snapshot and the events behind that, in pages as those of `read_run`. `NotFound` for an unknown
    /// or foreign run.
    async fn load_run(&self, scope: &Scope, run_id: &RunId, limit: u32) -> Result<StoredRun>;

    /// The latest stored snapshot at or before a sequence.
    async fn snapshot_at(&self, scope: &Scope, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>>;

    /// Stores a snapshot outside an append; a run that is gone by then is no error.
    async fn put_snapshot(&self, run_id: &RunId, tenant: &TenantId, snapshot: StoredSnapshot) -> Result<()>;

    /// The global log after a position: every run's events, each run's in order, none ever missed. Limited in bytes as
    /// `read_run` is, so only an empty page is the end. What cannot be read does not stop a reader: the page names it.
    async fn read_log(&self, after: Position, limit: u32) -> Result<LogPage>;

    /// The position of the last event a reader can see.
    async fn log_head(&self) -> Result<Position>;

    /// How many events lie after `after` and at or before `until`, counted up to `most`.
    async fn count_log(&self, after: Position, until: Position, most: u64) -> Result<u64>;
}
