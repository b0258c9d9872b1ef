//! The log: appending through the batcher, reading a run, and reading everything in the order of positions.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::limits::INLINE_PAYLOAD_BYTES_MAX;
use servo_model::{RunId, TenantId, Timestamp};
use servo_store::checksum::{Content, snapshot_checksum, unplaced};
use servo_store::log::{LogPage, RunPage, StoredRun, StoredSnapshot, Unreadable};
use servo_store::{Append, Appended, AuthorityChange, Error, LogStore, Position, Result, Scope, StoredEvent};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::runs;
use crate::append::EventWrite;
use crate::error::{Phase, corrupt};
use crate::pipeline::{Param, Pipeline, params};
use crate::rows::{self, Xid8, event_page};
use crate::store::PostgresStore;

const INSERT: &str = "INSERT INTO events (run_seq, emitted_at, occurred_at, event_id, store_epoch, run_id, tenant_id,
        event_type, idempotency_key, emitted_by, payload, blob_digest, format, checksum)
    SELECT u.run_seq, u.emitted_at, u.occurred_at, u.event_id, (SELECT store_epoch FROM meta), u.run_id, u.tenant_id,
        u.event_type, u.idempotency_key, u.emitted_by, u.payload, u.blob_digest, u.format,
        u.checksum # seal_of((SELECT store_epoch FROM meta), pg_current_xact_id(), u.emitted_at)
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::bytea[],
        $9::text[], $10::text[], $11::bytea[], $12::integer[], $13::bigint[])
        AS u (run_seq, emitted_at, occurred_at, event_id, run_id, tenant_id, event_type, idempotency_key, emitted_by,
            payload, blob_digest, format, checksum)";

const INSERT_BLOBS: &str = "INSERT INTO blobs (run_seq, run_id, tenant_id, payload)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[])";

const INSERT_SNAPSHOTS: &str = "INSERT INTO snapshots (run_seq, run_id, tenant_id, state, checksum)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[])
    ON CONFLICT (run_id, run_seq) DO UPDATE SET state = EXCLUDED.state, checksum = EXCLUDED.checksum";

const HEAD: &str = "SELECT GREATEST(r.head_floor, COALESCE(
        (SELECT e.run_seq FROM events e WHERE e.run_id = r.run_id ORDER BY e.run_seq DESC LIMIT 1), 0)) AS head
    FROM runs r WHERE r.run_id = $1 AND ($2::text IS NULL OR r.tenant_id = $2)";

const READ_RUN: &str = event_page!(
    "FROM events e WHERE e.run_id = $1 AND e.run_seq > $2 AND ($4::text IS NULL OR e.tenant_id = $4)
     ORDER BY e.run_seq LIMIT $3",
    "e.run_seq",
    "$5"
);

const SNAPSHOT: &str = "SELECT run_seq, run_id, state, checksum FROM snapshots
    WHERE run_id = $1 AND run_seq <= $2 AND ($3::text IS NULL OR tenant_id = $3) ORDER BY run_seq DESC LIMIT 1";

/// The events behind the latest snapshot, the same that `SNAPSHOT` finds: a read is of one moment.
const READ_REST: &str = event_page!(
    "FROM events e WHERE e.run_id = $1 AND e.run_seq > COALESCE(
         (SELECT max(s.run_seq) FROM snapshots s WHERE s.run_id = $1 AND ($3::text IS NULL OR s.tenant_id = $3)), 0)
     AND ($3::text IS NULL OR e.tenant_id = $3) ORDER BY e.run_seq LIMIT $2",
    "e.run_seq",
    "$4"
);

const PUT_SNAPSHOT: &str = "INSERT INTO snapshots (run_seq, run_id, tenant_id, state, checksum)
    SELECT $1, run_id, tenant_id, $2, $5::bigint FROM runs WHERE run_id = $3 AND tenant_id = $4
    ON CONFLICT (run_id, run_seq) DO UPDATE SET state = EXCLUDED.state, checksum = EXCLUDED.checksum";

/// What a reader may see of the log: every earlier epoch, and of this one the transactions below the oldest open one.
/// Whatever commits later has a position above all of these, so nothing is ever passed over.
macro_rules! is_settled {
    () => {
        "(e.store_epoch, e.xid) < ((SELECT store_epoch FROM meta), pg_snapshot_xmin(pg_current_snapshot()))"
    };
}

const READ_LOG: &str = event_page!(
    concat!(
        "FROM events e WHERE (e.store_epoch, e.xid, e.id) > ($1::int, $2::xid8, $3::bigint) AND ",
        is_settled!(),
        " ORDER BY e.store_epoch, e.xid, e.id LIMIT $4"
    ),
    "e.store_epoch, e.xid, e.id",
    "$5"
);

/// The control of the reader above: it believes that ids become visible in their order.
const READ_LOG_NAIVELY: &str = event_page!("FROM events e WHERE e.id > $1 ORDER BY e.id LIMIT $2", "e.id", "$3");

const LOG_HEAD: &str = concat!(
    "SELECT e.store_epoch, e.xid, e.id FROM events e WHERE ",
    is_settled!(),
    " ORDER BY e.store_epoch DESC, e.xid DESC, e.id DESC LIMIT 1"
);

const COUNT_LOG: &str = concat!(
    "SELECT count(*) AS count FROM (SELECT FROM events e
        WHERE (e.store_epoch, e.xid, e.id) > ($1::int, $2::xid8, $3::bigint)
            AND (e.store_epoch, e.xid, e.id) <= ($4::int, $5::xid8, $6::bigint) AND ",
    is_settled!(),
    " LIMIT $7) counted"
);

/// How long ago the first event was written that is committed but held back by a transaction that is still open.
pub(crate) const HELD_BACK: &str =
    "SELECT COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) - e.emitted_at AS age
     FROM events e
     WHERE (e.store_epoch, e.xid) >= ((SELECT store_epoch FROM meta), pg_snapshot_xmin(pg_current_snapshot()))
     ORDER BY e.store_epoch, e.xid, e.id LIMIT 1";

pub(crate) fn insert<'a>(
    pipeline: &mut Pipeline<'a>,
    events: &[EventWrite<'a>],
    now: Timestamp,
    seals: bool,
) -> Result<()> {
    let mut columns = Columns::default();
    for write in events {
        let EventWrite { run_id, tenant, run_seq, event } = write;
        columns.format.push(rows::FORMAT_WRITTEN);
        columns.checksum.push(seals.then(|| write.checksum()));
        columns.emitted_at.push(now.as_millis());
        columns.occurred_at.push(event.occurred_at.map(|at| at.as_millis()));
        columns.event_id.push(event.event_id);
        columns.event_type.push(&event.event_type);
        columns.key.push(event.idempotency_key.as_bytes());
        columns.emitted_by.push(&event.emitted_by);
        columns.owner(run_id, tenant, *run_seq)?;
        columns.payload(&event.payload);
    }
    columns.send(pipeline);
    Ok(())
}

/// Events that bring their sequences and times along. Their tenant is the run's.
pub(crate) fn import<'a>(pipeline: &mut Pipeline<'a>, tenant: &'a TenantId, events: &'a [StoredEvent]) -> Result<()> {
    let mut columns = Columns::default();
    for event in events {
        columns.format.push(i32::try_from(event.format).map_err(|_| corrupt("a format is too large"))?);
        columns.checksum.push(Some(unplaced(Content { tenant, ..event.content() }.checksum())));
        columns.emitted_at.push(event.emitted_at.as_millis());
        columns.occurred_at.push(event.occurred_at.map(|at| at.as_millis()));
        columns.event_id.push(event.event_id);
        columns.event_type.push(&event.event_type);
        columns.key.push(event.idempotency_key.as_bytes());
        columns.emitted_by.push(&event.emitted_by);
        columns.owner(&event.run_id, tenant, event.run_seq)?;
        columns.payload(&event.payload);
    }
    columns.send(pipeline);
    Ok(())
}

/// Events as parallel arrays, one element per event; large payloads apart.
#[derive(Default)]
struct Columns<'a> {
    run_seq: Vec<i64>,
    emitted_at: Vec<i64>,
    occurred_at: Vec<Option<i64>>,
    event_id: Vec<uuid::Uuid>,
    run_id: Vec<&'a str>,
    tenant: Vec<&'a str>,
    event_type: Vec<&'a str>,
    key: Vec<&'a [u8]>,
    emitted_by: Vec<&'a str>,
    inline: Vec<Option<&'a str>>,
    digest: Vec<Option<Vec<u8>>>,
    format: Vec<i32>,
    checksum: Vec<Option<i64>>,
    blobs: Vec<(usize, &'a str)>,
}

impl<'a> Columns<'a> {
    fn owner(&mut self, run_id: &'a RunId, tenant: &'a TenantId, run_seq: u64) -> Result<()> {
        self.run_seq.push(rows::exact("run_seq", run_seq)?);
        self.run_id.push(run_id.as_str());
        self.tenant.push(tenant.as_str());
        Ok(())
    }

    fn payload(&mut self, payload: &'a str) {
        if payload.len() > INLINE_PAYLOAD_BYTES_MAX {
            self.blobs.push((self.inline.len(), payload));
            self.inline.push(None);
            self.digest.push(Some(Digest::of(payload.as_bytes()).as_bytes().to_vec()));
        } else {
            self.inline.push(Some(payload));
            self.digest.push(None);
        }
    }

    fn send(self, pipeline: &mut Pipeline<'a>) {
        if self.run_seq.is_empty() {
            return;
        }
        let blobs = (!self.blobs.is_empty()).then(|| {
            let of = |column: &[&'a str]| self.blobs.iter().map(|(index, _)| column[*index]).collect::<Vec<_>>();
            let seqs: Vec<i64> = self.blobs.iter().map(|(index, _)| self.run_seq[*index]).collect();
            let payloads: Vec<&str> = self.blobs.iter().map(|(_, payload)| *payload).collect();
            params![seqs, of(&self.run_id), of(&self.tenant), payloads]
        });
        let params = params![
            self.run_seq,
            self.emitted_at,
            self.occurred_at,
            self.event_id,
            self.run_id,
            self.tenant,
            self.event_type,
            self.key,
            self.emitted_by,
            self.inline,
            self.digest,
            self.format,
            self.checksum,
        ];
        pipeline.query(INSERT, params);
        if let Some(params) = blobs {
            pipeline.query(INSERT_BLOBS, params);
        }
    }
}

pub(crate) fn insert_snapshots<'a>(
    pipeline: &mut Pipeline<'a>,
    snapshots: &BTreeMap<(&'a RunId, u64), (&'a TenantId, &'a str)>,
) -> Result<()> {
    if snapshots.is_empty() {
        return Ok(());
    }
    let seqs = snapshots.keys().map(|(_, seq)| rows::exact("run_seq", *seq)).collect::<Result<Vec<_>>>()?;
    let runs: Vec<&str> = snapshots.keys().map(|(run, _)| run.as_str()).collect();
    let tenants: Vec<&str> = snapshots.values().map(|(tenant, _)| tenant.as_str()).collect();
    let states: Vec<&str> = snapshots.values().map(|(_, state)| *state).collect();
    let sums = snapshots.iter().map(|((run, seq), (_, state))| snapshot_checksum(run, *seq, state)).collect::<Vec<_>>();
    pipeline.query(INSERT_SNAPSHOTS, params![seqs, runs, tenants, states, sums]);
    Ok(())
}

/// One that is not as written comes without its state.
fn snapshot(row: &Row) -> Result<StoredSnapshot> {
    let found = StoredSnapshot { run_seq: rows::number(row, "run_seq")?, state: rows::get(row, "state")? };
    Ok(found.checked(&rows::run_id(row, "run_id")?, rows::get(row, "checksum")?))
}

fn position_params<'a>(position: Position) -> Vec<Param<'a>> {
    let epoch = i32::try_from(position.store_epoch).unwrap_or(i32::MAX);
    params![epoch, Xid8(position.transaction), rows::bound(position.id)]
}

#[async_trait]
impl LogStore for PostgresStore {
    async fn now(&self) -> Result<Timestamp> {
        self.core.check_open()?;
        if let Some(now) = self.core.injected_now() {
            return Ok(Timestamp::from_millis(now));
        }
        let rows = self.engine_read(super::CLOCK, params![]).await?;
        rows.first().map_or_else(|| Err(corrupt("the clock is missing")), |row| rows::time(row, "now"))
    }

    async fn append(&self, mut append: Append) -> Result<Appended> {
        append.check(&self.core.limits)?;
        append.fence = self.core.enforced(append.fence);
        let resigns = matches!(append.authority, Some(AuthorityChange::Resign { .. }));
        let appended = self.batcher.append(append).await?;
        if resigns {
            self.hints.tell_freed(&self.core).await;
        }
        Ok(appended)
    }

    async fn read_run(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage> {
        let mut read = self.reading(scope);
        let tenant = read.tenant();
        let head = read.query(HEAD, params![run_id.as_str(), tenant]);
        let (after, limit, bytes) = (rows::bound(after), i64::from(limit), self.page_bytes_max());
        let events = read.query(READ_RUN, params![run_id.as_str(), after, limit, tenant, bytes]);
        let answers = self.read(read).await?;
        let row = answers[head].rows.first().ok_or(Error::NotFound)?;
        let events = answers[events].rows.iter().map(rows::event).collect::<Result<_>>()?;
        Ok(RunPage { events, head_seq: rows::number(row, "head")? })
    }

    async fn load_run(&self, scope: &Scope, run_id: &RunId, limit: u32) -> Result<StoredRun> {
        let mut read = self.reading(scope);
        let tenant = read.tenant();
        let run = read.query(runs::GET, params![run_id.as_str(), tenant]);
        let head = read.query(HEAD, params![run_id.as_str(), tenant]);
        let found = read.query(SNAPSHOT, params![run_id.as_str(), i64::MAX, tenant]);
        let events = read.query(READ_REST, params![run_id.as_str(), i64::from(limit), tenant, self.page_bytes_max()]);
        let answers = self.read(read).await?;
        let row = answers[run].rows.first().map(rows::run).ok_or(Error::NotFound)??;
        let head_seq = rows::number(answers[head].rows.first().ok_or(Error::NotFound)?, "head")?;
        let snapshot = answers[found].rows.first().map(snapshot).transpose()?;
        let events = answers[events].rows.iter().map(rows::event).collect::<Result<_>>()?;
        Ok(StoredRun { row, snapshot, page: RunPage { events, head_seq } })
    }

    async fn snapshot_at(&self, scope: &Scope, run_id: &RunId, seq_max: u64) -> Result<Option<StoredSnapshot>> {
        let mut read = self.reading(scope);
        let tenant = read.tenant();
        let head = read.query(HEAD, params![run_id.as_str(), tenant]);
        let found = read.query(SNAPSHOT, params![run_id.as_str(), rows::bound(seq_max), tenant]);
        let answers = self.read(read).await?;
        if answers[head].rows.is_empty() {
            return Err(Error::NotFound);
        }
        answers[found].rows.first().map(snapshot).transpose()
    }

    async fn put_snapshot(&self, run_id: &RunId, tenant: &TenantId, snapshot: StoredSnapshot) -> Result<()> {
        self.core.check_open()?;
        let seq = rows::exact("run_seq", snapshot.run_seq)?;
        let connection = self.core.pools.borrow(&self.core.pools.tenant).await?;
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(super::SET_TENANTS, params![tenant.as_str()]);
        let checksum = snapshot.checksum(run_id);
        pipeline.query(PUT_SNAPSHOT, params![seq, snapshot.state, run_id.as_str(), tenant.as_str(), checksum]);
        let commit = pipeline.plain("COMMIT");
        match connection.send(pipeline).await {
            Ok(_) => {
                connection.release();
                Ok(())
            }
            // The run was deleted between its row's reading and the snapshot's writing.
            Err(failed) if failed.failure.state() == Some(&SqlState::FOREIGN_KEY_VIOLATION) => {
                connection.roll_back().await;
                Ok(())
            }
            Err(failed) if failed.failure.is_refusal() => {
                connection.roll_back().await;
                Err(failed.failure.into_error(Phase::Open))
            }
            Err(failed) => Err(failed.into_error(commit)),
        }
    }

    async fn read_log(&self, after: Position, limit: u32) -> Result<LogPage> {
        let rows = if self.core.reads_naively {
            let params = params![rows::bound(after.id), i64::from(limit), self.page_bytes_max()];
            self.engine_read(READ_LOG_NAIVELY, params).await?
        } else {
            let mut params = position_params(after);
            params.extend(params![i64::from(limit), self.page_bytes_max()]);
            self.engine_read(READ_LOG, params).await?
        };
        let mut page = LogPage::new(Vec::new(), after);
        for row in &rows {
            page.next = rows::event_position(row)?;
            match rows::event(row) {
                Ok(event) => page.events.push(Arc::new(event)),
                Err(Error::Corrupt { detail }) => {
                    let run = rows::run_id(row, "run_id").and_then(|run_id| Ok((run_id, rows::tenant(row)?))).ok();
                    page.unreadable.push(Unreadable { position: page.next, run, detail });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(page)
    }

    async fn log_head(&self) -> Result<Position> {
        let rows = self.engine_read(LOG_HEAD, params![]).await?;
        rows.first().map_or(Ok(Position::START), rows::event_position)
    }

    async fn count_log(&self, after: Position, until: Position, most: u64) -> Result<u64> {
        self.core.check_open()?;
        if until <= after {
            return Ok(0);
        }
        let mut params = position_params(after);
        params.extend(position_params(until));
        params.extend(params![rows::bound(most)]);
        let rows = self.engine_read(COUNT_LOG, params).await?;
        rows.first().map_or(Ok(0), |row| rows::number(row, "count"))
    }
}
