//! Executions that invoke others.

use servo_model::TraceContext;
use servo_model::operation::{
    ChainedInvokeOptions, ExecutionStatus, OperationAction as A, OperationStatus, OperationType as T, OperationUpdate,
};

use super::handler::{Scripted, history, kinds, pending, start, start_traced, step, succeeded, wait};

pub(super) fn invoke(id: &str, function: &str, payload: &str) -> OperationUpdate {
    let mut update = OperationUpdate::new(id, T::ChainedInvoke, A::Start);
    update.payload = Some(payload.to_owned());
    update.chained_invoke_options =
        Some(ChainedInvokeOptions { function_name: function.to_owned(), ..ChainedInvokeOptions::default() });
    update
}

/// DX-007
#[test]
fn the_result_of_another_function_comes_back() {
    let (world, functions) = Scripted::world(11);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "child", |invocation| async move {
        let operations = &invocation.input.initial_execution_state.operations;
        let input = operations[0].execution_details.clone().unwrap().input_payload.unwrap();
        succeeded(&format!("[{input}]"))
    });
    functions.define(&world, "parent", |invocation| async move {
        let operations = &invocation.input.initial_execution_state.operations;
        match invocation.known("i") {
            None => {
                invocation.checkpoint(vec![invoke("i", "child", "7")]).await.unwrap();
                pending()
            }
            Some(OperationStatus::Succeeded) => {
                succeeded(operations[1].chained_invoke_details.as_ref().unwrap().result.as_deref().unwrap())
            }
            other => panic!("{other:?}"),
        }
    });
    let begun = start(&world, &node, "parent", None, "{}").unwrap();
    let ended = wait(&world, &node, &begun.run_id);
    assert_eq!((ended.status, ended.result.as_deref()), (ExecutionStatus::Succeeded, Some("[7]")));
    let told = history(&world, &node, &begun.arn);
    assert_eq!(
        kinds(&told),
        [
            "ExecutionStarted",
            "ChainedInvokeStarted",
            "InvocationCompleted",
            "ChainedInvokeSucceeded",
            "InvocationCompleted",
            "ExecutionSucceeded"
        ]
    );
    let started = serde_json::to_value(&told[1]).unwrap()["ChainedInvokeStartedDetails"].clone();
    assert_eq!(started["ExecutedVersion"], "1");
    let child = started["DurableExecutionArn"].as_str().unwrap().to_owned();
    assert_eq!(kinds(&history(&world, &node, &child)).last().unwrap(), "ExecutionSucceeded");
}

#[test]
fn a_function_that_is_not_there_fails_its_operation_and_not_the_caller() {
    let (world, functions) = Scripted::world(12);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "parent", |invocation| async move {
        let answer = invocation.checkpoint(vec![invoke("i", "nowhere", "7")]).await.unwrap();
        let operation = &answer.new_execution_state.operations[0];
        assert_eq!(operation.status, OperationStatus::Failed);
        let error = operation.chained_invoke_details.as_ref().unwrap().error.clone().unwrap();
        succeeded(&format!("\"{}\"", error.error_type.unwrap()))
    });
    let begun = start(&world, &node, "parent", None, "{}").unwrap();
    let ended = wait(&world, &node, &begun.run_id);
    assert_eq!(ended.result.as_deref(), Some("\"ResourceNotFoundException\""));
}

/// DX-007: a target that is elsewhere, or nowhere by its name, is refused before anything is recorded; our own ARNs are taken.
#[test]
fn a_target_in_another_place_is_refused() {
    let (world, functions) = Scripted::world(17);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "child", |_| async move { succeeded("1") });
    functions.define(&world, "parent", |invocation| async move {
        if invocation.known("o0").is_some() {
            return succeeded("1");
        }
        for (target, expected) in [
            (
                "arn:aws:lambda:us-east-1:999999999999:function:child",
                "Cannot start a CHAINED_INVOKE on a function in another account.",
            ),
            ("999999999999:function:child", "Cannot start a CHAINED_INVOKE on a function in another account."),
            (
                "arn:aws:lambda:eu-west-1:000000000000:function:child",
                "Cannot start a CHAINED_INVOKE on a function in another region.",
            ),
            ("garbage%%:function:child", "Invalid function ARN 'garbage%%:function:child'"),
            ("has space", "Invalid function ARN 'has space'"),
            ("child:$LATESTfoo", "Invalid function ARN 'child:$LATESTfoo'"),
        ] {
            let refused = invocation.checkpoint(vec![step("s", A::Start), invoke("i", target, "7")]).await.unwrap_err();
            assert_eq!(refused.message, expected, "{target}");
        }
        let ours = [
            "child",
            "child:1",
            "000000000000:function:child",
            "arn:aws:lambda:us-east-1:000000000000:function:child:1",
        ];
        let updates = ours.iter().enumerate().map(|(number, target)| invoke(&format!("o{number}"), target, "7"));
        let answer = invocation.checkpoint(updates.collect()).await.unwrap();
        let operations = &answer.new_execution_state.operations;
        assert!(operations.len() == 4 && operations.iter().all(|it| it.status == OperationStatus::Started));
        pending()
    });
    let begun = start(&world, &node, "parent", None, "{}").unwrap();
    assert_eq!(wait(&world, &node, &begun.run_id).status, ExecutionStatus::Succeeded);
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// What the child is called with when the parent was called with `given` and says `said` itself.
fn trace_of_child(seed: u64, given: Option<&str>, said: Option<&str>) -> Option<String> {
    let (world, functions) = Scripted::world(seed);
    let node = world.leader();
    functions.serve(&node);
    let said = said.map(str::to_owned);
    functions.define(&world, "child", |_| async move { succeeded("1") });
    functions.define(&world, "parent", move |invocation| {
        let mut update = invoke("i", "child", "7");
        if let Some(options) = &mut update.chained_invoke_options {
            options.trace_id.clone_from(&said);
        }
        async move {
            if invocation.known("i").is_none() {
                invocation.checkpoint(vec![update]).await.unwrap();
                return pending();
            }
            succeeded("1")
        }
    });
    let begun = start_traced(&world, &node, "parent", given);
    wait(&world, &node, &begun.run_id);
    let calls = functions.calls.lock().unwrap();
    let parents = calls.iter().filter(|call| call.function == "parent");
    assert!(
        parents.count() >= 2 && calls.iter().filter(|c| c.function == "parent").all(|c| c.trace.as_deref() == given)
    );
    calls.iter().find(|call| call.function == "child").unwrap().trace.clone()
}

/// The trace of the caller reaches whom it calls, from a span of its own.
#[test]
fn a_trace_goes_on_in_what_an_execution_starts() {
    let child = trace_of_child(13, Some(TRACE), None).unwrap();
    let (parsed, parent) = (TraceContext::parse(&child).unwrap(), TraceContext::parse(TRACE).unwrap());
    assert_eq!(parsed.trace_id(), parent.trace_id());
    assert_ne!(parsed.span_id(), parent.span_id(), "a span of its own: {child}");
    assert!(child.ends_with("-01"), "sampled as its parent is: {child}");
    // What the handler says itself counts, and what nobody understands is passed on.
    assert_eq!(trace_of_child(14, Some(TRACE), Some("Root=1-a")).as_deref(), Some("Root=1-a"));
    assert_eq!(trace_of_child(15, Some("of our own"), None).as_deref(), Some("of our own"));
    assert_eq!(trace_of_child(16, None, None), None);
}
