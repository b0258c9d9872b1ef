//! The authority: one row. Changes of it are judged by the rules in `servo_store::lease`.

use rusqlite::{Connection, params};
use servo_store::AuthorityRow;

use crate::codec::{self, int};
use crate::error::Fault;

pub(crate) fn put(conn: &Connection, row: &AuthorityRow) -> Result<(), Fault> {
    let sql = "INSERT INTO authority (id, owner, lease_id, leased_until, leased_until_at, epoch, resigned) \
               VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, \
               lease_id = excluded.lease_id, leased_until = excluded.leased_until, \
               leased_until_at = excluded.leased_until_at, epoch = excluded.epoch, resigned = excluded.resigned";
    conn.prepare_cached(sql)?.execute(params![
        row.owner,
        row.lease_id,
        row.leased_until,
        row.leased_until_at.as_millis(),
        int(row.epoch),
        row.resigned,
    ])?;
    Ok(())
}

pub(crate) fn get(conn: &Connection) -> Result<Option<AuthorityRow>, Fault> {
    let sql = "SELECT owner, lease_id, leased_until, leased_until_at, epoch, resigned FROM authority";
    let mut found = conn.prepare_cached(sql)?;
    let mut rows = found.query([])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(AuthorityRow {
        owner: row.get(0)?,
        lease_id: row.get(1)?,
        leased_until: row.get(2)?,
        leased_until_at: codec::time(row, 3)?,
        epoch: codec::count(row, 4)?,
        resigned: row.get(5)?,
    }))
}
