//! Packs: consecutive events of one run as one value, the `events` column of the table `packs`. What all of them share,
//! the run, its tenant and the first sequence, is in other columns.
//!
//! ```text
//! version       one byte, 1
//! count         varint, of the events that follow
//! per event:
//!   position    varint, the distance from the event before
//!   flags       one byte: 1 = emitted by the same as the event before, 2 = has the time at which it occurred,
//!               4 = has another format than the event before (the first: than format 1)
//!   format      varint, if flagged
//!   event id    16 bytes
//!   key         32 bytes
//!   emitted at  varint with sign, milliseconds from the event before
//!   occurred at varint with sign, milliseconds from `emitted at`, if flagged
//!   type        varint length, text
//!   emitted by  varint length, text, unless flagged
//!   payload     varint length, text
//! ```
//!
//! Nothing of this is read before its length is checked, and nothing is allocated that the bytes do not hold. The checksum is
//! not among these bytes but in a column beside them, together with that of the other columns (`Row`): without it a
//! damaged value gives an error or other events.

use std::borrow::Borrow;
use std::ops::Range;

use servo_canon::Digest;
use servo_model::event::EventBody;
use servo_model::{EventId, RunId, TenantId, Timestamp};
use servo_store::{Position, StoredEvent};

use crate::bytes::{Damage, Put, Take, text};
use crate::error::{Fault, corrupt};

const VERSION: u8 = 1;
const SAME_EMITTER: u8 = 1;
const OCCURRED: u8 = 2;
const OTHER_FORMAT: u8 = 4;
const FIRST_FORMAT: u32 = 1;
/// Bytes of an event whose texts are empty.
const EVENT_BYTES_MIN: usize = 53;
/// Bytes of an event besides its texts, at most. Only a reservation.
const EVENT_BYTES: usize = 96;
/// SQLite's positions are signed.
const POSITION_MAX: u64 = i64::MAX.unsigned_abs();

/// Whoever works in the database meets damage in packs only.
impl From<Damage> for Fault {
    fn from(damage: Damage) -> Self {
        Fault::Refused(corrupt(format!("a pack of events {damage}")))
    }
}

/// What a pack's row says, with the events: all that its checksum is of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) last_position: u64,
    pub(crate) flush_end: u64,
    pub(crate) first_position: u64,
    pub(crate) run_number: i64,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) run_id: &'a [u8],
    pub(crate) tenant: &'a [u8],
    pub(crate) events: &'a [u8],
}

impl Row<'_> {
    pub(crate) fn checksum(&self) -> i64 {
        let texts = [self.run_id, self.tenant, self.events];
        let [run_id, tenant, events] = texts.map(|text| text.len() as u64);
        let numbers = [
            self.last_position,
            self.flush_end,
            self.first_position,
            self.run_number.cast_unsigned(),
            self.first_seq,
            self.last_seq,
            run_id,
            tenant,
            events,
        ];
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(numbers.map(u64::to_le_bytes).as_flattened());
        for text in texts {
            hasher.update(text);
        }
        i64::from(hasher.finalize())
    }
}

/// Encodes events of one run with consecutive sequences and growing positions.
pub(crate) fn encode<E: Borrow<StoredEvent>>(events: &[E]) -> Vec<u8> {
    let size =
        |event: &StoredEvent| EVENT_BYTES + event.event_type.len() + event.emitted_by.len() + event.payload.len();
    let mut out = Vec::with_capacity(16 + events.iter().map(|event| size(event.borrow())).sum::<usize>());
    out.push(VERSION);
    out.put_number(events.len() as u64);
    let (mut position, mut emitted_at, mut emitted_by, mut format) = (0, 0, None, FIRST_FORMAT);
    for event in events {
        let event = event.borrow();
        let same = emitted_by == Some(event.emitted_by.as_ref());
        let at = event.emitted_at.as_millis();
        out.put_number(event.position.id.wrapping_sub(position));
        let other_format = event.format != format;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        out.push(
            flag(same, SAME_EMITTER) | flag(event.occurred_at.is_some(), OCCURRED) | flag(other_format, OTHER_FORMAT),
        );
        if other_format {
            out.put_number(u64::from(event.format));
        }
        out.extend_from_slice(event.event_id.as_bytes());
        out.extend_from_slice(event.idempotency_key.as_bytes());
        out.put_signed(at - emitted_at);
        if let Some(occurred_at) = event.occurred_at {
            out.put_signed(occurred_at.as_millis() - at);
        }
        out.put_text(&event.event_type);
        if !same {
            out.put_text(&event.emitted_by);
        }
        out.put_text(&event.payload);
        (position, emitted_at, emitted_by, format) =
            (event.position.id, at, Some(event.emitted_by.as_ref()), event.format);
    }
    out
}

/// All events of a pack.
pub(crate) fn decode(
    run_id: &RunId,
    tenant: &TenantId,
    first_seq: u64,
    bytes: &[u8],
) -> Result<Vec<StoredEvent>, Damage> {
    let mut cursor = Cursor::open(first_seq, bytes)?;
    let mut events = Vec::with_capacity(cursor.left());
    while let Some(entry) = cursor.next(bytes)? {
        events.push(entry.event(run_id, tenant)?);
    }
    Ok(events)
}

/// The keys of a pack's events, in order.
pub(crate) fn keys(bytes: &[u8]) -> Result<impl Iterator<Item = Result<Digest, Damage>>, Damage> {
    let mut cursor = Cursor::open(1, bytes)?;
    Ok(std::iter::from_fn(move || Some(cursor.next(bytes).transpose()?.map(|entry| entry.key()))))
}

/// A place in a pack. It does not hold the bytes, so that whoever holds them can keep both together; every call must be
/// given the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    at: usize,
    left: usize,
    seq: u64,
    position: u64,
    emitted_at: i64,
    emitted_by: Range<usize>,
    format: u32,
}

/// An event where it lies. Its texts are not checked yet, so that passing over it costs little.
#[derive(Debug)]
pub(crate) struct Entry<'b> {
    pub(crate) run_seq: u64,
    pub(crate) position: u64,
    format: u32,
    event_id: &'b [u8; 16],
    key: &'b [u8; 32],
    emitted_at: i64,
    occurred_at: Option<i64>,
    event_type: &'b [u8],
    emitted_by: &'b [u8],
    payload: &'b [u8],
}

impl Cursor {
    pub(crate) fn open(first_seq: u64, bytes: &[u8]) -> Result<Self, Damage> {
        let mut from = Take::new(bytes);
        if from.byte()? != VERSION {
            return Err(Damage("has a version that this program does not know"));
        }
        let left = usize::try_from(from.number()?).ok();
        let left = left.filter(|count| *count <= from.left() / EVENT_BYTES_MIN);
        let left = left.ok_or(Damage("is too short for its events"))?;
        if left == 0 {
            return Err(Damage("has no events"));
        }
        Ok(Self {
            at: from.place(),
            left,
            seq: first_seq,
            position: 0,
            emitted_at: 0,
            emitted_by: 0..0,
            format: FIRST_FORMAT,
        })
    }

    /// How many events are left to read.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// A pack says beside its events which sequences it has.
    pub(crate) fn check_last_seq(&self, last_seq: u64) -> Result<(), Damage> {
        let last = self.seq.checked_add(self.left as u64 - 1);
        if last == Some(last_seq) { Ok(()) } else { Err(Damage("has not as many events as its row says")) }
    }

    /// And at which position it begins.
    pub(crate) fn check_position(&self, bytes: &[u8], position: u64) -> Result<(), Damage> {
        let found = self.next_position(bytes)?;
        if found == Some(position) { Ok(()) } else { Err(Damage("has other positions than its row says")) }
    }

    /// The sequence of the event that is next, if there is one.
    pub(crate) fn next_seq(&self) -> u64 {
        self.seq
    }

    /// The position of the event that is next, without reading it.
    pub(crate) fn next_position(&self, bytes: &[u8]) -> Result<Option<u64>, Damage> {
        if self.left == 0 { Ok(None) } else { self.take_position(&mut Take::at(bytes, self.at)).map(Some) }
    }

    fn take_position(&self, from: &mut Take<'_>) -> Result<u64, Damage> {
        let distance = from.number()?;
        let position = self.position.checked_add(distance).filter(|position| *position <= POSITION_MAX);
        position.filter(|_| distance > 0).ok_or(Damage("has positions that do not grow"))
    }

    /// The next event; none at the end, which must be the end of the bytes as well.
    pub(crate) fn next<'b>(&mut self, bytes: &'b [u8]) -> Result<Option<Entry<'b>>, Damage> {
        let Some(left) = self.left.checked_sub(1) else {
            let whole = self.at == bytes.len();
            return if whole { Ok(None) } else { Err(Damage("goes on behind its last event")) };
        };
        let mut from = Take::at(bytes, self.at);
        let position = self.take_position(&mut from)?;
        let flags = from.byte()?;
        if flags & !(SAME_EMITTER | OCCURRED | OTHER_FORMAT) != 0 {
            return Err(Damage("has an event of a kind that this program does not know"));
        }
        let format = if flags & OTHER_FORMAT != 0 { from.number_u32()? } else { self.format };
        let (event_id, key) = (from.array()?, from.array()?);
        let emitted_at = from.millis_from(self.emitted_at)?;
        let occurred_at = if flags & OCCURRED != 0 { Some(from.millis_from(emitted_at)?) } else { None };
        let event_type = from.bytes()?;
        let emitter = if flags & SAME_EMITTER == 0 {
            let length = from.bytes()?.len();
            from.place() - length..from.place()
        } else {
            self.emitted_by.clone()
        };
        let emitted_by = bytes.get(emitter.clone()).ok_or(Damage("is not the one that was read before"))?;
        let payload = from.bytes()?;
        let run_seq = self.seq;
        let seq = run_seq.checked_add(1).ok_or(Damage("has a sequence that is too large"))?;
        *self = Self { at: from.place(), left, seq, position, emitted_at, emitted_by: emitter, format };
        let entry = Entry {
            run_seq,
            position,
            format,
            event_id,
            key,
            emitted_at,
            occurred_at,
            event_type,
            emitted_by,
            payload,
        };
        Ok(Some(entry))
    }
}

impl Entry<'_> {
    pub(crate) fn key(&self) -> Digest {
        Digest::from_bytes(*self.key)
    }

    pub(crate) fn event_id(&self) -> EventId {
        EventId::from_bytes(*self.event_id)
    }

    pub(crate) fn emitted_at(&self) -> Timestamp {
        Timestamp::from_millis(self.emitted_at)
    }

    pub(crate) fn event(&self, run_id: &RunId, tenant: &TenantId) -> Result<StoredEvent, Damage> {
        Ok(StoredEvent {
            position: Position::of_id(self.position),
            format: self.format,
            run_id: run_id.clone(),
            tenant: tenant.clone(),
            run_seq: self.run_seq,
            event_id: self.event_id(),
            event_type: EventBody::interned_type(text(self.event_type)?),
            idempotency_key: self.key(),
            emitted_at: self.emitted_at(),
            emitted_by: text(self.emitted_by)?.into(),
            occurred_at: self.occurred_at.map(Timestamp::from_millis),
            payload: text(self.payload)?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
