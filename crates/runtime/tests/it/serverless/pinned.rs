//! What was accepted goes on with what it was accepted for, whatever is published and disabled meanwhile.

use std::sync::Arc;

use serde_json::{Value, json};
use servo_entrypoint::{
    Cause, EntrypointStatusAction as Act, InvocationControlAction as Action, InvocationStatus as S, errors,
};
use servo_model::FunctionName;
use servo_model::function::{FunctionSpec, Reach};

use super::support::{Bed, FUNCTION, WORKFLOW, awaits, definition};
use crate::executions::handler::{Answer, Invocation, pending, succeeded, tenant};

/// The next version of a function. What it runs is the same script, which says which version was called.
fn publish(bed: &Bed, name: &str, durable: bool) {
    let seconds = FunctionSpec::new(Reach::InProcess).execution_timeout_seconds - 1;
    let spec = FunctionSpec { durable, execution_timeout_seconds: seconds, ..FunctionSpec::new(Reach::InProcess) };
    let (store, name) = (bed.world.store(), FunctionName::parse(name).unwrap());
    let spec = serde_json::to_string(&spec).unwrap();
    let put = bed.world.block_on(async move { store.put_function(&tenant(), &name, &spec).await }).unwrap();
    assert_eq!(put.version, 2);
}

/// The next version of an entrypoint, active.
fn supersede(bed: &Bed, kind: &str, name: &str) -> String {
    let mut document = definition(kind, name);
    document["entrypoint_id"] = format!("{kind}vendor.app.{name}.v2~").into();
    document["version"] = "2.0.0".into();
    let next = bed.register(&document).unwrap().entrypoint_id;
    bed.act(&next, Act::Activate).unwrap();
    next
}

async fn waits(invocation: Arc<Invocation>) -> Answer {
    if invocation.known("s").is_none() {
        invocation.checkpoint(vec![awaits("go")]).await.unwrap();
        return pending();
    }
    succeeded(&json!({"version": invocation.call.version}).to_string())
}

/// SR-530: a run that waits while its function and its entrypoint get a next version, and its own is deprecated and disabled.
#[test]
fn a_run_under_way_ends_on_its_version() {
    let bed = Bed::new(121);
    let address = bed.workflow("w", waits);
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    publish(&bed, "w", true);
    let next = supersede(&bed, WORKFLOW, "w");
    for action in [Act::Deprecate, Act::Disable] {
        bed.act(&address, action).unwrap();
    }
    assert_eq!(bed.start(&address, json!({})).unwrap_err().error_type_id, errors::NOT_ACTIVE);
    let later = bed.start(&next, json!({})).unwrap().record.invocation_id;
    bed.until(&later, S::Suspended);
    for (id, address, entrypoint, function) in [(&id, &address, "1.0.0", "1"), (&later, &next, "2.0.0", "2")] {
        bed.signal(id, "m", "go", json!(1)).unwrap();
        let ended = bed.until(id, S::Succeeded);
        assert_eq!((&ended.entrypoint_id, ended.entrypoint_version.as_str()), (address, entrypoint));
        assert_eq!(ended.result, Some(json!({"version": function})));
    }
    // Every invocation of it, not only the last.
    let calls = bed.functions.calls.lock().unwrap();
    assert!(calls.iter().filter(|call| call.run_id.as_str() == id).all(|call| call.version == "1"));
}

/// SR-537: a run that has no place yet was accepted as well.
#[test]
fn a_queued_run_ends_on_its_version_after_its_entrypoint_is_disabled() {
    let bed = Bed::new(122);
    let address = bed.entrypoint(
        FUNCTION,
        "one",
        |document| document["traits"]["limits"]["max_concurrent"] = 1.into(),
        |call| async move {
            let params: Value = serde_json::from_str(&call.call.payload).unwrap();
            if params["hangs"] == true {
                std::future::pending::<()>().await;
            }
            Ok(json!({"version": call.call.version}).to_string())
        },
    );
    let first = bed.start(&address, json!({"hangs": true})).unwrap().record.invocation_id;
    bed.until(&first, S::Running);
    let queued = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until_blocked(&queued, Cause::Slot);
    publish(&bed, "one", false);
    supersede(&bed, FUNCTION, "one");
    bed.act(&address, Act::Disable).unwrap();
    assert_eq!(bed.get(&queued).status, S::Queued);
    bed.control(&first, Action::Cancel).unwrap();
    let ended = bed.until(&queued, S::Succeeded);
    assert_eq!(ended.result, Some(json!({"version": "1"})));
    assert_eq!((ended.entrypoint_id, ended.entrypoint_version.as_str()), (address, "1.0.0"));
}
