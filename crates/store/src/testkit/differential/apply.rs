//! Performs one operation and puts the answer into words that every backend would use.

use std::fmt::Debug;

use super::op::{Op, place_text};
use crate::Store;
use crate::error::{Error, Result};
use crate::log::{Append, StoredEvent, StoredRun};
use crate::position::Position;
use crate::relay::{CursorRow, DeadLetter, OutboxRow};

/// What a store answered.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) text: String,
    /// The error's name, if it was refused.
    pub(super) refused: Option<&'static str>,
    /// Whether it showed or changed anything: an empty list proves little.
    pub(super) substance: bool,
}

impl Answer {
    pub(super) fn ok(text: String) -> Self {
        Self { substance: !text.contains("[]") && !text.ends_with("None") && text != "0", text, refused: None }
    }

    pub(super) fn refused(error: &Error) -> Self {
        let (name, text) = error_text(error);
        Self { text, refused: Some(name), substance: false }
    }

    pub(super) fn of<T: Debug>(result: Result<T>) -> Self {
        Self::told(result, |value| format!("{value:?}"))
    }

    fn told<T>(result: Result<T>, tell: impl FnOnce(T) -> String) -> Self {
        match result {
            Ok(value) => Self::ok(tell(value)),
            Err(error) => Self::refused(&error),
        }
    }
}

/// The name and all fields, but for texts that are only for people.
fn error_text(error: &Error) -> (&'static str, String) {
    let name = match error {
        Error::Conflict { .. } => "Conflict",
        Error::RunExists { .. } => "RunExists",
        Error::KeyExists { .. } => "KeyExists",
        Error::RequestExists { .. } => "RequestExists",
        Error::EntrypointExists { .. } => "EntrypointExists",
        Error::RevisionMoved { .. } => "RevisionMoved",
        Error::NotFound => "NotFound",
        Error::Fenced { .. } => "Fenced",
        Error::AuthorityHeld { .. } => "AuthorityHeld",
        Error::AuthorityNotHeld { .. } => "AuthorityNotHeld",
        Error::DispatchNotFound { .. } => "DispatchNotFound",
        Error::DispatchMove { .. } => "DispatchMove",
        Error::LeaseLost { .. } => "LeaseLost",
        Error::CursorMoved { .. } => "CursorMoved",
        Error::Limit { limit, .. } => return ("Limit", format!("refused: Limit of {limit}")),
        Error::Invalid { field, .. } => return ("Invalid", format!("refused: Invalid {field}")),
        Error::Unavailable { .. } => "Unavailable",
        Error::Full { .. } => "Full",
        Error::Corrupt { .. } => "Corrupt",
        Error::TooNew { .. } => "TooNew",
        Error::InUse { .. } => "InUse",
        Error::Unsupported { .. } => "Unsupported",
        Error::Closed => "Closed",
    };
    (name, format!("refused: {error:?}"))
}

/// Everything but the position, the document in canonical form and the payload also to the letter.
pub(super) fn event_text(event: &StoredEvent) -> String {
    let document = event.doc().to_json();
    let document = servo_canon::canonicalize(&document).unwrap_or_else(|error| format!("{error}: {document}"));
    format!("{} {document} {}", event.tenant, event.payload)
}

pub(super) fn cursor_text(row: &CursorRow, places: &[Position]) -> String {
    let CursorRow { name, position, last_event_id, target, deferred } = row;
    let target = target.map(|target| place_text(target, places));
    format!("{name} at {} {last_event_id:?} {target:?} {deferred}", place_text(*position, places))
}

pub(super) fn note_text(row: &OutboxRow, places: &[Position]) -> String {
    let OutboxRow { position, run_id, run_seq, tenant, attempts, next_at, last_error } = row;
    format!("{} {run_id} {run_seq} {tenant} {attempts} {next_at} {last_error}", place_text(*position, places))
}

pub(super) fn letter_text(row: &DeadLetter, places: &[Position]) -> String {
    let DeadLetter { position, run_id, run_seq, tenant, attempts, last_error, buried_at } = row;
    format!("{} {run_id} {run_seq} {tenant} {attempts} {last_error} {buried_at}", place_text(*position, places))
}

fn list<T>(rows: &[T], tell: impl Fn(&T) -> String) -> String {
    format!("{:?}", rows.iter().map(tell).collect::<Vec<_>>())
}

pub(super) async fn apply(op: &Op, store: &dyn Store, places: &[Position]) -> Answer {
    match op {
        Op::Append { append, cursors } => {
            let cursors = cursors.iter().map(|cursor| cursor.row(places)).collect();
            Answer::of(store.append(Append { cursors, ..append.clone() }).await)
        }
        Op::ReadRun { scope, run_id, after, limit } => {
            let page = store.read_run(scope, run_id, *after, *limit).await;
            Answer::told(page, |page| format!("head {}: {}", page.head_seq, list(&page.events, event_text)))
        }
        Op::LoadRun { scope, run_id, limit } => {
            Answer::told(store.load_run(scope, run_id, *limit).await, |StoredRun { row, snapshot, page }| {
                let events = list(&page.events, event_text);
                format!("{row:?} {snapshot:?} head {}: {events}", page.head_seq)
            })
        }
        Op::SnapshotAt { scope, run_id, seq_max } => Answer::of(store.snapshot_at(scope, run_id, *seq_max).await),
        Op::PutSnapshot { run_id, tenant, snapshot } => {
            Answer::of(store.put_snapshot(run_id, tenant, snapshot.clone()).await)
        }
        Op::Follow { .. } => unreachable!("the follower reads the log"),
        Op::LogHead => Answer::told(store.log_head().await, |head| place_text(head, places)),
        Op::CountLog { after, until, most } => Answer::of(store.count_log(places[*after], places[*until], *most).await),
        Op::GetRun { scope, run_id } => Answer::of(store.get_run(scope, run_id).await),
        Op::ListRuns { scope, query } => Answer::of(store.list_runs(scope, query).await),
        Op::FindRequest { tenant, key } => Answer::of(store.find_request(tenant, *key).await),
        Op::ReleaseRequest { tenant, key, run_id } => Answer::of(store.release_request(tenant, *key, run_id).await),
        Op::CountByVisible { tenant, plan_id } => Answer::of(store.count_by_visible(tenant, plan_id.as_deref()).await),
        Op::CountActive { tenant, most } => Answer::of(store.count_active(tenant, *most).await),
        Op::CountOpen { tenant, plan_id } => Answer::of(store.count_open(tenant, plan_id).await),
        Op::CountDescendants { tenant, root, most } => Answer::of(store.count_descendants(tenant, root, *most).await),
        Op::OpenDescendants { tenant, root, after, limit } => {
            Answer::of(store.open_descendants(tenant, root, after.as_ref(), *limit).await)
        }
        Op::Function(op) => op.apply(store).await,
        Op::Entrypoint(op) => op.apply(store).await,
        Op::Identity(op) => op.apply(store).await,
        _ => apply_rows(op, store, places).await,
    }
}

/// Work, relay and maintenance.
async fn apply_rows(op: &Op, store: &dyn Store, places: &[Position]) -> Answer {
    match op {
        Op::ClaimQueue { claim } => Answer::of(store.claim_queue(claim).await),
        Op::ReleaseQueue { run_id, owner, not_before } => {
            Answer::of(store.release_queue(run_id, owner, *not_before).await)
        }
        Op::DispatchHeads { heads } => Answer::of(store.dispatch_heads(heads).await),
        Op::OpenDispatches { epoch, tenant, after, limit } => {
            Answer::of(store.open_dispatches(*epoch, tenant, after.clone(), *limit).await)
        }
        Op::GetDispatch { request_id } => Answer::of(store.get_dispatch(request_id).await),
        Op::Backlog => Answer::of(store.backlog().await),
        Op::DueTimers { limit } => Answer::of(store.due_timers(*limit).await),
        Op::GetTimer { run_id } => Answer::of(store.get_timer(run_id).await),
        Op::Authority => Answer::of(store.authority().await),
        Op::BreakLeases => Answer::of(store.break_leases().await),
        Op::GetCursor { name } => Answer::told(store.cursor(name).await, |row| match row {
            Some(row) => cursor_text(&row, places),
            None => "None".to_owned(),
        }),
        Op::MoveCursor { from, to, fence } => {
            Answer::of(store.move_cursor(from.map(|place| places[place]), to.row(places), *fence).await)
        }
        Op::OutboxPut { note } => Answer::of(store.outbox_put(note.row(places)).await),
        Op::OutboxDue { limit } => {
            Answer::told(store.outbox_due(*limit).await, |rows| list(&rows, |row| note_text(row, places)))
        }
        Op::OutboxLen => Answer::of(store.outbox_len().await),
        Op::OutboxDone { place } => Answer::of(store.outbox_done(places[*place]).await),
        Op::OutboxBury { note } => Answer::of(store.outbox_bury(note.row(places)).await),
        Op::DeadLetters { after, limit } => {
            let letters = store.dead_letters(places[*after], *limit).await;
            Answer::told(letters, |rows| list(&rows, |row| letter_text(row, places)))
        }
        Op::Redrive { place } => Answer::of(store.redrive(place.map(|place| places[place])).await),
        Op::RaiseAlert { alert } => Answer::of(store.raise_alert(alert.clone()).await),
        Op::Alerts { scope, limit } => Answer::of(store.alerts(scope, *limit).await),
        Op::ClearAlert { code, tenant, subject } => Answer::of(store.clear_alert(*code, tenant, subject).await),
        Op::Quarantine { run_id, reason } => Answer::of(store.quarantine(run_id, reason).await),
        Op::Retire { finished_before, limit } => Answer::of(store.retire(*finished_before, *limit).await),
        Op::DeleteRun { scope, run_id } => Answer::of(store.delete_run(scope, run_id).await),
        Op::TrimSystem { before, limit } => Answer::of(store.trim_system(*before, *limit).await),
        Op::Import { row, events } => Answer::of(store.import_run(row.clone(), events.clone()).await),
        _ => unreachable!("the other half of the operations is performed by `apply`"),
    }
}
