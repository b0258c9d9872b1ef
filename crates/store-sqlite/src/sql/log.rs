//! Writing to the log: events that are rows of their own, large payloads, snapshots. Packs and reading are in `events`.

use rusqlite::{Connection, params};
use servo_canon::Digest;
use servo_model::RunId;
use servo_model::limits::INLINE_PAYLOAD_BYTES_MAX;
use servo_store::StoredEvent;
use servo_store::log::StoredSnapshot;

use crate::codec::{self, int};
use crate::error::Fault;
use crate::sabotage::Sabotage;

const INSERT: &str = "INSERT INTO events (position, run_number, run_id, run_seq, tenant_id, event_id, event_type, \
     idempotency_key, emitted_at, emitted_by, occurred_at, payload, blob_digest, format, checksum) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

/// An event with its sequence and time, at the position it was given.
pub(crate) fn insert(conn: &Connection, number: i64, event: &StoredEvent, sabotage: Sabotage) -> Result<(), Fault> {
    let is_large = event.payload.len() > INLINE_PAYLOAD_BYTES_MAX;
    let digest = is_large.then(|| Digest::of(event.payload.as_bytes()));
    conn.prepare_cached(INSERT)?.execute(params![
        int(event.position.id),
        number,
        event.run_id.as_str(),
        int(event.run_seq),
        event.tenant.as_str(),
        event.event_id.as_bytes(),
        event.event_type,
        event.idempotency_key.as_bytes(),
        event.emitted_at.as_millis(),
        event.emitted_by,
        event.occurred_at.map(|at| at.as_millis()),
        digest.is_none().then_some(&event.payload),
        digest.as_ref().map(Digest::as_bytes),
        event.format,
        (!sabotage.writes_no_checksums()).then(|| event.checksum()),
    ])?;
    if let Some(digest) = &digest {
        insert_blob(conn, &event.run_id, digest, &event.payload)?;
    }
    Ok(())
}

fn insert_blob(conn: &Connection, run_id: &RunId, digest: &Digest, payload: &str) -> Result<(), Fault> {
    let sql = "INSERT INTO blobs (run_id, digest, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    conn.prepare_cached(sql)?.execute(params![run_id.as_str(), digest.as_bytes(), payload.as_bytes()])?;
    Ok(())
}

/// No event will be given this position or an earlier one any more, whatever goes.
pub(crate) fn set_last_position(conn: &Connection, position: i64) -> Result<(), Fault> {
    let sql = "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'events'";
    if conn.prepare_cached(sql)?.execute([position])? == 0 {
        conn.prepare_cached("INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?1)")?.execute([position])?;
    }
    Ok(())
}

/// The latest at or before a sequence. Whoever asks may see the run.
pub(crate) fn snapshot_at(conn: &Connection, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>, Fault> {
    let sql = "SELECT run_seq, state, checksum FROM snapshots WHERE run_id = ?1 AND run_seq <= ?2 ORDER BY run_seq DESC LIMIT 1";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query(params![run_id.as_str(), int(seq_max)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let snapshot = StoredSnapshot { run_seq: codec::count(row, 0)?, state: codec::text_or_none(row, 1)? };
    Ok(Some(snapshot.checked(run_id, row.get(2)?)))
}

pub(crate) fn insert_snapshot(conn: &Connection, run_id: &RunId, snapshot: &StoredSnapshot) -> Result<(), Fault> {
    let sql = "INSERT INTO snapshots (run_id, run_seq, state, checksum) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (run_id, run_seq) DO UPDATE SET state = excluded.state, checksum = excluded.checksum";
    let checksum = snapshot.checksum(run_id);
    conn.prepare_cached(sql)?.execute(params![run_id.as_str(), int(snapshot.run_seq), snapshot.state, checksum])?;
    Ok(())
}
