//! Values between Rust and SQL. A stored value that this version cannot read is reported as damage, never guessed.

use std::error::Error as StdError;

use servo_canon::Digest;
use servo_model::contract::DispatchState;
use servo_model::event::{EventBody, FORMAT};
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::{EventId, RunId, RunStatus, StepId, TenantId, Timestamp};
use servo_store::dispatch::DispatchStep;
use servo_store::{AuthorityRow, DispatchRow, Error, Position, Result, RunRow, StoredEvent};
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::error::corrupt;

/// A transaction id that never wraps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Xid8(pub(crate) u64);

impl ToSql for Xid8 {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::XID8
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Xid8 {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(u64::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::XID8
    }
}

/// SQL has no unsigned numbers. Beyond its range nothing exists, so a bound there may as well be the end of it.
pub(crate) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The same for a number that will be stored and must come back as it was.
pub(crate) fn exact(field: &str, number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|_| Error::Invalid { field: field.to_owned(), reason: "is too large".to_owned() })
}

pub(crate) fn unsigned(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| corrupt("a number is negative"))
}

/// Reads a column, and says so if it is not of the kind it must be.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T> {
    row.try_get(column).map_err(|_| corrupt(&format!("column {column} cannot be read")))
}

pub(crate) fn time(row: &Row, column: &str) -> Result<Timestamp> {
    Ok(Timestamp::from_millis(get(row, column)?))
}

pub(crate) fn optional_time(row: &Row, column: &str) -> Result<Option<Timestamp>> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_millis))
}

pub(crate) fn number(row: &Row, column: &str) -> Result<u64> {
    unsigned(get(row, column)?)
}

pub(crate) fn small(row: &Row, column: &str) -> Result<u32> {
    u32::try_from(get::<i64>(row, column)?).map_err(|_| corrupt(&format!("column {column} is out of range")))
}

pub(crate) fn digest(bytes: &[u8]) -> Result<Digest> {
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| corrupt("a digest has the wrong length"))?;
    Ok(Digest::from_bytes(bytes))
}

pub(crate) fn run_id(row: &Row, column: &str) -> Result<RunId> {
    RunId::parse(get(row, column)?).map_err(|_| corrupt("a run id cannot be read"))
}

pub(crate) fn tenant(row: &Row) -> Result<TenantId> {
    TenantId::parse(get(row, "tenant_id")?).map_err(|_| corrupt("a tenant id cannot be read"))
}

/// From the columns `store_epoch`, `xid` and `id` of an event.
pub(crate) fn event_position(row: &Row) -> Result<Position> {
    let epoch: i32 = get(row, "store_epoch")?;
    Ok(Position {
        store_epoch: u32::try_from(epoch).map_err(|_| corrupt("a store epoch is negative"))?,
        transaction: get::<Xid8>(row, "xid")?.0,
        id: number(row, "id")?,
    })
}

/// From the same columns of the tables that only note a position.
pub(crate) fn noted_position(row: &Row) -> Result<Position> {
    Ok(Position { store_epoch: small(row, "store_epoch")?, transaction: number(row, "xid")?, id: number(row, "id")? })
}

/// A page of events with their payloads, from wherever those are: `$from` (of `events e`, with its LIMIT) in the order
/// `$order`, ended early where the payloads exceed `$bytes`, a parameter. Sizes are known without reading what is large,
/// so the server reads, and sends, no payload beyond the page.
macro_rules! event_page {
    ($from:expr, $order:literal, $bytes:literal) => {
        concat!(
            "SELECT e.store_epoch, e.xid, e.id, e.run_id, e.tenant_id, e.run_seq, e.event_id, e.event_type,
                e.idempotency_key, e.emitted_at, e.emitted_by, e.occurred_at, e.blob_digest, e.format,
                e.checksum,
                CASE WHEN e.blob_digest IS NULL THEN e.payload
                    ELSE (SELECT b.payload FROM blobs b WHERE b.run_id = e.run_id AND b.run_seq = e.run_seq)
                END AS payload
            FROM (SELECT e.*, row_number() OVER page AS number, sum(e.size) OVER page AS total
                FROM (SELECT e.*, CASE WHEN e.blob_digest IS NULL THEN octet_length(e.payload)
                        ELSE (SELECT octet_length(b.payload) FROM blobs b
                            WHERE b.run_id = e.run_id AND b.run_seq = e.run_seq)
                    END AS size ",
            $from,
            ") e WINDOW page AS (ORDER BY ",
            $order,
            " ROWS UNBOUNDED PRECEDING)) e WHERE e.number = 1 OR e.total <= ",
            $bytes,
            "::bigint ORDER BY ",
            $order
        )
    };
}
pub(crate) use event_page;

/// As the events that this program writes.
pub(crate) const FORMAT_WRITTEN: i32 = FORMAT.cast_signed();

/// Compared with its checksum.
pub(crate) fn event(row: &Row) -> Result<StoredEvent> {
    let (event, checksum) = event_and_checksum(row).map_err(|error| match error {
        Error::Corrupt { detail } => {
            let (run_id, run_seq) = (row.try_get("run_id").unwrap_or("?"), row.try_get("run_seq").unwrap_or(0_i64));
            corrupt(&format!("event {run_seq} of run {run_id}: {detail}"))
        }
        error => error,
    })?;
    event.check(checksum)?;
    Ok(event)
}

/// One of before has no checksum, and where its payload is large a digest.
fn event_and_checksum(row: &Row) -> Result<(StoredEvent, Option<i64>)> {
    let payload: Option<String> = get(row, "payload")?;
    let checksum: Option<i64> = get(row, "checksum")?;
    let payload = payload.ok_or_else(|| corrupt("a payload is missing"))?;
    if checksum.is_none()
        && let Some(expected) = get::<Option<&[u8]>>(row, "blob_digest")?
        && digest(expected)? != Digest::of(payload.as_bytes())
    {
        return Err(corrupt("a payload does not have its digest"));
    }
    let event = StoredEvent {
        position: event_position(row)?,
        format: u32::try_from(get::<i32>(row, "format")?).map_err(|_| corrupt("a format is negative"))?,
        run_id: run_id(row, "run_id")?,
        tenant: tenant(row)?,
        run_seq: number(row, "run_seq")?,
        event_id: get::<EventId>(row, "event_id")?,
        event_type: EventBody::interned_type(get(row, "event_type")?),
        idempotency_key: digest(get(row, "idempotency_key")?)?,
        emitted_at: time(row, "emitted_at")?,
        emitted_by: get::<&str>(row, "emitted_by")?.into(),
        occurred_at: optional_time(row, "occurred_at")?,
        payload,
    };
    Ok((event, checksum))
}

pub(crate) fn run(row: &Row) -> Result<RunRow> {
    let status: &str = get(row, "status")?;
    Ok(RunRow {
        run_id: run_id(row, "run_id")?,
        tenant: tenant(row)?,
        project: get::<&str>(row, "project")?.into(),
        environment: get::<&str>(row, "environment")?.into(),
        plan_id: get::<&str>(row, "plan_id")?.into(),
        plan_version: get(row, "plan_version")?,
        status: RunStatus::parse(status).ok_or_else(|| corrupt("a run has an unknown status"))?,
        visible: visible(row)?,
        request_key: get::<Option<&[u8]>>(row, "request_key")?.map(digest).transpose()?,
        created_at: time(row, "created_at")?,
        finished_at: optional_time(row, "finished_at")?,
        changed_seq: number(row, "changed_seq")?,
        quarantined: get(row, "quarantined")?,
        name: get(row, "name")?,
        outcome: get(row, "outcome")?,
        invocation: get(row, "invocation")?,
        mode: mode(get(row, "mode")?)?,
        correlation_id: get(row, "correlation_id")?,
        root: root(get(row, "root_id")?)?,
    })
}

fn root(text: Option<&str>) -> Result<Option<RunId>> {
    let unreadable = |_| corrupt("a run's root cannot be read");
    text.map(|text| RunId::parse(text).map_err(unreadable)).transpose()
}

fn mode(text: Option<&str>) -> Result<Option<InvocationMode>> {
    let unknown = || corrupt("a run has an unknown mode");
    text.map(|text| InvocationMode::parse(text).ok_or_else(unknown)).transpose()
}

pub(crate) fn visible(row: &Row) -> Result<InvocationStatus> {
    InvocationStatus::parse(get(row, "visible")?).ok_or_else(|| corrupt("a run has an unknown visible status"))
}

pub(crate) fn dispatch(row: &Row) -> Result<DispatchRow> {
    let step = match get::<Option<&str>>(row, "step_id")? {
        Some(step) => Some(DispatchStep {
            step_id: StepId::parse(step).map_err(|_| corrupt("a step id cannot be read"))?,
            logical_attempt: small(row, "logical_attempt")?,
        }),
        None => None,
    };
    let state: &str = get(row, "state")?;
    Ok(DispatchRow {
        request_id: get(row, "request_id")?,
        run_id: run_id(row, "run_id")?,
        tenant: tenant(row)?,
        target: get(row, "target")?,
        step,
        state: DispatchState::parse(state).ok_or_else(|| corrupt("a dispatch has an unknown state"))?,
        channel: get(row, "channel")?,
        reason: get(row, "reason")?,
        epoch: number(row, "epoch")?,
        queued_at: time(row, "queued_at")?,
        changed_at: time(row, "changed_at")?,
    })
}

/// `None` if the row stands for no authority at all (an outer join that found none).
pub(crate) fn authority(row: &Row) -> Result<Option<AuthorityRow>> {
    let Some(owner) = get::<Option<String>>(row, "owner")? else { return Ok(None) };
    Ok(Some(AuthorityRow {
        owner,
        lease_id: get(row, "lease_id")?,
        leased_until: get(row, "leased_until")?,
        leased_until_at: time(row, "leased_until_at")?,
        epoch: number(row, "epoch")?,
        resigned: get(row, "resigned")?,
    }))
}
