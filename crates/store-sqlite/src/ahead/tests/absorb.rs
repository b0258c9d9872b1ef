//! What changed several times is there once, and what must not be lost by that is not.

use std::sync::Arc;

use servo_canon::Digest;
use servo_model::contract::DispatchState;
use servo_model::invocation::InvocationStatus;
use servo_model::{RunStatus, Timestamp};
use servo_store::log::StoredSnapshot;
use servo_store::relay::CursorRow;
use servo_store::testkit::fixtures;
use servo_store::{Position, RunRow};

use super::samples::{audit, authority, dispatch, event, line, names, row};
use crate::ahead::change::{Change, Waits};
use crate::ahead::{Ahead, DispatchAhead, RunAhead};
use crate::writer::counts::Counts;

fn absorbed(changes: impl IntoIterator<Item = Change>) -> Ahead {
    let mut ahead = Ahead::default();
    changes.into_iter().for_each(|change| ahead.absorb(change));
    ahead
}

fn the_run(ahead: &Ahead) -> &RunAhead {
    assert_eq!(ahead.runs.len(), 1);
    &ahead.runs[&names().0]
}

fn run(row: RunRow, is_new: bool) -> Change {
    Change::Run { row: Arc::new(row), is_new, before: None }
}

fn queued(request_id: &str, is_new: bool) -> Change {
    let row = Some(Arc::new(dispatch(request_id, DispatchState::Pending)));
    Change::Dispatch { request_id: request_id.into(), row, before: None, is_new }
}

fn moved(request_id: &str, before: DispatchState, state: DispatchState) -> Change {
    let row = Some(Arc::new(dispatch(request_id, state)));
    Change::Dispatch { request_id: request_id.into(), row, before: Some(before), is_new: false }
}

fn withdrawn(request_id: &str) -> Change {
    let before = Some(DispatchState::Pending);
    Change::Dispatch { request_id: request_id.into(), row: None, before, is_new: false }
}

fn the_dispatch(ahead: &Ahead) -> &DispatchAhead {
    assert_eq!(ahead.dispatches.len(), 1);
    &ahead.dispatches["r"]
}

#[test]
fn nothing_is_empty_and_any_change_is_not() {
    assert!(absorbed([]).is_empty());
    let ahead = absorbed([Change::Authority(authority(1)), Change::Authority(authority(2))]);
    assert!(!ahead.is_empty());
    assert_eq!((ahead.changes, ahead.authority), (2, Some(authority(2))));
}

#[test]
fn a_row_that_changed_twice_is_there_once_with_its_last_value() {
    let last = RunRow { status: RunStatus::Completed, changed_seq: 9, ..row() };
    for is_new in [true, false] {
        let ahead = absorbed([run(row(), is_new), run(last.clone(), false)]);
        assert_eq!(the_run(&ahead).row.as_deref(), Some(&last));
        assert_eq!(the_run(&ahead).is_new, is_new, "a new row stays new until it is written");
    }
}

#[test]
fn timers_queue_rows_cursors_and_authorities_keep_their_last_value() {
    let (run_id, tenant) = names();
    let timer = |due_at| Change::Timer { run_id: run_id.clone(), tenant: tenant.clone(), due_at };
    let queue = |waits| Change::Queue { run_id: run_id.clone(), tenant: tenant.clone(), waits };
    let (one, two) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
    let waits = |at| Waits { not_before: at, queued_at: at };
    let ahead = absorbed([timer(Some(one)), timer(Some(two)), queue(Some(waits(one))), queue(Some(waits(two)))]);
    assert_eq!((the_run(&ahead).timer, the_run(&ahead).queue), (Some(Some(two)), Some(Some(waits(two)))));
    assert_eq!((&the_run(&ahead).tenant, the_run(&ahead).row.is_none()), (&tenant, true));
    // That there is none any more has to be written, and is something else than no change.
    let ahead = absorbed([timer(Some(one)), timer(None)]);
    assert_eq!((the_run(&ahead).timer, the_run(&ahead).queue), (Some(None), None));

    let cursor = |name, id| Change::Cursor(CursorRow::at(name, Position::of_id(id)));
    let ahead = absorbed([cursor("a", 1), cursor("b", 5), cursor("a", 7)]);
    let found: Vec<_> = ahead.cursors.values().map(|cursor| (cursor.name.as_str(), cursor.position.id)).collect();
    assert_eq!(found, [("a", 7), ("b", 5)]);
}

#[test]
fn a_dispatch_that_came_and_went_leaves_nothing_to_write() {
    let ahead = absorbed([queued("r", true), withdrawn("r")]);
    let found = the_dispatch(&ahead);
    assert!(found.is_new && found.row.is_none(), "{found:?}");
    assert_eq!(ahead.counts, Counts::default());
}

#[test]
fn a_dispatch_that_went_and_came_again_is_remade() {
    let ahead = absorbed([withdrawn("r"), queued("r", true)]);
    let found = the_dispatch(&ahead);
    assert!(found.is_remade && !found.is_new && found.row.is_some(), "{found:?}");
    // Also when it moves on, and when it goes for good after all.
    let ahead =
        absorbed([withdrawn("r"), queued("r", true), moved("r", DispatchState::Pending, DispatchState::Notified)]);
    let found = the_dispatch(&ahead);
    assert!(found.is_remade && !found.is_new, "{found:?}");
    assert_eq!(found.row.as_ref().map(|row| row.state), Some(DispatchState::Notified));
    let ahead = absorbed([withdrawn("r"), queued("r", true), withdrawn("r")]);
    let found = the_dispatch(&ahead);
    assert!(!found.is_new && found.row.is_none(), "the database must remove its own: {found:?}");
}

#[test]
fn a_dispatch_that_only_moved_is_neither_new_nor_remade() {
    let to_notified = moved("r", DispatchState::Pending, DispatchState::Notified);
    let to_delivered = moved("r", DispatchState::Notified, DispatchState::Delivered);
    let ahead = absorbed([to_notified.clone(), to_delivered.clone()]);
    let found = the_dispatch(&ahead);
    assert!(!found.is_new && !found.is_remade, "{found:?}");
    let ahead = absorbed([queued("r", true), to_notified, to_delivered]);
    let found = the_dispatch(&ahead);
    assert!(found.is_new && !found.is_remade, "{found:?}");
    assert_eq!(found.row.as_ref().map(|row| row.state), Some(DispatchState::Delivered));
}

#[test]
fn counts_add_up() {
    let mut expected = Counts::default();
    let ahead = absorbed([
        queued("a", true),
        queued("b", true),
        moved("b", DispatchState::Pending, DispatchState::Notified),
        moved("c", DispatchState::Notified, DispatchState::Failed),
    ]);
    expected.add_dispatches(DispatchState::Pending, 1);
    expected.add_dispatches(DispatchState::Failed, 1);
    assert_eq!(ahead.counts, expected);

    let (run_id, tenant) = names();
    let invocation = |visible| RunRow { visible, ..fixtures::invocation_row(&run_id, &tenant, Timestamp::EPOCH) };
    let step = |from, to| {
        let before = Some(("plan".into(), from));
        Change::Run { row: Arc::new(invocation(to)), is_new: false, before }
    };
    let ahead = absorbed([
        run(invocation(InvocationStatus::Queued), true),
        step(InvocationStatus::Queued, InvocationStatus::Running),
        step(InvocationStatus::Running, InvocationStatus::Succeeded),
        run(RunRow { run_id: fixtures::run_id("other"), ..row() }, true),
    ]);
    let mut expected = Counts::default();
    for (status, change) in
        [(InvocationStatus::Queued, 0), (InvocationStatus::Running, 0), (InvocationStatus::Succeeded, 1)]
    {
        expected.add_invocations(&tenant, &"plan".into(), status, change);
    }
    assert_eq!(ahead.counts, expected, "and only invocations are counted");
}

#[test]
fn requests_of_new_runs_are_known() {
    let (run_id, tenant) = names();
    let key = Digest::of(b"request");
    let asked = RunRow { request_key: Some(key), ..row() };
    let ahead = absorbed([run(asked.clone(), true), run(RunRow { run_id: fixtures::run_id("other"), ..row() }, true)]);
    assert_eq!(ahead.requests.into_iter().collect::<Vec<_>>(), [((tenant, key), run_id)]);
    assert!(absorbed([run(asked, false)]).requests.is_empty(), "the database knows those of earlier runs");
}

#[test]
fn snapshots_of_the_same_sequence_replace_each_other() {
    let (run_id, tenant) = names();
    let of = |run_seq, state: &str| StoredSnapshot { run_seq, state: state.to_owned() };
    let change = |snapshot| Change::Snapshot { run_id: run_id.clone(), tenant: tenant.clone(), snapshot };
    let ahead = absorbed([of(3, "a"), of(5, "b"), of(3, "c")].map(change));
    let mut found = the_run(&ahead).snapshots.clone();
    found.sort_by_key(|snapshot| snapshot.run_seq);
    assert_eq!(found, [of(3, "c"), of(5, "b")]);
}

#[test]
fn lines_and_audit_entries_are_added_in_order() {
    let (run_id, tenant) = names();
    let change = |lines| Change::Lines { run_id: run_id.clone(), tenant: tenant.clone(), lines };
    let ahead = absorbed([change(vec![line("a"), line("b")]), change(vec![line("a")])]);
    assert_eq!(the_run(&ahead).lines, [line("a"), line("b"), line("a")]);
    let ahead = absorbed([Change::Audit(audit(2).into()), Change::Audit(audit(1).into())]);
    assert_eq!(ahead.audit, [Arc::new(audit(2)), Arc::new(audit(1))]);
}

#[test]
fn events_keep_their_order_and_the_last_position_is_known() {
    let (run_id, tenant) = names();
    let other = fixtures::run_id("other");
    let mut of_other = event(1, 12);
    of_other.run_id = other.clone();
    let ahead = absorbed([
        Change::Number { run_id: run_id.clone(), tenant, number: 10 },
        Change::Event { number: 10, event: Arc::new(event(1, 11)) },
        Change::Event { number: 3, event: Arc::new(of_other) },
        Change::Event { number: 10, event: Arc::new(event(2, 13)) },
    ]);
    assert_eq!(ahead.last_position, 13);
    let own = &ahead.runs[&run_id];
    assert_eq!(own.events.iter().map(|event| event.run_seq).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((own.new_number, own.number), (Some(10), Some(10)));
    let other = &ahead.runs[&other];
    assert_eq!(
        (other.new_number, other.number),
        (None, Some(3)),
        "a number that the database has is not written again"
    );
    assert_eq!(absorbed([Change::Authority(authority(1))]).last_position, 0);
}

#[test]
fn what_is_ahead_knows_about_how_much_it_is() {
    let (run_id, tenant) = names();
    let mut large = event(1, 1);
    large.payload = fixtures::payload(50_000);
    let snapshot = StoredSnapshot { run_seq: 1, state: "s".repeat(70_000) };
    let ahead = absorbed([
        Change::Event { number: 1, event: Arc::new(large) },
        Change::Snapshot { run_id: run_id.clone(), tenant: tenant.clone(), snapshot },
        Change::Lines { run_id, tenant, lines: vec![line(&"l".repeat(30_000))] },
    ]);
    assert_eq!(ahead.changes, 3);
    assert!((150_000..160_000).contains(&ahead.bytes), "{}", ahead.bytes);
}
