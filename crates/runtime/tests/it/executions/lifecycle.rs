//! Start, checkpoint, wait, resume, end.

use std::time::Duration;

use serde_json::json;
use servo_adapter::HandlerFailure;
use servo_machine::CallbackAnswer;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::{
    ErrorObject, ExecutionStatus, OperationAction as A, OperationStatus, OperationType as T, OperationUpdate,
    WaitOptions,
};
use servo_wire::lambda::ErrorName;

use super::handler::{Scripted, history, kinds, pending, start, step, succeeded, tenant, wait};

fn waiting(id: &str, seconds: u64) -> OperationUpdate {
    let mut update = OperationUpdate::new(id, T::Wait, A::Start);
    update.wait_options = Some(WaitOptions { wait_seconds: Some(seconds) });
    update
}

/// DX-090, DX-092: a step, a wait of a day, another step; nothing is held while it waits, and nothing is early.
#[test]
fn a_workflow_waits_and_goes_on() {
    let (world, functions) = Scripted::world(1);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |invocation| async move {
        if invocation.known("w").is_none() {
            invocation.checkpoint(vec![step("a", A::Start), step("a", A::Succeed)]).await.unwrap();
            invocation.checkpoint(vec![waiting("w", 86_400)]).await.unwrap();
            return pending();
        }
        assert_eq!(invocation.known("w"), Some(OperationStatus::Succeeded));
        assert_eq!(invocation.input.updated_operation_ids, ["w"]);
        invocation.checkpoint(vec![step("b", A::Start), step("b", A::Succeed)]).await.unwrap();
        succeeded("\"done\"")
    });
    let begun = start(&world, &node, "f", Some("order-1"), "{}").unwrap();
    let from = world.now();
    world.wait_until("it waits", || functions.invocations() == 1);
    world.pass(Duration::from_secs(86_000));
    assert_eq!(functions.invocations(), 1);
    // Whoever looks at the run learns why it stands still, and until when.
    let blocked = world.snapshot(&node, &begun.run_id).blocked_by;
    assert_eq!(blocked.iter().map(|blocked| blocked.cause.as_str()).collect::<Vec<_>>(), ["timer"]);
    assert!(blocked[0].earliest_at.unwrap().since(from) >= Duration::from_secs(86_400));
    let ended = wait(&world, &node, &begun.run_id);
    assert_eq!((ended.status, ended.result.as_deref()), (ExecutionStatus::Succeeded, Some("\"done\"")));
    let took = world.now().since(from);
    assert!(took >= Duration::from_secs(86_400) && took < Duration::from_secs(86_402), "{took:?}");
    assert_eq!(
        kinds(&history(&world, &node, &begun.arn)),
        [
            "ExecutionStarted",
            "StepStarted",
            "StepSucceeded",
            "WaitStarted",
            "InvocationCompleted",
            "WaitSucceeded",
            "StepStarted",
            "StepSucceeded",
            "InvocationCompleted",
            "ExecutionSucceeded"
        ]
    );
}

/// API: the history tells why a wait was cancelled, if the handler said so.
#[test]
fn a_cancelled_wait_tells_why() {
    let (world, functions) = Scripted::world(12);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |invocation| async move {
        let cancelled = |id: &str| OperationUpdate::new(id, T::Wait, A::Cancel);
        let error = Some(ErrorObject::new("Late", "no longer wanted"));
        invocation.checkpoint(vec![waiting("why", 60), waiting("silent", 60)]).await.unwrap();
        invocation.checkpoint(vec![OperationUpdate { error, ..cancelled("why") }, cancelled("silent")]).await.unwrap();
        succeeded("1")
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    wait(&world, &node, &begun.run_id);
    let history = history(&world, &node, &begun.arn);
    let told: Vec<_> = history
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .filter(|event| event["EventType"] == "WaitCancelled")
        .map(|event| event["WaitCancelledDetails"].clone())
        .collect();
    let why = json!({"Payload": {"ErrorType": "Late", "ErrorMessage": "no longer wanted"}});
    assert_eq!(told[0]["Error"]["Payload"], why["Payload"]);
    assert_eq!(told[1..], [json!({})]);
}

/// DX-006, DX-090: an answer from outside, by the id that the checkpoint gave.
#[test]
fn a_callback_is_answered_from_outside() {
    let (world, functions) = Scripted::world(2);
    let node = world.leader();
    functions.serve(&node);
    let (send, receive) = std::sync::mpsc::channel();
    let send = std::sync::Mutex::new(send);
    functions.define(&world, "f", move |invocation| {
        let send = send.lock().unwrap().clone();
        async move {
            if let Some(status) = invocation.known("c") {
                assert_eq!(status, OperationStatus::Succeeded);
                let operations = &invocation.input.initial_execution_state.operations;
                return succeeded(operations[1].callback_details.as_ref().unwrap().result.as_deref().unwrap());
            }
            let answer = invocation.checkpoint(vec![OperationUpdate::new("c", T::Callback, A::Start)]).await.unwrap();
            let details = answer.new_execution_state.operations[0].callback_details.clone().unwrap();
            send.send(details.callback_id.unwrap()).unwrap();
            pending()
        }
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    world.wait_until("it waits", || functions.invocations() == 1);
    world.pass(Duration::from_secs(1));
    let id = receive.recv().unwrap();
    let blocked = world.snapshot(&node, &begun.run_id).blocked_by;
    assert_eq!((blocked.len(), blocked[0].cause.as_str(), blocked[0].earliest_at), (1, "callback", None));
    let executions = node.runtime.executions().clone();
    let answer = |id: String| {
        let executions = executions.clone();
        let answer = CallbackAnswer::Succeed(Some("\"yes\"".to_owned()));
        world.block_on(async move { executions.callback(&tenant(), &id, answer).await })
    };
    answer(id.clone()).unwrap();
    assert_eq!(wait(&world, &node, &begun.run_id).result.as_deref(), Some("\"yes\""));
    assert_eq!(answer(id).unwrap_err().name, ErrorName::CallbackTimeout);
    assert_eq!(answer("AAAA".to_owned()).unwrap_err().name, ErrorName::ResourceNotFound);
}

/// DX-090: the same name is the same execution; with another payload it is a mistake.
#[test]
fn a_name_starts_one_execution() {
    let (world, functions) = Scripted::world(3);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |_| async { succeeded("1") });
    let first = start(&world, &node, "f", Some("n"), "1").unwrap();
    let second = start(&world, &node, "f", Some("n"), "1").unwrap();
    assert!(first.created && !second.created);
    assert_eq!((&first.run_id, &first.arn), (&second.run_id, &second.arn));
    let other = start(&world, &node, "f", Some("n"), "2").unwrap_err();
    assert_eq!(other.name, ErrorName::DurableExecutionAlreadyStarted);
    wait(&world, &node, &first.run_id);
    assert_eq!(functions.invocations(), 1);
}

/// DX-093: a handler that dies is invoked again with what it had recorded.
#[test]
fn a_handler_that_dies_goes_on_where_it_was() {
    let (world, functions) = Scripted::world(4);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |invocation| async move {
        if invocation.known("a").is_none() {
            invocation.checkpoint(vec![step("a", A::Start), step("a", A::Succeed)]).await.unwrap();
            return Err(HandlerFailure::crashed("Runtime.ExitError", "exit status: 1"));
        }
        succeeded("1")
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    wait(&world, &node, &begun.run_id);
    let history = history(&world, &node, &begun.arn);
    let invocations: Vec<_> = history
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .filter(|event| event["EventType"] == "InvocationCompleted")
        .map(|event| event["InvocationCompletedDetails"]["Error"]["Payload"]["ErrorType"].clone())
        .collect();
    assert_eq!(invocations, [serde_json::json!("Runtime.ExitError"), serde_json::Value::Null]);
}

/// A handler that hangs is lost at its deadline, and its late words are refused.
#[test]
fn a_handler_that_hangs_is_lost_at_its_deadline() {
    let (world, functions) = Scripted::world(5);
    let node = world.leader();
    functions.serve(&node);
    let spec = FunctionSpec { invocation_timeout_seconds: 5, ..FunctionSpec::new(Reach::InProcess) };
    functions.define_as(&world, "f", &spec, |invocation| async move {
        if invocation.input.checkpoint_token.is_empty() || invocation.call.payload.contains("\"a\"") {
            return succeeded("1");
        }
        invocation.checkpoint(vec![step("a", A::Start)]).await.unwrap();
        std::future::pending().await
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    let from = world.now();
    wait(&world, &node, &begun.run_id);
    assert!(world.now().since(from) >= Duration::from_secs(5));
    assert_eq!(functions.invocations(), 2);
}

#[test]
fn an_unknown_function_is_not_found() {
    let (world, _functions) = Scripted::world(6);
    let node = world.leader();
    assert_eq!(start(&world, &node, "nothing", None, "{}").unwrap_err().name, ErrorName::ResourceNotFound);
}

/// A function without durability gets its input and answers.
#[test]
fn a_plain_function_answers() {
    let (world, functions) = Scripted::world(7);
    let node = world.leader();
    functions.serve(&node);
    let spec = FunctionSpec { durable: false, ..FunctionSpec::new(Reach::InProcess) };
    functions.define_as(&world, "f", &spec, |invocation| async move { Ok(format!("[{}]", invocation.call.payload)) });
    let begun = start(&world, &node, "f", None, "7").unwrap();
    assert_eq!(wait(&world, &node, &begun.run_id).result.as_deref(), Some("[7]"));
}

/// Stopping ends it at once, whoever still works.
#[test]
fn a_stop_ends_it_under_the_handler() {
    let (world, functions) = Scripted::world(8);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |_| std::future::pending());
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    world.wait_until("it runs", || functions.invocations() == 1);
    let (executions, arn) = (node.runtime.executions().clone(), begun.arn.clone());
    let error = ErrorObject::new("Why", "because");
    world.block_on(async move { executions.stop(&tenant(), &arn, error, "ops").await }).unwrap();
    let ended = wait(&world, &node, &begun.run_id);
    assert_eq!(ended.status, ExecutionStatus::Stopped);
    assert_eq!(ended.error.unwrap().error_message.as_deref(), Some("because"));
    let told = kinds(&history(&world, &node, &begun.arn));
    assert_eq!(told, ["ExecutionStarted", "InvocationCompleted", "ExecutionStopped"]);
}

/// A function's limit holds back its own executions and nobody else's.
#[test]
fn a_function_runs_so_often_at_a_time() {
    let (world, functions) = Scripted::world(9);
    let node = world.leader();
    functions.serve(&node);
    let spec = FunctionSpec { max_concurrent: Some(2), ..FunctionSpec::new(Reach::InProcess) };
    let running = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (clock, seen) = (node.clock.clone(), most.clone());
    functions.define_as(&world, "f", &spec, move |_| {
        let (running, most, clock) = (running.clone(), seen.clone(), clock.clone());
        async move {
            use std::sync::atomic::Ordering::SeqCst;
            let now = running.fetch_add(1, SeqCst) + 1;
            most.fetch_max(now, SeqCst);
            servo_runtime::Clock::sleep(&clock, Duration::from_secs(1)).await;
            running.fetch_sub(1, SeqCst);
            succeeded("1")
        }
    });
    functions.define(&world, "g", |_| async { succeeded("2") });
    let begun: Vec<_> = (0..10).map(|_| start(&world, &node, "f", None, "{}").unwrap()).collect();
    let from = world.now();
    let other = start(&world, &node, "g", None, "{}").unwrap();
    wait(&world, &node, &other.run_id);
    assert!(world.now().since(from) < Duration::from_secs(1), "others do not wait for it");
    for begun in begun {
        wait(&world, &node, &begun.run_id);
    }
    assert_eq!(most.load(std::sync::atomic::Ordering::SeqCst), 2);
    let took = world.now().since(from);
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(7), "{took:?}");
}
