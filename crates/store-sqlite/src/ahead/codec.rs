//! Changes as bytes, for the redo file.

use std::sync::Arc;

use servo_model::contract::DispatchState;
use servo_model::event::EventBody;
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::{AuditEntry, AuditOutcome, RunId, RunStatus, StepId, TenantId};
use servo_store::dispatch::DispatchStep;
use servo_store::identity::{parse_roles, roles_text};
use servo_store::lines::{LineSource, LogLine};
use servo_store::log::StoredSnapshot;
use servo_store::relay::CursorRow;
use servo_store::{AuthorityRow, DispatchRow, Position, RunRow, StoredEvent};

use super::change::{Change, Waits};
use crate::bytes::{Damage, Put, Take};

/// Of events whose change names none.
const FIRST_FORMAT: u32 = 1;

pub(crate) fn put(into: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Run { row, is_new, before } => {
            match &row.root {
                None => into.put_number(1),
                // A run that another one has started. Records from before this was written have the first kind alone.
                Some(root) => {
                    into.put_number(20);
                    into.put_text(root.as_str());
                }
            }
            put_row(into, row);
            into.put_flag(*is_new);
            into.put_maybe(before.as_ref(), |into, (plan_id, status)| {
                into.put_text(plan_id);
                into.put_text(status.as_str());
            });
        }
        Change::Number { run_id, tenant, number } => {
            into.put_number(2);
            put_run(into, run_id, tenant);
            into.put_signed(*number);
        }
        Change::Event { number, event } => {
            // The first format has a kind of its own, as it has always had.
            if event.format == FIRST_FORMAT {
                into.put_number(3);
            } else {
                into.put_number(12);
                into.put_number(u64::from(event.format));
            }
            into.put_signed(*number);
            put_event(into, event);
        }
        Change::Timer { run_id, tenant, due_at } => {
            into.put_number(4);
            put_run(into, run_id, tenant);
            into.put_maybe(*due_at, Put::put_time);
        }
        Change::Queue { run_id, tenant, waits } => {
            into.put_number(5);
            put_run(into, run_id, tenant);
            into.put_maybe(*waits, |into, waits| {
                into.put_time(waits.not_before);
                into.put_time(waits.queued_at);
            });
        }
        Change::Snapshot { run_id, tenant, snapshot } => {
            into.put_number(6);
            put_run(into, run_id, tenant);
            into.put_number(snapshot.run_seq);
            into.put_text(&snapshot.state);
        }
        Change::Lines { run_id, tenant, lines } => {
            into.put_number(7);
            put_run(into, run_id, tenant);
            into.put_number(lines.len() as u64);
            for line in lines {
                put_line(into, line);
            }
        }
        Change::Dispatch { request_id, row, before, is_new } => {
            into.put_number(8);
            into.put_text(request_id);
            into.put_maybe(row.as_deref(), put_dispatch);
            into.put_maybe(*before, |into, state| into.put_text(state.as_str()));
            into.put_flag(*is_new);
        }
        Change::Cursor(cursor) => {
            into.put_number(9);
            put_cursor(into, cursor);
        }
        Change::Authority(row) => {
            into.put_number(10);
            put_authority(into, row);
        }
        Change::Audit(entry) => {
            into.put_number(11);
            put_audit(into, entry);
        }
    }
}

/// All changes of a record, in order.
pub(crate) fn take_all(body: &[u8]) -> Result<Vec<Change>, Damage> {
    let mut from = Take::new(body);
    let mut changes = Vec::new();
    while !from.is_empty() {
        changes.push(take(&mut from)?);
    }
    Ok(changes)
}

fn take(from: &mut Take<'_>) -> Result<Change, Damage> {
    Ok(match from.number()? {
        1 => take_run_change(from, None)?,
        20 => {
            let root = from.parsed(|text| RunId::parse(text).ok())?;
            take_run_change(from, Some(root))?
        }
        2 => {
            let (run_id, tenant) = take_run(from)?;
            Change::Number { run_id, tenant, number: from.signed()? }
        }
        3 => take_event_of(from, FIRST_FORMAT)?,
        4 => {
            let (run_id, tenant) = take_run(from)?;
            Change::Timer { run_id, tenant, due_at: from.maybe(Take::time)? }
        }
        5 => {
            let (run_id, tenant) = take_run(from)?;
            let waits = from.maybe(|from| Ok(Waits { not_before: from.time()?, queued_at: from.time()? }))?;
            Change::Queue { run_id, tenant, waits }
        }
        6 => {
            let (run_id, tenant) = take_run(from)?;
            let snapshot = StoredSnapshot { run_seq: from.number()?, state: from.text()? };
            Change::Snapshot { run_id, tenant, snapshot }
        }
        7 => {
            let (run_id, tenant) = take_run(from)?;
            let mut lines = Vec::new();
            for _ in 0..from.number()? {
                lines.push(take_line(from)?);
            }
            Change::Lines { run_id, tenant, lines }
        }
        8 => Change::Dispatch {
            request_id: from.shared()?,
            row: from.maybe(take_dispatch)?.map(Arc::new),
            before: from.maybe(|from| from.parsed(DispatchState::parse))?,
            is_new: from.flag()?,
        },
        9 => Change::Cursor(take_cursor(from)?),
        10 => Change::Authority(take_authority(from)?),
        11 => Change::Audit(Arc::new(take_audit(from)?)),
        12 => {
            let format = from.number_u32()?;
            take_event_of(from, format)?
        }
        _ => return Err(Damage("has a change of a kind that this program does not know")),
    })
}

fn take_run_change(from: &mut Take<'_>, root: Option<RunId>) -> Result<Change, Damage> {
    Ok(Change::Run {
        row: Arc::new(RunRow { root, ..take_row(from)? }),
        is_new: from.flag()?,
        before: from.maybe(|from| Ok((from.shared()?, from.parsed(InvocationStatus::parse)?)))?,
    })
}

fn put_run(into: &mut Vec<u8>, run_id: &RunId, tenant: &TenantId) {
    into.put_text(run_id.as_str());
    into.put_text(tenant.as_str());
}

fn take_run(from: &mut Take<'_>) -> Result<(RunId, TenantId), Damage> {
    Ok((from.parsed(|text| RunId::parse(text).ok())?, take_tenant(from)?))
}

fn take_tenant(from: &mut Take<'_>) -> Result<TenantId, Damage> {
    from.parsed(|text| TenantId::parse(text).ok())
}

fn put_text_if(into: &mut Vec<u8>, text: Option<&String>) {
    into.put_maybe(text, |into, text| into.put_text(text));
}

fn put_row(into: &mut Vec<u8>, row: &RunRow) {
    put_run(into, &row.run_id, &row.tenant);
    for text in [&*row.project, &*row.environment, &*row.plan_id, &*row.plan_version] {
        into.put_text(text);
    }
    into.put_text(row.status.as_str());
    into.put_text(row.visible.as_str());
    into.put_maybe(row.request_key, |into, key| into.extend_from_slice(key.as_bytes()));
    into.put_time(row.created_at);
    into.put_maybe(row.finished_at, Put::put_time);
    into.put_number(row.changed_seq);
    for text in [&row.quarantined, &row.name, &row.outcome, &row.correlation_id] {
        put_text_if(into, text.as_ref());
    }
    into.put_flag(row.invocation);
    into.put_maybe(row.mode, |into, mode| into.put_text(mode.as_str()));
}

fn take_row(from: &mut Take<'_>) -> Result<RunRow, Damage> {
    let (run_id, tenant) = take_run(from)?;
    let [project, environment, plan_id] = [from.shared()?, from.shared()?, from.shared()?];
    let plan_version = from.text()?;
    let (status, visible) = (from.parsed(RunStatus::parse)?, from.parsed(InvocationStatus::parse)?);
    let request_key = from.maybe(Take::digest)?;
    let (created_at, finished_at, changed_seq) = (from.time()?, from.maybe(Take::time)?, from.number()?);
    let mut text = || from.maybe(Take::text);
    let [quarantined, name, outcome, correlation_id] = [text()?, text()?, text()?, text()?];
    let (invocation, mode) = (from.flag()?, from.maybe(|from| from.parsed(InvocationMode::parse))?);
    Ok(RunRow {
        run_id,
        tenant,
        project,
        environment,
        plan_id,
        plan_version,
        status,
        visible,
        request_key,
        created_at,
        finished_at,
        changed_seq,
        quarantined,
        name,
        outcome,
        invocation,
        mode,
        correlation_id,
        root: None,
    })
}

fn put_event(into: &mut Vec<u8>, event: &StoredEvent) {
    into.put_number(event.position.id);
    put_run(into, &event.run_id, &event.tenant);
    into.put_number(event.run_seq);
    into.extend_from_slice(event.event_id.as_bytes());
    into.put_text(&event.event_type);
    into.extend_from_slice(event.idempotency_key.as_bytes());
    into.put_time(event.emitted_at);
    into.put_text(&event.emitted_by);
    into.put_maybe(event.occurred_at, Put::put_time);
    into.put_text(&event.payload);
}

fn take_event_of(from: &mut Take<'_>, format: u32) -> Result<Change, Damage> {
    let number = from.signed()?;
    Ok(Change::Event { number, event: Arc::new(take_event(from, format)?) })
}

fn take_event(from: &mut Take<'_>, format: u32) -> Result<StoredEvent, Damage> {
    let position = Position::of_id(from.number()?);
    let (run_id, tenant) = take_run(from)?;
    Ok(StoredEvent {
        position,
        format,
        run_id,
        tenant,
        run_seq: from.number()?,
        event_id: from.event_id()?,
        event_type: from.parsed(|text| Some(EventBody::interned_type(text)))?,
        idempotency_key: from.digest()?,
        emitted_at: from.time()?,
        emitted_by: from.shared()?,
        occurred_at: from.maybe(Take::time)?,
        payload: from.text()?,
    })
}

fn put_line(into: &mut Vec<u8>, line: &LogLine) {
    let LogLine { at, request_id, source, text } = line;
    into.put_time(*at);
    into.put_text(request_id);
    into.put_text(source.as_str());
    into.put_text(text);
}

fn take_line(from: &mut Take<'_>) -> Result<LogLine, Damage> {
    let (at, request_id) = (from.time()?, from.text()?);
    Ok(LogLine { at, request_id, source: from.parsed(LineSource::parse)?, text: from.text()? })
}

fn put_dispatch(into: &mut Vec<u8>, row: &DispatchRow) {
    into.put_text(&row.request_id);
    put_run(into, &row.run_id, &row.tenant);
    into.put_text(&row.target);
    into.put_maybe(row.step.as_ref(), |into, step| {
        into.put_text(step.step_id.as_str());
        into.put_number(u64::from(step.logical_attempt));
    });
    into.put_text(row.state.as_str());
    put_text_if(into, row.channel.as_ref());
    put_text_if(into, row.reason.as_ref());
    into.put_number(row.epoch);
    into.put_time(row.queued_at);
    into.put_time(row.changed_at);
}

fn take_dispatch(from: &mut Take<'_>) -> Result<DispatchRow, Damage> {
    let request_id = from.text()?;
    let (run_id, tenant) = take_run(from)?;
    let target = from.text()?;
    let step = from.maybe(|from| {
        let step_id = from.parsed(|text| StepId::parse(text).ok())?;
        Ok(DispatchStep { step_id, logical_attempt: from.number_u32()? })
    })?;
    Ok(DispatchRow {
        request_id,
        run_id,
        tenant,
        target,
        step,
        state: from.parsed(DispatchState::parse)?,
        channel: from.maybe(Take::text)?,
        reason: from.maybe(Take::text)?,
        epoch: from.number()?,
        queued_at: from.time()?,
        changed_at: from.time()?,
    })
}

fn put_position(into: &mut Vec<u8>, position: Position) {
    into.put_number(u64::from(position.store_epoch));
    into.put_number(position.transaction);
    into.put_number(position.id);
}

fn take_position(from: &mut Take<'_>) -> Result<Position, Damage> {
    Ok(Position { store_epoch: from.number_u32()?, transaction: from.number()?, id: from.number()? })
}

fn put_cursor(into: &mut Vec<u8>, cursor: &CursorRow) {
    into.put_text(&cursor.name);
    put_position(into, cursor.position);
    into.put_maybe(cursor.last_event_id, |into, id| into.extend_from_slice(id.as_bytes()));
    into.put_maybe(cursor.target, put_position);
    into.put_flag(cursor.deferred);
}

fn take_cursor(from: &mut Take<'_>) -> Result<CursorRow, Damage> {
    Ok(CursorRow {
        name: from.text()?,
        position: take_position(from)?,
        last_event_id: from.maybe(Take::event_id)?,
        target: from.maybe(take_position)?,
        deferred: from.flag()?,
    })
}

fn put_authority(into: &mut Vec<u8>, row: &AuthorityRow) {
    into.put_text(&row.owner);
    into.put_text(&row.lease_id);
    into.put_text(&row.leased_until);
    into.put_time(row.leased_until_at);
    into.put_number(row.epoch);
    into.put_flag(row.resigned);
}

fn take_authority(from: &mut Take<'_>) -> Result<AuthorityRow, Damage> {
    Ok(AuthorityRow {
        owner: from.text()?,
        lease_id: from.text()?,
        leased_until: from.text()?,
        leased_until_at: from.time()?,
        epoch: from.number()?,
        resigned: from.flag()?,
    })
}

fn put_audit(into: &mut Vec<u8>, entry: &AuditEntry) {
    into.extend_from_slice(entry.id.as_bytes());
    into.put_time(entry.at);
    into.put_text(entry.tenant_id.as_str());
    into.put_text(&entry.actor);
    into.put_text(&roles_text(&entry.roles));
    for text in [&entry.action, &entry.object_kind, &entry.object_id] {
        into.put_text(text);
    }
    into.put_text(entry.outcome.as_str());
    into.put_text(&entry.correlation_id);
    put_text_if(into, entry.reason.as_ref());
    put_text_if(into, entry.source.as_ref());
    into.put_number(entry.count);
}

fn take_audit(from: &mut Take<'_>) -> Result<AuditEntry, Damage> {
    Ok(AuditEntry {
        id: from.event_id()?,
        at: from.time()?,
        tenant_id: take_tenant(from)?,
        actor: from.text()?,
        roles: from.parsed(parse_roles)?,
        action: from.text()?,
        object_kind: from.text()?,
        object_id: from.text()?,
        outcome: from.parsed(AuditOutcome::parse)?,
        correlation_id: from.text()?,
        reason: from.maybe(Take::text)?,
        source: from.maybe(Take::text)?,
        count: from.number()?,
    })
}
