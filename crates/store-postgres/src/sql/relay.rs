//! Cursors, notes of failed publications, dead letters and alerts.

use async_trait::async_trait;
use servo_model::alert::{Alert, AlertCode};
use servo_model::{RunId, TenantId};
use servo_store::relay::{CursorRow, DeadLetter, NewAlert, OutboxRow};
use servo_store::{Error, Fence, Position, RelayStore, Result, Scope};
use tokio_postgres::Row;

use super::{lease, lock, now};
use crate::error::corrupt;
use crate::pipeline::{Param, Pipeline, params};
use crate::rows;
use crate::store::PostgresStore;

const CURSOR: &str = "SELECT * FROM cursors WHERE name = $1";

const INSERT_CURSOR: &str = "INSERT INTO cursors (name, store_epoch, xid, id, last_event_id, target_store_epoch,
        target_xid, target_id, deferred)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING";

const MOVE_CURSOR: &str = "UPDATE cursors SET store_epoch = $2, xid = $3, id = $4, last_event_id = $5,
        target_store_epoch = $6, target_xid = $7, target_id = $8, deferred = $9
    WHERE name = $1 AND (store_epoch, xid, id) = ($10, $11, $12)";

const PUT_CURSOR: &str = "INSERT INTO cursors (name, store_epoch, xid, id, last_event_id, target_store_epoch,
        target_xid, target_id, deferred)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (name) DO UPDATE SET store_epoch = EXCLUDED.store_epoch, xid = EXCLUDED.xid, id = EXCLUDED.id,
        last_event_id = EXCLUDED.last_event_id, target_store_epoch = EXCLUDED.target_store_epoch,
        target_xid = EXCLUDED.target_xid, target_id = EXCLUDED.target_id, deferred = EXCLUDED.deferred";

const OUTBOX_PUT: &str =
    "INSERT INTO outbox (store_epoch, xid, id, run_id, run_seq, tenant_id, attempts, next_at, last_error)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (store_epoch, xid, id) DO UPDATE SET run_id = EXCLUDED.run_id, run_seq = EXCLUDED.run_seq,
        tenant_id = EXCLUDED.tenant_id, attempts = EXCLUDED.attempts, next_at = EXCLUDED.next_at,
        last_error = EXCLUDED.last_error";

const OUTBOX_DUE: &str =
    concat!("SELECT * FROM outbox WHERE next_at <= ", now!(), " ORDER BY store_epoch, xid, id LIMIT $2");

const OUTBOX_LEN: &str = "SELECT count(*) AS count FROM outbox";

const OUTBOX_DONE: &str = "DELETE FROM outbox WHERE (store_epoch, xid, id) = ($1, $2, $3)";

/// The note goes and the letter comes in one statement, so in one transaction.
const OUTBOX_BURY: &str = concat!(
    "WITH done AS (DELETE FROM outbox WHERE (store_epoch, xid, id) = ($2, $3, $4))
     INSERT INTO dead_letters (store_epoch, xid, id, run_id, run_seq, tenant_id, attempts, last_error, buried_at)
     VALUES ($2, $3, $4, $5, $6, $7, $8, $9, ",
    now!(),
    ") ON CONFLICT (store_epoch, xid, id) DO UPDATE SET run_id = EXCLUDED.run_id, run_seq = EXCLUDED.run_seq,
        tenant_id = EXCLUDED.tenant_id, attempts = EXCLUDED.attempts, last_error = EXCLUDED.last_error,
        buried_at = EXCLUDED.buried_at"
);

const DEAD_LETTERS: &str = "SELECT * FROM dead_letters WHERE (store_epoch, xid, id) > ($1, $2, $3)
    ORDER BY store_epoch, xid, id LIMIT $4";

const REDRIVE: &str = concat!(
    "WITH dug AS (DELETE FROM dead_letters WHERE $2::bigint IS NULL OR (store_epoch, xid, id) = ($2, $3, $4)
        RETURNING *)
     INSERT INTO outbox (store_epoch, xid, id, run_id, run_seq, tenant_id, attempts, next_at, last_error)
     SELECT store_epoch, xid, id, run_id, run_seq, tenant_id, 0, ",
    now!(),
    ", last_error FROM dug
     ON CONFLICT (store_epoch, xid, id) DO UPDATE SET run_id = EXCLUDED.run_id, run_seq = EXCLUDED.run_seq,
        tenant_id = EXCLUDED.tenant_id, attempts = EXCLUDED.attempts, next_at = EXCLUDED.next_at,
        last_error = EXCLUDED.last_error"
);

const RAISE: &str = concat!(
    "INSERT INTO alerts (code, tenant_id, subject, run_id, message, first_at, last_at, count)
     VALUES ($2, $3, $4, $5, $6, ",
    now!(),
    ", ",
    now!(),
    ", 1)
     ON CONFLICT (tenant_id, code, subject) DO UPDATE SET run_id = EXCLUDED.run_id, message = EXCLUDED.message,
        last_at = EXCLUDED.last_at, count = alerts.count + 1"
);

/// Codes in the order of their declaration, which the second parameter lists.
const ALERTS: &str = "SELECT * FROM alerts WHERE $1::text IS NULL OR tenant_id = $1
    ORDER BY last_at DESC, array_position($2::text[], code::text), subject, tenant_id LIMIT $3";

const CLEAR_ALERT: &str = "DELETE FROM alerts WHERE code = $1 AND tenant_id = $2 AND subject = $3";

pub(crate) fn put_cursors<'a>(pipeline: &mut Pipeline<'a>, cursors: impl Iterator<Item = &'a CursorRow>) -> Result<()> {
    for cursor in cursors {
        pipeline.query(PUT_CURSOR, cursor_params(cursor)?);
    }
    Ok(())
}

fn cursor_params(cursor: &CursorRow) -> Result<Vec<Param<'_>>> {
    let mut params = params![cursor.name.as_str()];
    params.extend(position_params(cursor.position)?);
    params.extend(params![cursor.last_event_id]);
    match cursor.target {
        Some(target) => params.extend(position_params(target)?),
        None => params.extend(params![None::<i64>, None::<i64>, None::<i64>]),
    }
    params.extend(params![cursor.deferred]);
    Ok(params)
}

fn position_params<'a>(position: Position) -> Result<Vec<Param<'a>>> {
    let transaction = rows::exact("position", position.transaction)?;
    Ok(params![i64::from(position.store_epoch), transaction, rows::exact("position", position.id)?])
}

fn cursor(row: &Row) -> Result<CursorRow> {
    let target = match rows::get::<Option<i64>>(row, "target_store_epoch")? {
        Some(_) => Some(Position {
            store_epoch: rows::small(row, "target_store_epoch")?,
            transaction: rows::number(row, "target_xid")?,
            id: rows::number(row, "target_id")?,
        }),
        None => None,
    };
    Ok(CursorRow {
        name: rows::get(row, "name")?,
        position: rows::noted_position(row)?,
        last_event_id: rows::get(row, "last_event_id")?,
        target,
        deferred: rows::get(row, "deferred")?,
    })
}

fn outbox(row: &Row) -> Result<OutboxRow> {
    Ok(OutboxRow {
        position: rows::noted_position(row)?,
        run_id: rows::run_id(row, "run_id")?,
        run_seq: rows::number(row, "run_seq")?,
        tenant: rows::tenant(row)?,
        attempts: rows::small(row, "attempts")?,
        next_at: rows::time(row, "next_at")?,
        last_error: rows::get(row, "last_error")?,
    })
}

fn dead_letter(row: &Row) -> Result<DeadLetter> {
    Ok(DeadLetter {
        position: rows::noted_position(row)?,
        run_id: rows::run_id(row, "run_id")?,
        run_seq: rows::number(row, "run_seq")?,
        tenant: rows::tenant(row)?,
        attempts: rows::small(row, "attempts")?,
        last_error: rows::get(row, "last_error")?,
        buried_at: rows::time(row, "buried_at")?,
    })
}

/// One of a later release is passed over, and not the reason that nobody sees the others.
fn alert(row: &Row) -> Result<Option<Alert>> {
    let Some(code) = AlertCode::parse(rows::get(row, "code")?) else { return Ok(None) };
    let run_id: Option<&str> = rows::get(row, "run_id")?;
    Ok(Some(Alert {
        code,
        severity: code.severity(),
        subject: rows::get(row, "subject")?,
        run_id: run_id.map(RunId::parse).transpose().map_err(|_| corrupt("a run id cannot be read"))?,
        tenant_id: rows::tenant(row)?,
        message: rows::get(row, "message")?,
        first_at: rows::time(row, "first_at")?,
        last_at: rows::time(row, "last_at")?,
        count: rows::number(row, "count")?,
    }))
}

#[async_trait]
impl RelayStore for PostgresStore {
    async fn cursor(&self, name: &str) -> Result<Option<CursorRow>> {
        let rows = self.engine_read(CURSOR, params![name]).await?;
        rows.first().map(cursor).transpose()
    }

    async fn move_cursor(&self, from: Option<Position>, to: CursorRow, fence: Option<Fence>) -> Result<()> {
        self.core.check_open()?;
        let fence = self.core.enforced(fence);
        let mut params = cursor_params(&to)?;
        let sql = match from {
            Some(from) => {
                params.extend(position_params(from)?);
                MOVE_CURSOR
            }
            None => INSERT_CURSOR,
        };
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        if fence.is_some() {
            pipeline.query(lock::AUTHORITY_SHARED, params![]);
        }
        let clock = pipeline.query(lease::CLOCK_AND_AUTHORITY, params![self.core.injected_now()]);
        let moved = pipeline.query(sql, params);
        let answers = connection.ask(pipeline).await?;
        let row = answers[clock].rows.first().ok_or_else(|| corrupt("the clock is missing"))?;
        let held = rows::authority(row)?;
        let fenced = fence.map_or(Ok(()), |fence| fence.check(held.as_ref(), rows::time(row, "now")?));
        let refused = match fenced {
            Ok(()) if answers[moved].affected == 0 => Some(Error::CursorMoved { name: to.name.clone() }),
            Ok(()) => None,
            Err(error) => Some(error),
        };
        if let Some(error) = refused {
            connection.roll_back().await;
            return Err(error);
        }
        connection.commit(Pipeline::new()).await
    }

    async fn outbox_put(&self, row: OutboxRow) -> Result<()> {
        let mut params = position_params(row.position)?;
        let seq = rows::exact("run_seq", row.run_seq)?;
        let (attempts, next_at) = (i64::from(row.attempts), row.next_at.as_millis());
        params.extend(params![
            row.run_id.as_str(),
            seq,
            row.tenant.as_str(),
            attempts,
            next_at,
            row.last_error.as_str()
        ]);
        self.engine_write(OUTBOX_PUT, params).await.map(|_| ())
    }

    async fn outbox_due(&self, limit: u32) -> Result<Vec<OutboxRow>> {
        let rows = self.engine_read(OUTBOX_DUE, params![self.core.injected_now(), i64::from(limit)]).await?;
        rows.iter().map(outbox).collect()
    }

    async fn outbox_len(&self) -> Result<u64> {
        let rows = self.engine_read(OUTBOX_LEN, params![]).await?;
        rows.first().map_or(Ok(0), |row| rows::number(row, "count"))
    }

    async fn outbox_done(&self, position: Position) -> Result<()> {
        self.engine_write(OUTBOX_DONE, position_params(position)?).await.map(|_| ())
    }

    async fn outbox_bury(&self, row: OutboxRow) -> Result<()> {
        let mut params = params![self.core.injected_now()];
        params.extend(position_params(row.position)?);
        let seq = rows::exact("run_seq", row.run_seq)?;
        let attempts = i64::from(row.attempts);
        params.extend(params![row.run_id.as_str(), seq, row.tenant.as_str(), attempts, row.last_error.as_str()]);
        self.engine_write(OUTBOX_BURY, params).await.map(|_| ())
    }

    async fn dead_letters(&self, after: Position, limit: u32) -> Result<Vec<DeadLetter>> {
        let mut params = params![i64::from(after.store_epoch), rows::bound(after.transaction), rows::bound(after.id)];
        params.extend(params![i64::from(limit)]);
        let rows = self.engine_read(DEAD_LETTERS, params).await?;
        rows.iter().map(dead_letter).collect()
    }

    async fn redrive(&self, position: Option<Position>) -> Result<u64> {
        let mut params = params![self.core.injected_now()];
        match position {
            Some(position) => params.extend(position_params(position)?),
            None => params.extend(params![None::<i64>, None::<i64>, None::<i64>]),
        }
        Ok(self.engine_write(REDRIVE, params).await?.affected)
    }

    async fn raise_alert(&self, alert: NewAlert) -> Result<()> {
        let run = alert.run_id.as_ref().map(RunId::as_str);
        let (code, tenant) = (alert.code.as_str(), alert.tenant.as_str());
        let (subject, message) = (alert.subject.as_str(), alert.message.as_str());
        let params = params![self.core.injected_now(), code, tenant, subject, run, message];
        self.engine_write(RAISE, params).await.map(|_| ())
    }

    async fn alerts(&self, scope: &Scope, limit: u32) -> Result<Vec<Alert>> {
        let codes: Vec<&str> = AlertCode::ALL.iter().map(|code| code.as_str()).collect();
        let mut read = self.reading(scope);
        let found = read.query(ALERTS, params![read.tenant(), codes, i64::from(limit)]);
        let answers = self.read(read).await?;
        answers[found].rows.iter().filter_map(|row| alert(row).transpose()).collect()
    }

    async fn clear_alert(&self, code: AlertCode, tenant: &TenantId, subject: &str) -> Result<()> {
        self.engine_write(CLEAR_ALERT, params![code.as_str(), tenant.as_str(), subject]).await.map(|_| ())
    }
}
