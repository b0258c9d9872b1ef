//! What the running system reports: heartbeats, workers, runs that wait for somebody.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_machine::SignalKind;
use servo_model::RunStatus;
use servo_model::contract::RuntimeEvent;
use servo_model::invocation::InvocationStatus;
use servo_model::operation::{OperationAction, OperationType, OperationUpdate};
use servo_store::Position;

use crate::executions::handler::{Invocation, pending, step, succeeded};
use crate::serverless::support::{Bed, WORKFLOW, awaits};
use crate::world::{World, plan};

/// RT-016
#[test]
fn the_scheduler_has_a_heartbeat_while_it_leads() {
    let world = World::new(1);
    let node = world.leader();
    let follower = world.node();
    world.pass(Duration::from_secs(60));
    world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 30_000}}]));
    world.pass(Duration::from_secs(20));
    let beats: Vec<_> = world
        .contract_events()
        .into_iter()
        .filter_map(|event| match event {
            RuntimeEvent::RunHeartbeat { owner, phase } => Some((owner, phase)),
            _ => None,
        })
        .collect();
    // Every third of the lease.
    assert!(beats.len() >= 15, "{}", beats.len());
    assert!(beats.iter().all(|(owner, _)| owner == node.runtime.owner()));
    assert!(beats.iter().any(|(_, phase)| phase == "idle") && beats.iter().any(|(_, phase)| phase == "execute"));
    // Without the node there are none.
    world.cluster.kill(&node);
    world.cluster.kill(&follower);
    let before = world.log().len();
    world.pass(Duration::from_secs(60));
    assert_eq!(world.log().len(), before);
}

/// RT-016
#[test]
fn a_silent_worker_is_stalled_and_recovers_when_it_is_heard() {
    let world = World::new(2);
    let node = world.leader();
    let silent = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 45_000, "silent": true}}]));
    let alive = world.run(&node, json!([{"stepId": "b", "with": {"sleepMs": 45_000}}]));
    world.wait_in_flight(&node, &silent);
    world.wait_in_flight(&node, &alive);
    let assigned = |run_id: &servo_model::RunId, step: &str| RuntimeEvent::WorkerAssigned {
        worker: node.runtime.owner().to_owned(),
        task_id: format!("{run_id}/{step}/1"),
    };
    let events = world.contract_events();
    assert!(events.contains(&assigned(&silent, "a")) && events.contains(&assigned(&alive, "b")));
    world.wait_status(&node, &silent, RunStatus::Completed);
    let stalled: Vec<_> = world
        .contract_events()
        .into_iter()
        .filter_map(|event| match event {
            RuntimeEvent::WorkerStalled { worker, reason } => Some((worker, reason)),
            _ => None,
        })
        .collect();
    let reason = format!("no heartbeat for 30000 ms on {silent}/a/1");
    assert_eq!(stalled, [(node.runtime.owner().to_owned(), reason)]);
}

/// RT-016
#[test]
fn a_stalled_worker_that_is_heard_again_has_recovered() {
    let world = World::with(3, |cluster| cluster.config.dispatch.stall_after_ms = 1_500);
    let node = world.leader();
    // Heartbeats come every two seconds: late for this limit, and then heard again.
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 7_000}}]));
    world.wait_status(&node, &run_id, RunStatus::Completed);
    world.pass(Duration::from_secs(2));
    let worker = node.runtime.owner().to_owned();
    let recovered = RuntimeEvent::WorkerRecovered { worker, recovery: format!("heartbeat on {run_id}/a/1") };
    assert!(world.contract_events().contains(&recovered));
}

/// RT-016: work that is handed out again was recovered.
#[test]
fn a_take_over_is_a_recovery() {
    let world = World::new(4);
    let first = world.leader();
    let run_id = world.run(&first, json!([{"stepId": "a", "with": {"sleepMs": 5_000}}]));
    world.wait_in_flight(&first, &run_id);
    world.cluster.kill(&first);
    let second = world.leader();
    world.wait_status(&second, &run_id, RunStatus::Completed);
    let worker = second.runtime.owner().to_owned();
    let events = world.contract_events();
    assert!(
        events.contains(&RuntimeEvent::WorkerRecovered { worker: worker.clone(), recovery: "relaunch".to_owned() })
    );
    assert!(events.contains(&RuntimeEvent::WorkerAssigned { worker, task_id: format!("{run_id}/a/1") }));
}

/// RT-016
#[test]
fn a_run_that_waits_for_a_person_says_so() {
    let world = World::new(5);
    let node = world.leader();
    let mut request = plan(json!([{"stepId": "a"}]));
    request.approval_required = true;
    let run_id = world.start(&node, request).unwrap().run_id;
    let blocked = RuntimeEvent::RunBlockedOnUser { owner: run_id.to_string(), reason: "waits for approval".to_owned() };
    let contract = world.contract();
    let (events, next) = world.block_on(async move { contract.events(Position::START, 1_000).await }).unwrap();
    assert!(events.contains(&blocked));
    world.pass(Duration::from_secs(60));
    assert_eq!(world.snapshot(&node, &run_id).status, RunStatus::Pending);
    world.signal(&node, &run_id, "go", SignalKind::Approve).unwrap();
    world.wait_status(&node, &run_id, RunStatus::Completed);
    // Read on from where the first page ended: what follows is the run's work.
    let contract = world.contract();
    let (events, _) = world.block_on(async move { contract.events(next, 1_000).await }).unwrap();
    assert!(!events.contains(&blocked));
    let request_id = format!("{run_id}/a/1");
    let channel = node.runtime.owner().to_owned();
    assert!(events.contains(&RuntimeEvent::DispatchNotified { request_id: request_id.clone(), channel }));
    assert!(events.contains(&RuntimeEvent::DispatchDelivered { request_id }));
}

/// RT-016: a callback is somebody's turn, and so is a signal; an event is not.
#[test]
fn a_run_that_waits_for_a_callback_says_so() {
    let bed = Bed::new(6);
    let script = |invocation: Arc<Invocation>| async move {
        if invocation.known("s").is_some() {
            return succeeded("{}");
        }
        let named = |id: &str, name: &str, sub_type: Option<&str>| {
            let mut update = OperationUpdate::new(id, OperationType::Callback, OperationAction::Start);
            (update.name, update.sub_type) = (Some(name.to_owned()), sub_type.map(str::to_owned));
            update
        };
        let updates =
            vec![named("c", "manager's approval", None), awaits("go"), named("e", "order.paid", Some("Event"))];
        invocation.checkpoint(updates).await.unwrap();
        pending()
    };
    let address = bed.workflow("asks", script);
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, InvocationStatus::Suspended);
    let events = bed.world.contract_events();
    let reasons = events.iter().filter_map(|event| match event {
        RuntimeEvent::RunBlockedOnUser { owner, reason } if *owner == id => Some(reason.as_str()),
        _ => None,
    });
    assert_eq!(reasons.collect::<Vec<_>>(), ["waits for manager's approval", "waits for go"]);
    // The hand-over of the handler is one of the contract's dispatches.
    let (request_id, channel) = (format!("{id}/handler/1"), bed.node().runtime.owner().to_owned());
    let notified = RuntimeEvent::DispatchNotified { request_id: request_id.clone(), channel: channel.clone() };
    let assigned = RuntimeEvent::WorkerAssigned { worker: channel, task_id: request_id.clone() };
    let delivered = RuntimeEvent::DispatchDelivered { request_id };
    for expected in [notified, assigned, delivered] {
        assert!(events.contains(&expected), "{expected:?} in {events:?}");
    }
}

/// RT-016: the process of a handler is outside; its checkpoints are its signs of life.
#[test]
fn a_silent_handler_is_stalled_and_recovers_with_its_checkpoint() {
    let bed = Bed::new(7);
    let clock = bed.engine().clock().clone();
    let script = move |invocation: Arc<Invocation>| {
        let clock = clock.clone();
        async move {
            clock.sleep(Duration::from_secs(50)).await;
            invocation.checkpoint(vec![step("a", OperationAction::Start)]).await.unwrap();
            clock.sleep(Duration::from_secs(20)).await;
            succeeded("{}")
        }
    };
    let address = bed.entrypoint(
        WORKFLOW,
        "slow",
        |document| document["traits"]["limits"]["timeout_seconds"] = 300.into(),
        script,
    );
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, InvocationStatus::Succeeded);
    let worker = bed.node().runtime.owner().to_owned();
    let signs = bed
        .world
        .contract_events()
        .into_iter()
        .filter(|event| matches!(event, RuntimeEvent::WorkerStalled { .. } | RuntimeEvent::WorkerRecovered { .. }));
    let task = format!("{id}/handler/1");
    let stalled =
        RuntimeEvent::WorkerStalled { worker: worker.clone(), reason: format!("no heartbeat for 30000 ms on {task}") };
    let recovered = RuntimeEvent::WorkerRecovered { worker, recovery: format!("heartbeat on {task}") };
    assert_eq!(signs.collect::<Vec<_>>(), [stalled, recovered]);
}
