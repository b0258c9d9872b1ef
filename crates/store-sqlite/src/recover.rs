//! After a crash the redo file has what was answered and the database may lack: it is put there before anything else
//! happens.

use rusqlite::Connection;
use servo_model::limits::Limits;
use servo_store::Result;

use crate::ahead::{Ahead, codec};
use crate::apply;
use crate::config::Config;
use crate::error::{Fault, corrupt};
use crate::redo::Redo;
use crate::sabotage::Sabotage;

/// The redo file, with nothing in it that the database does not have on its disk. `conn` syncs its commits.
pub(crate) fn recover(conn: &Connection, config: &Config, sabotage: Sabotage) -> Result<Redo> {
    let read = |fault: Fault| fault.into_error(conn);
    let applied = apply::applied(conn).map_err(read)?;
    let syncs = !sabotage.syncs_rarely() && !sabotage.never_syncs();
    let (mut redo, records) = Redo::open(&config.data_dir, applied, syncs)?;
    let Some(last) = records.last().map(|record| record.lsn) else {
        // What a killed process committed last may be in no safer place than the system's memory. This sync covers it, before
        // the space of its records is used again.
        apply::set_applied(conn, applied).map_err(read)?;
        return Ok(redo);
    };
    tracing::info!(records = records.len(), "the redo file has what the database lacks");
    let mut ahead = Ahead { lsn: last, ..Ahead::default() };
    for record in records {
        let changes = codec::take_all(&record.body);
        let changes = changes.map_err(|damage| corrupt(format!("record {} of the redo file {damage}", record.lsn)))?;
        changes.into_iter().for_each(|change| ahead.absorb(change));
    }
    apply_all(conn, &ahead, &config.limits, sabotage).map_err(read)?;
    crashpoint!("sqlite.recover.applied");
    redo.release(last);
    Ok(redo)
}

fn apply_all(conn: &Connection, ahead: &Ahead, limits: &Limits, sabotage: Sabotage) -> std::result::Result<(), Fault> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let applied = apply::apply(conn, ahead, limits, sabotage).and_then(|()| Ok(conn.execute_batch("COMMIT")?));
    if applied.is_err() && !conn.is_autocommit() {
        // The error that led here says more than one of the rollback would.
        let _ = conn.execute_batch("ROLLBACK");
    }
    applied
}
