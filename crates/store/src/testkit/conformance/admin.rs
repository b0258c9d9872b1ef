//! The store as a whole: what it says of itself, that it keeps everything, and that it closes.

use servo_model::alert::AlertCode;
use servo_model::{RunId, Timestamp};

use super::Context;
use super::alerts::alert;
use super::import::imported;
use super::registry::function;
use crate::dispatch::{DispatchChange, DispatchHeads, QueueClaim};
use crate::entrypoints::EntrypointQuery;
use crate::error::Error;
use crate::lease::AuthorityChange;
use crate::log::{Append, QueueChange, StoredSnapshot, TimerChange};
use crate::position::Position;
use crate::relay::{CursorRow, OutboxRow};
use crate::runs::{RunQuery, Scope};
use crate::testkit::fixtures::{fresh_event, payload, run_id, start_append, start_stream, tenant};

pub(super) async fn it_says_what_it_is(ctx: &Context) {
    let info = ctx.store.info().await.unwrap();
    assert!(["memory", "sqlite", "postgres"].contains(&info.kind), "{info:?}");
    assert!(info.schema_version >= 1 && !info.engine_version.is_empty(), "{info:?}");
    assert_eq!(ctx.store.integrity().await.unwrap().problems, [""; 0]);
    assert_eq!(ctx.store.secret().await.unwrap(), ctx.store.secret().await.unwrap());
}

/// ES-001: after a restart the store says what it said before, with nothing else to ask.
pub(super) async fn everything_outlives_the_process(ctx: &Context) {
    let acme = tenant("acme");
    let run = run_id("inv_1");
    let mut stream = start_stream(&run, &acme);
    stream.events.push(crate::NewEvent { payload: payload(100_000), ..fresh_event(&run) });
    stream.timer = TimerChange::Set(ctx.clock.after(10));
    stream.queue = QueueChange::Put { not_before: ctx.clock.now() };
    stream.snapshot = Some(StoredSnapshot { run_seq: 2, state: "{}".to_owned() });
    let (request_id, target) = ("r".to_owned(), "mock".to_owned());
    stream.dispatches.push(DispatchChange::Queue { request_id, target, step: None });
    let mut append = Append::one(stream);
    append.cursors.push(CursorRow::at("relay", Position::of_id(1)));
    append.authority = Some(AuthorityChange::Acquire {
        owner: "a".to_owned(),
        lease_id: "l".to_owned(),
        leased_until: ctx.clock.after(60_000).to_string(),
    });
    ctx.store.append(append).await.unwrap();
    let log = ctx.log(Position::START, 10, 2).await;
    let note = |index: usize| OutboxRow {
        position: log[index].position,
        run_id: run.clone(),
        run_seq: log[index].run_seq,
        tenant: acme.clone(),
        attempts: 1,
        next_at: ctx.clock.now(),
        last_error: "e".to_owned(),
    };
    ctx.store.outbox_put(note(0)).await.unwrap();
    ctx.store.outbox_bury(note(1)).await.unwrap();
    ctx.store.raise_alert(alert(AlertCode::ProjectorLagHigh, "acme", "s", "m")).await.unwrap();

    async fn all(ctx: &Context, run: &RunId) -> String {
        let store = &ctx.store;
        let told = (
            store.get_run(&Scope::System, run).await.unwrap(),
            ctx.log(Position::START, 10, 2).await,
            (store.get_timer(run).await.unwrap(), store.get_dispatch("r").await.unwrap()),
            (store.authority().await.unwrap(), store.cursor("relay").await.unwrap()),
            (store.outbox_due(10).await.unwrap(), store.dead_letters(Position::START, 10).await.unwrap()),
            (store.alerts(&Scope::System, 10).await.unwrap(), store.secret().await.unwrap()),
            store.snapshot_at(&Scope::System, run, 9).await.unwrap(),
        );
        format!("{told:?}")
    }
    let before = all(ctx, &run).await;
    let Some(again) = ctx.reopen().await else { return };
    assert!(all(&again, &run).await == before, "the store forgot something");
    assert_eq!(again.store.claim_queue(&QueueClaim::new("node", 1, 10)).await.unwrap().len(), 1);
    again.start("inv_2", "acme").await;
    let next = again.log(log[1].position, 10, 1).await;
    assert_eq!((next.len(), next[0].run_id.as_str()), (1, "inv_2"), "and goes on behind it");
    again.store.close().await.unwrap();
}

/// Every method, so that no call of a closed store hangs, panics or quietly succeeds.
pub(super) async fn a_closed_store_says_so(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    ctx.store.close().await.unwrap();
    let store = &ctx.store;
    let now = Timestamp::EPOCH;
    let (scope, at) = (Scope::System, Position::of_id(1));
    let snapshot = StoredSnapshot { run_seq: 1, state: "{}".to_owned() };
    let note = OutboxRow {
        position: at,
        run_id: run.clone(),
        run_seq: 1,
        tenant: acme.clone(),
        attempts: 1,
        next_at: now,
        last_error: "e".to_owned(),
    };
    let code = AlertCode::ProjectorLagHigh;

    refused!(store.now().await, Error::Closed);
    refused!(store.append(start_append(&run_id("inv_2"), &acme)).await, Error::Closed);
    refused!(store.append(Append::default()).await, Error::Closed);
    refused!(store.read_run(&scope, &run, 0, 1).await, Error::Closed);
    refused!(store.snapshot_at(&scope, &run, 1).await, Error::Closed);
    refused!(store.put_snapshot(&run, &acme, snapshot).await, Error::Closed);
    refused!(store.read_log(Position::START, 1).await, Error::Closed);
    refused!(store.log_head().await, Error::Closed);
    refused!(store.count_log(Position::START, at, 1).await, Error::Closed);

    refused!(store.get_run(&scope, &run).await, Error::Closed);
    refused!(store.list_runs(&scope, &RunQuery { limit: 1, ..RunQuery::default() }).await, Error::Closed);
    refused!(store.find_request(&acme, servo_canon::Digest::of(b"r")).await, Error::Closed);
    refused!(store.release_request(&acme, servo_canon::Digest::of(b"r"), &run).await, Error::Closed);
    refused!(store.count_by_visible(&acme, None).await, Error::Closed);
    refused!(store.count_active(&acme, 1).await, Error::Closed);

    refused!(store.count_open(&acme, "plan").await, Error::Closed);
    refused!(store.count_descendants(&acme, &run, 1).await, Error::Closed);
    refused!(store.open_descendants(&acme, &run, None, 1).await, Error::Closed);
    refused!(store.claim_queue(&QueueClaim::new("a", 1, 1)).await, Error::Closed);
    refused!(store.release_queue(&run, "a", now).await, Error::Closed);
    refused!(store.open_dispatches(1, &acme, None, 1).await, Error::Closed);
    let heads = DispatchHeads { epoch: 1, after: None, tenants: 1, each: 1 };
    refused!(store.dispatch_heads(&heads).await, Error::Closed);
    refused!(store.get_dispatch("r").await, Error::Closed);
    refused!(store.backlog().await, Error::Closed);
    refused!(store.due_timers(1).await, Error::Closed);
    refused!(store.get_timer(&run).await, Error::Closed);
    refused!(store.authority().await, Error::Closed);
    refused!(store.break_leases().await, Error::Closed);

    refused!(store.cursor("c").await, Error::Closed);
    refused!(store.move_cursor(None, CursorRow::at("c", at), None).await, Error::Closed);
    refused!(store.outbox_put(note.clone()).await, Error::Closed);
    refused!(store.outbox_due(1).await, Error::Closed);
    refused!(store.outbox_len().await, Error::Closed);
    refused!(store.outbox_done(at).await, Error::Closed);
    refused!(store.outbox_bury(note).await, Error::Closed);
    refused!(store.dead_letters(Position::START, 1).await, Error::Closed);
    refused!(store.redrive(None).await, Error::Closed);
    refused!(store.raise_alert(alert(code, "acme", "s", "m")).await, Error::Closed);
    refused!(store.alerts(&scope, 1).await, Error::Closed);
    refused!(store.clear_alert(code, &acme, "s").await, Error::Closed);

    let (name, live) = (function("f"), super::registry::alias("live"));
    refused!(store.put_function(&acme, &name, "{}").await, Error::Closed);
    refused!(store.get_function(&acme, &name, None).await, Error::Closed);
    refused!(store.list_functions(&scope, None, 1).await, Error::Closed);
    refused!(store.list_versions(&acme, &name, None, 1).await, Error::Closed);
    refused!(store.remove_function(&acme, &name).await, Error::Closed);
    refused!(store.put_alias(&acme, &name, &live, 1).await, Error::Closed);
    refused!(store.get_alias(&acme, &name, &live).await, Error::Closed);
    refused!(store.list_aliases(&acme, &name).await, Error::Closed);
    refused!(store.remove_alias(&acme, &name, &live).await, Error::Closed);
    let entrypoint = super::entrypoints::entrypoint("acme", "ep_1", "a");
    refused!(store.put_entrypoint(entrypoint.clone()).await, Error::Closed);
    refused!(store.get_entrypoint(&scope, "ep_1").await, Error::Closed);
    refused!(store.find_entrypoint(&acme, "a").await, Error::Closed);
    refused!(store.update_entrypoint(entrypoint).await, Error::Closed);
    refused!(store.remove_entrypoint(&acme, "ep_1", 1).await, Error::Closed);
    refused!(store.list_entrypoints(&scope, &EntrypointQuery::default()).await, Error::Closed);
    refused!(store.count_entrypoints(&acme).await, Error::Closed);
    refused!(store.put_lines(&run, &acme, vec![super::lines::line(ctx, "x")]).await, Error::Closed);
    refused!(store.read_lines(&scope, &run, 0, 1).await, Error::Closed);

    refused!(store.info().await, Error::Closed);
    refused!(store.secret().await, Error::Closed);
    refused!(store.quarantine(&run, "r").await, Error::Closed);
    refused!(store.retire(now, 1).await, Error::Closed);
    refused!(store.delete_run(&scope, &run).await, Error::Closed);
    refused!(store.trim_system(now, 1).await, Error::Closed);
    let (row, events) = imported(ctx, "inv_3", &[1]);
    refused!(store.import_run(row, events).await, Error::Closed);
    refused!(store.integrity().await, Error::Closed);

    // Closing twice is no accident of its own.
    assert!(matches!(store.close().await, Ok(()) | Err(Error::Closed)));
}
