//! The audit log: what was written comes back, once, and leaves by age only.

use std::sync::Arc;

use servo_model::audit::first_id_at;
use servo_model::limits::{AUDIT_BATCH_MAX, LABEL_CHARS_MAX};
use servo_model::{AuditEntry, AuditOutcome, EventId, Role, Timestamp};

use super::Context;
use crate::audit::AuditQuery;
use crate::error::Error;
use crate::runs::Scope;
use crate::testkit::fixtures::tenant;

/// The id of an entry that was made at a time.
pub(in crate::testkit) fn id(at: Timestamp, number: u8) -> EventId {
    let mut bytes = *first_id_at(at).as_bytes();
    bytes[15] = number;
    EventId::from_bytes(bytes)
}

pub(in crate::testkit) fn entry(at: Timestamp, number: u8, owner: &str) -> AuditEntry {
    AuditEntry {
        id: id(at, number),
        at,
        tenant_id: tenant(owner),
        actor: format!("actor-{}", number % 2),
        roles: vec![Role::Admin],
        action: if number.is_multiple_of(3) { "key.create" } else { "key.revoke" }.to_owned(),
        object_kind: "key".to_owned(),
        object_id: format!("key_{}", number % 4),
        outcome: AuditOutcome::ALL[usize::from(number % 3)],
        correlation_id: format!("c-{number}"),
        reason: number.is_multiple_of(2).then(|| "FORBIDDEN".to_owned()),
        source: number.is_multiple_of(5).then(|| "127.0.0.1".to_owned()),
        count: u64::from(number) + 1,
    }
}

fn query(limit: u32) -> AuditQuery {
    AuditQuery { limit, ..AuditQuery::default() }
}

/// Twelve entries of acme, ten milliseconds apart, oldest first.
async fn filled(ctx: &Context) -> Vec<AuditEntry> {
    let entries: Vec<_> =
        (0..12).map(|number| entry(ctx.clock.after(u64::from(number) * 10), number, "acme")).collect();
    ctx.store.put_audit(shared(&entries)).await.unwrap();
    entries
}

fn shared(entries: &[AuditEntry]) -> Vec<Arc<AuditEntry>> {
    entries.iter().cloned().map(Arc::new).collect()
}

pub(super) async fn entries_come_back_newest_first(ctx: &Context) {
    assert_eq!(ctx.store.read_audit(&Scope::System, &query(5)).await.unwrap(), []);
    ctx.store.put_audit(Vec::new()).await.unwrap();
    let mut entries = filled(ctx).await;
    entries.reverse();
    assert_eq!(ctx.store.read_audit(&Scope::System, &query(100)).await.unwrap(), entries);
    let scope = Scope::Tenant(tenant("acme"));
    let first = ctx.store.read_audit(&scope, &query(5)).await.unwrap();
    assert_eq!(first, entries[..5]);
    let next = AuditQuery { after: Some(first[4].id), ..query(100) };
    assert_eq!(ctx.store.read_audit(&scope, &next).await.unwrap(), entries[5..]);
}

pub(super) async fn entries_are_found_by_every_condition(ctx: &Context) {
    let mut entries = filled(ctx).await;
    entries.reverse();
    let text = |text: &str| Some(text.to_owned());
    let all = query(100);
    for asked in [
        AuditQuery { actor: text("actor-1"), ..all.clone() },
        AuditQuery { action: text("key.create"), ..all.clone() },
        AuditQuery { object_id: text("key_2"), ..all.clone() },
        AuditQuery { outcome: Some(AuditOutcome::Failed), ..all.clone() },
        AuditQuery { from: Some(ctx.clock.after(40)), ..all.clone() },
        AuditQuery { until: Some(ctx.clock.after(40)), ..all.clone() },
        AuditQuery { from: Some(ctx.clock.after(20)), until: Some(ctx.clock.after(90)), ..all.clone() },
        AuditQuery { actor: text("actor-1"), action: text("key.create"), object_id: text("key_1"), ..all.clone() },
        AuditQuery { action: text("key.create"), outcome: Some(AuditOutcome::Allowed), limit: 2, ..all.clone() },
        AuditQuery { actor: text("actor-0"), after: Some(entries[4].id), until: Some(ctx.clock.after(115)), ..all },
    ] {
        let expected: Vec<_> =
            entries.iter().filter(|entry| asked.matches(entry)).take(asked.limit as usize).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < entries.len(), "{asked:?}");
        for scope in [Scope::System, Scope::Tenant(tenant("acme"))] {
            assert_eq!(ctx.store.read_audit(&scope, &asked).await.unwrap(), expected, "{asked:?} {scope:?}");
        }
    }
    let none = AuditQuery { actor: text("actor-"), ..query(10) };
    assert_eq!(ctx.store.read_audit(&Scope::System, &none).await.unwrap(), []);
}

pub(super) async fn an_entry_is_written_once(ctx: &Context) {
    let entries = filled(ctx).await;
    let changed: Vec<_> =
        entries.iter().map(|entry| AuditEntry { actor: "forger".to_owned(), ..entry.clone() }).collect();
    ctx.store.put_audit(shared(&changed)).await.unwrap();
    let mut read = ctx.store.read_audit(&Scope::System, &query(100)).await.unwrap();
    read.reverse();
    assert_eq!(read, entries);
    let many = vec![entries[0].clone(); AUDIT_BATCH_MAX + 1];
    refused!(ctx.store.put_audit(shared(&many)).await, Error::Limit { .. });
}

pub(super) async fn old_entries_leave(ctx: &Context) {
    let entries = filled(ctx).await;
    let before = ctx.clock.after(50);
    assert_eq!(ctx.store.trim_audit(before, 3).await.unwrap(), 3);
    assert_eq!(ctx.store.trim_audit(before, 3).await.unwrap(), 2);
    assert_eq!(ctx.store.trim_audit(before, 3).await.unwrap(), 0);
    let mut left = ctx.store.read_audit(&Scope::System, &query(100)).await.unwrap();
    left.reverse();
    assert_eq!(left, entries[5..]);
}

pub(super) async fn entries_of_a_tenant_are_its_own(ctx: &Context) {
    let now = ctx.clock.now();
    ctx.store
        .put_audit(shared(&[entry(now, 1, "acme"), entry(now, 2, "globex"), entry(now, 3, "_system")]))
        .await
        .unwrap();
    let owned = async |scope: Scope| ctx.store.read_audit(&scope, &query(10)).await.unwrap().len();
    assert_eq!(owned(Scope::Tenant(tenant("acme"))).await, 1);
    assert_eq!(owned(Scope::Tenant(tenant("initech"))).await, 0);
    assert_eq!(owned(Scope::System).await, 3);
}

pub(super) async fn long_texts_are_cut(ctx: &Context) {
    let long =
        AuditEntry { object_id: "o".repeat(5_000), actor: "a\0".to_owned(), ..entry(ctx.clock.now(), 1, "acme") };
    ctx.store.put_audit(shared(&[long])).await.unwrap();
    let read = ctx.store.read_audit(&Scope::System, &query(1)).await.unwrap().remove(0);
    assert_eq!((read.object_id.len(), read.actor.as_str()), (LABEL_CHARS_MAX, "a\u{fffd}"));
}
