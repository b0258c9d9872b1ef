//! All or nothing: whatever one stream of an append is refused for, no trace of the others stays.

use super::Context;
use crate::dispatch::{DispatchChange, QueueClaim};
use crate::error::Error;
use crate::lease::{AuthorityChange, Fence};
use crate::log::{Append, Expected, QueueChange, StoredSnapshot, StreamAppend, TimerChange};
use crate::position::Position;
use crate::relay::CursorRow;
use crate::runs::Scope;
use crate::testkit::fixtures::{add, dispatch_step, fresh_event, run_id, run_row, start_stream, tenant};
use servo_model::invocation::InvocationStatus;

/// A stream that changes everything a stream can change, on a run at sequence 1.
fn full_stream(ctx: &Context, run: &str) -> StreamAppend {
    let (run, acme) = (run_id(run), tenant("acme"));
    let mut stream = add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run)]);
    let mut row = run_row(&run, &acme, ctx.clock.now());
    row.visible = InvocationStatus::Suspended;
    row.changed_seq = 2;
    stream.row = Some(row);
    stream.timer = TimerChange::Set(ctx.clock.now());
    stream.queue = QueueChange::Put { not_before: ctx.clock.now() };
    stream.snapshot = Some(StoredSnapshot { run_seq: 2, state: "{\"of\":\"full_stream\"}".to_owned() });
    let (request_id, target) = (format!("{run}/a/1"), "mock".to_owned());
    stream.dispatches.push(DispatchChange::Queue { request_id, target, step: Some(dispatch_step("a", 1)) });
    stream
}

/// R6: a write that was given up and arrives late begins nothing, where what it belongs to was decided again.
pub(super) async fn a_late_write_that_was_overtaken_begins_no_run(ctx: &Context) {
    let (parent, acme) = ctx.start("inv_1", "acme").await;
    let called = fresh_event(&parent);
    let call = |child: &str| {
        let mut append = Append::one(add(&parent, &acme, Expected::Seq(1), vec![called.clone()]));
        append.streams.push(start_stream(&run_id(child), &acme));
        append
    };
    let second = call("inv_3");
    ctx.store.append(second.clone()).await.unwrap();
    let late = ctx.store.append(call("inv_2")).await;
    assert!(matches!(&late, Err(Error::Conflict { run_id, .. }) if *run_id == parent), "{late:?}");
    assert!(ctx.store.get_run(&Scope::System, &run_id("inv_2")).await.unwrap().is_none());
    // The same write again is still the same.
    let again = ctx.store.append(second).await.unwrap();
    assert!(again.streams.iter().flat_map(|stream| &stream.events).all(|event| !event.inserted));
    assert_eq!((ctx.events(&parent).await.len(), ctx.events(&run_id("inv_3")).await.len()), (2, 1));
}

pub(super) async fn several_runs_change_together(ctx: &Context) {
    ctx.start("inv_1", "acme").await;
    ctx.start("inv_2", "acme").await;
    let (three, globex) = (run_id("inv_3"), tenant("globex"));
    let mut append = Append::one(full_stream(ctx, "inv_1"));
    append.streams.push(full_stream(ctx, "inv_2"));
    append.streams.push(start_stream(&three, &globex));
    append.cursors.push(CursorRow::at("projector", Position::of_id(3)));
    append.authority = Some(AuthorityChange::Acquire {
        owner: "node".to_owned(),
        lease_id: "l1".to_owned(),
        leased_until: ctx.clock.after(1_000).to_string(),
    });
    let appended = ctx.store.append(append).await.unwrap();
    assert_eq!(appended.epoch, Some(1));
    let sequences: Vec<_> = appended.streams.iter().map(|stream| stream.events[0].run_seq).collect();
    assert_eq!(sequences, [2, 2, 1]);
    for run in ["inv_1", "inv_2"] {
        let run_id = run_id(run);
        let row = ctx.store.get_run(&Scope::System, &run_id).await.unwrap().unwrap();
        assert_eq!((row.visible, row.changed_seq), (InvocationStatus::Suspended, 2));
        assert_eq!(ctx.store.get_timer(&run_id).await.unwrap(), Some(ctx.clock.now()));
        assert!(ctx.store.get_dispatch(&format!("{run}/a/1")).await.unwrap().is_some());
        assert!(ctx.store.snapshot_at(&Scope::System, &run_id, 2).await.unwrap().is_some());
    }
    assert_eq!(ctx.store.claim_queue(&QueueClaim::new("node", 1_000, 10)).await.unwrap().len(), 2);
    assert_eq!(ctx.store.cursor("projector").await.unwrap().unwrap().position, Position::of_id(3));
}

/// ES-081 rests on it: what is published is read from the same log, so a rolled back event is never published.
pub(super) async fn one_refused_stream_undoes_all(ctx: &Context) {
    let (one, acme) = ctx.start("inv_1", "acme").await;
    let (two, _) = ctx.start("inv_2", "acme").await;
    let three = run_id("inv_3");
    let before = ctx.settled_log(Position::START).await;
    let rows = (
        ctx.store.get_run(&Scope::System, &one).await.unwrap(),
        ctx.store.get_run(&Scope::System, &two).await.unwrap(),
    );

    let undone = full_stream(ctx, "inv_1");
    let stale = add(&two, &acme, Expected::Seq(9), vec![fresh_event(&two)]);
    let unknown = add(&run_id("inv_none"), &acme, Expected::Any, vec![fresh_event(&two)]);
    let mut lease_lost = add(&two, &acme, Expected::Seq(1), vec![fresh_event(&two)]);
    lease_lost.queue = QueueChange::Remove { leased_by: Some("node".to_owned()) };
    let mut no_dispatch = add(&two, &acme, Expected::Seq(1), vec![fresh_event(&two)]);
    no_dispatch.dispatches.push(DispatchChange::Deliver { request_id: "none".to_owned() });
    let mut exists = start_stream(&two, &acme);
    exists.events = vec![fresh_event(&two)];

    for (what, bad) in
        [("stale", stale), ("unknown", unknown), ("lease", lease_lost), ("dispatch", no_dispatch), ("exists", exists)]
    {
        for bad_first in [false, true] {
            let mut append = Append::one(undone.clone());
            append.streams.push(start_stream(&three, &acme));
            append.streams.insert(if bad_first { 0 } else { 2 }, bad.clone());
            append.cursors.push(CursorRow::at("projector", Position::of_id(3)));
            append.authority = Some(AuthorityChange::Acquire {
                owner: "node".to_owned(),
                lease_id: "l1".to_owned(),
                leased_until: ctx.clock.after(1_000).to_string(),
            });
            let result = ctx.store.append(append).await;
            assert!(result.is_err(), "{what}: {result:?}");

            assert_eq!(ctx.sequences(&one).await, [1], "{what}");
            assert_eq!(ctx.sequences(&two).await, [1], "{what}");
            assert_eq!(ctx.store.get_run(&Scope::System, &one).await.unwrap(), rows.0, "{what}");
            assert_eq!(ctx.store.get_run(&Scope::System, &two).await.unwrap(), rows.1, "{what}");
            assert_eq!(ctx.store.get_run(&Scope::System, &three).await.unwrap(), None, "{what}");
            assert_eq!(ctx.store.get_timer(&one).await.unwrap(), None, "{what}");
            assert_eq!(ctx.store.claim_queue(&QueueClaim::new("node", 1, 10)).await.unwrap(), [], "{what}");
            assert_eq!(ctx.store.get_dispatch("inv_1/a/1").await.unwrap(), None, "{what}");
            assert_eq!(ctx.store.snapshot_at(&Scope::System, &one, 9).await.unwrap(), None, "{what}");
            assert_eq!(ctx.store.cursor("projector").await.unwrap(), None, "{what}");
            assert_eq!(ctx.store.authority().await.unwrap(), None, "{what}");
        }
    }
    // Only the marker of the first reading was added since.
    let after: Vec<_> = ctx.settled_log(Position::START).await;
    let of_runs: Vec<_> = after.into_iter().filter(|event| !event.run_id.is_system()).collect();
    assert_eq!(of_runs, before);
    // The key of a rolled back event is free, also after its sequence went to another one.
    ctx.put(add(&one, &acme, Expected::Seq(1), vec![fresh_event(&one)])).await.unwrap();
    let outcome = ctx.put(StreamAppend { expected: Expected::Seq(2), ..undone }).await.unwrap();
    assert_eq!((outcome.events[0].run_seq, outcome.events[0].inserted), (3, true));
}

pub(super) async fn an_undone_change_restores_what_was_there(ctx: &Context) {
    let (one, acme) = ctx.start("inv_1", "acme").await;
    ctx.put(full_stream(ctx, "inv_1")).await.unwrap();
    let due = ctx.clock.now();

    let mut changed = add(&one, &acme, Expected::Seq(2), vec![fresh_event(&one)]);
    changed.timer = TimerChange::Clear;
    changed.queue = QueueChange::Remove { leased_by: None };
    changed.snapshot = Some(StoredSnapshot { run_seq: 2, state: "{\"of\":\"undone\"}".to_owned() });
    changed.dispatches = vec![
        DispatchChange::Notify { request_id: "inv_1/a/1".to_owned(), channel: "c".to_owned(), epoch: 0 },
        DispatchChange::Notify { request_id: "inv_1/a/1".to_owned(), channel: "c".to_owned(), epoch: 0 },
    ];
    refused!(ctx.put(changed).await, Error::DispatchMove { .. });

    assert_eq!(ctx.sequences(&one).await, [1, 2]);
    assert_eq!(ctx.store.get_timer(&one).await.unwrap(), Some(due));
    let row = ctx.store.get_dispatch("inv_1/a/1").await.unwrap().unwrap();
    assert_eq!((row.state.as_str(), row.channel), ("pending", None));
    let snapshot = ctx.store.snapshot_at(&Scope::System, &one, 2).await.unwrap().unwrap();
    assert_eq!(snapshot.state, "{\"of\":\"full_stream\"}");
    assert_eq!(ctx.store.claim_queue(&QueueClaim::new("node", 1_000, 10)).await.unwrap().len(), 1);
}

pub(super) async fn fence_and_authority_are_judged_before_any_stream(ctx: &Context) {
    let (one, acme) = ctx.start("inv_1", "acme").await;
    let stale = add(&one, &acme, Expected::Seq(9), vec![fresh_event(&one)]);
    let fenced = Append { fence: Some(Fence { epoch: 1 }), ..Append::one(stale.clone()) };
    refused!(ctx.store.append(fenced).await, Error::Fenced { epoch: 1 });
    let renew = AuthorityChange::Renew {
        owner: "node".to_owned(),
        epoch: None,
        lease_id: "l".to_owned(),
        leased_until: ctx.clock.after(1_000).to_string(),
    };
    let renewing = Append { authority: Some(renew), ..Append::one(stale) };
    refused!(ctx.store.append(renewing).await, Error::AuthorityNotHeld { .. });
    assert_eq!(ctx.sequences(&one).await, [1]);
}
