//! Dispatches: the moves that are allowed, who is handed what, and the backlog's counts.

use std::collections::{BTreeMap, BTreeSet};

use servo_model::contract::{Backlog, DispatchState};
use servo_model::{RunId, TenantId};

use super::Context;
use crate::dispatch::{DispatchChange, DispatchHeads, DispatchRow};
use crate::error::{Error, Result};
use crate::log::{Expected, StreamAppend};
use crate::testkit::fixtures::{add, dispatch_step, fresh_event, run_id, system_stream, tenant};
use crate::testkit::rng::Rng;

pub(super) fn queue(request_id: &str, step: Option<&str>) -> DispatchChange {
    let step = step.map(|step| dispatch_step(step, 1));
    DispatchChange::Queue { request_id: request_id.to_owned(), target: "mock".to_owned(), step }
}

pub(super) fn notify(request_id: &str, epoch: u64) -> DispatchChange {
    DispatchChange::Notify { request_id: request_id.to_owned(), channel: "channel-1".to_owned(), epoch }
}

pub(super) fn deliver(request_id: &str) -> DispatchChange {
    DispatchChange::Deliver { request_id: request_id.to_owned() }
}

pub(super) fn fail(request_id: &str) -> DispatchChange {
    DispatchChange::Fail { request_id: request_id.to_owned(), reason: "worker lost".to_owned() }
}

fn adopt(request_id: &str, epoch: u64) -> DispatchChange {
    DispatchChange::Adopt { request_id: request_id.to_owned(), epoch }
}

fn withdraw(request_id: &str) -> DispatchChange {
    DispatchChange::Withdraw { request_id: request_id.to_owned() }
}

fn in_run(run: &str, changes: Vec<DispatchChange>) -> StreamAppend {
    let run = run_id(run);
    StreamAppend { dispatches: changes, ..add(&run, &tenant("acme"), Expected::Any, vec![fresh_event(&run)]) }
}

/// Changes of operator dispatches, on the system stream.
pub(super) async fn change(ctx: &Context, changes: Vec<DispatchChange>) -> Result<()> {
    let event = fresh_event(&RunId::system());
    ctx.put(StreamAppend { dispatches: changes, ..system_stream(vec![event]) }).await.map(|_| ())
}

async fn row(ctx: &Context, request_id: &str) -> DispatchRow {
    ctx.store.get_dispatch(request_id).await.unwrap().unwrap()
}

/// RT-005
pub(super) async fn a_request_is_queued_once(ctx: &Context) {
    assert_eq!(ctx.store.get_dispatch("r").await.unwrap(), None);
    change(ctx, vec![queue("r", None)]).await.unwrap();
    let first = row(ctx, "r").await;
    assert_eq!((first.run_id.clone(), first.tenant.clone()), (RunId::system(), TenantId::system()));
    assert_eq!((first.target.as_str(), first.step.clone(), first.epoch), ("mock", None, 0));
    assert_eq!((first.state, first.channel.clone(), first.reason.clone()), (DispatchState::Pending, None, None));
    assert_eq!((first.queued_at, first.changed_at), (ctx.clock.now(), ctx.clock.now()));

    // In whatever state it is by now, the same request changes nothing.
    for (step, moved) in [None, Some(notify("r", 3)), Some(deliver("r"))].into_iter().enumerate() {
        if let Some(moved) = moved {
            change(ctx, vec![moved]).await.unwrap();
        }
        let before = row(ctx, "r").await;
        ctx.clock.advance(10);
        let other_target = "elsewhere".to_owned();
        change(ctx, vec![DispatchChange::Queue { request_id: "r".to_owned(), target: other_target, step: None }])
            .await
            .unwrap();
        assert_eq!(row(ctx, "r").await, before, "after {step} moves");
    }
    let backlog = ctx.store.backlog().await.unwrap();
    assert_eq!(backlog, Backlog { delivered: 1, ..Backlog::default() });
}

/// RT-006: every pair of state and move.
pub(super) async fn moves_follow_the_table(ctx: &Context) {
    use DispatchState::{Delivered, Failed, Notified, Pending};
    let to_state = |state| match state {
        Pending => vec![],
        Notified => vec![notify("x", 1)],
        Delivered => vec![notify("x", 1), deliver("x")],
        Failed => vec![notify("x", 1), fail("x")],
    };
    let rename = |change: DispatchChange, id: &str| match change {
        DispatchChange::Notify { epoch, .. } => notify(id, epoch),
        DispatchChange::Deliver { .. } => deliver(id),
        _ => fail(id),
    };
    for (number, from) in DispatchState::ALL.into_iter().enumerate() {
        for (to, kind) in [(Notified, notify("x", 2)), (Delivered, deliver("x")), (Failed, fail("x"))] {
            let id = format!("{number}-{}", to.as_str());
            change(ctx, vec![queue(&id, None)]).await.unwrap();
            for step in to_state(from) {
                change(ctx, vec![rename(step, &id)]).await.unwrap();
            }
            ctx.clock.advance(10);
            let before = row(ctx, &id).await;
            assert_eq!(before.state, from);
            let result = change(ctx, vec![rename(kind, &id)]).await;
            let after = row(ctx, &id).await;
            if from.can_become(to) {
                result.unwrap();
                assert_eq!((after.state, after.changed_at), (to, ctx.clock.now()));
                assert_eq!(after.queued_at, before.queued_at);
            } else {
                match result {
                    Err(Error::DispatchMove { request_id, from: told_from, to: told_to }) => {
                        assert_eq!((request_id, told_from, told_to), (id, from, to));
                    }
                    other => panic!("{from:?} to {to:?}: {other:?}"),
                }
                assert_eq!(after, before);
            }
        }
    }
}

pub(super) async fn moves_keep_what_they_were_told(ctx: &Context) {
    change(ctx, vec![queue("a", None), queue("b", None)]).await.unwrap();
    change(ctx, vec![notify("a", 4), notify("b", 0)]).await.unwrap();
    let a = row(ctx, "a").await;
    assert_eq!((a.channel.as_deref(), a.epoch, a.state), (Some("channel-1"), 4, DispatchState::Notified));
    change(ctx, vec![fail("a"), deliver("b")]).await.unwrap();
    let (a, b) = (row(ctx, "a").await, row(ctx, "b").await);
    assert_eq!((a.channel.as_deref(), a.reason.as_deref(), a.epoch), (Some("channel-1"), Some("worker lost"), 4));
    assert_eq!((b.channel.as_deref(), b.reason, b.epoch), (Some("channel-1"), None, 0));
    // Several moves of one dispatch in one append happen in order.
    change(ctx, vec![queue("c", None), notify("c", 1), deliver("c")]).await.unwrap();
    assert_eq!(row(ctx, "c").await.state, DispatchState::Delivered);
}

pub(super) async fn an_unknown_request_is_not_found(ctx: &Context) {
    for moved in [notify("none", 1), deliver("none"), fail("none"), adopt("none", 1)] {
        refused!(change(ctx, vec![moved]).await, Error::DispatchNotFound { request_id } if request_id == "none");
    }
    change(ctx, vec![withdraw("none")]).await.unwrap();
    assert_eq!(ctx.store.get_dispatch("none").await.unwrap(), None);
}

pub(super) async fn only_an_older_epoch_is_adopted(ctx: &Context) {
    change(ctx, vec![queue("r", None)]).await.unwrap();
    refused!(change(ctx, vec![adopt("r", 5)]).await, Error::DispatchMove { from: DispatchState::Pending, .. });
    change(ctx, vec![notify("r", 2)]).await.unwrap();
    for epoch in [1, 2] {
        let result = change(ctx, vec![adopt("r", epoch)]).await;
        refused!(result, Error::DispatchMove { from: DispatchState::Notified, to: DispatchState::Notified, .. });
    }
    ctx.clock.advance(10);
    change(ctx, vec![adopt("r", 3)]).await.unwrap();
    let adopted = row(ctx, "r").await;
    assert_eq!((adopted.state, adopted.epoch), (DispatchState::Notified, 3));
    assert_eq!((adopted.channel.as_deref(), adopted.changed_at), (Some("channel-1"), ctx.clock.now()));
    change(ctx, vec![deliver("r")]).await.unwrap();
    refused!(change(ctx, vec![adopt("r", 9)]).await, Error::DispatchMove { from: DispatchState::Delivered, .. });
}

pub(super) async fn only_a_pending_dispatch_is_withdrawn(ctx: &Context) {
    change(ctx, vec![queue("p", None), queue("n", None), queue("d", None), queue("f", None)]).await.unwrap();
    change(ctx, vec![notify("n", 1), notify("d", 1), notify("f", 1)]).await.unwrap();
    change(ctx, vec![deliver("d"), fail("f")]).await.unwrap();
    let before = (row(ctx, "n").await, row(ctx, "d").await, row(ctx, "f").await);
    change(ctx, vec![withdraw("p"), withdraw("n"), withdraw("d"), withdraw("f")]).await.unwrap();
    assert_eq!(ctx.store.get_dispatch("p").await.unwrap(), None);
    assert_eq!((row(ctx, "n").await, row(ctx, "d").await, row(ctx, "f").await), before);
    change(ctx, vec![queue("p", None)]).await.unwrap();
    assert_eq!(row(ctx, "p").await.state, DispatchState::Pending, "a withdrawn request may come again");
}

pub(super) async fn open_dispatches_are_steps_of_older_epochs(ctx: &Context) {
    ctx.start("inv_1", "acme").await;
    ctx.start("inv_2", "acme").await;
    // Operator dispatches are not handed out.
    change(ctx, vec![queue("operator", None)]).await.unwrap();
    for (run, id) in [("inv_2", "e"), ("inv_1", "d"), ("inv_1", "c"), ("inv_2", "b"), ("inv_1", "a")] {
        ctx.clock.advance(1);
        ctx.put(in_run(run, vec![queue(id, Some(id))])).await.unwrap();
    }
    // Two of the same moment are ordered by their id.
    ctx.put(in_run("inv_2", vec![queue("Z", Some("z"))])).await.unwrap();
    ctx.put(in_run("inv_1", vec![notify("d", 1)])).await.unwrap();
    ctx.put(in_run("inv_1", vec![notify("c", 2)])).await.unwrap();
    ctx.put(in_run("inv_2", vec![notify("b", 1), deliver("b")])).await.unwrap();

    async fn open(ctx: &Context, epoch: u64, after: Option<&DispatchRow>, limit: u32) -> Vec<DispatchRow> {
        let after = after.map(|row| (row.queued_at, row.request_id.clone()));
        ctx.store.open_dispatches(epoch, &tenant("acme"), after, limit).await.unwrap()
    }
    let ids = |rows: &[DispatchRow]| rows.iter().map(|row| row.request_id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&open(ctx, 1, None, 10).await), ["e", "Z", "a"], "what epoch 1 handed out is its own");
    assert_eq!(ids(&open(ctx, 2, None, 10).await), ["e", "d", "Z", "a"]);
    let all = open(ctx, 3, None, 10).await;
    assert_eq!(ids(&all), ["e", "d", "c", "Z", "a"]);
    assert_eq!((all[1].run_id.as_str(), all[1].tenant.as_str()), ("inv_1", "acme"));
    assert_eq!(all[1].step, Some(dispatch_step("d", 1)));
    assert_eq!(ids(&open(ctx, 3, None, 2).await), ["e", "d"]);
    assert_eq!(ids(&open(ctx, 3, Some(&all[1]), 2).await), ["c", "Z"], "the first ones hide no others");
    assert_eq!(ids(&open(ctx, 3, Some(&all[3]), 10).await), ["a"]);
    assert_eq!(open(ctx, 3, Some(&all[4]), 10).await, []);
}

/// Each tenant's first ones, by tenant, however many another has and whenever they came.
pub(super) async fn a_flood_of_one_tenant_hides_no_other(ctx: &Context) {
    for (run, owner) in [("inv_1", "noisy"), ("inv_2", "quiet"), ("inv_3", "Last"), ("inv_4", "old")] {
        ctx.start(run, owner).await;
    }
    let put = async |run: &str, owner: &str, changes: Vec<DispatchChange>| {
        let run = run_id(run);
        let stream = add(&run, &tenant(owner), Expected::Any, vec![fresh_event(&run)]);
        ctx.put(StreamAppend { dispatches: changes, ..stream }).await.unwrap();
    };
    let flood: Vec<_> = (0..300).map(|n| format!("f{n:03}")).collect();
    put("inv_1", "noisy", flood.iter().map(|id| queue(id, Some(id))).collect()).await;
    ctx.clock.advance(1);
    put("inv_2", "quiet", vec![queue("q1", Some("q1")), queue("q2", Some("q2")), queue("q3", Some("q3"))]).await;
    put("inv_3", "Last", vec![queue("l", Some("l"))]).await;
    // Operator dispatches are nobody's to hand out.
    change(ctx, vec![queue("operator", None)]).await.unwrap();
    // One that was handed out, and one whose end is recorded.
    put("inv_4", "old", vec![queue("n", Some("n")), notify("n", 1), queue("d", Some("d")), notify("d", 1)]).await;
    put("inv_4", "old", vec![deliver("d")]).await;
    put("inv_2", "quiet", vec![notify("q1", 1)]).await;

    let heads = async |epoch: u64, after: Option<&str>, tenants: u32, each: u32| -> Vec<String> {
        let heads = DispatchHeads { epoch, after: after.map(tenant), tenants, each };
        let rows = ctx.store.dispatch_heads(&heads).await.unwrap();
        rows.iter().map(|row| format!("{}:{}", row.tenant, row.request_id)).collect()
    };
    assert_eq!(heads(1, None, 9, 2).await, ["Last:l", "noisy:f000", "noisy:f001", "quiet:q2", "quiet:q3"]);
    assert_eq!(heads(2, None, 9, 1).await, ["Last:l", "noisy:f000", "old:n", "quiet:q1"], "an older epoch's");
    assert_eq!(heads(1, None, 2, 1).await, ["Last:l", "noisy:f000"]);
    assert_eq!(heads(1, Some("noisy"), 9, 1).await, ["quiet:q2"], "the next tenants");
    assert_eq!(heads(2, Some("noisy"), 1, 9).await, ["old:n"]);
    assert_eq!(heads(1, Some("quiet"), 9, 9).await, [""; 0]);
    assert_eq!(heads(1, None, 0, 9).await, [""; 0]);

    let after = Some((ctx.store.get_dispatch("f298").await.unwrap().unwrap().queued_at, "f298".to_owned()));
    let rest = ctx.store.open_dispatches(1, &tenant("noisy"), after, 9).await.unwrap();
    assert_eq!(rest.iter().map(|row| row.request_id.as_str()).collect::<Vec<_>>(), ["f299"]);
    assert_eq!(ctx.store.open_dispatches(1, &tenant("nobody"), None, 9).await.unwrap(), []);
}

/// RT-013: counted beside the store, after every one of many random changes.
pub(super) async fn the_backlog_counts_every_state(ctx: &Context) {
    use DispatchState::{Delivered, Failed, Notified, Pending};
    let mut rng = Rng::new(13);
    let mut model = BTreeMap::<String, DispatchState>::new();
    let mut reached = BTreeSet::new();
    for _ in 0..200 {
        let id = format!("r{}", rng.below(12));
        let state = model.get(&id).copied();
        let (made, to) = match rng.below(5) {
            0 => (queue(&id, None), state.or(Some(Pending))),
            1 => (notify(&id, 1), (state == Some(Pending)).then_some(Notified)),
            2 => (deliver(&id), (state == Some(Notified)).then_some(Delivered)),
            3 => (fail(&id), (state == Some(Notified)).then_some(Failed)),
            _ => (withdraw(&id), if state == Some(Pending) { None } else { state }),
        };
        let is_move = !matches!(made, DispatchChange::Queue { .. } | DispatchChange::Withdraw { .. });
        let result = change(ctx, vec![made.clone()]).await;
        assert_eq!(result.is_ok(), !is_move || to.is_some(), "{made:?} from {state:?}: {result:?}");
        match to {
            Some(to) => {
                reached.insert(to);
                model.insert(id, to);
            }
            None if !is_move => drop(model.remove(&id)),
            None => {}
        }
        let count = |wanted| model.values().filter(|state| **state == wanted).count() as u64;
        let expected = Backlog {
            pending: count(Pending),
            notified: count(Notified),
            delivered: count(Delivered),
            failed: count(Failed),
        };
        assert_eq!(ctx.store.backlog().await.unwrap(), expected, "after {made:?}");
    }
    assert_eq!(reached.len(), DispatchState::ALL.len(), "only {reached:?} were reached");
}
