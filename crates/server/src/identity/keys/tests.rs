//! Keys: made, found, revoked, expired and mistyped.

use super::*;
use servo_model::limits::Limits;
use servo_store::mem::MemStore;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + ms)
}

fn new(expires_at: Option<Timestamp>) -> NewKey {
    let tenant = TenantId::parse("acme").unwrap();
    let (name, created_by) = ("ci".to_owned(), "somebody".to_owned());
    NewKey { tenant, name, roles: vec![Role::Operator, Role::Operator], created_by, expires_at, access: false }
}

async fn keys() -> (Arc<dyn Store>, StoredKeys, KeyUses) {
    let store: Arc<dyn Store> = Arc::new(MemStore::new(Arc::new(|| at(0)), Limits::default(), [7; 32]));
    let (keys, uses) = StoredKeys::new(store.clone()).await.unwrap();
    (store, keys, uses)
}

#[tokio::test]
async fn a_key_that_another_node_ends_is_of_use_for_a_moment_only() {
    let (store, here, _uses) = keys().await;
    let (row, secret) = here.create(&Ids::seeded(1), at(0), new(None)).await.unwrap();
    assert!(here.is_live(&secret, at(0)).await.unwrap());
    store.revoke_key(&Scope::System, &row.id, at(1)).await.unwrap();
    assert!(here.is_live(&secret, at(REMEMBERED_MS - 1)).await.unwrap(), "remembered");
    assert!(!here.is_live(&secret, at(REMEMBERED_MS)).await.unwrap());
    let (row, secret) = here.create(&Ids::seeded(2), at(0), new(None)).await.unwrap();
    assert!(here.is_live(&secret, at(0)).await.unwrap());
    here.revoke(&Scope::System, &row.id, at(1)).await.unwrap();
    assert!(!here.is_live(&secret, at(1)).await.unwrap(), "at once on the node that ends it");
}

#[tokio::test]
async fn an_expired_key_is_of_no_use_even_while_it_is_remembered() {
    let (_store, keys, _uses) = keys().await;
    let (_, secret) = keys.create(&Ids::seeded(1), at(0), new(Some(at(100)))).await.unwrap();
    assert!(keys.is_live(&secret, at(99)).await.unwrap());
    assert!(!keys.is_live(&secret, at(100)).await.unwrap());
}

#[tokio::test]
async fn what_is_remembered_has_a_limit() {
    let (_store, keys, _uses) = keys().await;
    let ids = Ids::seeded(1);
    for _ in 0..REMEMBERED_MAX + 5 {
        assert!(!keys.is_live(&api_key(ids.secret()), at(0)).await.unwrap());
    }
    assert!(keys.lock().len() <= REMEMBERED_MAX);
}

#[tokio::test]
async fn use_is_noted_once() {
    let (store, keys, mut uses) = keys().await;
    let (row, secret) = keys.create(&Ids::seeded(1), at(0), new(None)).await.unwrap();
    assert_eq!(row.roles, [Role::Operator]);
    for ms in 0..10 {
        assert!(keys.is_live(&secret, at(ms)).await.unwrap());
    }
    assert_eq!(uses.try_recv().unwrap(), (row.id.clone(), at(0)));
    assert!(uses.try_recv().is_err(), "once while it is remembered");
    store.touch_key(&row.id, at(0)).await.unwrap();
    assert!(keys.is_live(&secret, at(REMEMBERED_MS)).await.unwrap());
    assert!(uses.try_recv().is_err(), "noted less than a minute ago");
}

#[tokio::test]
async fn nothing_of_a_secret_is_stored_or_shown() {
    let (store, keys, _uses) = keys().await;
    for access in [false, true] {
        let (row, secret) = keys.create(&Ids::seeded(3), at(0), NewKey { access, ..new(None) }).await.unwrap();
        let stored = store.get_key(&Scope::System, &row.id).await.unwrap().unwrap();
        let all = format!("{stored:?} {} {:?} {} {}", stored.name, stored.sealed, stored.prefix, stored.digest);
        assert!(!all.contains(&secret) && !all.contains(&secret[8..]), "{all}");
        assert!(!keys.is_live(&stored.prefix, at(0)).await.unwrap());
    }
}
