//! Checksums of what is stored, so that bytes which changed after they were written are found
//! ([ADR 37](../../../docs/adr/0037-a-checksum-beside-every-event.md)).
//!
//! They are CRC-32, which finds every change of up to 32 neighbouring bits, and nearly every other one, for the price of reading
//! the bytes once. They are not keyed: whoever may write to the database can also write the checksum.

use crc32fast::Hasher;
use servo_canon::Digest;
use servo_model::event::FORMAT;
use servo_model::{EventId, RunId, TenantId, Timestamp};

use crate::entrypoints::EntrypointRow;
use crate::error::{Error, Result};
use crate::log::{NewEvent, StoredEvent, StoredSnapshot};
use crate::position::Position;

/// What the writer of an event says, with the place in the run for which it was decided. The store gives the rest.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    pub format: u32,
    pub run_id: &'a RunId,
    pub tenant: &'a TenantId,
    pub run_seq: u64,
    pub event_id: EventId,
    pub event_type: &'a str,
    pub idempotency_key: &'a Digest,
    pub emitted_by: &'a str,
    pub occurred_at: Option<Timestamp>,
    pub payload: &'a str,
}

impl<'a> Content<'a> {
    /// Of an event that this program is about to write.
    pub fn new(event: &'a NewEvent, run_id: &'a RunId, tenant: &'a TenantId, run_seq: u64) -> Self {
        Self {
            format: FORMAT,
            run_id,
            tenant,
            run_seq,
            event_id: event.event_id,
            event_type: &event.event_type,
            idempotency_key: &event.idempotency_key,
            emitted_by: &event.emitted_by,
            occurred_at: event.occurred_at,
            payload: &event.payload,
        }
    }

    /// The texts come one behind the other: their lengths are among the numbers before them, so that none can give a byte to its
    /// neighbour.
    pub fn checksum(&self) -> u32 {
        let texts = [self.run_id.as_str(), self.tenant.as_str(), self.event_type, self.emitted_by, self.payload];
        let mut numbers = [0; NUMBERS_BYTES];
        let mut rest = &mut numbers[..];
        let mut put = |bytes: &[u8]| {
            let (head, tail) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            head.copy_from_slice(bytes);
            rest = tail;
        };
        put(&self.format.to_le_bytes());
        put(&self.run_seq.to_le_bytes());
        put(self.event_id.as_bytes());
        put(self.idempotency_key.as_bytes());
        put(&[u8::from(self.occurred_at.is_some())]);
        put(&self.occurred_at.map_or(0, Timestamp::as_millis).to_le_bytes());
        for text in texts {
            put(&(text.len() as u64).to_le_bytes());
        }
        let mut hasher = Hasher::new();
        hasher.update(&numbers);
        for text in texts {
            hasher.update(text.as_bytes());
        }
        hasher.finalize()
    }
}

/// Format, sequence, id, key, the time at which it occurred with a flag, five lengths.
const NUMBERS_BYTES: usize = 4 + 8 + 16 + 32 + 1 + 8 + 5 * 8;

/// The checksum of an event as stores keep it: of its content, together with what the store gave. Joined by "exclusive or", which a
/// database can do where only it knows the time and the transaction. A store whose transactions have no numbers takes the
/// number of the event.
pub fn sealed(content: u32, emitted_at: Timestamp, position: Position) -> i64 {
    let Position { store_epoch, transaction, id } = position;
    let place = if transaction == 0 { id } else { transaction };
    let seal = (u64::from(content) << CONTENT_SHIFT)
        ^ (u64::from(store_epoch) << EPOCH_SHIFT)
        ^ place
        ^ emitted_at.as_millis().cast_unsigned();
    seal.cast_signed()
}

/// The content's part, where the rest is for the database to add.
pub fn unplaced(content: u32) -> i64 {
    (u64::from(content) << CONTENT_SHIFT).cast_signed()
}

const CONTENT_SHIFT: u32 = 32;
/// The migrations of Postgres have it as well.
const EPOCH_SHIFT: u32 = 48;

impl StoredEvent {
    pub fn content(&self) -> Content<'_> {
        Content {
            format: self.format,
            run_id: &self.run_id,
            tenant: &self.tenant,
            run_seq: self.run_seq,
            event_id: self.event_id,
            event_type: &self.event_type,
            idempotency_key: &self.idempotency_key,
            emitted_by: &self.emitted_by,
            occurred_at: self.occurred_at,
            payload: &self.payload,
        }
    }

    pub fn checksum(&self) -> i64 {
        sealed(self.content().checksum(), self.emitted_at, self.position)
    }

    /// Every store calls it for every event that it reads. An event of an earlier version has no checksum and is taken as it is.
    pub fn check(&self, checksum: Option<i64>) -> Result<()> {
        if checksum.is_some_and(|checksum| checksum != self.checksum()) {
            return Err(Error::Corrupt { detail: changed(&self.run_id, self.run_seq, self.run_seq) });
        }
        check_format(self.format)
    }
}

/// What a reader is told of events that are not as they were written.
pub fn changed(run_id: &RunId, first_seq: u64, last_seq: u64) -> String {
    let which = if first_seq == last_seq {
        format!("event {first_seq} of run {run_id} is")
    } else {
        format!("events {first_seq} to {last_seq} of run {run_id} are")
    };
    format!("{which} not as written{CHECKSUM_DIFFERS}")
}

/// How that sentence ends.
pub const CHECKSUM_DIFFERS: &str = ": the checksum differs";

/// A body of a later format is for a later program. The store is not damaged, and nothing is done to the run.
pub fn check_format(format: u32) -> Result<()> {
    if format > FORMAT { Err(Error::TooNew { found: format, supported: FORMAT }) } else { Ok(()) }
}

/// Of the snapshot of a run's state at an event.
pub fn snapshot_checksum(run_id: &RunId, run_seq: u64, state: &str) -> i64 {
    let mut hasher = Hasher::new();
    hasher.update(&run_seq.to_le_bytes());
    hasher.update(&(run_id.as_str().len() as u64).to_le_bytes());
    hasher.update(run_id.as_str().as_bytes());
    hasher.update(state.as_bytes());
    i64::from(hasher.finalize())
}

impl StoredSnapshot {
    pub fn checksum(&self, run_id: &RunId) -> i64 {
        snapshot_checksum(run_id, self.run_seq, &self.state)
    }

    /// A snapshot that is not as it was written is given without its state: it is only a lost short cut, and whoever folds the run
    /// reads all of its events.
    #[must_use]
    pub fn checked(self, run_id: &RunId, checksum: Option<i64>) -> Self {
        if checksum.is_some_and(|checksum| checksum != self.checksum(run_id)) {
            return Self { state: String::new(), ..self };
        }
        self
    }
}

impl EntrypointRow {
    /// With the revision in front of it: a node of a version that knows no checksums changes a row and leaves the checksum.
    pub fn checksum(&self) -> i64 {
        let mut hasher = Hasher::new();
        let fixed = [&self.id, &self.owner_type, &self.owner_id, &self.address, &self.version, &self.status];
        let more = [&self.adapter, &self.title, &self.document];
        let texts = [self.tenant.as_str()].into_iter().chain(fixed.into_iter().chain(more).map(String::as_str));
        for text in texts.chain(self.tags.iter().map(String::as_str)) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        for number in [self.created_at.as_millis(), self.updated_at.as_millis()] {
            hasher.update(&number.to_le_bytes());
        }
        (i64::from(self.short_revision()) << CONTENT_SHIFT) | i64::from(hasher.finalize())
    }

    /// Whether a row is as it was written, as far as its checksum knows it.
    pub fn check_written(&self, checksum: Option<i64>) -> Result<()> {
        let known = checksum.filter(|checksum| checksum >> CONTENT_SHIFT == i64::from(self.short_revision()));
        if known.is_some_and(|checksum| checksum != self.checksum()) {
            let (id, tenant) = (&self.id, &self.tenant);
            let detail = format!("entrypoint {id} of tenant {tenant} is not as written{CHECKSUM_DIFFERS}");
            return Err(Error::Corrupt { detail });
        }
        Ok(())
    }

    fn short_revision(&self) -> u32 {
        let [a, b, c, d, ..] = self.revision.to_le_bytes();
        u32::from_le_bytes([a, b, c, d & 0x7f])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> StoredEvent {
        StoredEvent {
            position: Position { store_epoch: 2, transaction: 900, id: 7 },
            format: FORMAT,
            run_id: RunId::parse("inv_1").unwrap(),
            tenant: TenantId::parse("acme").unwrap(),
            run_seq: 3,
            event_id: EventId::from_u128(5),
            event_type: "RunQueued".into(),
            idempotency_key: Digest::of(b"key"),
            emitted_at: Timestamp::from_millis(1_790_000_000_000),
            emitted_by: "engine".into(),
            occurred_at: None,
            payload: "{\"a\":1}".to_owned(),
        }
    }

    #[test]
    fn every_part_of_an_event_is_in_its_checksum() {
        let event = event();
        let sum = event.checksum();
        assert!(event.check(Some(sum)).is_ok() && event.check(None).is_ok());
        let place = event.position;
        let others = [
            StoredEvent { position: Position { store_epoch: 3, ..place }, ..event.clone() },
            StoredEvent { position: Position { transaction: 901, ..place }, ..event.clone() },
            StoredEvent { format: FORMAT + 1, ..event.clone() },
            StoredEvent { run_id: RunId::parse("inv_2").unwrap(), ..event.clone() },
            StoredEvent { tenant: TenantId::parse("acmf").unwrap(), ..event.clone() },
            StoredEvent { run_seq: 4, ..event.clone() },
            StoredEvent { event_id: EventId::from_u128(6), ..event.clone() },
            StoredEvent { event_type: "RunQueuee".into(), ..event.clone() },
            StoredEvent { idempotency_key: Digest::of(b"other"), ..event.clone() },
            StoredEvent { emitted_at: event.emitted_at.plus(std::time::Duration::from_millis(1)), ..event.clone() },
            StoredEvent { emitted_by: "enginf".into(), ..event.clone() },
            StoredEvent { occurred_at: Some(Timestamp::EPOCH), ..event.clone() },
            StoredEvent { payload: "{\"a\":2}".to_owned(), ..event.clone() },
            // A byte that goes from one text to its neighbour.
            StoredEvent { event_type: "RunQueuedengi".into(), emitted_by: "ne".into(), ..event.clone() },
        ];
        for other in others {
            assert_ne!(other.checksum(), sum, "{other:?}");
            assert!(matches!(other.check(Some(sum)), Err(Error::Corrupt { .. })), "{other:?}");
        }
        let embedded = StoredEvent { position: Position::of_id(7), ..event.clone() };
        let moved = StoredEvent { position: Position::of_id(8), ..event };
        assert_ne!(embedded.checksum(), moved.checksum());
    }

    #[test]
    fn every_flipped_bit_of_a_payload_is_found() {
        let event = event();
        let sum = event.checksum();
        for (at, mask) in (0..event.payload.len()).flat_map(|at| (0..7).map(move |bit| (at, 1_u8 << bit))) {
            let mut bytes = event.payload.clone().into_bytes();
            bytes[at] ^= mask;
            let changed = StoredEvent { payload: String::from_utf8(bytes).unwrap(), ..event.clone() };
            assert!(changed.check(Some(sum)).is_err(), "{at} {mask}");
        }
    }

    /// What is in databases: other bytes for the same event would make every stored one look damaged.
    #[test]
    fn the_checksum_of_an_event_never_changes() {
        assert_eq!((event().content().checksum(), event().checksum()), (GOLDEN_CONTENT, GOLDEN));
        let rest = event().checksum() ^ unplaced(event().content().checksum());
        assert_eq!(rest, 1_790_000_000_000 ^ 900 ^ (2 << 48), "what a database adds");
    }

    const GOLDEN_CONTENT: u32 = 216_410_557;
    const GOLDEN: i64 = 928_911_531_457_933_188;

    #[test]
    fn a_later_format_is_no_damage() {
        let later = StoredEvent { format: FORMAT + 1, ..event() };
        assert!(matches!(later.check(Some(later.checksum())), Err(Error::TooNew { .. })));
    }

    #[test]
    fn a_changed_snapshot_loses_its_state_only() {
        let run = RunId::parse("inv_1").unwrap();
        let snapshot = StoredSnapshot { run_seq: 9, state: "{}".to_owned() };
        let sum = snapshot.checksum(&run);
        assert_eq!(snapshot.clone().checked(&run, Some(sum)), snapshot);
        assert_eq!(snapshot.clone().checked(&run, None), snapshot);
        let lost = StoredSnapshot { run_seq: 9, state: String::new() };
        assert_eq!(StoredSnapshot { state: "[]".to_owned(), ..snapshot.clone() }.checked(&run, Some(sum)), lost);
        assert_eq!(snapshot.checked(&RunId::parse("inv_2").unwrap(), Some(sum)), lost);
    }
}
