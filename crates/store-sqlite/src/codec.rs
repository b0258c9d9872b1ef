//! Between columns and the model's types. A value that the model does not know is `Corrupt`, never a default.

use rusqlite::Row;
use servo_canon::Digest;
use servo_model::{EventId, Invalid, RunId, TenantId, Timestamp};
use servo_store::Position;

use crate::error::{Fault, corrupt};

/// SQLite has signed integers only. Nothing that counts comes near the edge; a caller's `u64::MAX` means "the end".
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn count(row: &Row<'_>, index: usize) -> Result<u64, Fault> {
    let number: i64 = row.get(index)?;
    u64::try_from(number).map_err(|_| damaged(index, "is negative"))
}

pub(crate) fn count32(row: &Row<'_>, index: usize) -> Result<u32, Fault> {
    let number: i64 = row.get(index)?;
    u32::try_from(number).map_err(|_| damaged(index, "is not a 32-bit number"))
}

pub(crate) fn time(row: &Row<'_>, index: usize) -> Result<Timestamp, Fault> {
    Ok(Timestamp::from_millis(row.get(index)?))
}

pub(crate) fn maybe_time(row: &Row<'_>, index: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_millis))
}

pub(crate) fn run_id(row: &Row<'_>, index: usize) -> Result<RunId, Fault> {
    parse(row, index, RunId::parse)
}

pub(crate) fn tenant(row: &Row<'_>, index: usize) -> Result<TenantId, Fault> {
    parse(row, index, TenantId::parse)
}

pub(crate) fn digest(row: &Row<'_>, index: usize) -> Result<Digest, Fault> {
    Ok(Digest::from_bytes(row.get(index)?))
}

pub(crate) fn maybe_digest(row: &Row<'_>, index: usize) -> Result<Option<Digest>, Fault> {
    Ok(row.get::<_, Option<[u8; 32]>>(index)?.map(Digest::from_bytes))
}

pub(crate) fn event_id(row: &Row<'_>, index: usize) -> Result<EventId, Fault> {
    Ok(EventId::from_bytes(row.get(index)?))
}

/// A text column read by one of the model's parsers.
pub(crate) fn parse<T>(row: &Row<'_>, index: usize, parse: fn(&str) -> Result<T, Invalid>) -> Result<T, Fault> {
    let text = row.get_ref(index)?.as_str().map_err(|error| damaged(index, &error.to_string()))?;
    parse(text).map_err(|invalid| damaged(index, &invalid.to_string()))
}

/// A text column that holds one of a few spellings.
pub(crate) fn spelled<T>(row: &Row<'_>, index: usize, parse: fn(&str) -> Option<T>) -> Result<T, Fault> {
    let text = row.get_ref(index)?.as_str().map_err(|error| damaged(index, &error.to_string()))?;
    parse(text).ok_or_else(|| damaged(index, &format!("has the unknown value {text:?}")))
}

/// The same for a column that may be empty.
pub(crate) fn maybe_spelled<T>(row: &Row<'_>, index: usize, parse: fn(&str) -> Option<T>) -> Result<Option<T>, Fault> {
    if row.get_ref(index)? == rusqlite::types::ValueRef::Null {
        return Ok(None);
    }
    spelled(row, index, parse).map(Some)
}

/// A position kept as three columns, where order matters.
pub(crate) fn position(row: &Row<'_>, index: usize) -> Result<Position, Fault> {
    Ok(Position { store_epoch: count32(row, index)?, transaction: count(row, index + 1)?, id: count(row, index + 2)? })
}

/// A text that is of use only if it is one: nothing in place of bytes that are none.
pub(crate) fn text_or_none(row: &Row<'_>, index: usize) -> Result<String, Fault> {
    Ok(row.get_ref(index)?.as_str().map(str::to_owned).unwrap_or_default())
}

fn damaged(index: usize, problem: &str) -> Fault {
    Fault::Refused(corrupt(format!("column {index} of a row {problem}")))
}
