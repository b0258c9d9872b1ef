//! Appending, by the rules written at `servo_store::LogStore`.

use std::sync::Arc;

use servo_model::event::FORMAT;
use servo_model::limits::Limits;
use servo_model::{RunId, TenantId};
use servo_store::dispatch::Changed;
use servo_store::lines::LogLine;
use servo_store::log::{EventOutcome, KeyMode, QueueChange, StoredSnapshot, StreamOutcome, TimerChange};
use servo_store::relay::CursorRow;
use servo_store::{
    Append, Appended, AuthorityRow, DispatchChange, Error, Expected, Fence, Position, RunRow, StoredEvent, StreamAppend,
};

use super::view::{Known, View};
use crate::ahead::change::{Change, Waits};
use crate::error::Fault;

/// Bytes of an event besides its payload, about.
const EVENT_BYTES: usize = 256;

/// Roughly what an append writes.
pub(crate) fn bytes(append: &Append) -> usize {
    let snapshot = |stream: &StreamAppend| stream.snapshot.as_ref().map_or(0, |snapshot| snapshot.state.len());
    let events =
        |stream: &StreamAppend| stream.events.iter().map(|event| event.payload.len() + EVENT_BYTES).sum::<usize>();
    append.streams.iter().map(|stream| EVENT_BYTES + events(stream) + snapshot(stream)).sum()
}

pub(crate) fn append(view: &mut View<'_>, append: Append) -> Result<Appended, Fault> {
    if let Some(fence) = append.fence {
        check_fence(view, fence)?;
    }
    let mut epoch = None;
    if let Some(change) = &append.authority {
        let now = view.now;
        let row = AuthorityRow::change(view.authority()?, change, now)?;
        epoch = Some(row.epoch);
        view.set_authority(row);
    }
    let expectations = append.expectations();
    let mut streams = Vec::with_capacity(append.streams.len());
    for stream in append.streams {
        streams.push(append_stream(view, stream)?);
    }
    let appended = Appended { streams, epoch };
    appended.check_overtaken(&expectations)?;
    for cursor in append.cursors {
        view.set_cursor(cursor);
    }
    Ok(appended)
}

pub(crate) fn move_cursor(
    view: &mut View<'_>,
    from: Option<Position>,
    to: CursorRow,
    fence: Option<Fence>,
) -> Result<(), Fault> {
    if let Some(fence) = fence {
        check_fence(view, fence)?;
    }
    if view.cursor(&to.name)?.map(|row| row.position) != from {
        return Err(Error::CursorMoved { name: to.name }.into());
    }
    view.set_cursor(to);
    Ok(())
}

/// A run that is gone by then is no error.
pub(crate) fn put_snapshot(
    view: &mut View<'_>,
    run_id: RunId,
    tenant: TenantId,
    snapshot: StoredSnapshot,
) -> Result<(), Fault> {
    if view.has_run(&run_id, &tenant)? {
        view.changes.push(Change::Snapshot { run_id, tenant, snapshot });
    }
    Ok(())
}

/// Lines of user code of a run that is there.
pub(crate) fn put_lines(
    view: &mut View<'_>,
    run_id: RunId,
    tenant: TenantId,
    lines: Vec<LogLine>,
) -> Result<(), Fault> {
    if !view.has_run(&run_id, &tenant)? {
        return Err(Error::NotFound.into());
    }
    view.changes.push(Change::Lines { run_id, tenant, lines });
    Ok(())
}

fn check_fence(view: &mut View<'_>, fence: Fence) -> Result<(), Fault> {
    if view.sabotage.ignores_fences() {
        return Ok(());
    }
    let now = view.now;
    Ok(fence.check(view.authority()?, now)?)
}

fn append_stream(view: &mut View<'_>, mut stream: StreamAppend) -> Result<StreamOutcome, Fault> {
    let is_new = stream.expected == Expected::New && !view.exists(&stream.run_id)?;
    let known = if is_new { Some(create(view, &mut stream)?) } else { view.take_run(&stream.run_id)? };
    let mut known = match known {
        Some(known) if known.tenant == stream.tenant => known,
        Some(_) | None if stream.expected == Expected::New => {
            return Err(Error::RunExists { run_id: stream.run_id }.into());
        }
        Some(_) | None => return Err(Error::NotFound.into()),
    };
    let mut found = vec![None; stream.events.len()];
    if !is_new {
        for (found, event) in found.iter_mut().zip(&stream.events) {
            *found = view.find_key(&stream.run_id, &known, &event.idempotency_key)?;
        }
        if let Some(events) = judge_keys(view, &stream, known.seq, &found)? {
            view.put_run(&stream.run_id, known);
            return Ok(StreamOutcome { events });
        }
    }
    let events = append_events(view, &mut stream, &mut known, found)?;
    let StreamAppend { run_id, tenant, row, timer, queue, dispatches, snapshot, .. } = stream;
    if let Some(row) = row {
        update(view, &mut known, row)?;
    }
    view.put_run(&run_id, known);
    let due_at = match timer {
        TimerChange::Keep => None,
        TimerChange::Set(at) => Some(Some(at)),
        TimerChange::Clear => Some(None),
    };
    if let Some(due_at) = due_at {
        view.changes.push(Change::Timer { run_id: run_id.clone(), tenant: tenant.clone(), due_at });
    }
    change_queue(view, &run_id, &tenant, queue)?;
    if let Some(snapshot) = snapshot {
        view.changes.push(Change::Snapshot { run_id: run_id.clone(), tenant: tenant.clone(), snapshot });
    }
    for change in dispatches {
        change_dispatch(view, (&run_id, &tenant), change, is_new)?;
    }
    Ok(StreamOutcome { events })
}

/// The row of a new run, under the id and tenant of its stream.
fn create(view: &mut View<'_>, stream: &mut StreamAppend) -> Result<Known, Fault> {
    let missing = || Error::Invalid { field: "row".to_owned(), reason: "a new run brings its row".to_owned() };
    let row = stream.row.take().ok_or_else(missing)?;
    if let Some(key) = row.request_key
        && let Some(run_id) = view.request(&stream.tenant, key)?
    {
        return Err(Error::RequestExists { run_id }.into());
    }
    let (run_id, tenant) = (stream.run_id.clone(), stream.tenant.clone());
    Ok(view.add_run(Arc::new(RunRow { run_id, tenant, ..row })))
}

fn update(view: &mut View<'_>, known: &mut Known, row: RunRow) -> Result<(), Fault> {
    let start = view.row(&row.run_id, known)?;
    let before = start.invocation.then(|| (start.plan_id.clone(), start.visible));
    let row = Arc::new(row.keeping(&start));
    known.row = Some(row.clone());
    view.changes.push(Change::Run { row, is_new: false, before });
    Ok(())
}

/// The rules about a run that exists and keys that it has. `found` has an entry per event. Answers with the events if all
/// of them were written before.
fn judge_keys(
    view: &View<'_>,
    stream: &StreamAppend,
    head: u64,
    found: &[Option<EventOutcome>],
) -> Result<Option<Vec<EventOutcome>>, Fault> {
    let all_exist = !found.is_empty() && found.iter().all(Option::is_some);
    let sequence = check_sequence(view, stream, head);
    let first = stream.events.iter().zip(found).find_map(|(event, found)| Some((event, found.as_ref()?)));
    if stream.key_mode == KeyMode::Strict
        && let Some((event, found)) = first
        && (all_exist || sequence.is_ok())
    {
        let EventOutcome { run_seq, event_id, .. } = *found;
        let run_id = stream.run_id.clone();
        return Err(Error::KeyExists { run_id, key: event.idempotency_key, run_seq, event_id }.into());
    }
    if all_exist {
        return Ok(Some(found.iter().flatten().cloned().collect()));
    }
    sequence?;
    if first.is_some() && stream.expected != Expected::Any {
        return Err(Error::Conflict { run_id: stream.run_id.clone(), expected: head, actual: head }.into());
    }
    Ok(None)
}

fn check_sequence(view: &View<'_>, stream: &StreamAppend, head: u64) -> Result<(), Error> {
    match stream.expected {
        Expected::New => Err(Error::RunExists { run_id: stream.run_id.clone() }),
        Expected::Seq(expected) if expected != head && !view.sabotage.ignores_sequences() => {
            Err(Error::Conflict { run_id: stream.run_id.clone(), expected, actual: head })
        }
        Expected::Seq(_) | Expected::Any => Ok(()),
    }
}

/// Appends what was not found, and takes the texts of those events along.
fn append_events(
    view: &mut View<'_>,
    stream: &mut StreamAppend,
    known: &mut Known,
    found: Vec<Option<EventOutcome>>,
) -> Result<Vec<EventOutcome>, Fault> {
    let max = events_max(view.limits, &stream.run_id);
    let (emitted_at, head) = (view.now, known.seq);
    let mut outcomes = Vec::with_capacity(found.len());
    for (event, found) in stream.events.iter_mut().zip(found) {
        let found = match found {
            Some(found) => Some(found),
            // The append may say the same thing twice.
            None if known.seq > head => view.find_key(&stream.run_id, known, &event.idempotency_key)?,
            None => None,
        };
        if let Some(found) = found {
            outcomes.push(found);
            continue;
        }
        if known.seq >= max {
            return Err(Error::Limit { what: "the events of one run", limit: max }.into());
        }
        let position = view.next_position()?;
        // The log's indexes know a run by the position of its first event.
        let number = known.number.unwrap_or(position);
        if known.number.is_none() {
            let (run_id, tenant) = (stream.run_id.clone(), stream.tenant.clone());
            view.changes.push(Change::Number { run_id, tenant, number });
        }
        let run_seq = known.seq + 1;
        outcomes.push(EventOutcome { run_seq, event_id: event.event_id, emitted_at, inserted: true });
        let stored = StoredEvent {
            position: Position::of_id(position.unsigned_abs()),
            format: FORMAT,
            run_id: stream.run_id.clone(),
            tenant: stream.tenant.clone(),
            run_seq,
            event_id: event.event_id,
            event_type: std::mem::take(&mut event.event_type),
            idempotency_key: event.idempotency_key,
            emitted_at,
            emitted_by: std::mem::take(&mut event.emitted_by),
            occurred_at: event.occurred_at,
            payload: std::mem::take(&mut event.payload),
        };
        view.add_event(known, number, stored)?;
    }
    Ok(outcomes)
}

fn events_max(limits: &Limits, run_id: &RunId) -> u64 {
    if run_id.is_system() { u64::MAX } else { limits.events_per_run_max }
}

fn change_queue(view: &mut View<'_>, run_id: &RunId, tenant: &TenantId, change: QueueChange) -> Result<(), Fault> {
    let waits = match change {
        QueueChange::Keep => return Ok(()),
        QueueChange::Put { not_before } => Some(Waits { not_before, queued_at: view.now }),
        QueueChange::Remove { leased_by } => {
            // With an owner, only if that owner holds the lease, expired or not.
            if leased_by.is_some() && view.lease(run_id)?.flatten() != leased_by {
                return Err(Error::LeaseLost { run_id: run_id.clone() }.into());
            }
            None
        }
    };
    view.changes.push(Change::Queue { run_id: run_id.clone(), tenant: tenant.clone(), waits });
    Ok(())
}

fn change_dispatch(
    view: &mut View<'_>,
    (run_id, tenant): (&RunId, &TenantId),
    change: DispatchChange,
    is_new: bool,
) -> Result<(), Fault> {
    let request_id = change.request_id();
    // A dispatch is called by its run and step, so the database can have none of a new run, and of one that it does not have yet
    // none but what is ahead of it, too.
    let is_of_new = request_id.starts_with(run_id.as_str()) && (is_new || view.is_new_ahead(run_id));
    let before = if is_of_new && view.is_unknown_dispatch(request_id) { None } else { view.dispatch(request_id)? };
    match change.change(before.as_deref(), (run_id, tenant), view.now)? {
        Changed::Nothing => {}
        Changed::Row(row) => view.put_dispatch(before.as_deref(), Some(row)),
        Changed::Gone => view.put_dispatch(before.as_deref(), None),
    }
    Ok(())
}
