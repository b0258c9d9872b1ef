//! Executions of durable functions in the invocation API.

use std::sync::Arc;

use serde_json::json;
use servo_entrypoint::{
    EntrypointStatusAction, InvocationControlAction, InvocationListFilter, InvocationRequest, InvocationStatus as S,
    ServerlessRuntime as _, TimelineEventType as T, errors,
};
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::{ExecutionStatus, OperationAction as A};

use super::calls::calls;
use super::compensation::order;
use super::support::{Bed, FUNCTION, WORKFLOW, awaits, definition, me, request};
use crate::executions::handler::{Invocation, history, kinds, pending, step, succeeded, tenant};

/// An execution of a durable function is an invocation of the entrypoint that refers to it. Status, result and what
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

/// What answers as its kind does, and what it becomes.
fn becomes(bed: &Bed, name: &str, durable: bool) {
    let spec = FunctionSpec { durable, ..FunctionSpec::new(Reach::InProcess) };
    bed.functions.define_as(&bed.world, name, &spec, move |_: Arc<Invocation>| async move {
        if durable { succeeded("{}") } else { Ok("{}".to_owned()) }
    });
}

/// SR-222: an entrypoint runs as what it is registered as. Where the newest version of its function is of the other kind, nothing
/// starts, and it is said what to do.
#[test]
fn a_function_that_has_changed_its_kind_is_not_started() {
    let bed = Bed::new(104);
    for (kind, name, word, durable) in [(FUNCTION, "plain", "function", false), (WORKFLOW, "long", "workflow", true)] {
        becomes(&bed, name, durable);
        let address = bed.register(&definition(kind, name)).unwrap().entrypoint_id;
        bed.act(&address, EntrypointStatusAction::Activate).unwrap();
        let first = bed.start(&address, json!({})).unwrap().record.invocation_id;
        bed.until(&first, S::Succeeded);
        becomes(&bed, name, !durable);
        let invocations = bed.functions.invocations();
        let dry = bed.start_as(&me(), InvocationRequest { dry_run: true, ..request(&address, json!({})) });
        let replayed = bed.control(&first, InvocationControlAction::Replay);
        for refused in [bed.start(&address, json!({})).map(drop), dry.map(drop), replayed.map(drop)] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.error_type_id, errors::CONFLICT, "{refused:?}");
            let (is, fitting) = if durable { ("plain", "durable") } else { ("durable", "plain") };
            let says = format!(
                "is a {word}, and version 2 of the function `{name}`, which it refers to, is {is}; publish a {fitting}"
            );
            assert!(refused.message.contains(&says), "{}", refused.message);
        }
        let filter = InvocationListFilter { entrypoint_id: Some(address.clone()), ..InvocationListFilter::default() };
        let listed = bed.run(|serverless| async move { serverless.list_invocations(&me(), filter).await }).unwrap();
        assert_eq!((listed.len(), bed.functions.invocations()), (1, invocations), "nothing is recorded or called");
        becomes(&bed, name, durable);
        bed.until(&bed.start(&address, json!({})).unwrap().record.invocation_id, S::Succeeded);
    }
}

/// SR-222: nor is it started by other runs: a call of it fails, and a workflow that it should undo is not undone.
#[test]
fn a_function_that_has_changed_its_kind_is_not_called() {
    let bed = Bed::new(105);
    let callee = bed.function("callee", |_| async move { Ok("{}".to_owned()) });
    let called = callee.clone();
    let caller = bed.workflow("caller", move |invocation| {
        let called = called.clone();
        async move {
            if invocation.known("c").is_none() {
                invocation.checkpoint(vec![calls("c", &called)]).await.unwrap();
                return pending();
            }
            let operations = &invocation.input.initial_execution_state.operations;
            let call = operations.iter().find(|operation| operation.id == "c").unwrap();
            let error = call.chained_invoke_details.as_ref().and_then(|details| details.error.clone());
            let message = error.and_then(|error| error.error_message);
            succeeded(&json!({"call": call.status.as_str(), "says": message}).to_string())
        }
    });
    let (undo, seen) = super::compensation::handler(&bed, "undo", true);
    let undone = order(&bed, "process", &undo);
    becomes(&bed, "callee", true);
    becomes(&bed, "undo", true);
    let id = bed.start(&caller, json!({})).unwrap().record.invocation_id;
    let result = bed.until(&id, S::Succeeded).result.unwrap();
    assert_eq!(result["call"], "FAILED");
    assert!(result["says"].as_str().unwrap().contains("the function `callee`"), "{result}");
    let id = bed.start(&undone, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::DeadLettered);
    assert!(seen.lock().unwrap().is_empty());
}
