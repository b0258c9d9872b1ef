//! Removal: what goes leaves nothing behind, and nothing that went is ever numbered again.

use servo_canon::Digest;
use servo_model::alert::AlertCode;
use servo_model::contract::Backlog;
use servo_model::{RunId, Timestamp};

use super::Context;
use super::dispatch::{change, deliver, fail, notify, queue};
use crate::dispatch::QueueClaim;
use crate::error::Error;
use crate::log::{Expected, QueueChange, StoredSnapshot, TimerChange};
use crate::position::Position;
use crate::relay::{NewAlert, OutboxRow};
use crate::runs::{RunRow, Scope};
use crate::testkit::fixtures::{add, finished_row, fresh_event, payload, run_id, start_stream, system_stream, tenant};

/// A finished run with one of everything a run can have. Its request key is its name's digest.
async fn full_run(ctx: &Context, run: &str, owner: &str, finished_at: Timestamp) {
    let (run_id, owner) = (run_id(run), tenant(owner));
    let mut stream = start_stream(&run_id, &owner);
    let key = Some(Digest::of(run.as_bytes()));
    stream.row = Some(RunRow { request_key: key, ..finished_row(&run_id, &owner, finished_at) });
    let mut large = fresh_event(&run_id);
    large.payload = payload(70_000);
    stream.events.push(large);
    stream.timer = TimerChange::Set(ctx.clock.now());
    stream.queue = QueueChange::Put { not_before: ctx.clock.now() };
    stream.snapshot = Some(StoredSnapshot { run_seq: 2, state: "{}".to_owned() });
    let [pending, notified, delivered] = ["p", "n", "d"].map(|step| format!("{run}/{step}/1"));
    stream.dispatches = vec![
        queue(&pending, Some("p")),
        queue(&notified, Some("n")),
        notify(&notified, 1),
        queue(&delivered, Some("d")),
        notify(&delivered, 1),
        deliver(&delivered),
    ];
    ctx.put(stream).await.unwrap();
    let events = ctx.events(&run_id).await;
    let note = |index: usize| OutboxRow {
        position: events[index].position,
        run_id: run_id.clone(),
        run_seq: events[index].run_seq,
        tenant: owner.clone(),
        attempts: 1,
        next_at: ctx.clock.now(),
        last_error: "no answer".to_owned(),
    };
    ctx.store.outbox_put(note(0)).await.unwrap();
    ctx.store.outbox_bury(note(1)).await.unwrap();
    let alert = NewAlert {
        code: AlertCode::PauseDrainTimeout,
        subject: run.to_owned(),
        run_id: Some(run_id.clone()),
        tenant: owner.clone(),
        message: "m".to_owned(),
    };
    ctx.store.raise_alert(alert).await.unwrap();
}

async fn assert_gone(ctx: &Context, run: &str, owner: &str) {
    let (id, owner) = (run_id(run), tenant(owner));
    assert_eq!(ctx.store.get_run(&Scope::System, &id).await.unwrap(), None);
    refused!(ctx.store.read_run(&Scope::System, &id, 0, 10).await, Error::NotFound);
    refused!(ctx.store.snapshot_at(&Scope::System, &id, 10).await, Error::NotFound);
    assert_eq!(ctx.store.get_timer(&id).await.unwrap(), None);
    for step in ["p", "n", "d"] {
        assert_eq!(ctx.store.get_dispatch(&format!("{run}/{step}/1")).await.unwrap(), None);
    }
    assert_eq!(ctx.store.find_request(&owner, Digest::of(run.as_bytes())).await.unwrap(), None);
    let log = ctx.settled_log(Position::START).await;
    assert!(log.iter().all(|event| event.run_id != id), "events of {run} are still in the log");
    let head = ctx.store.log_head().await.unwrap();
    let counted = ctx.store.count_log(Position::START, head, 1_000).await.unwrap();
    assert_eq!(counted, log.len() as u64 + 1, "what is gone is not counted; the last is the marker behind it");
    let alerts = ctx.store.alerts(&Scope::System, 100).await.unwrap();
    assert!(alerts.iter().all(|alert| alert.run_id.as_ref() != Some(&id)));
    assert!(ctx.store.outbox_due(100).await.unwrap().iter().all(|row| row.run_id != id));
    assert!(ctx.store.dead_letters(Position::START, 100).await.unwrap().iter().all(|row| row.run_id != id));
}

/// Two of everything, one of which was removed.
async fn assert_one_left(ctx: &Context) {
    let backlog = ctx.store.backlog().await.unwrap();
    assert_eq!(backlog, Backlog { pending: 1, notified: 1, delivered: 1, failed: 0 });
    assert_eq!(ctx.store.outbox_len().await.unwrap(), 1);
    assert_eq!(ctx.store.dead_letters(Position::START, 10).await.unwrap().len(), 1);
    assert_eq!(ctx.store.alerts(&Scope::System, 10).await.unwrap().len(), 1);
    assert_eq!(ctx.store.due_timers(10).await.unwrap().due.len(), 1);
    assert_eq!(ctx.store.claim_queue(&QueueClaim::new("node", 1, 10)).await.unwrap().len(), 1);
    assert_eq!(ctx.sequences(&run_id("inv_keep")).await, [1, 2]);
}

pub(super) async fn a_deleted_run_leaves_nothing(ctx: &Context) {
    full_run(ctx, "inv_gone", "acme", ctx.clock.now()).await;
    full_run(ctx, "inv_keep", "acme", ctx.clock.now()).await;
    ctx.store.delete_run(&Scope::Tenant(tenant("acme")), &run_id("inv_gone")).await.unwrap();
    assert_gone(ctx, "inv_gone", "acme").await;
    assert_one_left(ctx).await;
    refused!(ctx.store.delete_run(&Scope::System, &run_id("inv_gone")).await, Error::NotFound);
    refused!(ctx.store.delete_run(&Scope::System, &RunId::system()).await, Error::NotFound);

    // A run of the same name starts afresh.
    ctx.start("inv_gone", "acme").await;
    assert_eq!(ctx.sequences(&run_id("inv_gone")).await, [1]);
    assert_eq!(ctx.store.snapshot_at(&Scope::System, &run_id("inv_gone"), 10).await.unwrap(), None);
}

pub(super) async fn retired_runs_leave_nothing(ctx: &Context) {
    full_run(ctx, "inv_gone", "acme", ctx.clock.now()).await;
    ctx.clock.advance(1);
    full_run(ctx, "inv_keep", "acme", ctx.clock.now()).await;
    assert_eq!(ctx.store.retire(ctx.clock.now(), 10).await.unwrap(), 1);
    assert_gone(ctx, "inv_gone", "acme").await;
    assert_one_left(ctx).await;
}

pub(super) async fn only_runs_finished_before_are_retired(ctx: &Context) {
    let acme = tenant("acme");
    ctx.start("inv_running", "acme").await;
    let start = ctx.clock.now();
    for number in 1..=5 {
        let run = run_id(&format!("inv_{number}"));
        let mut stream = start_stream(&run, &acme);
        stream.row = Some(finished_row(&run, &acme, ctx.clock.after(number * 10)));
        ctx.put(stream).await.unwrap();
    }
    assert_eq!(ctx.store.retire(start, 10).await.unwrap(), 0);
    assert_eq!(ctx.store.retire(ctx.clock.after(10), 10).await.unwrap(), 0, "not before, but at that time");
    assert_eq!(ctx.store.retire(ctx.clock.after(45), 3).await.unwrap(), 3, "a few at a time");
    assert_eq!(ctx.store.retire(ctx.clock.after(45), 3).await.unwrap(), 1, "fewer than asked: no more are due");
    assert_eq!(ctx.store.retire(ctx.clock.after(45), 3).await.unwrap(), 0);
    let query = crate::runs::RunQuery { limit: 10, ..Default::default() };
    let rows = ctx.store.list_runs(&Scope::System, &query).await.unwrap();
    let left: Vec<_> = rows.iter().map(|row| row.run_id.as_str()).collect();
    assert_eq!(left, ["inv_running", "inv_5"]);
}

pub(super) async fn positions_are_never_used_again(ctx: &Context) {
    let (one, acme) = ctx.start("inv_1", "acme").await;
    let mut highest = ctx.log(Position::START, 10, 1).await[0].position;
    for round in 0..3 {
        let (two, _) = ctx.start("inv_2", "acme").await;
        let seen = ctx.log(highest, 10, 1).await;
        assert!(seen[0].position > highest, "round {round}");
        highest = seen[0].position;
        // The newest event goes: whatever counts positions must not fall back.
        ctx.store.delete_run(&Scope::System, &two).await.unwrap();
        assert_eq!(ctx.store.read_log(highest, 10).await.unwrap().events, []);
        assert_eq!(ctx.store.read_log(highest, 10).await.unwrap().next, highest);
    }
    ctx.put(add(&one, &acme, Expected::Seq(1), vec![fresh_event(&one)])).await.unwrap();
    assert!(ctx.log(highest, 10, 1).await[0].position > highest, "a reader that stood at the removed event sees it");
    if let Some(again) = ctx.reopen().await {
        again.store.delete_run(&Scope::System, &one).await.unwrap();
        again.start("inv_3", "acme").await;
        assert!(again.log(highest, 10, 1).await[0].position > highest, "also after a restart");
        again.store.close().await.unwrap();
    }
}

pub(super) async fn the_system_stream_is_trimmed_and_goes_on(ctx: &Context) {
    let system = RunId::system();
    for _ in 0..6 {
        ctx.put(system_stream(vec![fresh_event(&system)])).await.unwrap();
        ctx.clock.advance(10);
    }
    // Sequences 1 to 6 at 0, 10, …, 50 milliseconds; it is 60 now.
    let at = |ms: i64| Timestamp::from_millis(ctx.clock.now().as_millis() - 60 + ms);
    let (run, acme) = ctx.start("inv_1", "acme").await;
    assert_eq!(ctx.store.trim_system(at(0), 10).await.unwrap(), 0);
    assert_eq!(ctx.store.trim_system(at(30), 2).await.unwrap(), 2);
    assert_eq!(ctx.sequences(&system).await, [3, 4, 5, 6], "oldest first");
    assert_eq!(ctx.store.trim_system(at(30), 10).await.unwrap(), 1);
    assert_eq!(ctx.store.trim_system(at(30), 10).await.unwrap(), 0);
    assert_eq!(ctx.store.trim_system(at(10_000), 10).await.unwrap(), 3);
    assert_eq!(ctx.sequences(&run).await, [1], "runs are not touched");
    let page = ctx.store.read_run(&Scope::System, &system, 0, 10).await.unwrap();
    assert_eq!((page.events.len(), page.head_seq), (0, 6), "the head stands although nothing is left below it");
    let outcome = ctx.put(system_stream(vec![fresh_event(&system)])).await.unwrap();
    assert_eq!(outcome.events[0].run_seq, 7);
    let log = ctx.settled_log(Position::START).await;
    let seen: Vec<_> = log.iter().map(|event| (event.run_id.as_str(), event.run_seq)).collect();
    assert_eq!(seen, [("inv_1", 1), ("_system", 7)]);
    let _ = acme;
}

pub(super) async fn finished_operator_dispatches_are_trimmed(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    change(ctx, vec![queue("pending", None), queue("notified", None), queue("old-d", None), queue("old-f", None)])
        .await
        .unwrap();
    change(ctx, vec![notify("notified", 0), notify("old-d", 0), notify("old-f", 0)]).await.unwrap();
    change(ctx, vec![deliver("old-d"), fail("old-f"), queue("new-d", None), notify("new-d", 0)]).await.unwrap();
    let mut stream = add(&run, &acme, Expected::Any, vec![fresh_event(&run)]);
    stream.dispatches = vec![queue("of-run", Some("a")), notify("of-run", 0), deliver("of-run")];
    ctx.put(stream).await.unwrap();
    ctx.clock.advance(10);
    change(ctx, vec![deliver("new-d")]).await.unwrap();
    ctx.store.trim_system(ctx.clock.now(), 100).await.unwrap();
    for (id, stays) in
        [("pending", true), ("notified", true), ("old-d", false), ("old-f", false), ("new-d", true), ("of-run", true)]
    {
        assert_eq!(ctx.store.get_dispatch(id).await.unwrap().is_some(), stays, "{id}");
    }
}

pub(super) async fn quarantine_sets_a_run_aside(ctx: &Context) {
    full_run(ctx, "inv_1", "acme", ctx.clock.now()).await;
    full_run(ctx, "inv_keep", "acme", ctx.clock.now()).await;
    let run = run_id("inv_1");
    let before = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    ctx.store.quarantine(&run, "event 2: unreadable").await.unwrap();
    let row = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    assert_eq!(row, RunRow { quarantined: Some("event 2: unreadable".to_owned()), ..before });
    assert_eq!(ctx.store.get_timer(&run).await.unwrap(), None);
    for (step, stays) in [("p", false), ("n", false), ("d", true)] {
        let found = ctx.store.get_dispatch(&format!("inv_1/{step}/1")).await.unwrap();
        assert_eq!(found.is_some(), stays, "{step}");
    }
    assert_eq!(ctx.sequences(&run).await, [1, 2], "the log stays");
    let due: Vec<_> = ctx.store.due_timers(10).await.unwrap().due.into_iter().map(|timer| timer.run_id).collect();
    assert_eq!(due, [run_id("inv_keep")]);
    assert_eq!(ctx.store.claim_queue(&QueueClaim::new("node", 1, 10)).await.unwrap().len(), 1);
    assert!(ctx.store.open_dispatches(9, &tenant("acme"), None, 10).await.unwrap().iter().all(|row| row.run_id != run));

    // A later row of the run does not lift it.
    let acme = tenant("acme");
    let mut stream = add(&run, &acme, Expected::Any, vec![fresh_event(&run)]);
    stream.row = Some(finished_row(&run, &acme, ctx.clock.now()));
    ctx.put(stream).await.unwrap();
    let row = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    assert_eq!(row.quarantined.as_deref(), Some("event 2: unreadable"));
    ctx.store.quarantine(&run, "again").await.unwrap();
    let row = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    assert_eq!(row.quarantined.as_deref(), Some("again"));
    refused!(ctx.store.quarantine(&run_id("inv_none"), "r").await, Error::NotFound);
}
