//! Replay from a durable cursor.

use std::time::Duration;

use serde_json::json;
use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, RunStatus};
use servo_runtime::loops::replay;
use servo_sim::Node;
use servo_store::{Append, Expected, LogStore, RunRow, RunStore, Scope, StreamAppend};

use crate::world::World;

const REQUEST: &str = r#"{"command":"RequestReplay","cursor":"cursor-0"}"#;

/// Makes a run's row say something that its events do not.
fn damage(world: &World, run_id: &RunId) {
    let (memory, run_id) = (world.cluster.memory.clone(), run_id.clone());
    world.block_on(async move {
        let row = memory.get_run(&Scope::System, &run_id).await.unwrap().unwrap();
        let head = memory.read_run(&Scope::System, &run_id, 0, 1).await.unwrap().head_seq;
        let mut stream = StreamAppend::new(run_id, row.tenant.clone(), Expected::Seq(head));
        stream.row =
            Some(RunRow { status: RunStatus::Running, visible: InvocationStatus::Running, finished_at: None, ..row });
        memory.append(Append::one(stream)).await.unwrap();
    });
}

fn row_status(world: &World, run_id: &RunId) -> RunStatus {
    let (memory, run_id) = (world.cluster.memory.clone(), run_id.clone());
    world.block_on(async move { memory.get_run(&Scope::System, &run_id).await }).unwrap().unwrap().status
}

fn finished_run(world: &World, node: &Node) -> RunId {
    let run_id = world.run(node, json!([{"stepId": "a"}]));
    world.wait_status(node, &run_id, RunStatus::Completed);
    run_id
}

/// RT-007
#[test]
fn a_replay_repairs_what_the_events_say_otherwise() {
    let world = World::new(1);
    let node = world.leader();
    let runs: Vec<_> = (0..5).map(|_| finished_run(&world, &node)).collect();
    for run_id in &runs {
        damage(&world, run_id);
    }
    let last = world.log().last().unwrap().event_id;
    world.command(REQUEST, None).unwrap();
    world.wait_until("the replay is done", || world.runtime_snapshot().replay.pending_events == 0);
    let replay = world.runtime_snapshot().replay;
    assert_eq!(replay.last_replayed_event_id, Some(last.to_string()));
    assert!(!replay.deferred_leader_notification);
    for run_id in &runs {
        assert_eq!(row_status(&world, run_id), RunStatus::Completed);
    }
    world.verify();
}

/// RT-007: the request waits for a leader, and says so.
#[test]
fn without_a_leader_the_replay_is_deferred() {
    let world = World::new(2);
    let node = world.leader();
    let run_id = finished_run(&world, &node);
    world.cluster.kill(&node);
    world.pass(Duration::from_secs(20));
    damage(&world, &run_id);
    let events = world.log().len() as u64;
    world.command(REQUEST, None).unwrap();
    let replay = world.runtime_snapshot().replay;
    assert_eq!((replay.cursor.as_deref(), replay.pending_events), (Some("cursor-0"), events));
    assert!(replay.deferred_leader_notification);
    assert_eq!(replay.last_replayed_event_id, None);
    let _second = world.leader();
    world.wait_until("the replay is done", || world.runtime_snapshot().replay.pending_events == 0);
    assert!(!world.runtime_snapshot().replay.deferred_leader_notification);
    assert_eq!(row_status(&world, &run_id), RunStatus::Completed);
}

/// RT-007: killed between two batches, it goes on behind the first and does not begin again.
#[test]
fn a_replay_survives_a_restart_and_applies_each_event_once() {
    let world = World::new(3);
    let node = world.leader();
    let early = finished_run(&world, &node);
    for number in 0..600 {
        let command = json!({"command": "QueueDispatch", "request_id": format!("r{number}"), "target": "t"});
        world.command(&command.to_string(), None).unwrap();
    }
    let late = finished_run(&world, &node);
    // No loops from here on: the test itself takes the steps.
    world.cluster.kill(&node);
    damage(&world, &early);
    damage(&world, &late);
    world.command(REQUEST, None).unwrap();
    let engine = node.runtime.engine().clone();
    assert!(world.block_on(async move { replay::step(&engine, None).await }).unwrap());
    let first = world.runtime_snapshot().replay;
    assert_eq!(first.cursor.as_deref(), Some("cursor-500"));
    assert!(first.pending_events > 100);
    assert_eq!((row_status(&world, &early), row_status(&world, &late)), (RunStatus::Completed, RunStatus::Running));
    // Damaged again behind the cursor: whoever goes on must not come by here any more.
    damage(&world, &early);
    world.pass(Duration::from_secs(20));
    let _second = world.leader();
    world.wait_until("the replay is done", || world.runtime_snapshot().replay.pending_events == 0);
    assert_eq!((row_status(&world, &early), row_status(&world, &late)), (RunStatus::Running, RunStatus::Completed));
}

#[test]
fn a_cursor_that_is_none_is_refused() {
    let world = World::new(4);
    for cursor in ["7", "cursor-", "cursor-x", "cursor-1.2"] {
        let command = json!({"command": "RequestReplay", "cursor": cursor}).to_string();
        assert_eq!(world.command(&command, None).unwrap_err().code().code, "SCHEMA_VALIDATION_FAILED");
    }
    assert!(world.log().is_empty());
}
