//! Entrypoints: addresses that are unique, changes that lose none, and what the system shares with everybody.

use servo_model::limits::{
    ENTRYPOINT_ADDRESS_CHARS_MAX, ENTRYPOINT_DOCUMENT_BYTES_MAX, Limits, TAGS_PER_ENTRYPOINT_MAX,
};
use servo_model::{TenantId, Timestamp};

use super::Context;
use crate::entrypoints::{EntrypointOrder, EntrypointQuery, EntrypointRow, SortValue};
use crate::error::Error;
use crate::runs::Scope;
use crate::testkit::fixtures::{payload, tenant};

/// A draft that its tenant owns; tenants that begin with an underscore are the system's.
pub(super) fn entrypoint(owner: &str, id: &str, address: &str) -> EntrypointRow {
    let is_system = owner.starts_with('_');
    EntrypointRow {
        id: id.to_owned(),
        tenant: if is_system { TenantId::system() } else { tenant(owner) },
        owner_type: if is_system { "system" } else { "tenant" }.to_owned(),
        owner_id: owner.to_owned(),
        address: address.to_owned(),
        version: "1.0.0".to_owned(),
        status: "draft".to_owned(),
        adapter: "starlark".to_owned(),
        title: "T\u{fc}r".to_owned(),
        tags: vec!["b".to_owned(), "a \"quoted\"".to_owned()],
        document: "{\"z\":1,\"a\":null}".to_owned(),
        created_at: Timestamp::from_millis(1_770_000_000_000),
        updated_at: Timestamp::from_millis(1_770_000_000_001),
        revision: 1,
    }
}

async fn put(ctx: &Context, row: EntrypointRow) -> EntrypointRow {
    ctx.store.put_entrypoint(row).await.unwrap()
}

fn of(name: &str) -> Scope {
    Scope::Tenant(tenant(name))
}

pub(super) async fn an_entrypoint_comes_back_as_it_went_in(ctx: &Context) {
    let row = entrypoint("acme", "ep_1", "gts.a.v1~");
    let none = EntrypointRow { tags: Vec::new(), ..entrypoint("acme", "ep_2", "gts.a.v2~") };
    assert_eq!(put(ctx, EntrypointRow { revision: 7, ..row.clone() }).await, row, "revisions count from one");
    put(ctx, none.clone()).await;
    let acme = of("acme");
    for scope in [&acme, &Scope::System] {
        assert_eq!(ctx.store.get_entrypoint(scope, "ep_1").await.unwrap().as_ref(), Some(&row));
        assert_eq!(ctx.store.get_entrypoint(scope, "ep_2").await.unwrap().as_ref(), Some(&none));
        assert_eq!(ctx.store.get_entrypoint(scope, "ep").await.unwrap(), None);
    }
    assert_eq!(ctx.store.find_entrypoint(&tenant("acme"), "gts.a.v1~").await.unwrap(), Some(row));
    assert_eq!(ctx.store.find_entrypoint(&tenant("acme"), "gts.a.v").await.unwrap(), None);
}

pub(super) async fn an_address_belongs_to_one_entrypoint(ctx: &Context) {
    let row = put(ctx, entrypoint("acme", "ep_1", "a")).await;
    let refused = ctx.store.put_entrypoint(entrypoint("acme", "ep_2", "a")).await;
    refused!(refused, Error::EntrypointExists { id } if id == "ep_1");
    let refused = ctx.store.put_entrypoint(entrypoint("acme", "ep_1", "b")).await;
    refused!(refused, Error::EntrypointExists { id } if id == "ep_1");
    // An archived one keeps its address.
    let archived = EntrypointRow { status: "archived".to_owned(), ..row };
    let archived = ctx.store.update_entrypoint(archived).await.unwrap();
    refused!(ctx.store.put_entrypoint(entrypoint("acme", "ep_2", "a")).await, Error::EntrypointExists { .. });
    // Another tenant may have the same, and so may this one once the row is gone.
    put(ctx, entrypoint("globex", "ep_1", "a")).await;
    ctx.store.remove_entrypoint(&tenant("acme"), "ep_1", archived.revision).await.unwrap();
    let second = put(ctx, entrypoint("acme", "ep_2", "a")).await;
    // A change may take an address, if it is free.
    let third = put(ctx, entrypoint("acme", "ep_3", "c")).await;
    let taking = EntrypointRow { address: "a".to_owned(), ..third.clone() };
    refused!(ctx.store.update_entrypoint(taking).await, Error::EntrypointExists { id } if id == "ep_2");
    ctx.store.update_entrypoint(EntrypointRow { address: "d".to_owned(), ..third }).await.unwrap();
    ctx.store.update_entrypoint(EntrypointRow { address: "c".to_owned(), ..second }).await.unwrap();
}

pub(super) async fn racing_registrations_share_no_address(ctx: &Context) {
    const CALLERS: usize = 8;
    let results = ctx
        .threads(CALLERS, |ctx, index| {
            Box::pin(async move { ctx.store.put_entrypoint(entrypoint("acme", &format!("ep_{index}"), "same")).await })
        })
        .await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for result in results.into_iter().filter(Result::is_err) {
        refused!(result, Error::EntrypointExists { .. });
    }
    assert_eq!(ctx.store.count_entrypoints(&tenant("acme")).await.unwrap(), 1);
}

pub(super) async fn a_change_needs_the_revision(ctx: &Context) {
    let first = put(ctx, entrypoint("acme", "ep_1", "a")).await;
    let change = EntrypointRow {
        owner_type: "user".to_owned(),
        owner_id: "eve".to_owned(),
        version: "1.1.0".to_owned(),
        status: "active".to_owned(),
        adapter: "lambda".to_owned(),
        title: "new".to_owned(),
        tags: vec!["c".to_owned()],
        document: "{}".to_owned(),
        created_at: Timestamp::EPOCH,
        updated_at: ctx.clock.now(),
        ..first.clone()
    };
    let second = ctx.store.update_entrypoint(change.clone()).await.unwrap();
    let expected = EntrypointRow { created_at: first.created_at, revision: 2, ..change.clone() };
    assert_eq!(second, expected, "its owner changes, its first moment stays");
    assert_eq!(ctx.store.get_entrypoint(&of("acme"), "ep_1").await.unwrap(), Some(expected));
    let moved = |error: &Error| matches!(error, Error::RevisionMoved { id, expected: 1, actual: 2 } if id == "ep_1");
    refused!(ctx.store.update_entrypoint(change).await, error if moved(&error));
    refused!(ctx.store.remove_entrypoint(&tenant("acme"), "ep_1", 1).await, error if moved(&error));
    ctx.store.remove_entrypoint(&tenant("acme"), "ep_1", 2).await.unwrap();
    refused!(ctx.store.remove_entrypoint(&tenant("acme"), "ep_1", 2).await, Error::NotFound);
    refused!(ctx.store.update_entrypoint(second).await, Error::NotFound);
    assert_eq!(put(ctx, first.clone()).await, first, "it may come again, from the first revision");
}

pub(super) async fn racing_changes_lose_none(ctx: &Context) {
    const CALLERS: usize = 8;
    put(ctx, EntrypointRow { tags: Vec::new(), ..entrypoint("acme", "ep_1", "a") }).await;
    ctx.threads(CALLERS, |ctx, index| {
        Box::pin(async move {
            loop {
                let mut row = ctx.store.get_entrypoint(&of("acme"), "ep_1").await.unwrap().unwrap();
                row.tags.push(index.to_string());
                match ctx.store.update_entrypoint(row).await {
                    Ok(_) => return,
                    Err(Error::RevisionMoved { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        })
    })
    .await;
    let row = ctx.store.get_entrypoint(&of("acme"), "ep_1").await.unwrap().unwrap();
    assert_eq!((row.tags.len(), row.revision), (CALLERS, 1 + CALLERS as u64));
}

pub(super) async fn what_the_system_shares_is_there_for_all(ctx: &Context) {
    let shared = put(ctx, entrypoint("_", "ep_s", "shared")).await;
    let private = EntrypointRow { owner_type: "user".to_owned(), ..entrypoint("_", "ep_p", "private") };
    put(ctx, private).await;
    let acme = tenant("acme");
    assert_eq!(ctx.store.get_entrypoint(&of("acme"), "ep_s").await.unwrap().as_ref(), Some(&shared));
    assert_eq!(ctx.store.find_entrypoint(&acme, "shared").await.unwrap().as_ref(), Some(&shared));
    assert_eq!(ctx.store.get_entrypoint(&of("acme"), "ep_p").await.unwrap(), None);
    assert_eq!(ctx.store.find_entrypoint(&acme, "private").await.unwrap(), None);
    let refused = ctx.store.put_entrypoint(entrypoint("acme", "ep_1", "shared")).await;
    refused!(refused, Error::EntrypointExists { id } if id == "ep_s");
    // Nobody else changes it, or pays for it.
    let foreign = EntrypointRow { tenant: acme.clone(), ..shared.clone() };
    refused!(ctx.store.update_entrypoint(foreign).await, Error::NotFound);
    refused!(ctx.store.remove_entrypoint(&acme, "ep_s", 1).await, Error::NotFound);
    assert_eq!(ctx.store.count_entrypoints(&acme).await.unwrap(), 0);
    assert_eq!(ctx.store.count_entrypoints(&TenantId::system()).await.unwrap(), 2);
    // A tenant's own comes first, also when the system follows later.
    let own = put(ctx, entrypoint("acme", "ep_1", "later")).await;
    put(ctx, entrypoint("_", "ep_1", "later")).await;
    assert_eq!(ctx.store.find_entrypoint(&acme, "later").await.unwrap().as_ref(), Some(&own));
    assert_eq!(ctx.store.get_entrypoint(&of("acme"), "ep_1").await.unwrap(), Some(own));
    let list = ctx.store.list_entrypoints(&of("acme"), &EntrypointQuery { limit: 10, ..Default::default() }).await;
    let list: Vec<_> = list.unwrap().into_iter().map(|row| (row.id, row.tenant.to_string())).collect();
    let names = |id: &str, tenant: &str| (id.to_owned(), tenant.to_owned());
    assert_eq!(list, [names("ep_s", "_system"), names("ep_1", "acme"), names("ep_1", "_system")]);
}

/// SR-016: what another tenant has is not there.
pub(super) async fn foreign_entrypoints_do_not_exist(ctx: &Context) {
    let row = put(ctx, entrypoint("acme", "ep_1", "a")).await;
    let globex = tenant("globex");
    assert_eq!(ctx.store.get_entrypoint(&of("globex"), "ep_1").await.unwrap(), None);
    assert_eq!(ctx.store.find_entrypoint(&globex, "a").await.unwrap(), None);
    let query = EntrypointQuery { limit: 10, ..Default::default() };
    assert_eq!(ctx.store.list_entrypoints(&of("globex"), &query).await.unwrap(), []);
    assert_eq!(ctx.store.count_entrypoints(&globex).await.unwrap(), 0);
    refused!(ctx.store.update_entrypoint(EntrypointRow { tenant: globex.clone(), ..row }).await, Error::NotFound);
    refused!(ctx.store.remove_entrypoint(&globex, "ep_1", 1).await, Error::NotFound);
    assert_eq!(ctx.store.list_entrypoints(&Scope::System, &query).await.unwrap().len(), 1);
}

pub(super) async fn lists_keep_every_condition(ctx: &Context) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    for (number, (owner_type, owner, status, adapter, tags)) in [
        ("user", "ann", "draft", "starlark", &["a"][..]),
        ("user", "bob", "active", "lambda", &["a", "b"]),
        ("tenant", "acme", "archived", "starlark", &["b", "a", "c"]),
        ("tenant", "acme", "active", "starlark", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let row = EntrypointRow {
            owner_type: owner_type.to_owned(),
            owner_id: owner.to_owned(),
            status: status.to_owned(),
            adapter: adapter.to_owned(),
            tags: texts(tags),
            ..entrypoint("acme", &format!("ep_{number}"), &format!("gts.{}.v{number}~", ["x_", "x%"][number % 2]))
        };
        put(ctx, row).await;
    }
    let all = EntrypointQuery { ascending: true, limit: 10, ..Default::default() };
    let some = |text: &str| Some(text.to_owned());
    for (query, expected) in [
        (all.clone(), &[0, 1, 2, 3][..]),
        (EntrypointQuery { limit: 2, ..all.clone() }, &[0, 1]),
        (EntrypointQuery { address: some("gts.x_.v2~"), ..all.clone() }, &[2]),
        (EntrypointQuery { address_prefix: some("gts.x%."), ..all.clone() }, &[1, 3]),
        (EntrypointQuery { address_prefix: some("gts.x_"), ..all.clone() }, &[0, 2]),
        (EntrypointQuery { address_prefix: some("GTS"), ..all.clone() }, &[]),
        (EntrypointQuery { statuses: texts(&["active", "draft"]), ..all.clone() }, &[0, 1, 3]),
        (EntrypointQuery { exclude_archived: true, ..all.clone() }, &[0, 1, 3]),
        (EntrypointQuery { statuses: texts(&["archived"]), exclude_archived: true, ..all.clone() }, &[]),
        (EntrypointQuery { owner_type: some("user"), ..all.clone() }, &[0, 1]),
        (EntrypointQuery { owner_id: some("bob"), ..all.clone() }, &[1]),
        (EntrypointQuery { subject: some("bob"), ..all.clone() }, &[1, 2, 3]),
        (EntrypointQuery { subject: some("eve"), ..all.clone() }, &[2, 3]),
        (EntrypointQuery { adapter: some("starlark"), ..all.clone() }, &[0, 2, 3]),
        (EntrypointQuery { tags: texts(&["a", "b"]), ..all.clone() }, &[1, 2]),
        (EntrypointQuery { tags: texts(&["a", "a"]), subject: some("ann"), ..all.clone() }, &[0, 2]),
        (EntrypointQuery { tags: texts(&["A"]), ..all.clone() }, &[]),
    ] {
        let found = ctx.store.list_entrypoints(&of("acme"), &query).await.unwrap();
        let expected: Vec<_> = expected.iter().map(|number| format!("ep_{number}")).collect();
        assert_eq!(found.into_iter().map(|row| row.id).collect::<Vec<_>>(), expected, "{query:?}");
    }
    assert_eq!(ctx.store.count_entrypoints(&tenant("acme")).await.unwrap(), 3);
}

pub(super) async fn lists_go_on_behind_a_place(ctx: &Context) {
    let owners = ["acme", "_", "acme", "_", "acme"];
    for (number, owner) in owners.into_iter().enumerate() {
        // Equal times, so that ids decide; addresses in the order of their bytes.
        let time = |ms: usize| Timestamp::from_millis(ms as i64);
        let row = EntrypointRow {
            created_at: time(number / 2),
            updated_at: time(9 - number),
            ..entrypoint(owner, &format!("ep_{number}"), ["b", "B", "a", "_", "C"][number])
        };
        put(ctx, row).await;
    }
    for (order, expected) in [
        (EntrypointOrder::Created, [0, 1, 2, 3, 4]),
        (EntrypointOrder::Updated, [4, 3, 2, 1, 0]),
        (EntrypointOrder::Address, [1, 4, 3, 2, 0]),
    ] {
        for ascending in [true, false] {
            let mut expected = expected.map(|number| format!("ep_{number}")).to_vec();
            if !ascending {
                expected.reverse();
            }
            for scope in [of("acme"), Scope::System] {
                for limit in [1, 2, 5] {
                    let mut query = EntrypointQuery { order, ascending, limit, ..Default::default() };
                    let mut seen = Vec::new();
                    loop {
                        let page = ctx.store.list_entrypoints(&scope, &query).await.unwrap();
                        let Some(last) = page.last() else { break };
                        assert!(page.len() <= limit as usize);
                        query.after = Some(order.key(last));
                        seen.extend(page.into_iter().map(|row| row.id));
                    }
                    assert_eq!(seen, expected, "{order:?} of {scope:?}, {limit} at a time");
                }
            }
        }
    }
    let strange = order_key(SortValue::Text("a".to_owned()));
    let query = EntrypointQuery { after: Some(strange), limit: 1, ..Default::default() };
    refused!(ctx.store.list_entrypoints(&of("acme"), &query).await, Error::Invalid { field, .. } if field == "after");
}

fn order_key(value: SortValue) -> crate::entrypoints::EntrypointKey {
    crate::entrypoints::EntrypointKey { value, id: "ep_1".to_owned(), tenant: tenant("acme") }
}

pub(super) async fn entrypoints_have_a_size(ctx: &Context) {
    let row = entrypoint("acme", "ep_1", "a");
    let max = ENTRYPOINT_DOCUMENT_BYTES_MAX;
    for broken in [
        EntrypointRow { document: payload(max + 1), ..row.clone() },
        EntrypointRow { address: "a".repeat(ENTRYPOINT_ADDRESS_CHARS_MAX + 1), ..row.clone() },
        EntrypointRow { tags: vec!["t".to_owned(); TAGS_PER_ENTRYPOINT_MAX + 1], ..row.clone() },
        EntrypointRow { status: "s".repeat(257), ..row.clone() },
    ] {
        refused!(ctx.store.put_entrypoint(broken.clone()).await, Error::Limit { .. });
        refused!(ctx.store.update_entrypoint(broken).await, Error::Limit { .. });
    }
    let nul = EntrypointRow { title: "a\0b".to_owned(), ..row };
    refused!(ctx.store.put_entrypoint(nul).await, Error::Invalid { .. });
    assert_eq!(ctx.store.count_entrypoints(&tenant("acme")).await.unwrap(), 0);
    // A page of the largest documents ends early, too, whosever they are.
    let fitting = Limits::default().page_bytes_max / max;
    for number in 0..=fitting {
        let owner = if number % 2 == 0 { "acme" } else { "_" };
        let id = format!("ep_{number:03}");
        put(ctx, EntrypointRow { document: payload(max), ..entrypoint(owner, &id, &id) }).await;
    }
    let mut query = EntrypointQuery { ascending: true, limit: 1_000, ..Default::default() };
    for scope in [of("acme"), Scope::System] {
        query.after = None;
        let first = ctx.store.list_entrypoints(&scope, &query).await.unwrap();
        assert_eq!(first.len(), fitting);
        query.after = first.last().map(|row| query.order.key(row));
        assert_eq!(ctx.store.list_entrypoints(&scope, &query).await.unwrap().len(), 1);
    }
}

pub(super) async fn entrypoints_outlive_the_process(ctx: &Context) {
    let row = put(ctx, entrypoint("acme", "ep_1", "a")).await;
    let Some(again) = ctx.reopen().await else { return };
    assert_eq!(again.store.get_entrypoint(&of("acme"), "ep_1").await.unwrap(), Some(row));
    let _ = again.store.close().await;
}
