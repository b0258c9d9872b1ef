//! After a crash the redo file has what was answered and the database may lack: it is put there before anything else
//! happens. A redo file that lacks something is told: then what was answered last may be gone.

use rusqlite::Connection;
use servo_model::TenantId;
use servo_model::alert::AlertCode;
use servo_model::limits::Limits;
use servo_store::Result;
use servo_store::relay::NewAlert;

use crate::ahead::{Ahead, codec};
use crate::config::Config;
use crate::error::{Fault, corrupt, unavailable};
use crate::redo::Redo;
use crate::sabotage::Sabotage;
use crate::sql::relay;
use crate::writer::tx::Tx;
use crate::{REDO_FILES, apply};

/// The redo file, with nothing in it that the database does not have on its disk. `conn` syncs its commits.
pub(crate) fn recover(conn: &Connection, config: &Config, sabotage: Sabotage) -> Result<Redo> {
    let read = |fault: Fault| fault.into_error(conn);
    let applied = apply::applied(conn).map_err(read)?;
    let syncs = !sabotage.syncs_rarely() && !sabotage.never_syncs();
    // Without syncs nobody can say what must be there.
    let noted = apply::noted(conn).map_err(read)?.filter(|_| syncs);
    let mut findings = Vec::new();
    if noted.is_some() {
        for name in REDO_FILES {
            let path = config.data_dir.join(name);
            if path.try_exists().is_ok_and(|exists| !exists) {
                findings.push(lost(config, &format!("{} is missing", path.display()))?);
            }
        }
    }
    let (mut redo, records) = Redo::open(&config.data_dir, applied, syncs)?;
    if let Some(generation) = noted.filter(|_| findings.is_empty())
        && let Some(lack) = redo.lacks(generation, applied)
    {
        findings.push(lost(config, &lack)?);
    }
    findings.extend(redo.torn()?);
    if config.pages_max.is_none() {
        redo.begin().map_err(|error| unavailable(format!("the redo file: {error}")))?;
    }
    let mut ahead = Ahead { lsn: applied, redo: Some(redo.generation()), ..Ahead::default() };
    let is_behind = !records.is_empty();
    if let Some(last) = records.last().map(|record| record.lsn) {
        tracing::info!(records = records.len(), "the redo file has what the database lacks");
        ahead.lsn = last;
    }
    for record in records {
        let changes = codec::take_all(&record.body);
        let changes = changes.map_err(|damage| corrupt(format!("record {} of the redo file {damage}", record.lsn)))?;
        changes.into_iter().for_each(|change| ahead.absorb(change));
    }
    // Also where it lacks nothing. What a killed process committed last may be in no safer place than the system's memory: this
    // sync covers it, before the space of its records is used again.
    apply_all(conn, &ahead, (config, &findings), sabotage).map_err(read)?;
    if is_behind {
        crashpoint!("sqlite.recover.applied");
    }
    redo.release(ahead.lsn);
    Ok(redo)
}

/// What is missing, if that is accepted.
fn lost(config: &Config, what: &str) -> Result<String> {
    if config.accept_loss {
        return Ok(format!("{what}; the loss was accepted"));
    }
    let folder = config.data_dir.display();
    Err(corrupt(format!(
        "{what}, and the store was not closed in order: what was acknowledged last may be gone. Put the redo files back, or \
         restore a backup, or go on without what is missing: servo store accept-loss --data-dir {folder}"
    )))
}

fn apply_all(
    conn: &Connection,
    ahead: &Ahead,
    (config, findings): (&Config, &[String]),
    sabotage: Sabotage,
) -> std::result::Result<(), Fault> {
    let limits: &Limits = &config.limits;
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let applied = apply::apply(conn, ahead, limits, sabotage)
        .and_then(|()| tell(conn, config, findings))
        .and_then(|()| Ok(conn.execute_batch("COMMIT")?));
    if applied.is_err() && !conn.is_autocommit() {
        // The error that led here says more than one of the rollback would.
        let _ = conn.execute_batch("ROLLBACK");
    }
    applied
}

fn tell(conn: &Connection, config: &Config, findings: &[String]) -> std::result::Result<(), Fault> {
    for finding in findings {
        tracing::warn!("{finding}; what was acknowledged last may be gone");
        let alert = NewAlert {
            code: AlertCode::RedoIncomplete,
            subject: "store".to_owned(),
            run_id: None,
            tenant: TenantId::system(),
            message: finding.clone(),
        };
        relay::raise_alert(&Tx::new(conn, (config.time)()), &alert)?;
    }
    Ok(())
}
