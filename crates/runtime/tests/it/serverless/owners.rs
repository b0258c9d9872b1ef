//! Whose an entrypoint is: who registers, sees and changes it.

use serde_json::{Value, json};
use servo_entrypoint::{
    EntrypointListFilter, EntrypointStatusAction, RestRuntime as _, ServerlessRuntime as _, errors,
};
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, Role, SecurityContext, TenantId};

use super::support::{Bed, FUNCTION, caller, definition, me};

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

/// SR-014, SR-017: the platform registers for itself and for others, over functions of whose it is.
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
        } else {
            let eve = caller("eve", "other");
            bed.run(|serverless| async move { serverless.delete_entrypoint(&eve, &address).await }).unwrap();
        }
    }
}
