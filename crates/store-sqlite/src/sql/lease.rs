//! The authority: one row, judged by the rules in `servo_store::lease`.

use rusqlite::{Connection, params};
use servo_store::{AuthorityChange, AuthorityRow, Fence};

use crate::codec::{self, int};
use crate::error::Fault;
use crate::writer::tx::Tx;

pub(crate) fn check_fence(tx: &Tx<'_>, fence: Fence) -> Result<(), Fault> {
    if tx.sabotage.ignores_fences() {
        return Ok(());
    }
    Ok(fence.check(get(tx.conn)?.as_ref(), tx.now)?)
}

/// Makes the change and says the epoch after it.
pub(crate) fn change(tx: &Tx<'_>, change: &AuthorityChange) -> Result<u64, Fault> {
    let row = AuthorityRow::change(get(tx.conn)?.as_ref(), change, tx.now)?;
    let sql = "INSERT INTO authority (id, owner, lease_id, leased_until, leased_until_at, epoch, resigned) \
               VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, \
               lease_id = excluded.lease_id, leased_until = excluded.leased_until, \
               leased_until_at = excluded.leased_until_at, epoch = excluded.epoch, resigned = excluded.resigned";
    tx.conn.prepare_cached(sql)?.execute(params![
        row.owner,
        row.lease_id,
        row.leased_until,
        row.leased_until_at.as_millis(),
        int(row.epoch),
        row.resigned,
    ])?;
    Ok(row.epoch)
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
