//! Log lines of runs. What a run has is summed up in `line_heads`, so that adding a line does not mean counting them.

use rusqlite::{Connection, params};
use servo_model::RunId;
use servo_model::limits::Limits;
use servo_store::lines::{LineHead, LineSource, LogLine};
use servo_store::{Error, Scope};

use crate::codec::{self, int};
use crate::error::Fault;
use crate::sql::events;

/// Adds lines, prepared, to a run that is there.
pub(crate) fn put(conn: &Connection, run_id: &RunId, lines: Vec<LogLine>, limits: &Limits) -> Result<(), Fault> {
    let mut head = head(conn, run_id)?;
    let addition = head.add(lines, limits);
    let first = head.first;
    if !head.has_room_for(&addition) {
        let sql = "SELECT octet_length(text) FROM lines WHERE run_id = ?1 ORDER BY number";
        let mut found = conn.prepare_cached(sql)?;
        let mut rows = found.query([run_id.as_str()])?;
        while !head.has_room_for(&addition) {
            let row = rows.next()?.ok_or_else(|| damaged(run_id))?;
            head.drop_first(codec::count(row, 0)?);
        }
    }
    if head.first > first {
        let sql = "DELETE FROM lines WHERE run_id = ?1 AND number < ?2";
        conn.prepare_cached(sql)?.execute(params![run_id.as_str(), int(head.first)])?;
    }
    let sql = "INSERT INTO lines (run_id, number, at, request_id, source, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = conn.prepare_cached(sql)?;
    for (number, line) in &addition.lines {
        let LogLine { at, request_id, source, text } = line;
        insert.execute(params![run_id.as_str(), int(*number), at.as_millis(), request_id, source.as_str(), text])?;
    }
    let head = head.with(&addition);
    let sql = "INSERT INTO line_heads (run_id, first_number, last_number, bytes) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (run_id) DO UPDATE SET first_number = excluded.first_number, \
               last_number = excluded.last_number, bytes = excluded.bytes";
    conn.prepare_cached(sql)?.execute(params![run_id.as_str(), int(head.first), int(head.last), int(head.bytes)])?;
    Ok(())
}

fn head(conn: &Connection, run_id: &RunId) -> Result<LineHead, Fault> {
    let sql = "SELECT first_number, last_number, bytes FROM line_heads WHERE run_id = ?1";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([run_id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(LineHead::EMPTY) };
    Ok(LineHead { first: codec::count(row, 0)?, last: codec::count(row, 1)?, bytes: codec::count(row, 2)? })
}

fn damaged(run_id: &RunId) -> Error {
    Error::Corrupt { detail: format!("run {run_id} has fewer log lines than are counted") }
}

pub(crate) fn read(
    conn: &Connection,
    scope: &Scope,
    run_id: &RunId,
    after: u64,
    limit: u32,
) -> Result<Vec<(u64, LogLine)>, Fault> {
    events::head(conn, run_id)?.filter(|head| scope.covers(&head.tenant)).ok_or(Error::NotFound)?;
    let sql = "SELECT number, at, request_id, source, text FROM lines \
               WHERE run_id = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![run_id.as_str(), int(after), limit])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let line = LogLine {
            at: codec::time(row, 1)?,
            request_id: row.get(2)?,
            source: codec::spelled(row, 3, LineSource::parse)?,
            text: row.get(4)?,
        };
        lines.push((codec::count(row, 0)?, line));
    }
    Ok(lines)
}
