//! Stopping in order.

use std::time::Duration;

use serde_json::json;
use servo_model::RunStatus;
use servo_runtime::Error;
use servo_sim::Node;

use crate::world::{World, plan};

/// Begins to stop; true in the flag once it is done.
fn stop(world: &World, node: &Node) -> std::sync::Arc<std::sync::atomic::AtomicBool> {
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (runtime, flag) = (node.runtime.clone(), done.clone());
    world.cluster.sim.tasks(node.id).spawn("stop", async move {
        runtime.stop().await;
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    done
}

fn is_done(flag: &std::sync::Arc<std::sync::atomic::AtomicBool>) -> bool {
    flag.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn steps_in_flight_end_and_nothing_new_begins() {
    let world = World::new(1);
    let node = world.leader();
    let run_id =
        world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 5_000}}, {"stepId": "b", "dependsOn": ["a"]}]));
    world.wait_in_flight(&node, &run_id);
    let done = stop(&world, &node);
    world.pass_ms(100);
    assert!(matches!(world.start(&node, plan(json!([{"stepId": "a"}]))), Err(Error::ShuttingDown)));
    world.wait_until("the node has stopped", || is_done(&done));
    assert_eq!((world.count(&run_id, "StepCompleted"), world.count(&run_id, "StepStarted")), (1, 1));
    // Everything of it has ended: the world stands still but for the test.
    let polls = world.cluster.sim.polls();
    world.pass(Duration::from_secs(100));
    assert!(world.cluster.sim.polls() - polls < 10, "something still runs");
    // The lease was given back, so the next node does not wait for its end.
    assert_eq!(world.runtime_snapshot().authority.stale_reason.as_deref(), Some("its holder has resigned"));
    let asked = world.now();
    let next = world.leader();
    assert!(world.now().since(asked) < Duration::from_secs(1));
    world.wait_status(&next, &run_id, RunStatus::Completed);
    assert_eq!(world.count(&run_id, "StepTakenOver"), 0);
}

/// A node that waits for the authority gets it when the leader stops, not when the lease would have ended.
#[test]
fn a_waiting_node_takes_over_without_the_lease_running_out() {
    let world = World::with(2, |cluster| cluster.config.authority.lease_ms = 60_000);
    let node = world.leader();
    let second = world.node();
    world.pass(Duration::from_secs(30));
    let asked = world.now();
    let done = stop(&world, &node);
    world.wait_until("the second node leads", || world.leads(&second));
    assert!(is_done(&done));
    // It looks every fifth of the lease.
    assert!(world.now().since(asked) <= Duration::from_secs(13), "{:?}", world.now().since(asked));
}

/// While it drains, a node keeps its authority, also for longer than a lease: nobody takes its steps over.
#[test]
fn a_long_drain_is_not_taken_over() {
    let world = World::with(3, |cluster| {
        cluster.config.authority.lease_ms = 3_000;
        cluster.config.shutdown_grace_ms = 60_000;
    });
    let node = world.leader();
    let second = world.node();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 30_000}}]));
    world.wait_in_flight(&node, &run_id);
    stop(&world, &node);
    world.wait_status(&second, &run_id, RunStatus::Completed);
    assert_eq!(world.count(&run_id, "StepTakenOver"), 0);
}

/// What does not end in time is handed out again by the next node, under the next number.
#[test]
fn what_does_not_end_in_time_is_handed_out_again() {
    let world = World::with(4, |cluster| cluster.config.shutdown_grace_ms = 2_000);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 20_000}}]));
    world.wait_in_flight(&node, &run_id);
    let asked = world.now();
    let done = stop(&world, &node);
    world.wait_until("the node has stopped", || is_done(&done));
    assert!(world.now().since(asked) <= Duration::from_millis(2_000), "all of it within the period");
    // The process ends.
    world.cluster.kill(&node);
    let next = world.leader();
    let snapshot = world.wait_status(&next, &run_id, RunStatus::Completed);
    assert_eq!(snapshot.steps[0].engine_attempt_id, Some(2));
    assert_eq!(world.count(&run_id, "StepCompleted"), 1);
}

/// A store that does not answer does not keep the process from ending.
#[test]
fn a_silent_store_does_not_hold_up_the_stop() {
    use servo_sim::faults::{Fault, Scripted};
    let faults = std::sync::Arc::new(Scripted::default());
    let world = World::with(5, |cluster| cluster.faults = faults.clone());
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 1_000}}]));
    world.wait_in_flight(&node, &run_id);
    for call in ["append", "read_run", "get_run", "now", "read_log", "due_timers", "dispatch_heads"] {
        faults.fail(call, Fault::Unavailable);
    }
    let done = stop(&world, &node);
    world.pass(Duration::from_secs(30));
    assert!(is_done(&done));
}
