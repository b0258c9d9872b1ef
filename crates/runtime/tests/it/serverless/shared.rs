//! Results that are served again, and to whom: the owner of an entrypoint, its version and the caller's tenant are parts of the key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use servo_entrypoint::access::{Access, AccessControl};
use servo_entrypoint::{
    EntrypointStatusAction, InvocationMode, InvocationRequest, InvocationResult, InvocationStatus as S, OwnerRef,
    ServerlessRuntime as _,
};
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, Role, SecurityContext, TenantId};
use tokio::sync::Notify;

use super::support::{Bed, FUNCTION, caller, definition, me, request};

fn platform() -> SecurityContext {
    SecurityContext { roles: vec![Role::PlatformAdmin], ..caller("root", "default") }
}

/// Tells what it did apart: its answer is the number of the call.
fn counts(bed: &Bed) {
    let calls = Arc::new(AtomicU32::new(0));
    bed.functions.answer("f", move |_| {
        let call = calls.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(json!({"call": call}).to_string()) }
    });
}

/// An active entrypoint over `f` whose successes are kept, registered by this one.
fn caching(bed: &Bed, ctx: &SecurityContext, owner: Value, change: impl FnOnce(&mut Value)) -> String {
    let tenant = match owner["owner_type"].as_str() {
        Some("system") => TenantId::system(),
        _ => ctx.tenant.clone(),
    };
    let spec = serde_json::to_string(&FunctionSpec { durable: false, ..FunctionSpec::new(Reach::InProcess) }).unwrap();
    let (store, name) = (bed.world.store(), FunctionName::parse("f").unwrap());
    bed.world.block_on(async move { store.put_function(&tenant, &name, &spec).await }).unwrap();
    let mut document = definition(FUNCTION, "f");
    document["owner"] = owner;
    document["traits"]["is_idempotent"] = true.into();
    document["traits"]["caching"] = json!({"max_age_seconds": 600});
    change(&mut document);
    let address = bed.register_as(ctx, &document).unwrap().entrypoint_id;
    let (ctx, asked, activate) = (ctx.clone(), address.clone(), EntrypointStatusAction::Activate);
    bed.run(|serverless| async move { serverless.update_entrypoint_status(&ctx, &asked, activate).await }).unwrap();
    address
}

fn call(bed: &Bed, ctx: &SecurityContext, address: &str, params: Value) -> InvocationResult {
    let key = Some("k".to_owned());
    let asked =
        InvocationRequest { mode: Some(InvocationMode::Sync), idempotency_key: key, ..request(address, params) };
    bed.start_as(ctx, asked).unwrap()
}

/// The first call of each executes, and the second finds the first one's result, not another's.
#[track_caller]
fn each_has_its_own(bed: &Bed, callers: &[SecurityContext], address: &str, params: &Value) {
    let before = bed.functions.invocations();
    let mut results = Vec::new();
    for ctx in callers {
        let first = call(bed, ctx, address, params.clone());
        assert_eq!((first.cached, first.record.status), (false, S::Succeeded), "{} of {}", ctx.subject, ctx.tenant);
        assert_eq!(first.record.tenant_id, ctx.tenant.as_str());
        results.push(first.record);
    }
    for (ctx, first) in callers.iter().zip(&results) {
        let again = call(bed, ctx, address, params.clone());
        assert!(again.cached, "{} of {}", ctx.subject, ctx.tenant);
        assert_eq!(&again.record, first);
    }
    let mut distinct: Vec<String> = results.iter().map(|record| record.result.as_ref().unwrap().to_string()).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), callers.len(), "each has a result of its own");
    assert_eq!(bed.functions.invocations(), before + callers.len());
}

struct Everybody;

#[async_trait::async_trait]
impl AccessControl for Everybody {
    async fn grants(&self, _: &SecurityContext, _: Access, _: &str, _: &OwnerRef) -> bool {
        true
    }
}

/// SR-428, SR-430: what a user owns and shares is kept for each caller apart, whoever the params say they are.
#[test]
fn callers_of_a_shared_entrypoint_of_a_user_share_no_results() {
    let bed = Bed::with(111, |platform| platform.access = Arc::new(Everybody));
    counts(&bed);
    let owner = json!({"owner_type": "user", "id": "ada", "tenant_id": "default"});
    let address = caching(&bed, &me(), owner, |_| {});
    each_has_its_own(&bed, &[me(), caller("bob", "default")], &address, &json!({"subject_id": "ada"}));
}

/// SR-429: the control: what a tenant owns is kept for all its users.
#[test]
fn callers_of_an_entrypoint_of_their_tenant_share_results() {
    let bed = Bed::new(112);
    counts(&bed);
    let owner = json!({"owner_type": "tenant", "id": "default", "tenant_id": "default"});
    let address = caching(&bed, &me(), owner, |_| {});
    let first = call(&bed, &me(), &address, json!({}));
    let second = call(&bed, &caller("bob", "default"), &address, json!({}));
    assert_eq!((first.cached, second.cached, bed.functions.invocations()), (false, true, 1));
    assert_eq!(first.record, second.record);
}

/// SR-430, SR-431, SR-432: what the platform provides is kept for each calling tenant apart, whichever the params name.
#[test]
fn tenants_that_call_the_platforms_entrypoint_share_no_results() {
    let bed = Bed::new(113);
    counts(&bed);
    let owner = json!({"owner_type": "system", "id": "p", "tenant_id": "default"});
    let address = caching(&bed, &platform(), owner, |_| {});
    let callers = [me(), caller("ada", "other"), caller("eve", "third")];
    each_has_its_own(&bed, &callers, &address, &json!({"tenant_id": "default"}));
}

/// SR-432, SR-451: tenants that have the same address share nothing, also where the same person calls in both.
#[test]
fn tenants_with_one_address_share_no_results() {
    for (seed, owner_type) in [(114, "tenant"), (115, "user")] {
        let bed = Bed::new(seed);
        counts(&bed);
        let callers = [me(), caller("ada", "other")];
        let mut addresses = Vec::new();
        for ctx in &callers {
            let id = if owner_type == "user" { "ada" } else { ctx.tenant.as_str() };
            let owner = json!({"owner_type": owner_type, "id": id, "tenant_id": ctx.tenant.as_str()});
            addresses.push(caching(&bed, ctx, owner, |_| {}));
        }
        assert_eq!(addresses[0], addresses[1]);
        each_has_its_own(&bed, &callers, &addresses[0], &json!({}));
    }
}

/// SR-433: the next version executes under a key that the one before has answered, and that one still serves its own.
#[test]
fn another_version_is_not_answered_for() {
    let bed = Bed::new(116);
    counts(&bed);
    let owner = || json!({"owner_type": "tenant", "id": "default", "tenant_id": "default"});
    let first = caching(&bed, &me(), owner(), |_| {});
    let next = first.replace("f.v1~", "f.v2~");
    caching(&bed, &me(), owner(), |document| {
        document["entrypoint_id"] = next.clone().into();
        document["version"] = "2.0.0".into();
    });
    for (address, version, n) in [(&first, "1.0.0", 1), (&next, "2.0.0", 2)] {
        let executed = call(&bed, &me(), address, json!({}));
        assert_eq!((executed.cached, executed.record.entrypoint_version.as_str()), (false, version));
        assert_eq!(executed.record.result, Some(json!({"call": n})));
    }
    for (address, n) in [(&first, 1), (&next, 2)] {
        let hit = call(&bed, &me(), address, json!({}));
        assert_eq!((hit.cached, hit.record.result), (true, Some(json!({"call": n}))));
    }
    assert_eq!(bed.functions.invocations(), 2);
}

/// SR-448: a repeat while the first is under way is the first, and no hit; after its success it is a hit.
#[test]
fn a_repeat_in_flight_is_the_same_run_and_then_a_hit() {
    let bed = Bed::new(117);
    let go = Arc::new(Notify::new());
    let waiting = go.clone();
    bed.functions.answer("f", move |_| {
        let go = waiting.clone();
        async move {
            go.notified().await;
            Ok("{}".to_owned())
        }
    });
    let owner = json!({"owner_type": "tenant", "id": "default", "tenant_id": "default"});
    let address = caching(&bed, &me(), owner, |_| {});
    let start = || {
        let asked = InvocationRequest { idempotency_key: Some("k".to_owned()), ..request(&address, json!({})) };
        bed.start_as(&me(), asked).unwrap()
    };
    let first = start();
    let id = first.record.invocation_id.clone();
    assert!(!first.repeated);
    bed.until(&id, S::Running);
    let repeat = start();
    assert_eq!((repeat.cached, repeat.repeated, repeat.record.status), (false, true, S::Running));
    assert_eq!(repeat.record.invocation_id, id);
    go.notify_one();
    let ended = bed.until(&id, S::Succeeded);
    let hit = start();
    assert_eq!((hit.cached, &hit.record), (true, &ended));
    assert_eq!(bed.functions.invocations(), 1);
}
