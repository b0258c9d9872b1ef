//! Executions of durable functions in the invocation API.

use std::sync::Arc;

use serde_json::json;
use servo_entrypoint::{EntrypointStatusAction, InvocationStatus as S, TimelineEventType as T, errors};
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::{ExecutionStatus, OperationAction as A};

use super::support::{Bed, FUNCTION, awaits, definition};
use crate::executions::handler::{Invocation, history, kinds, pending, step, succeeded, tenant};

/// DX-096: an execution of a durable function is an invocation of the entrypoint that refers to it. Status, result and what
/// happened are in the invocation API as for any other run, and the durable API tells the same of the same run.
#[test]
fn an_execution_is_an_invocation() {
    let bed = Bed::new(102);
    let script = |invocation: Arc<Invocation>| async move {
        if invocation.known("s").is_none() {
            let mut charge = step("charge", A::Start);
            charge.name = Some("charge".to_owned());
            invocation.checkpoint(vec![charge, step("charge", A::Succeed), awaits("go")]).await.unwrap();
            return pending();
        }
        succeeded(r#"{"paid":true}"#)
    };
    let address = bed.workflow("pays", script);
    let id = bed.start(&address, json!({"order": 7})).unwrap().record.invocation_id;
    let waiting = bed.until(&id, S::Suspended);
    assert_eq!((waiting.entrypoint_id.as_str(), waiting.params), (address.as_str(), json!({"order": 7})));
    bed.signal(&id, "m", "go", json!(1)).unwrap();
    let done = bed.until(&id, S::Succeeded);
    assert_eq!((done.result, done.observability.metrics.step_count), (Some(json!({"paid": true})), Some(1)));
    let told = bed.timeline(&id);
    assert!(told.starts_with(&[T::Started, T::StepStarted, T::StepCompleted, T::CheckpointCreated]), "{told:?}");
    assert!(told.ends_with(&[T::SignalReceived, T::Resumed, T::Succeeded]), "{told:?}");

    let arn = bed.functions.calls.lock().unwrap()[0].payload.clone();
    let arn =
        serde_json::from_str::<serde_json::Value>(&arn).unwrap()["DurableExecutionArn"].as_str().unwrap().to_owned();
    assert!(arn.ends_with(&id), "{arn} is the execution of {id}");
    let (executions, asked) = (bed.node().runtime.executions().clone(), arn.clone());
    let seen = bed.world.block_on(async move { executions.get(&tenant(), &asked, false).await }).unwrap();
    assert_eq!(seen.status, ExecutionStatus::Succeeded);
    let kinds = kinds(&history(&bed.world, bed.node(), &arn));
    for kind in ["ExecutionStarted", "StepSucceeded", "CallbackStarted", "ExecutionSucceeded"] {
        assert!(kinds.iter().any(|told| told == kind), "{kind} in {kinds:?}");
    }
}

/// SR-090: what an adapter provides may come while the server runs. From then on it can be registered and called, and what it
/// provides next is what the next call runs.
#[test]
fn what_an_adapter_provides_is_registered_while_it_runs() {
    let bed = Bed::new(103);
    let document = definition(FUNCTION, "late");
    let missing = bed.register(&document).unwrap_err();
    assert_eq!(missing.error_type_id, errors::VALIDATION);
    let mut spec = FunctionSpec::new(Reach::InProcess);
    spec.durable = false;
    let answers = |answer: &'static str| move |_: Arc<Invocation>| async move { Ok(answer.to_owned()) };
    bed.functions.define_as(&bed.world, "late", &spec, answers(r#"{"n":1}"#));
    let address = bed.register(&document).unwrap().entrypoint_id;
    bed.act(&address, EntrypointStatusAction::Activate).unwrap();
    let call = || bed.start(&address, json!({})).unwrap().record.invocation_id;
    assert_eq!(bed.until(&call(), S::Succeeded).result, Some(json!({"n": 1})));
    bed.functions.define_as(&bed.world, "late", &spec, answers(r#"{"n":2}"#));
    assert_eq!(bed.until(&call(), S::Succeeded).result, Some(json!({"n": 2})));
}
