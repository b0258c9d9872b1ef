//! Executions that invoke others.

use servo_model::operation::{
    ChainedInvokeOptions, ExecutionStatus, OperationAction as A, OperationStatus, OperationType as T, OperationUpdate,
};

use super::handler::{Scripted, history, kinds, pending, start, succeeded, wait};

fn invoke(id: &str, function: &str, payload: &str) -> OperationUpdate {
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
