//! Stored snapshots, and reading a run again in both modes of the contract.

use servo_model::projection::{Projection, Resync, Resynced};
use servo_model::{Event, RunId, RunState, TenantId};

use super::Context;
use crate::error::Error;
use crate::log::{Expected, StoredSnapshot};
use crate::resync::{load_state, resync};
use crate::runs::Scope;
use crate::testkit::fixtures::{add, fold, fresh_event, run_id, step_completed, step_started, tenant, typed_event};

/// A run of `steps` steps that each started and completed: 1 + 2 × `steps` events.
async fn run_of_steps(ctx: &Context, steps: usize) -> (RunId, TenantId) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let bodies = (0..steps).flat_map(|number| {
        let step = format!("s{number}");
        [step_started(&step, 1), step_completed(&step, 1)]
    });
    let events: Vec<_> = bodies.map(|body| typed_event(&run, &body)).collect();
    for chunk in events.chunks(400) {
        ctx.put(add(&run, &acme, Expected::Any, chunk.to_vec())).await.unwrap();
    }
    (run, acme)
}

async fn decoded(ctx: &Context, run: &RunId) -> Vec<Event> {
    ctx.events(run).await.iter().map(|stored| stored.decode().unwrap()).collect()
}

async fn store_snapshot(ctx: &Context, run: &RunId, tenant: &TenantId, seq: u64) -> RunState {
    let events = decoded(ctx, run).await;
    let state = fold(run, &events[..seq as usize]);
    let snapshot = StoredSnapshot { run_seq: seq, state: serde_json::to_string(&state).unwrap() };
    ctx.store.put_snapshot(run, tenant, snapshot).await.unwrap();
    state
}

pub(super) async fn the_latest_at_or_before_is_found(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let snapshot = |run_seq, state: &str| StoredSnapshot { run_seq, state: state.to_owned() };
    let at = async |seq| ctx.store.snapshot_at(&Scope::System, &run, seq).await.unwrap();
    assert_eq!(at(u64::MAX).await, None);
    for (seq, state) in [(10, "{\"n\":10}"), (30, "{\"n\":30}"), (20, "{\"n\":20}")] {
        ctx.store.put_snapshot(&run, &acme, snapshot(seq, state)).await.unwrap();
    }
    for (seq, found) in [(0, None), (9, None), (10, Some(10)), (19, Some(10)), (20, Some(20)), (29, Some(20))] {
        assert_eq!(at(seq).await.map(|snapshot| snapshot.run_seq), found, "at {seq}");
    }
    for seq in [30, 31, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
        assert_eq!(at(seq).await, Some(snapshot(30, "{\"n\":30}")), "at {seq}");
    }
    ctx.store.put_snapshot(&run, &acme, snapshot(30, "{\"n\":31}")).await.unwrap();
    assert_eq!(at(30).await, Some(snapshot(30, "{\"n\":31}")), "a later one replaces it");
}

pub(super) async fn an_append_can_bring_one(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let mut stream = add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run)]);
    let snapshot = StoredSnapshot { run_seq: 2, state: "{\"large\":\"".to_owned() + &"x".repeat(200_000) + "\"}" };
    stream.snapshot = Some(snapshot.clone());
    ctx.put(stream).await.unwrap();
    assert_eq!(ctx.store.snapshot_at(&Scope::System, &run, 2).await.unwrap(), Some(snapshot));
    assert_eq!(ctx.store.snapshot_at(&Scope::System, &run, 1).await.unwrap(), None);
}

pub(super) async fn a_snapshot_of_a_run_that_is_gone_is_no_error(ctx: &Context) {
    let snapshot = StoredSnapshot { run_seq: 1, state: "{}".to_owned() };
    ctx.store.put_snapshot(&run_id("inv_none"), &tenant("acme"), snapshot.clone()).await.unwrap();
    let (run, acme) = ctx.start("inv_1", "acme").await;
    ctx.store.delete_run(&Scope::System, &run).await.unwrap();
    ctx.store.put_snapshot(&run, &acme, snapshot).await.unwrap();
    refused!(ctx.store.snapshot_at(&Scope::System, &run, 1).await, Error::NotFound);
    ctx.start("inv_1", "acme").await;
    assert_eq!(ctx.store.snapshot_at(&Scope::System, &run, 1).await.unwrap(), None);
}

/// ES-047
pub(super) async fn full_gives_every_event(ctx: &Context) {
    let (run, acme) = run_of_steps(ctx, 4).await;
    store_snapshot(ctx, &run, &acme, 5).await;
    let reread = resync(&*ctx.store, &Scope::System, &run, Resync::Full).await.unwrap();
    assert_eq!(reread.base, RunState::new(run.clone()));
    assert_eq!((reread.events.len(), reread.head_seq), (9, 9));
    assert_eq!(reread.events, decoded(ctx, &run).await);
}

/// ES-047
pub(super) async fn from_snapshot_gives_it_and_the_rest(ctx: &Context) {
    let (run, acme) = run_of_steps(ctx, 4).await;
    let at_three = store_snapshot(ctx, &run, &acme, 3).await;
    let at_five = store_snapshot(ctx, &run, &acme, 5).await;
    let all = decoded(ctx, &run).await;
    for (snapshot_seq, base) in [(3, &at_three), (4, &at_three), (5, &at_five), (9, &at_five), (u64::MAX, &at_five)] {
        let reread = resync(&*ctx.store, &Scope::System, &run, Resync::FromSnapshot { snapshot_seq }).await.unwrap();
        assert_eq!(&reread.base, base, "at {snapshot_seq}");
        assert_eq!(reread.events, all[base.last_event_seq as usize..]);
        assert_eq!(reread.base.clone().fold(&reread.events), fold(&run, &all), "both ways lead to the same state");
    }
}

/// ES-047: without a snapshot, or with one that cannot be read, it is FULL.
pub(super) async fn from_snapshot_falls_back_to_full(ctx: &Context) {
    let (run, acme) = run_of_steps(ctx, 4).await;
    let all = decoded(ctx, &run).await;
    let check = async |snapshot_seq, why: &str| {
        let reread = resync(&*ctx.store, &Scope::System, &run, Resync::FromSnapshot { snapshot_seq }).await.unwrap();
        assert_eq!(reread.base, RunState::new(run.clone()), "{why}");
        assert_eq!(reread.events, all, "{why}");
    };
    check(9, "there is none").await;
    store_snapshot(ctx, &run, &acme, 5).await;
    check(4, "the only one is later").await;
    let unreadable = StoredSnapshot { run_seq: 6, state: "{\"format\":\"of another version\"}".to_owned() };
    ctx.store.put_snapshot(&run, &acme, unreadable).await.unwrap();
    check(9, "it cannot be read").await;
}

/// ES-047: more events than one page holds, and a projector that goes on from the answer.
pub(super) async fn a_long_run_is_read_page_by_page(ctx: &Context) {
    let (run, acme) = run_of_steps(ctx, 600).await;
    let full = resync(&*ctx.store, &Scope::System, &run, Resync::Full).await.unwrap();
    assert_eq!((full.events.len(), full.head_seq), (1_201, 1_201));
    assert!(full.events.windows(2).all(|pair| pair[0].run_seq + 1 == pair[1].run_seq));
    store_snapshot(ctx, &run, &acme, 101).await;
    let mode = Resync::FromSnapshot { snapshot_seq: 500 };
    let rest = resync(&*ctx.store, &Scope::System, &run, mode).await.unwrap();
    assert_eq!((rest.base.last_event_seq, rest.events.len()), (101, 1_100));
    let behind = Projection::new(fold(&run, &full.events[..50]));
    let (projection, outcome) = behind.resync(rest.base, &rest.events);
    assert_eq!(outcome, Resynced::Advanced { from: 50, to: 1_201, findings: Vec::new() });
    assert_eq!(projection.state(), &fold(&run, &full.events));
}

/// ES-001: with rows and snapshots out of the way, the events alone give the state.
pub(super) async fn the_state_is_what_the_events_add_up_to(ctx: &Context) {
    let (run, acme) = run_of_steps(ctx, 3).await;
    let folded = fold(&run, &decoded(ctx, &run).await);
    assert_eq!(folded.last_event_seq, 7);
    assert_eq!(load_state(&*ctx.store, &Scope::System, &run).await.unwrap(), folded);
    store_snapshot(ctx, &run, &acme, 4).await;
    assert_eq!(load_state(&*ctx.store, &Scope::System, &run).await.unwrap(), folded, "a snapshot is a short cut only");
    ctx.put(add(&run, &acme, Expected::Seq(7), vec![typed_event(&run, &step_started("s9", 1))])).await.unwrap();
    let state = load_state(&*ctx.store, &Scope::System, &run).await.unwrap();
    assert_eq!((state.last_event_seq, state.in_flight), (8, 1));
    refused!(load_state(&*ctx.store, &Scope::System, &run_id("inv_none")).await, Error::NotFound);
}
