//! Whose an entrypoint is: who registers, sees and changes it.

use serde_json::{Value, json};
use servo_entrypoint::access::{Access, AccessControl};
use servo_entrypoint::{
    BulkControl, EntrypointListFilter, EntrypointStatusAction, InvocationControlAction, InvocationListFilter,
    InvocationSignal, InvocationStatus, OwnerRef, OwnerType, PageQuery, RestRuntime as _, ServerlessRuntime as _,
    StatusCount, errors,
};
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, Role, SecurityContext, TenantId};

use super::calls::calls;
use super::support::{Bed, FUNCTION, WORKFLOW, caller, definition, me};
use crate::executions::handler::pending;

fn owned(owner_type: &str, id: &str, tenant: &str) -> Value {
    let mut document = definition(FUNCTION, "f");
    document["owner"] = json!({"owner_type": owner_type, "id": id, "tenant_id": tenant});
    document
}

fn platform() -> SecurityContext {
    SecurityContext { roles: vec![Role::PlatformAdmin], ..caller("root", "default") }
}

fn put_function(bed: &Bed, tenant: &TenantId) {
    let document =
        serde_json::to_string(&FunctionSpec { durable: false, ..FunctionSpec::new(Reach::InProcess) }).unwrap();
    let (store, tenant) = (bed.world.store(), tenant.clone());
    let put = async move { store.put_function(&tenant, &FunctionName::parse("f").unwrap(), &document).await };
    bed.world.block_on(put).unwrap();
}

/// SR-017: a definition belongs to who registers it, and says so.
#[test]
fn nobody_registers_for_others() {
    let bed = Bed::new(61);
    put_function(&bed, &TenantId::default_tenant());
    for document in [
        owned("tenant", "other", "other"),
        owned("user", "bob", "default"),
        owned("user", "ada", "other"),
        owned("system", "platform", "default"),
    ] {
        assert_eq!(bed.register(&document).unwrap_err().error_type_id, errors::FORBIDDEN, "{}", document["owner"]);
    }
    assert!(bed.register(&owned("user", "ada", "default")).is_ok());
}

/// SR-012: what is private is not there for a colleague, whatever is asked, and for the platform it is.
#[test]
fn a_private_entrypoint_is_its_owners() {
    let bed = Bed::new(62);
    put_function(&bed, &TenantId::default_tenant());
    let address = bed.register(&owned("user", "ada", "default")).unwrap().entrypoint_id;
    let admin = SecurityContext { roles: vec![Role::Admin], ..caller("bob", "default") };
    for (ctx, sees) in [(me(), true), (admin, false), (platform(), true)] {
        let (who, asked) = (ctx.clone(), address.clone());
        let found = bed.run(|serverless| async move { serverless.get_entrypoint(&who, &asked).await });
        assert_eq!(found.is_ok(), sees, "{}", ctx.subject);
        let (who, asked) = (ctx.clone(), address.clone());
        let act = EntrypointStatusAction::Disable;
        let changed = bed.run(|serverless| async move { serverless.update_entrypoint_status(&who, &asked, act).await });
        let refused = changed.unwrap_err().error_type_id;
        assert_eq!(refused, if sees { errors::CONFLICT } else { errors::NOT_FOUND }, "a draft: {}", ctx.subject);
        let listed = bed.run(|serverless| async move {
            serverless.page_entrypoints(&ctx, EntrypointListFilter::default()).await.unwrap().items.len()
        });
        assert_eq!(listed, usize::from(sees));
    }
}

/// SR-012, SR-353: a draft is replaced with its owner, and the new one decides who sees it. Its tenant stays.
#[test]
fn a_new_owner_is_the_one_that_counts() {
    let bed = Bed::new(67);
    put_function(&bed, &TenantId::default_tenant());
    let registered = bed.register(&owned("tenant", "default", "default")).unwrap();
    let (id, address) = (registered.id.unwrap(), registered.entrypoint_id);
    let put = |ctx: SecurityContext, document: Value| {
        let id = id.clone();
        bed.run(|serverless| async move { serverless.update_registration(&ctx, &id, document).await })
    };
    let found = |ctx: SecurityContext, owner_type: OwnerType| {
        let address = address.clone();
        let filter = EntrypointListFilter { owner_type: Some(owner_type), ..EntrypointListFilter::default() };
        bed.run(|serverless| async move {
            let listed = serverless.list_entrypoints(&ctx, filter).await.unwrap().len();
            (serverless.get_entrypoint(&ctx, &address).await.is_ok(), listed)
        })
    };
    let bob = || caller("bob", "default");
    assert_eq!(found(bob(), OwnerType::Tenant), (true, 1));
    let changed = put(me(), owned("user", "ada", "default")).unwrap();
    assert_eq!(changed.definition.owner.owner_type, OwnerType::User);
    assert_eq!((found(me(), OwnerType::User), found(me(), OwnerType::Tenant)), ((true, 1), (true, 0)));
    assert_eq!(found(bob(), OwnerType::User), (false, 0), "private from now on");
    assert_eq!(put(bob(), owned("tenant", "default", "default")).unwrap_err().error_type_id, errors::NOT_FOUND);
    for moved in [owned("tenant", "other", "other"), owned("system", "p", "default")] {
        let refused = put(platform(), moved).unwrap_err();
        assert_eq!(refused.details["issues"][0]["location"]["path"], "$.owner.tenant_id", "{refused:?}");
    }
    put(me(), owned("tenant", "default", "default")).unwrap();
    assert_eq!(found(bob(), OwnerType::Tenant), (true, 1));
}

/// SR-012, SR-016, SR-368: runs of a private entrypoint are its owner's as well, whatever is asked of them.
#[test]
fn runs_of_a_private_entrypoint_are_its_owners() {
    let bed = Bed::new(68);
    let address = bed.entrypoint(
        WORKFLOW,
        "w",
        |document| document["owner"] = json!({"owner_type": "user", "id": "ada", "tenant_id": "default"}),
        |_| std::future::pending(),
    );
    let open = bed.function("f", |_| async move { Ok("{}".to_owned()) });
    let id = bed.start(&address, json!({"secret": 1})).unwrap().record.invocation_id;
    let other = bed.start(&open, json!({})).unwrap().record.invocation_id;
    bed.until(&id, InvocationStatus::Running);
    bed.until(&other, InvocationStatus::Succeeded);
    let admin = SecurityContext { roles: vec![Role::Admin], ..caller("bob", "default") };
    for (ctx, sees) in [(admin, false), (platform(), true), (me(), true)] {
        let all = if sees { 2 } else { 1 };
        let (who, own, address) = (ctx.clone(), id.clone(), address.clone());
        let (listed, named, counted, met) = bed.run(|serverless| async move {
            let filter = InvocationListFilter::default();
            let listed = serverless.page_invocations(&who, filter.clone()).await.unwrap().items.len();
            let named = InvocationListFilter { entrypoint_id: Some(address), ..filter.clone() };
            let found = serverless.page_invocations(&who, named.clone()).await.unwrap().items.len();
            let counted = serverless.count_invocations(&who, filter.clone()).await.unwrap();
            let of_one = serverless.count_invocations(&who, named).await.unwrap();
            let sum = |counts: Vec<StatusCount>| counts.iter().map(|count| count.count).sum::<u64>();
            let action = InvocationControlAction::Suspend;
            let bulk = BulkControl { filter, action, max_items: 10, per_second: None, dry_run: true };
            let met = serverless.bulk_control(&who, bulk).await.unwrap().items;
            let met = met.iter().any(|outcome| outcome.invocation_id == own);
            (listed, found, (sum(counted), sum(of_one)), met)
        });
        assert_eq!((listed, named, met), (all, usize::from(sees), sees), "{}", ctx.subject);
        assert_eq!(counted, (all as u64, u64::from(sees)), "{}", ctx.subject);
        let (who, id, private) = (ctx.clone(), id.clone(), id.clone());
        let answers = bed.run(|serverless| async move {
            let signal = InvocationSignal { signal_id: who.subject.clone(), name: "n".to_owned(), payload: json!(1) };
            [
                serverless.get_invocation(&who, &id).await.err(),
                serverless.get_invocation_timeline(&who, &id).await.err(),
                serverless.page_timeline(&who, &id, PageQuery::default()).await.err(),
                serverless.follow_timeline(&who, &id).await.err(),
                serverless.signal_invocation(&who, &id, signal).await.err(),
            ]
        });
        for refused in answers {
            let expected = (!sees).then_some(errors::NOT_FOUND);
            assert_eq!(refused.as_ref().map(|refused| refused.error_type_id.as_str()), expected, "{}", ctx.subject);
        }
        if !sees {
            for action in [InvocationControlAction::Cancel, InvocationControlAction::Replay] {
                let (who, id) = (ctx.clone(), private.clone());
                let refused =
                    bed.run(|serverless| async move { serverless.control_invocation(&who, &id, action).await });
                assert_eq!(refused.unwrap_err().error_type_id, errors::NOT_FOUND);
            }
        }
    }
}

/// SR-014, SR-017, SR-344: the platform registers for itself and for others, over functions of whose it is, and finds it where it
/// was told to.
#[test]
fn the_platform_registers_where_the_owner_is() {
    let bed = Bed::new(63);
    put_function(&bed, &TenantId::default_tenant());
    let other = TenantId::parse("other").unwrap();
    let cases = [(owned("tenant", "other", "other"), other), (owned("system", "p", "default"), TenantId::system())];
    for (document, tenant) in cases {
        let unknown = bed.register_as(&platform(), &document).unwrap_err();
        let issues = unknown.details["issues"].as_array().unwrap();
        assert_eq!(issues[0]["location"]["path"], "$.implementation.adapter_ref.definition_id", "{issues:?}");
        put_function(&bed, &tenant);
        let registered = bed.register_as(&platform(), &document).unwrap();
        let address = registered.entrypoint_id.clone();
        let shared = tenant == TenantId::system();
        for (ctx, sees) in [(caller("eve", "other"), true), (me(), shared)] {
            let asked = address.clone();
            let found = bed.run(|serverless| async move { serverless.get_entrypoint(&ctx, &asked).await });
            assert_eq!(found.is_ok(), sees, "{tenant}");
        }
        if shared {
            let changed = bed.act(&address, EntrypointStatusAction::Activate).unwrap_err();
            assert_eq!(changed.error_type_id, errors::FORBIDDEN);
        }
        let id = registered.id.unwrap();
        for ctx in [SecurityContext { roles: vec![Role::Admin], ..caller("bob", "default") }, caller("eve", "third")] {
            let unseen = if shared { errors::FORBIDDEN } else { errors::NOT_FOUND };
            let (refused, read) = refusals(&bed, &ctx, &id, &document);
            assert!(refused.iter().all(|refused| refused == unseen), "{tenant} {}: {refused:?}", ctx.tenant);
            assert_eq!(read, shared, "{tenant} {}", ctx.tenant);
        }
        let mut changed = document;
        changed["title"] = "Changed".into();
        let (last, seen) = bed.run(|serverless| async move {
            let ctx = platform();
            assert_eq!(serverless.get_registration(&ctx, &id).await.unwrap().id.as_deref(), Some(id.as_str()));
            serverless.update_registration(&ctx, &id, changed).await.unwrap();
            for action in [EntrypointStatusAction::Activate, EntrypointStatusAction::Disable] {
                serverless.update_registration_status(&ctx, &id, action).await.unwrap();
            }
            // A tenant's own comes before the platform's.
            let watcher = caller("eve", if shared { "third" } else { "other" });
            let seen = serverless.get_entrypoint(&watcher, &address).await.unwrap();
            serverless.delete_registration(&ctx, &id).await.unwrap();
            (serverless.get_registration(&ctx, &id).await.unwrap(), seen)
        });
        assert_eq!((seen.definition.title.as_str(), seen.definition.status.as_str()), ("Changed", "disabled"));
        assert_eq!(last.definition.status.as_str(), "archived");
    }
}

/// What each change of a registration is refused with, and whether it can be read.
fn refusals(bed: &Bed, ctx: &SecurityContext, id: &str, document: &Value) -> (Vec<String>, bool) {
    let (ctx, id, document) = (ctx.clone(), id.to_owned(), document.clone());
    bed.run(|serverless| async move {
        let refused = [
            serverless.update_registration(&ctx, &id, document).await.unwrap_err(),
            serverless.update_registration_status(&ctx, &id, EntrypointStatusAction::Activate).await.unwrap_err(),
            serverless.delete_registration(&ctx, &id).await.unwrap_err(),
        ];
        let read = serverless.get_registration(&ctx, &id).await.is_ok();
        (refused.into_iter().map(|refused| refused.error_type_id).collect(), read)
    })
}

/// Grants what stands in it, and counts how often it is asked.
#[derive(Default)]
struct Grants {
    granted: std::sync::Mutex<Vec<(String, Access)>>,
    asked: std::sync::atomic::AtomicUsize,
}

#[async_trait::async_trait]
impl AccessControl for Grants {
    async fn grants(&self, ctx: &SecurityContext, access: Access, _: &str, _: &OwnerRef) -> bool {
        self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.granted.lock().unwrap().contains(&(ctx.subject.clone(), access))
    }
}

/// What is private is shared by the access control alone, which is asked with every request and never for another
/// tenant.
#[test]
fn an_access_control_shares_what_an_owner_keeps() {
    let grants = std::sync::Arc::new(Grants::default());
    let bed = Bed::with(66, |platform| platform.access = grants.clone());
    put_function(&bed, &TenantId::default_tenant());
    let address = bed.register(&owned("user", "ada", "default")).unwrap().entrypoint_id;
    bed.act(&address, EntrypointStatusAction::Activate).unwrap();
    let sees = |ctx: SecurityContext| {
        let address = address.clone();
        bed.run(|serverless| async move {
            let listed = serverless.list_entrypoints(&ctx, EntrypointListFilter::default()).await.unwrap().len();
            (serverless.get_entrypoint(&ctx, &address).await.is_ok(), listed)
        })
    };
    let bob = || caller("bob", "default");
    assert_eq!(sees(bob()), (false, 0));
    let asked = grants.asked.load(std::sync::atomic::Ordering::SeqCst);
    assert!(asked > 0);
    grants.granted.lock().unwrap().push(("bob".to_owned(), Access::See));
    assert_eq!(sees(bob()), (true, 1));
    assert!(grants.asked.load(std::sync::atomic::Ordering::SeqCst) > asked, "no answer is kept");
    assert!(bed.start_as(&bob(), super::support::request(&address, json!({}))).is_ok());
    let change = |ctx: SecurityContext| {
        let address = address.clone();
        let action = EntrypointStatusAction::Deprecate;
        bed.run(|serverless| async move { serverless.update_entrypoint_status(&ctx, &address, action).await })
    };
    assert_eq!(change(bob()).unwrap_err().error_type_id, errors::FORBIDDEN, "to see is not to change");
    grants.granted.lock().unwrap().push(("bob".to_owned(), Access::Change));
    assert!(change(bob()).is_ok());

    // Its own tenant is as far as a grant reaches.
    grants.granted.lock().unwrap().push(("eve".to_owned(), Access::See));
    let asked = grants.asked.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(sees(caller("eve", "other")), (false, 0));
    assert_eq!(grants.asked.load(std::sync::atomic::Ordering::SeqCst), asked);
    grants.granted.lock().unwrap().clear();
    assert_eq!(sees(bob()), (false, 0), "taken back with the next request");
}

/// SR-012: what a private run calls has its input from there, and is as private, also where it is a function without an owner.
#[test]
fn what_a_private_run_calls_is_private() {
    let bed = Bed::new(67);
    let plain = FunctionSpec { durable: false, ..FunctionSpec::new(Reach::InProcess) };
    bed.functions.define_as(&bed.world, "helps", &plain, |_| async move { Ok("{}".to_owned()) });
    let private = |document: &mut Value| {
        document["owner"] = json!({"owner_type": "user", "id": "ada", "tenant_id": "default"});
    };
    let address = bed.entrypoint(WORKFLOW, "secret", private, |invocation| async move {
        if invocation.known("c").is_none() {
            invocation.checkpoint(vec![calls("c", "helps")]).await.unwrap();
        }
        pending()
    });
    bed.start(&address, json!({})).unwrap();
    bed.world.pass(std::time::Duration::from_secs(1));
    let runs: Vec<_> = bed.functions.calls.lock().unwrap().iter().map(|call| call.run_id.clone()).collect();
    let child = runs.iter().find(|run| **run != runs[0]).unwrap().clone();
    for (ctx, expected) in [(me(), false), (caller("bob", "default"), true), (platform(), false)] {
        for run in [runs[0].clone(), child.clone()] {
            let who = ctx.clone();
            let hides = bed.run(|serverless| async move { serverless.sight().hides(&who, &run).await.unwrap() });
            assert_eq!(hides, expected, "{}", ctx.subject);
        }
    }
}

/// What a disabled entrypoint has started still needs its function.
#[test]
fn open_runs_of_entrypoints_are_open_runs_of_their_function() {
    let bed = Bed::new(68);
    let address = bed.waits_for_go("w");
    let open = || {
        let (tenant, function) = (TenantId::default_tenant(), FunctionName::parse("w").unwrap());
        bed.run(|serverless| async move { serverless.sight().open_referring(&tenant, &function).await.unwrap() })
    };
    assert_eq!(open(), 0);
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, InvocationStatus::Suspended);
    bed.act(&address, EntrypointStatusAction::Disable).unwrap();
    assert_eq!(open(), 1);
    bed.signal(&id, "m", "go", json!(null)).unwrap();
    bed.until(&id, InvocationStatus::Succeeded);
    assert_eq!(open(), 0);
}
