//! Events in packs. A pack is read event by event, so that a page takes no more of a long one than it shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, Row, params};
use servo_canon::Digest;
use servo_model::{RunId, TenantId};
use servo_store::StoredEvent;
use servo_store::checksum::{changed, check_format};
use servo_store::log::EventOutcome;

use super::{Found, damage, unreadable};
use crate::bytes::Damage;
use crate::codec::{self, int};
use crate::error::{Fault, corrupt};
use crate::pack::{self, Cursor};
use crate::sabotage::Sabotage;

macro_rules! select_packs {
    ($rest:literal) => {
        concat!(
            "SELECT last_position, first_position, first_seq, last_seq, run_id, tenant_id, events, flush_end, run_number, \
             checksum FROM packs ",
            $rest
        )
    };
}

/// What a pack's row has besides its events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packing {
    /// The run's.
    pub(crate) number: i64,
    /// The last position of the transaction.
    pub(crate) flush_end: i64,
    pub(crate) sabotage: Sabotage,
}

/// Writes events of one run as one pack. Their sequences are consecutive, and their positions grow up to `flush_end`. None is
/// written if there are none.
pub(crate) fn insert_pack(conn: &Connection, packing: Packing, events: &[Arc<StoredEvent>]) -> Result<(), Fault> {
    let Packing { number, flush_end, sabotage } = packing;
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
    let follows = |pair: &[Arc<StoredEvent>]| {
        let (one, next) = (&pair[0], &pair[1]);
        next.run_seq == one.run_seq + 1 && next.position.id > one.position.id && next.run_id == one.run_id
    };
    if !events.windows(2).all(follows) {
        return Err(corrupt(format!("events of run {} that do not follow one another", first.run_id)).into());
    }
    let sql = "INSERT INTO packs (last_position, flush_end, first_position, run_number, first_seq, last_seq, run_id, \
               tenant_id, events, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let encoded = pack::encode(events);
    let row = pack::Row {
        last_position: last.position.id,
        flush_end: flush_end.unsigned_abs(),
        first_position: first.position.id,
        run_number: number,
        first_seq: first.run_seq,
        last_seq: last.run_seq,
        run_id: first.run_id.as_str().as_bytes(),
        tenant: first.tenant.as_str().as_bytes(),
        events: &encoded,
    };
    let checksum = (!sabotage.writes_no_checksums()).then(|| row.checksum());
    conn.prepare_cached(sql)?.execute(params![
        int(last.position.id),
        flush_end,
        int(first.position.id),
        number,
        int(first.run_seq),
        int(last.run_seq),
        first.run_id.as_str(),
        first.tenant.as_str(),
        encoded,
        checksum,
    ])?;
    Ok(())
}

/// The first eight bytes of every key in the run's packs.
pub(crate) fn pack_keys(conn: &Connection, number: i64) -> Result<Vec<u64>, Fault> {
    let mut found = conn.prepare_cached("SELECT last_position, events FROM packs WHERE run_number = ?1")?;
    let mut rows = found.query([number])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        let last_position = row.get(0)?;
        for key in pack::keys(blob(row, 1)?).map_err(|damage| damaged(last_position, damage))? {
            let key = key.map_err(|damage| damaged(last_position, damage))?;
            keys.extend(key.as_bytes().first_chunk().map(|half| u64::from_be_bytes(*half)));
        }
    }
    Ok(keys)
}

/// The event with a key, if it is in a pack of the run.
pub(super) fn find_key(conn: &Connection, number: i64, key: Digest) -> Result<Option<EventOutcome>, Fault> {
    let sql = "SELECT last_position, first_seq, events FROM packs WHERE run_number = ?1 ORDER BY last_seq";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([number])?;
    while let Some(row) = rows.next()? {
        let (last_position, first_seq, bytes) = (row.get(0)?, codec::count(row, 1)?, blob(row, 2)?);
        if let Some(found) = find_in(first_seq, bytes, key).map_err(|damage| damaged(last_position, damage))? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn find_in(first_seq: u64, bytes: &[u8], key: Digest) -> Result<Option<EventOutcome>, Damage> {
    let mut cursor = Cursor::open(first_seq, bytes)?;
    while let Some(entry) = cursor.next(bytes)? {
        if entry.key() == key {
            let (event_id, emitted_at) = (entry.event_id(), entry.emitted_at());
            return Ok(Some(EventOutcome { run_seq: entry.run_seq, event_id, emitted_at, inserted: false }));
        }
    }
    Ok(None)
}

fn blob<'r>(row: &'r Row<'_>, index: usize) -> Result<&'r [u8], Fault> {
    let bytes = row.get_ref(index)?.as_blob();
    bytes.map_err(|error| corrupt(format!("column {index} of a pack: {error}")).into())
}

fn damaged(last_position: i64, damage: Damage) -> Fault {
    corrupt(format!("the pack that ends at position {last_position} {damage}")).into()
}

/// Compares a pack with its checksum, if it has one. Of the columns that `select_packs` names.
pub(crate) fn check(row: &Row<'_>) -> Result<(), Fault> {
    let Some(checksum) = row.get::<_, Option<i64>>(9)? else { return Ok(()) };
    let of_text = |index| Ok::<_, Fault>(row.get_ref(index)?.as_bytes().unwrap_or_default());
    let number = |index| Ok::<_, Fault>(row.get::<_, i64>(index)?.cast_unsigned());
    let (first_seq, last_seq, run_id) = (number(2)?, number(3)?, of_text(4)?);
    let found = pack::Row {
        last_position: number(0)?,
        flush_end: number(7)?,
        first_position: number(1)?,
        run_number: row.get(8)?,
        first_seq,
        last_seq,
        run_id,
        tenant: of_text(5)?,
        events: blob(row, 6)?,
    };
    if found.checksum() == checksum {
        return Ok(());
    }
    Err(corrupt(match codec::run_id(row, 4) {
        Ok(run_id) => changed(&run_id, first_seq, last_seq),
        Err(_) => format!("the pack that ends at position {} is of no run", found.last_position),
    })
    .into())
}

/// A pack that is being read: an iterator over those of its events that were not passed over.
struct Open {
    last_position: i64,
    run_id: RunId,
    tenant: TenantId,
    bytes: Vec<u8>,
    cursor: Cursor,
}

impl Open {
    /// Of the columns that `select_packs` names.
    fn read(row: &Row<'_>) -> Result<Self, Fault> {
        let last_position = row.get(0)?;
        let (first_position, first_seq, last_seq) =
            (codec::count(row, 1)?, codec::count(row, 2)?, codec::count(row, 3)?);
        let bytes = blob(row, 6)?;
        check(row)?;
        let checked = || {
            let cursor = Cursor::open(first_seq, bytes)?;
            cursor.check_last_seq(last_seq)?;
            cursor.check_position(bytes, first_position)?;
            Ok(cursor)
        };
        let cursor = checked().map_err(|damage| damaged(last_position, damage))?;
        let bytes = bytes.to_vec();
        Ok(Self { last_position, run_id: codec::run_id(row, 4)?, tenant: codec::tenant(row, 5)?, bytes, cursor })
    }

    /// The pack that ends there.
    fn at(conn: &Connection, last_position: i64) -> Result<Self, Fault> {
        let mut found = conn.prepare_cached(select_packs!("WHERE last_position = ?1"))?;
        let mut rows = found.query([last_position])?;
        let row = rows.next()?.ok_or_else(|| corrupt(format!("no pack ends at position {last_position}")))?;
        Self::read(row)
    }

    fn after_seq(mut self, after: u64) -> Result<Self, Fault> {
        while self.cursor.left() > 0 && self.cursor.next_seq() <= after {
            self.cursor.next(&self.bytes).map_err(|damage| damaged(self.last_position, damage))?;
        }
        Ok(self)
    }

    /// Passes over the events at or before a position. How many there were.
    fn skip_positions(&mut self, until: u64) -> Result<u64, Fault> {
        let mut skipped = 0;
        while self.next_position()?.is_some_and(|position| position <= until) {
            self.cursor.next(&self.bytes).map_err(|damage| damaged(self.last_position, damage))?;
            skipped += 1;
        }
        Ok(skipped)
    }

    fn next_position(&self) -> Result<Option<u64>, Fault> {
        self.cursor.next_position(&self.bytes).map_err(|damage| damaged(self.last_position, damage))
    }

    fn next_event(&mut self) -> Result<Option<StoredEvent>, Fault> {
        let entry = self.cursor.next(&self.bytes);
        let event = entry.and_then(|entry| entry.map(|entry| entry.event(&self.run_id, &self.tenant)).transpose());
        let event = event.map_err(|damage| damaged(self.last_position, damage))?;
        if let Some(event) = &event {
            check_format(event.format)?;
        }
        Ok(event)
    }
}

impl Iterator for Open {
    type Item = Result<StoredEvent, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

pub(super) const OF_RUN: &str = select_packs!("WHERE run_number = ?1 AND last_seq > ?2 ORDER BY last_seq");

/// The packed events of a run after a sequence, in order. The statement is `OF_RUN`.
pub(super) fn of_run<'s>(
    statement: &'s mut CachedStatement<'_>,
    number: Option<i64>,
    after: u64,
) -> Result<impl Iterator<Item = Result<StoredEvent, Fault>> + use<'s>, Fault> {
    let packs = statement.query_and_then(params![number, int(after)], move |row| Open::read(row)?.after_seq(after))?;
    Ok(packs.flat_map(|pack| {
        let (pack, fault) = match pack {
            Ok(pack) => (Some(pack), None),
            Err(fault) => (None, Some(Err(fault))),
        };
        pack.into_iter().flatten().chain(fault)
    }))
}

/// The packs that may have the next event after a position: those of one flush.
pub(super) const OF_FLUSH: &str = "SELECT first_position, last_position, flush_end FROM packs WHERE last_position > ?1 \
     AND last_position <= (SELECT max(flush_end, last_position) FROM packs WHERE last_position > ?1 \
                           ORDER BY last_position LIMIT 1)";

/// The packed events of the log after a position, in order. The packs of one flush lie across one another, so they are
/// merged; each is opened when its first event may be next.
pub(super) struct OfLog<'c> {
    conn: &'c Connection,
    after: u64,
    /// Packs that end at or before this one are known.
    known: i64,
    /// Where packs of the flush begin and end that are not open yet, the next one last.
    waiting: Vec<(u64, i64)>,
    /// By the position of the next event.
    open: BTreeMap<u64, Open>,
}

impl<'c> OfLog<'c> {
    pub(super) fn after(conn: &'c Connection, after: u64) -> Self {
        Self { conn, after, known: int(after), waiting: Vec::new(), open: BTreeMap::new() }
    }

    fn next_event(&mut self) -> Result<Option<Found>, Fault> {
        loop {
            if self.open.is_empty() && self.waiting.is_empty() && !self.find_flush()? {
                return Ok(None);
            }
            while let Some((_, last)) = self.waiting.pop_if(|(first, _)| is_next(&self.open, *first)) {
                if let Some(detail) = damage(self.open(last))? {
                    return Ok(Some(unreadable(last, detail)));
                }
            }
            if let Some((_, pack)) = self.open.pop_first() {
                let last = pack.last_position;
                let mut event = None;
                return match damage(self.take(pack, &mut event))? {
                    Some(detail) => Ok(Some(unreadable(last, detail))),
                    None => Ok(event.map(Ok)),
                };
            }
        }
    }

    fn open(&mut self, last: i64) -> Result<(), Fault> {
        let mut pack = Open::at(self.conn, last)?;
        pack.skip_positions(self.after)?;
        self.put(pack)
    }

    fn take(&mut self, mut pack: Open, event: &mut Option<StoredEvent>) -> Result<(), Fault> {
        *event = pack.next_event()?;
        self.put(pack)
    }

    fn put(&mut self, mut pack: Open) -> Result<(), Fault> {
        let Some(position) = pack.next_position()? else {
            // Nothing may stand behind the last event.
            pack.next_event()?;
            return Ok(());
        };
        match self.open.insert(position, pack) {
            None => Ok(()),
            Some(_) => Err(corrupt(format!("position {position} was given to two events")).into()),
        }
    }

    /// False if there is no further flush.
    fn find_flush(&mut self) -> Result<bool, Fault> {
        let mut found = self.conn.prepare_cached(OF_FLUSH)?;
        let mut rows = found.query([self.known])?;
        while let Some(row) = rows.next()? {
            let last: i64 = row.get(1)?;
            // These two may be what is damaged. The pack's checksum says so when the pack is opened.
            let flush_end = row.get(2).unwrap_or(last);
            self.waiting.push((codec::count(row, 0).unwrap_or_default(), last));
            self.known = self.known.max(last).max(flush_end);
        }
        self.waiting.sort_unstable_by(|one, other| other.cmp(one));
        Ok(!self.waiting.is_empty())
    }
}

fn is_next(open: &BTreeMap<u64, Open>, first: u64) -> bool {
    open.first_key_value().is_none_or(|(next, _)| first <= *next)
}

impl Iterator for OfLog<'_> {
    type Item = Result<Found, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

/// What is at or before a position is in packs that end within the position's flush.
pub(super) const COUNTED: &str = "SELECT last_position, first_position, first_seq, last_seq FROM packs \
     WHERE last_position > ?1 AND last_position <= coalesce((SELECT flush_end FROM packs WHERE last_position > ?2 \
                                                             ORDER BY last_position LIMIT 1), ?2) \
     ORDER BY last_position";

/// How many packed events lie after `after` and at or before `until`, counted up to `most`. Only the packs that lie across
/// one of the two are opened.
pub(super) fn count(conn: &Connection, after: u64, until: u64, most: u64) -> Result<u64, Fault> {
    let mut found = conn.prepare_cached(COUNTED)?;
    let mut rows = found.query(params![int(after), int(until)])?;
    let mut counted = 0;
    while counted < most {
        let Some(row) = rows.next()? else { break };
        let (last, first) = (codec::count(row, 0)?, codec::count(row, 1)?);
        if first > until {
            continue;
        }
        counted += if first > after && last <= until {
            codec::count(row, 3)?.saturating_sub(codec::count(row, 2)?) + 1
        } else {
            let last = row.get(0)?;
            let mut between = 0;
            let mut counted = || {
                let mut pack = Open::at(conn, last)?;
                pack.skip_positions(after)?;
                between = pack.skip_positions(until)?;
                Ok(())
            };
            // A pack that cannot be read has no events to wait for.
            damage(counted())?;
            between
        };
    }
    Ok(counted.min(most))
}
