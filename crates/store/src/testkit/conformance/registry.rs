//! Functions: versions that only grow, aliases that name them, and tenants that do not meet.

use servo_canon::Digest;
use servo_model::limits::{ALIASES_PER_FUNCTION_MAX, FUNCTION_DOCUMENT_BYTES_MAX, Limits};
use servo_model::{AliasName, FunctionName};

use super::Context;
use crate::error::Error;
use crate::registry::FunctionVersion;
use crate::runs::Scope;
use crate::testkit::fixtures::{payload, tenant};

pub(super) fn function(name: &str) -> FunctionName {
    FunctionName::parse(name).unwrap()
}

pub(super) fn alias(name: &str) -> AliasName {
    AliasName::parse(name).unwrap()
}

async fn publish(ctx: &Context, owner: &str, name: &str, document: &str) -> FunctionVersion {
    ctx.store.put_function(&tenant(owner), &function(name), document).await.unwrap()
}

fn numbers(versions: &[FunctionVersion]) -> Vec<u64> {
    versions.iter().map(|version| version.version).collect()
}

pub(super) async fn versions_count_from_one(ctx: &Context) {
    let (acme, name) = (tenant("acme"), function("pay"));
    assert_eq!(ctx.store.get_function(&acme, &name, None).await.unwrap(), None);
    let first = publish(ctx, "acme", "pay", "{ \"b\": 1.0, \"a\": \"\u{fc}\\u0000\" }").await;
    let document = "{\"a\":\"\u{fc}\\u0000\",\"b\":1}".to_owned();
    let digest = Digest::of(document.as_bytes());
    let created_at = ctx.clock.now();
    let expected =
        FunctionVersion { tenant: acme.clone(), name: name.clone(), version: 1, digest, document, created_at };
    assert_eq!(first, expected);
    ctx.clock.advance(1_000);
    let second = publish(ctx, "acme", "pay", "{\"b\":2}").await;
    assert_eq!((second.version, second.created_at), (2, ctx.clock.now()));
    for (asked, found) in [(None, Some(&second)), (Some(2), Some(&second)), (Some(1), Some(&first))] {
        assert_eq!(ctx.store.get_function(&acme, &name, asked).await.unwrap().as_ref(), found);
    }
    for none in [0, 3, u64::MAX] {
        assert_eq!(ctx.store.get_function(&acme, &name, Some(none)).await.unwrap(), None);
    }
}

pub(super) async fn the_same_document_is_published_once(ctx: &Context) {
    let first = publish(ctx, "acme", "pay", "{\"a\":1,\"b\":2}").await;
    ctx.clock.advance(5);
    assert_eq!(publish(ctx, "acme", "pay", "{\"b\":2, \"a\":1}").await, first, "written otherwise, the same data");
    let second = publish(ctx, "acme", "pay", "{\"a\":2}").await;
    assert_eq!(publish(ctx, "acme", "pay", "{\"a\":2}").await, second);
    // Only the latest counts: going back is a version of its own.
    assert_eq!(publish(ctx, "acme", "pay", "{\"a\":1,\"b\":2}").await.version, 3);
    let all = ctx.store.list_versions(&tenant("acme"), &function("pay"), None, 10).await.unwrap();
    assert_eq!(numbers(&all), [3, 2, 1]);
}

pub(super) async fn racing_publishers_share_no_version(ctx: &Context) {
    const CALLERS: usize = 8;
    let published = ctx
        .threads(CALLERS, |ctx, index| {
            // Each document twice.
            Box::pin(async move { publish(&ctx, "acme", "pay", &format!("{{\"n\":{}}}", index / 2)).await })
        })
        .await;
    let mut seen: Vec<_> = published.iter().map(|version| (version.version, version.digest)).collect();
    seen.sort_unstable();
    seen.dedup();
    let versions: Vec<_> = seen.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, (1..=seen.len() as u64).collect::<Vec<_>>(), "each number once, and none left out");
    let stored = ctx.store.list_versions(&tenant("acme"), &function("pay"), None, 100).await.unwrap();
    assert_eq!(stored.len(), seen.len());
}

pub(super) async fn versions_are_listed_newest_first(ctx: &Context) {
    let (acme, name) = (tenant("acme"), function("pay"));
    for number in 1..=12 {
        publish(ctx, "acme", "pay", &format!("{{\"n\":{number}}}")).await;
    }
    publish(ctx, "acme", "paz", "{}").await;
    for (before, limit, expected) in [
        (None, 3, vec![12, 11, 10]),
        (Some(10), 2, vec![9, 8]),
        (Some(3), 10, vec![2, 1]),
        (Some(1), 10, vec![]),
        (Some(u64::MAX), 1, vec![12]),
        (Some(0), 10, vec![]),
    ] {
        let page = ctx.store.list_versions(&acme, &name, before, limit).await.unwrap();
        assert_eq!(numbers(&page), expected, "before {before:?}");
    }
    assert_eq!(ctx.store.list_versions(&acme, &function("none"), None, 10).await.unwrap(), []);
    assert_eq!(ctx.store.list_versions(&tenant("globex"), &name, None, 10).await.unwrap(), []);
}

pub(super) async fn functions_are_listed_by_tenant_and_name(ctx: &Context) {
    let all = [("Acme", "z"), ("acme", "A"), ("acme", "_"), ("acme", "a"), ("acme", "a-b"), ("globex", "a")];
    for (owner, name) in all.iter().rev() {
        publish(ctx, owner, name, "{\"n\":1}").await;
        publish(ctx, owner, name, "{\"n\":2}").await;
    }
    let list = async |scope: &Scope, after: Option<(&str, &str)>, limit: u32| {
        let after = after.map(|(owner, name)| (tenant(owner), function(name)));
        let page = ctx.store.list_functions(scope, after, limit).await.unwrap();
        assert!(page.iter().all(|version| version.version == 2), "the latest of each");
        page.into_iter().map(|version| (version.tenant.to_string(), version.name.to_string())).collect::<Vec<_>>()
    };
    let names = |range: &[(&str, &str)]| -> Vec<(String, String)> {
        range.iter().map(|(owner, name)| ((*owner).to_owned(), (*name).to_owned())).collect()
    };
    assert_eq!(list(&Scope::System, None, 100).await, names(&all));
    assert_eq!(list(&Scope::System, Some(all[1]), 3).await, names(&all[2..5]));
    assert_eq!(list(&Scope::System, Some(("acme", "b")), 3).await, names(&all[5..]), "it need not be there");
    let acme = Scope::Tenant(tenant("acme"));
    assert_eq!(list(&acme, None, 100).await, names(&all[1..5]));
    assert_eq!(list(&acme, Some(all[2]), 1).await, names(&all[3..4]));
    assert_eq!(list(&acme, Some(all[0]), 100).await, names(&all[1..5]), "after another tenant's");
    assert_eq!(list(&acme, Some(all[5]), 100).await, []);
    assert_eq!(list(&Scope::Tenant(tenant("none")), None, 100).await, []);
}

pub(super) async fn documents_have_a_size(ctx: &Context) {
    let (acme, name) = (tenant("acme"), function("large"));
    let max = FUNCTION_DOCUMENT_BYTES_MAX;
    let refused = ctx.store.put_function(&acme, &name, &payload(max + 1)).await;
    refused!(refused, Error::Limit { limit, .. } if limit == max as u64);
    for broken in ["", "{", "{\"a\":1,\"a\":2}", "nothing"] {
        refused!(ctx.store.put_function(&acme, &name, broken).await, Error::Invalid { field, .. } if field == "document");
    }
    assert_eq!(ctx.store.get_function(&acme, &name, None).await.unwrap(), None);
    // A page of the largest documents ends early, too.
    let fitting = Limits::default().page_bytes_max / max;
    for number in 0..=fitting {
        let document = format!("[{number},{}]", payload(max - 32));
        ctx.store.put_function(&acme, &name, &document).await.unwrap();
        ctx.store.put_function(&acme, &function(&format!("large-{number:03}")), &document).await.unwrap();
    }
    let versions = ctx.store.list_versions(&acme, &name, None, 1_000).await.unwrap();
    assert_eq!(versions.len(), fitting);
    let rest = ctx.store.list_versions(&acme, &name, Some(versions[fitting - 1].version), 1_000).await.unwrap();
    assert_eq!(numbers(&rest), [1]);
    let first = ctx.store.list_functions(&Scope::System, None, 1_000).await.unwrap();
    assert_eq!(first.len(), fitting);
    let last = first.last().map(|version| (version.tenant.clone(), version.name.clone()));
    assert_eq!(ctx.store.list_functions(&Scope::System, last, 1_000).await.unwrap().len(), 2);
}

pub(super) async fn aliases_name_a_version(ctx: &Context) {
    let (acme, name, live) = (tenant("acme"), function("pay"), alias("live"));
    refused!(ctx.store.put_alias(&acme, &name, &live, 1).await, Error::NotFound);
    publish(ctx, "acme", "pay", "1").await;
    publish(ctx, "acme", "pay", "2").await;
    for none in [0, 3, u64::MAX] {
        refused!(ctx.store.put_alias(&acme, &name, &live, none).await, Error::NotFound);
    }
    assert_eq!(ctx.store.get_alias(&acme, &name, &live).await.unwrap(), None);
    let row = ctx.store.put_alias(&acme, &name, &live, 1).await.unwrap();
    assert_eq!((row.alias.as_str(), row.version, row.changed_at), ("live", 1, ctx.clock.now()));
    assert_eq!(ctx.store.get_alias(&acme, &name, &live).await.unwrap(), Some(row));
    ctx.clock.advance(7);
    let moved = ctx.store.put_alias(&acme, &name, &live, 2).await.unwrap();
    assert_eq!((moved.version, moved.changed_at), (2, ctx.clock.now()));
    for other in ["b", "B", "_"] {
        ctx.store.put_alias(&acme, &name, &alias(other), 1).await.unwrap();
    }
    let all = ctx.store.list_aliases(&acme, &name).await.unwrap();
    assert_eq!(all.iter().map(|row| row.alias.as_str()).collect::<Vec<_>>(), ["B", "_", "b", "live"]);
    assert_eq!(all[3], moved);
    assert_eq!(ctx.store.list_aliases(&tenant("globex"), &name).await.unwrap(), []);
    ctx.store.remove_alias(&acme, &name, &live).await.unwrap();
    assert_eq!(ctx.store.get_alias(&acme, &name, &live).await.unwrap(), None);
    refused!(ctx.store.remove_alias(&acme, &name, &live).await, Error::NotFound);
    refused!(ctx.store.remove_alias(&acme, &function("none"), &live).await, Error::NotFound);
}

pub(super) async fn a_function_has_so_many_aliases(ctx: &Context) {
    let (acme, name) = (tenant("acme"), function("pay"));
    publish(ctx, "acme", "pay", "1").await;
    for number in 0..ALIASES_PER_FUNCTION_MAX {
        ctx.store.put_alias(&acme, &name, &alias(&format!("a{number}")), 1).await.unwrap();
    }
    refused!(ctx.store.put_alias(&acme, &name, &alias("more"), 1).await, Error::Limit { .. });
    ctx.store.put_alias(&acme, &name, &alias("a7"), 1).await.unwrap();
    assert_eq!(ctx.store.list_aliases(&acme, &name).await.unwrap().len(), ALIASES_PER_FUNCTION_MAX);
}

pub(super) async fn a_removed_function_leaves_nothing(ctx: &Context) {
    let (acme, name) = (tenant("acme"), function("pay"));
    refused!(ctx.store.remove_function(&acme, &name).await, Error::NotFound);
    for owner in ["acme", "globex"] {
        publish(ctx, owner, "pay", "1").await;
        publish(ctx, owner, "pay", "2").await;
        ctx.store.put_alias(&tenant(owner), &name, &alias("live"), 2).await.unwrap();
    }
    publish(ctx, "acme", "other", "1").await;
    ctx.store.remove_function(&acme, &name).await.unwrap();
    refused!(ctx.store.remove_function(&acme, &name).await, Error::NotFound);
    for version in [None, Some(1), Some(2)] {
        assert_eq!(ctx.store.get_function(&acme, &name, version).await.unwrap(), None);
    }
    assert_eq!(ctx.store.list_versions(&acme, &name, None, 10).await.unwrap(), []);
    assert_eq!(ctx.store.list_aliases(&acme, &name).await.unwrap(), []);
    let left = ctx.store.list_functions(&Scope::System, None, 10).await.unwrap();
    let left: Vec<_> = left.iter().map(|version| (version.tenant.as_str(), version.name.as_str())).collect();
    assert_eq!(left, [("acme", "other"), ("globex", "pay")], "another's, and another one, stay");
    assert_eq!(ctx.store.list_aliases(&tenant("globex"), &name).await.unwrap().len(), 1);
    assert_eq!(publish(ctx, "acme", "pay", "2").await.version, 1, "it begins afresh");
    assert_eq!(ctx.store.get_alias(&acme, &name, &alias("live")).await.unwrap(), None);
}

pub(super) async fn functions_outlive_the_process(ctx: &Context) {
    let (acme, name) = (tenant("acme"), function("pay"));
    let published = publish(ctx, "acme", "pay", "{\"a\":[1,2]}").await;
    let row = ctx.store.put_alias(&acme, &name, &alias("live"), 1).await.unwrap();
    let Some(again) = ctx.reopen().await else { return };
    assert_eq!(again.store.get_function(&acme, &name, None).await.unwrap(), Some(published));
    assert_eq!(again.store.list_aliases(&acme, &name).await.unwrap(), [row]);
    assert_eq!(publish(&again, "acme", "pay", "{\"a\":[2]}").await.version, 2);
    again.store.close().await.unwrap();
}
