//! What must not be lost: nodes that go while handlers run, and time that passes while a run is paused.

use std::time::Duration;

use servo_machine::SignalKind;
use servo_model::operation::{
    ExecutionStatus, OperationAction as A, OperationStatus, OperationType as T, OperationUpdate, WaitOptions,
};

use super::handler::{Scripted, pending, start, step, succeeded, wait};

/// R15, DX-093: the next node invokes the handler with what it had recorded, and the lost invocation's tokens are worth nothing.
#[test]
fn the_next_node_goes_on_and_the_old_token_is_refused() {
    let (world, functions) = Scripted::world(21);
    let node = world.leader();
    functions.serve(&node);
    let (send, receive) = std::sync::mpsc::channel();
    let send = std::sync::Mutex::new(send);
    functions.define(&world, "f", move |invocation| {
        let send = send.lock().unwrap().clone();
        async move {
            if invocation.known("a").is_none() {
                invocation.checkpoint(vec![step("a", A::Start), step("a", A::Succeed)]).await.unwrap();
                send.send(invocation.clone()).unwrap();
                return std::future::pending().await;
            }
            succeeded("1")
        }
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    world.wait_until("it runs", || functions.invocations() == 1);
    world.pass(Duration::from_secs(1));
    world.cluster.kill(&node);
    let next = world.leader();
    functions.serve(&next);
    let ended = wait(&world, &next, &begun.run_id);
    assert_eq!(ended.status, ExecutionStatus::Succeeded);
    assert_eq!(functions.invocations(), 2);
    // The handler of the lost node wakes up and goes on.
    let old = receive.recv().unwrap();
    let executions = next.runtime.executions().clone();
    let arn = old.input.durable_execution_arn.clone();
    let request = servo_wire::lambda::CheckpointRequest {
        checkpoint_token: old.input.checkpoint_token.clone(),
        updates: Some(vec![step("b", A::Start)]),
        client_token: None,
    };
    let tenant = super::handler::tenant();
    let refused = world.block_on(async move { executions.checkpoint(&tenant, &arn, request).await }).unwrap_err();
    assert_eq!(refused.message, "Invalid checkpoint token");
}

/// R13: a wait that is over before the run goes on ends when it goes on. Its timer was gone by then.
#[test]
fn a_wait_that_came_due_during_a_pause_ends_with_it() {
    let (world, functions) = Scripted::world(22);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |invocation| async move {
        match invocation.known("w") {
            None => {
                let mut update = OperationUpdate::new("w", T::Wait, A::Start);
                update.wait_options = Some(WaitOptions { wait_seconds: Some(3) });
                invocation.checkpoint(vec![update]).await.unwrap();
                pending()
            }
            Some(OperationStatus::Succeeded) => succeeded("1"),
            other => panic!("{other:?}"),
        }
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    world.wait_until("it runs", || functions.invocations() == 1);
    world.pass(Duration::from_secs(1));
    world.signal(&node, &begun.run_id, "pause", SignalKind::Pause).unwrap();
    world.pass(Duration::from_secs(60));
    assert_eq!(functions.invocations(), 1, "a paused run rests");
    world.signal(&node, &begun.run_id, "resume", SignalKind::Resume).unwrap();
    assert_eq!(wait(&world, &node, &begun.run_id).status, ExecutionStatus::Succeeded);
    world.verify();
}
