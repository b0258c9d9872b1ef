//! One entrypoint calls another, and functions behind entrypoints.

use serde_json::json;
use servo_entrypoint::InvocationStatus as S;
use servo_model::operation::{
    ChainedInvokeOptions, OperationAction as A, OperationStatus, OperationType, OperationUpdate,
};

use super::support::{Bed, FUNCTION, me, request};
use crate::executions::handler::{pending, succeeded};

/// A call of another entrypoint, or of a function.
pub(super) fn calls(id: &str, address: &str) -> OperationUpdate {
    let mut update = OperationUpdate::new(id, OperationType::ChainedInvoke, A::Start);
    update.chained_invoke_options =
        Some(ChainedInvokeOptions { function_name: address.to_owned(), ..ChainedInvokeOptions::default() });
    update.payload = Some(r#"{"n": 2}"#.to_owned());
    update
}

/// SR-229: a workflow calls another entrypoint by its address and goes on with its result; what is not its caller's is not there.
#[test]
fn a_workflow_calls_other_entrypoints() {
    let bed = Bed::new(10);
    let double = bed.doubles();
    let private = bed.entrypoint(
        FUNCTION,
        "private",
        |document| document["owner"] = json!({"owner_type": "user", "id": "ada", "tenant_id": "default"}),
        |_| async move { Ok("{}".to_owned()) },
    );
    let address = bed.workflow("caller", move |invocation| {
        let (double, private) = (double.clone(), private.clone());
        async move {
            if invocation.known("d").is_none() {
                invocation.checkpoint(vec![calls("d", &double), calls("p", &private)]).await.unwrap();
                return pending();
            }
            let operations = &invocation.input.initial_execution_state.operations;
            let found = |id: &str| operations.iter().find(|operation| operation.id == id).unwrap();
            if found("d").status == OperationStatus::Started || found("p").status == OperationStatus::Started {
                return pending();
            }
            let result = found("d").chained_invoke_details.as_ref().and_then(|details| details.result.clone());
            let result: serde_json::Value = serde_json::from_str(&result.unwrap()).unwrap();
            succeeded(&json!({"result": result, "private": found("p").status.as_str()}).to_string())
        }
    });
    for (caller, private) in [(me(), "SUCCEEDED"), (super::support::caller("bob", "default"), "FAILED")] {
        let id = bed.start_as(&caller, request(&address, json!({}))).unwrap().record.invocation_id;
        let record = bed.until(&id, S::Succeeded);
        assert_eq!(record.result, Some(json!({"result": {"doubled": 4}, "private": private})));
    }
}

/// A function that was removed behind an entrypoint fails the call to it, and the caller hears of it.
#[test]
fn a_call_that_cannot_begin_fails_alone() {
    let bed = Bed::new(13);
    let gone = bed.function("gone", |_| async move { Ok("{}".to_owned()) });
    let address = bed.workflow("caller", move |invocation| {
        let gone = gone.clone();
        async move {
            match invocation.known("g") {
                None => {
                    invocation.checkpoint(vec![calls("g", &gone)]).await.unwrap();
                    pending()
                }
                Some(status) => succeeded(&json!({"call": status.as_str()}).to_string()),
            }
        }
    });
    bed.remove_function("gone");
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    assert_eq!(bed.until(&id, S::Succeeded).result, Some(json!({"call": "FAILED"})));
}

/// The function behind an entrypoint is read once per run's version, not at every invocation.
#[test]
fn the_function_behind_an_entrypoint_is_kept() {
    let bed = Bed::new(14);
    let address = bed.waits_for_go("kept");
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    bed.remove_function("kept");
    bed.signal(&id, "m", "go", json!(1)).unwrap();
    bed.until(&id, S::Succeeded);
}
