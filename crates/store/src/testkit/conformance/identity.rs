//! Keys: found by digest, ended once, and gone when they are old.

use servo_canon::Digest;
use servo_model::limits::KEYS_PER_TENANT_MAX;
use servo_model::{KeyId, Role};

use super::Context;
use crate::error::Error;
use crate::identity::KeyRow;
use crate::runs::Scope;
use crate::testkit::clock::ManualClock;
use crate::testkit::fixtures::tenant;

pub(in crate::testkit) fn id(number: u32) -> KeyId {
    KeyId::parse(&format!("key_{number:04}")).unwrap()
}

pub(in crate::testkit) fn key(number: u32, owner: &str, clock: &ManualClock) -> KeyRow {
    KeyRow {
        id: id(number),
        tenant: tenant(owner),
        name: format!("key \u{fc} {number}"),
        roles: vec![Role::Viewer, Role::Operator],
        prefix: "svo_abcd".to_owned(),
        digest: Digest::of(&number.to_be_bytes()),
        sealed: number.is_multiple_of(2).then(|| format!("sealed {number}")),
        created_at: clock.now(),
        created_by: "key_maker".to_owned(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    }
}

async fn put(ctx: &Context, number: u32, owner: &str) -> KeyRow {
    let row = key(number, owner, &ctx.clock);
    ctx.store.put_key(row.clone()).await.unwrap();
    row
}

fn own(owner: &str) -> Scope {
    Scope::Tenant(tenant(owner))
}

pub(super) async fn a_key_is_found_by_its_digest(ctx: &Context) {
    let digest = Digest::of(&7_u32.to_be_bytes());
    assert_eq!(ctx.store.find_key(digest).await.unwrap(), None);
    let mut full = key(7, "acme", &ctx.clock);
    full.expires_at = Some(ctx.clock.after(1_000));
    full.last_used_at = Some(ctx.clock.now());
    ctx.store.put_key(full.clone()).await.unwrap();
    let plain = put(ctx, 8, "globex").await;
    assert_eq!(ctx.store.find_key(digest).await.unwrap(), Some(full.clone()));
    assert_eq!(ctx.store.find_key(plain.digest).await.unwrap(), Some(plain));
    assert_eq!(ctx.store.find_key(Digest::of(b"other")).await.unwrap(), None);
    // Repeated after an unknown outcome: what is there stays.
    let again = KeyRow { name: "other".to_owned(), ..full.clone() };
    ctx.store.put_key(again).await.unwrap();
    assert_eq!(ctx.store.get_key(&own("acme"), &full.id).await.unwrap(), Some(full.clone()));
    assert_eq!(ctx.store.get_key(&Scope::System, &full.id).await.unwrap(), Some(full.clone()));
    assert_eq!(ctx.store.get_key(&own("globex"), &full.id).await.unwrap(), None, "a foreign key does not exist");
}

pub(super) async fn keys_are_listed_newest_first(ctx: &Context) {
    for (number, owner) in [(1, "acme"), (2, "globex"), (3, "acme"), (4, "acme")] {
        put(ctx, number, owner).await;
    }
    let ids = async |scope: Scope, before: Option<u32>, limit: u32| {
        let keys = ctx.store.list_keys(&scope, before.map(id), limit).await.unwrap();
        keys.iter().map(|key| key.id.as_str()[4..].parse::<u32>().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ids(own("acme"), None, 10).await, [4, 3, 1]);
    assert_eq!(ids(own("acme"), None, 2).await, [4, 3]);
    assert_eq!(ids(own("acme"), Some(3), 2).await, [1]);
    assert_eq!(ids(own("acme"), Some(2), 2).await, [1], "a place need not be a key of the list");
    assert!(ids(own("initech"), None, 10).await.is_empty());
    assert_eq!(ids(Scope::System, None, 10).await, [4, 3, 2, 1]);
}

pub(super) async fn a_revoked_key_stays_revoked(ctx: &Context) {
    let row = put(ctx, 1, "acme").await;
    refused!(ctx.store.revoke_key(&own("globex"), &row.id, ctx.clock.now()).await, Error::NotFound);
    refused!(ctx.store.revoke_key(&Scope::System, &id(2), ctx.clock.now()).await, Error::NotFound);
    assert_eq!(ctx.store.find_key(row.digest).await.unwrap().unwrap().revoked_at, None);
    let at = ctx.clock.now();
    let revoked = ctx.store.revoke_key(&own("acme"), &row.id, at).await.unwrap();
    assert_eq!(revoked, KeyRow { revoked_at: Some(at), ..row });
    assert!(!revoked.is_live(at));
    let later = ctx.clock.after(5_000);
    assert_eq!(
        ctx.store.revoke_key(&Scope::System, &revoked.id, later).await.unwrap(),
        revoked,
        "the first end counts"
    );
    assert_eq!(ctx.store.find_key(revoked.digest).await.unwrap(), Some(revoked));
}

pub(super) async fn use_is_noted_once_a_minute(ctx: &Context) {
    let row = put(ctx, 1, "acme").await;
    let used = async || ctx.store.find_key(row.digest).await.unwrap().unwrap().last_used_at;
    let first = ctx.clock.now();
    ctx.store.touch_key(&row.id, first).await.unwrap();
    assert_eq!(used().await, Some(first));
    ctx.store.touch_key(&row.id, ctx.clock.after(59_999)).await.unwrap();
    assert_eq!(used().await, Some(first));
    let second = ctx.clock.after(60_000);
    ctx.store.touch_key(&row.id, second).await.unwrap();
    assert_eq!(used().await, Some(second));
    ctx.store.touch_key(&id(9), second).await.unwrap();
}

pub(super) async fn ended_keys_leave(ctx: &Context) {
    for (number, expires, revoked) in
        [(1, None, None), (2, Some(10), None), (3, Some(900), Some(5)), (4, None, Some(20)), (5, Some(30), None)]
    {
        let mut row = key(number, "acme", &ctx.clock);
        row.expires_at = expires.map(|ms| ctx.clock.after(ms));
        row.revoked_at = revoked.map(|ms| ctx.clock.after(ms));
        ctx.store.put_key(row).await.unwrap();
    }
    assert_eq!(ctx.store.trim_keys(ctx.clock.after(30), 2).await.unwrap(), 2);
    let left = ctx.store.list_keys(&Scope::System, None, 10).await.unwrap();
    assert_eq!(
        left.iter().map(|key| key.id.clone()).collect::<Vec<_>>(),
        [id(5), id(4), id(1)],
        "the oldest ends first"
    );
    assert_eq!(ctx.store.trim_keys(ctx.clock.after(30), 2).await.unwrap(), 1);
    assert_eq!(ctx.store.trim_keys(ctx.clock.after(31), 2).await.unwrap(), 1);
    assert_eq!(ctx.store.list_keys(&Scope::System, None, 10).await.unwrap().len(), 1, "one without an end stays");
}

pub(super) async fn a_tenant_has_so_many_live_keys(ctx: &Context) {
    let max = u32::try_from(KEYS_PER_TENANT_MAX).unwrap();
    for number in 0..max {
        put(ctx, number, "acme").await;
    }
    let extra = key(max, "acme", &ctx.clock);
    refused!(ctx.store.put_key(extra.clone()).await, Error::Limit { limit, .. } if limit == u64::from(max));
    put(ctx, max + 1, "globex").await;
    put(ctx, 0, "acme").await;
    ctx.store.revoke_key(&own("acme"), &id(0), ctx.clock.now()).await.unwrap();
    ctx.store.put_key(extra).await.unwrap();
}

pub(super) async fn keys_are_checked(ctx: &Context) {
    let good = key(1, "acme", &ctx.clock);
    let long = KeyRow { name: "n".repeat(257), ..good.clone() };
    refused!(ctx.store.put_key(long).await, Error::Limit { limit: 256, .. });
    refused!(ctx.store.put_key(KeyRow { roles: Vec::new(), ..good.clone() }).await, Error::Invalid { .. });
    refused!(ctx.store.put_key(KeyRow { name: "a\0b".to_owned(), ..good.clone() }).await, Error::Invalid { .. });
    assert_eq!(ctx.store.find_key(good.digest).await.unwrap(), None);
}

pub(super) async fn keys_outlive_the_process(ctx: &Context) {
    let row = put(ctx, 1, "acme").await;
    let Some(again) = ctx.reopen().await else { return };
    assert_eq!(again.store.find_key(row.digest).await.unwrap(), Some(row));
    again.store.close().await.unwrap();
}
