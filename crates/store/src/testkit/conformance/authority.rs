//! The authority: one holder, an epoch that only grows, and writes that name it.

use servo_model::RunId;

use super::Context;
use super::dispatch::{deliver, fail, notify, queue};
use crate::dispatch::DispatchChange;
use crate::error::{Error, Result};
use crate::lease::{AuthorityChange, Fence};
use crate::log::{Append, StreamAppend};
use crate::position::Position;
use crate::relay::CursorRow;
use crate::testkit::fixtures::{fresh_event, system_stream};

/// An append of a fact with a change of the authority, as the runtime makes it.
async fn apply(ctx: &Context, change: AuthorityChange) -> Result<u64> {
    let stream = system_stream(vec![fresh_event(&RunId::system())]);
    let appended = ctx.store.append(Append { authority: Some(change), ..Append::one(stream) }).await?;
    Ok(appended.epoch.expect("a change of the authority tells its epoch"))
}

fn until(ctx: &Context, ms: u64) -> String {
    ctx.clock.after(ms).to_string()
}

async fn acquire(ctx: &Context, owner: &str, ms: u64) -> Result<u64> {
    let (owner, lease_id) = (owner.to_owned(), format!("lease-of-{owner}"));
    apply(ctx, AuthorityChange::Acquire { owner, lease_id, leased_until: until(ctx, ms) }).await
}

async fn renew(ctx: &Context, owner: &str, epoch: Option<u64>, ms: u64) -> Result<u64> {
    let (owner, lease_id) = (owner.to_owned(), "renewed".to_owned());
    apply(ctx, AuthorityChange::Renew { owner, epoch, lease_id, leased_until: until(ctx, ms) }).await
}

async fn resign(ctx: &Context, owner: &str, epoch: u64) -> Result<u64> {
    apply(ctx, AuthorityChange::Resign { owner: owner.to_owned(), epoch }).await
}

/// A write under an epoch, with a change of a dispatch.
async fn fenced(ctx: &Context, epoch: u64, change: Option<DispatchChange>) -> Result<()> {
    let mut stream = system_stream(vec![fresh_event(&RunId::system())]);
    stream.dispatches.extend(change);
    ctx.store.append(Append { fence: Some(Fence { epoch }), ..Append::one(stream) }).await.map(|_| ())
}

async fn facts(ctx: &Context) -> usize {
    ctx.events(&RunId::system()).await.len()
}

/// RT-002
pub(super) async fn one_owner_holds_it(ctx: &Context) {
    assert_eq!(ctx.store.authority().await.unwrap(), None);
    assert_eq!(acquire(ctx, "a", 1_000).await.unwrap(), 1);
    let row = ctx.store.authority().await.unwrap().unwrap();
    assert_eq!((row.owner.as_str(), row.lease_id.as_str(), row.epoch), ("a", "lease-of-a", 1));
    assert_eq!((row.leased_until_at, row.resigned), (ctx.clock.after(1_000), false));
    ctx.clock.advance(999);
    match acquire(ctx, "b", 1_000).await {
        Err(Error::AuthorityHeld { owner, leased_until }) => {
            assert_eq!((owner, leased_until), ("a".to_owned(), row.leased_until.clone()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ctx.store.authority().await.unwrap(), Some(row), "a refusal changes nothing");
    assert_eq!(facts(ctx).await, 1, "and appends nothing");
    assert_eq!(acquire(ctx, "a", 1_000).await.unwrap(), 2, "the holder may begin a new term");
}

pub(super) async fn times_are_shown_as_they_came(ctx: &Context) {
    let text = "2031-05-01T12:00:00.5+02:00".to_owned();
    let (owner, lease_id) = ("a".to_owned(), "l".to_owned());
    apply(ctx, AuthorityChange::Acquire { owner, lease_id, leased_until: text.clone() }).await.unwrap();
    let row = ctx.store.authority().await.unwrap().unwrap();
    assert_eq!(row.leased_until, text);
    assert_eq!(row.leased_until_at.to_string(), "2031-05-01T10:00:00.500Z");
    let (owner, lease_id) = ("a".to_owned(), "l".to_owned());
    let bad = AuthorityChange::Acquire { owner, lease_id, leased_until: "soon".to_owned() };
    refused!(apply(ctx, bad).await, Error::Invalid { .. });
    assert_eq!(ctx.store.authority().await.unwrap(), Some(row));
}

/// RT-003
pub(super) async fn the_holder_renews(ctx: &Context) {
    refused!(renew(ctx, "a", None, 1_000).await, Error::AuthorityNotHeld { owner } if owner == "a");
    acquire(ctx, "a", 1_000).await.unwrap();
    ctx.clock.advance(999);
    for epoch in [None, Some(1)] {
        assert_eq!(renew(ctx, "a", epoch, 1_000).await.unwrap(), 1, "the epoch stays");
    }
    let row = ctx.store.authority().await.unwrap().unwrap();
    assert_eq!((row.owner.as_str(), row.lease_id.as_str()), ("a", "renewed"));
    assert_eq!((row.leased_until_at, row.epoch), (ctx.clock.after(1_000), 1));
    refused!(renew(ctx, "b", None, 9_000).await, Error::AuthorityNotHeld { owner } if owner == "b");
    refused!(renew(ctx, "b", Some(1), 9_000).await, Error::AuthorityNotHeld { .. });
    for wrong in [0, 2] {
        refused!(renew(ctx, "a", Some(wrong), 9_000).await, Error::AuthorityNotHeld { .. });
    }
    assert_eq!(ctx.store.authority().await.unwrap(), Some(row));
    assert_eq!(facts(ctx).await, 3);
    ctx.clock.advance(1_000);
    refused!(renew(ctx, "a", Some(1), 1_000).await, Error::AuthorityNotHeld { .. });
}

/// RT-004: the old holder was paused across the expiry and comes back.
pub(super) async fn an_expired_lease_is_taken_over(ctx: &Context) {
    let first = acquire(ctx, "a", 1_000).await.unwrap();
    fenced(ctx, first, Some(queue("r1", None))).await.unwrap();
    fenced(ctx, first, Some(queue("r2", None))).await.unwrap();
    fenced(ctx, first, Some(notify("r1", first))).await.unwrap();
    ctx.clock.advance(1_000);
    // Expired, and nobody has taken over yet: already too late.
    refused!(fenced(ctx, first, Some(deliver("r1"))).await, Error::Fenced { epoch } if epoch == first);
    let second = acquire(ctx, "b", 1_000).await.unwrap();
    assert!(second > first);
    let before = (ctx.store.get_dispatch("r1").await.unwrap(), ctx.store.get_dispatch("r2").await.unwrap());
    let facts_before = facts(ctx).await;
    refused!(renew(ctx, "a", None, 1_000).await, Error::AuthorityNotHeld { .. });
    for change in [queue("r3", None), notify("r2", first), deliver("r1"), fail("r1")] {
        refused!(fenced(ctx, first, Some(change)).await, Error::Fenced { .. });
    }
    let after = (ctx.store.get_dispatch("r1").await.unwrap(), ctx.store.get_dispatch("r2").await.unwrap());
    assert_eq!(after, before);
    assert_eq!(ctx.store.get_dispatch("r3").await.unwrap(), None);
    assert_eq!(facts(ctx).await, facts_before);
    fenced(ctx, second, Some(deliver("r1"))).await.unwrap();
}

pub(super) async fn a_fence_needs_the_current_epoch(ctx: &Context) {
    for epoch in [0, 1] {
        refused!(fenced(ctx, epoch, None).await, Error::Fenced { .. });
    }
    let epoch = acquire(ctx, "a", 1_000).await.unwrap();
    fenced(ctx, epoch, None).await.unwrap();
    for other in [epoch - 1, epoch + 1] {
        refused!(fenced(ctx, other, None).await, Error::Fenced { epoch } if epoch == other);
    }
    // The owner's own next term fences its last one.
    let next = acquire(ctx, "a", 1_000).await.unwrap();
    refused!(fenced(ctx, epoch, None).await, Error::Fenced { .. });
    ctx.clock.advance(999);
    fenced(ctx, next, None).await.unwrap();
    ctx.clock.advance(1);
    refused!(fenced(ctx, next, None).await, Error::Fenced { .. });
}

pub(super) async fn a_fence_is_judged_before_the_change_beside_it(ctx: &Context) {
    let first = acquire(ctx, "a", 1_000).await.unwrap();
    let renewed = AuthorityChange::Renew {
        owner: "a".to_owned(),
        epoch: Some(first),
        lease_id: "l".to_owned(),
        leased_until: until(ctx, 5_000),
    };
    let append = Append { fence: Some(Fence { epoch: first }), authority: Some(renewed.clone()), ..Append::default() };
    assert_eq!(ctx.store.append(append).await.unwrap().epoch, Some(first));
    let append = Append { fence: Some(Fence { epoch: first + 1 }), authority: Some(renewed), ..Append::default() };
    refused!(ctx.store.append(append).await, Error::Fenced { .. });
    // A new term cannot vouch for the write that begins it.
    let acquire =
        AuthorityChange::Acquire { owner: "a".to_owned(), lease_id: "l".to_owned(), leased_until: until(ctx, 5_000) };
    let append = Append { fence: Some(Fence { epoch: first + 1 }), authority: Some(acquire), ..Append::default() };
    refused!(ctx.store.append(append).await, Error::Fenced { .. });
    assert_eq!(ctx.store.authority().await.unwrap().unwrap().epoch, first);
}

pub(super) async fn resigning_frees_it_at_once(ctx: &Context) {
    refused!(resign(ctx, "a", 1).await, Error::AuthorityNotHeld { .. });
    let first = acquire(ctx, "a", 60_000).await.unwrap();
    refused!(resign(ctx, "b", first).await, Error::AuthorityNotHeld { owner } if owner == "b");
    refused!(resign(ctx, "a", first + 1).await, Error::AuthorityNotHeld { .. });
    assert_eq!(resign(ctx, "a", first).await.unwrap(), first);
    let row = ctx.store.authority().await.unwrap().unwrap();
    assert!(row.resigned && row.epoch == first && row.owner == "a");
    refused!(resign(ctx, "a", first).await, Error::AuthorityNotHeld { .. });
    refused!(renew(ctx, "a", Some(first), 1_000).await, Error::AuthorityNotHeld { .. });
    refused!(fenced(ctx, first, None).await, Error::Fenced { .. });
    let second = acquire(ctx, "b", 60_000).await.unwrap();
    assert_eq!(second, first + 1, "epochs are never used again");
    assert!(!ctx.store.authority().await.unwrap().unwrap().resigned);
    refused!(resign(ctx, "a", first).await, Error::AuthorityNotHeld { .. });
    refused!(resign(ctx, "a", second).await, Error::AuthorityNotHeld { .. });
    fenced(ctx, second, None).await.unwrap();
}

pub(super) async fn cursors_can_be_fenced(ctx: &Context) {
    let first = acquire(ctx, "a", 1_000).await.unwrap();
    let row = |id| CursorRow::at("relay", Position::of_id(id));
    let fence = |epoch| Some(Fence { epoch });
    refused!(ctx.store.move_cursor(None, row(1), fence(first + 1)).await, Error::Fenced { .. });
    ctx.store.move_cursor(None, row(1), fence(first)).await.unwrap();
    ctx.clock.advance(1_000);
    refused!(ctx.store.move_cursor(Some(Position::of_id(1)), row(2), fence(first)).await, Error::Fenced { .. });
    let second = acquire(ctx, "b", 1_000).await.unwrap();
    refused!(ctx.store.move_cursor(Some(Position::of_id(1)), row(2), fence(first)).await, Error::Fenced { .. });
    assert_eq!(ctx.store.cursor("relay").await.unwrap(), Some(row(1)));
    ctx.store.move_cursor(Some(Position::of_id(1)), row(2), fence(second)).await.unwrap();
}

/// RT-002 under a race: epochs are issued by the store, one per term.
pub(super) async fn one_of_many_acquires_it(ctx: &Context) {
    for term in 1..=5 {
        let results = ctx
            .threads(6, |ctx, index| Box::pin(async move { acquire(&ctx, &format!("node-{index}"), 1_000).await }))
            .await;
        let won: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
        assert_eq!(won, [&term], "one owner wins each term");
        for result in results.iter().filter(|result| result.is_err()) {
            assert!(matches!(result, Err(Error::AuthorityHeld { .. })), "{result:?}");
        }
        ctx.clock.advance(1_000);
    }
}

/// The write that decides a run never slips in beside a take-over: it happened before, or it did not happen.
pub(super) async fn a_take_over_and_a_fenced_write_do_not_mix(ctx: &Context) {
    for _ in 0..5 {
        let epoch = acquire(ctx, "a", 1_000).await.unwrap();
        // The holder gives up while its own last write is on the way.
        let results = ctx
            .threads(2, |ctx, index| {
                Box::pin(async move {
                    let epoch = ctx.store.authority().await.unwrap().unwrap().epoch;
                    if index == 0 {
                        return resign(&ctx, "a", epoch).await.map(|_| ());
                    }
                    let mut stream: StreamAppend = system_stream(vec![fresh_event(&RunId::system())]);
                    stream.events[0].event_type = format!("test.under/{epoch}").into();
                    let append = Append { fence: Some(Fence { epoch }), ..Append::one(stream) };
                    ctx.store.append(append).await.map(|_| ())
                })
            })
            .await;
        results[0].as_ref().unwrap();
        let written = ctx.events(&RunId::system()).await;
        let written = written.iter().any(|event| event.event_type == format!("test.under/{epoch}"));
        match &results[1] {
            Ok(()) => assert!(written),
            Err(error) => assert!(matches!(error, Error::Fenced { .. }) && !written, "{error}"),
        }
    }
}
