//! What is kept, and when it is read again.

use std::future::Future;

use futures_util::FutureExt as _;
use serde_json::json;
use servo_model::{Timestamp, limits::Limits};
use servo_store::mem::MemStore;

use super::*;

const ADDRESS: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.f.v1~";

/// The memory store never waits.
fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().unwrap()
}

fn row(title: &str) -> EntrypointRow {
    let document = json!({
        "entrypoint_id": ADDRESS, "version": "1.0.0", "tenant_id": "default", "title": title, "status": "draft", "tags": [],
        "description": "",
        "owner": {"owner_type": "tenant", "id": "default", "tenant_id": "default"},
        "schema": {"params": {"type": "object"}, "returns": {"type": "object"}, "errors": []},
        "traits": {
            "invocation": {"supported": ["async"], "default": "async"}, "is_idempotent": false,
            "limits": {"timeout_seconds": 30, "max_concurrent": 10}, "caching": {"max_age_seconds": 0},
            "retry": {"max_attempts": 3, "initial_delay_ms": 200, "max_delay_ms": 10_000, "backoff_multiplier": 2.0,
                      "non_retryable_errors": []},
        },
        "implementation": {"adapter": "a", "kind": "adapter_ref", "adapter_ref": {"definition_id": "f"}},
    });
    EntrypointRow {
        id: "ep_1".to_owned(),
        tenant: TenantId::default_tenant(),
        owner_type: "tenant".to_owned(),
        owner_id: "default".to_owned(),
        address: ADDRESS.to_owned(),
        version: "1.0.0".to_owned(),
        status: "draft".to_owned(),
        adapter: "a".to_owned(),
        title: title.to_owned(),
        tags: Vec::new(),
        document: document.to_string(),
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        revision: 1,
    }
}

/// A store with one draft, and what this process keeps of it.
fn world(single_process: bool) -> (Arc<dyn Store>, Entrypoints) {
    let store: Arc<dyn Store> =
        Arc::new(MemStore::new(Arc::new(|| Timestamp::from_millis(1)), Limits::default(), [7; 32]));
    now(store.put_entrypoint(row("first"))).unwrap();
    let entrypoints = Entrypoints::new(store.clone(), Types::published(), single_process);
    (store, entrypoints)
}

fn title(loaded: Option<Arc<Loaded>>) -> String {
    loaded.unwrap().entrypoint.definition.title.clone()
}

#[test]
fn a_pinned_definition_is_read_again_when_another_process_changed_the_draft() {
    let (store, here) = world(false);
    let tenant = TenantId::default_tenant();
    assert_eq!(title(now(here.find(&tenant, ADDRESS)).unwrap()), "first");
    let changed = now(store.update_entrypoint(row("second"))).unwrap();
    let digest = Digest::of(changed.document.as_bytes());
    assert_eq!(title(now(here.pinned("ep_1", digest)).unwrap()), "second");
    assert_eq!(title(now(here.find(&tenant, ADDRESS)).unwrap()), "second");
    assert_eq!(title(now(here.current("ep_1")).unwrap()), "second");
}

#[test]
fn what_was_read_before_a_change_is_not_kept_after_it() {
    let (store, here) = world(true);
    let tenant = TenantId::default_tenant();
    let generation = here.kept().generation;
    let early = now(store.find_entrypoint(&tenant, ADDRESS)).unwrap().unwrap();
    // Another task of this process changes it between the read and the keeping.
    now(store.update_entrypoint(row("second"))).unwrap();
    here.forget("ep_1");
    assert_eq!(here.keep(early, Some(&tenant), generation).unwrap().entrypoint.definition.title, "first");
    assert_eq!(title(now(here.find(&tenant, ADDRESS)).unwrap()), "second");
}

#[test]
fn addresses_are_kept_only_where_nobody_else_writes() {
    for single_process in [true, false] {
        let (_, here) = world(single_process);
        now(here.find(&TenantId::default_tenant(), ADDRESS)).unwrap();
        assert_eq!(here.kept().by_address.len(), usize::from(single_process));
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let mut kept = Kept::default();
    for number in 0..3 * KEPT_MAX {
        kept.make_room();
        kept.by_address.insert((TenantId::default_tenant(), number.to_string()), String::new());
    }
    assert!(kept.by_address.len() <= KEPT_MAX);
}
