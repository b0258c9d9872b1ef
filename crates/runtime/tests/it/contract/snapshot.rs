//! The snapshot: the seed's example to the letter, staleness and readiness.

use std::time::Duration;

use serde_json::json;
use servo_model::Timestamp;
use servo_model::contract::RuntimeEvent;

use crate::world::World;

/// The example of the contract.
const EXAMPLE: &str = include_str!("../../../../../spec/vectors/runtime_snapshot.json");

/// RT-008
#[test]
fn the_example_comes_out_exactly_and_goes_stale_with_its_lease() {
    let world = World::new(1);
    world.cluster.sim.clock().jump_to(Timestamp::parse("2026-03-19T01:00:00Z").unwrap());
    let acquire =
        r#"{"command":"AcquireAuthority","owner":"w1","lease_id":"l1","leased_until":"2026-03-19T02:00:00Z"}"#;
    world.command(acquire, None).unwrap();
    world.command(r#"{"command":"QueueDispatch","request_id":"req-1","target":"worker-2"}"#, None).unwrap();
    let executed = world.command(r#"{"command":"CaptureSnapshot"}"#, None).unwrap();
    assert_eq!(executed.events, [RuntimeEvent::SnapshotCaptured]);
    assert_eq!(serde_json::to_string_pretty(&executed.snapshot.unwrap()).unwrap(), EXAMPLE);
    assert_eq!(world.contract_events().last(), Some(&RuntimeEvent::SnapshotCaptured));

    world.cluster.sim.clock().jump_to(Timestamp::parse("2026-03-19T01:59:59.999Z").unwrap());
    assert!(!world.runtime_snapshot().authority.stale);
    world.cluster.sim.clock().jump_to(Timestamp::parse("2026-03-19T02:00:00Z").unwrap());
    let snapshot = world.runtime_snapshot();
    assert!(snapshot.authority.stale);
    assert_eq!(snapshot.authority.owner.as_deref(), Some("w1"));
    assert_eq!(snapshot.authority.stale_reason.as_deref(), Some("the lease expired at 2026-03-19T02:00:00Z"));
    assert!(!snapshot.readiness.ready);
    assert_eq!(snapshot.readiness.reasons, ["the authority is stale: the lease expired at 2026-03-19T02:00:00Z"]);
}

/// RT-012
#[test]
fn readiness_follows_the_authority_of_the_running_system() {
    let world = World::new(2);
    let nothing = world.runtime_snapshot();
    assert_eq!(nothing.readiness.reasons, ["no authority is held"]);
    assert_eq!(
        serde_json::to_value(&nothing.authority).unwrap(),
        json!({
            "owner": null, "lease_id": null, "leased_until": null, "stale": false, "stale_reason": null,
        })
    );
    let node = world.leader();
    let runtime = node.runtime.clone();
    let ready = world.block_on(async move { runtime.snapshot().await }).unwrap();
    assert!(ready.readiness.ready && ready.readiness.reasons.is_empty());
    assert_eq!(ready.authority.owner.as_deref(), Some(node.runtime.owner()));
    // The holder is gone without a word: stale once the lease is over.
    world.cluster.kill(&node);
    world.pass(Duration::from_secs(16));
    let snapshot = world.runtime_snapshot();
    assert!(snapshot.authority.stale && !snapshot.readiness.ready);
    // The next one leaves in order: stale at once, and it says so.
    let second = world.leader();
    let runtime = second.runtime.clone();
    world.block_on(async move { runtime.stop().await });
    let snapshot = world.runtime_snapshot();
    assert_eq!(snapshot.authority.stale_reason.as_deref(), Some("its holder has resigned"));
    assert!(!snapshot.readiness.ready);
}

/// RT-012: what the caller knows to block it is a reason as well.
#[test]
fn a_stopping_node_is_not_ready() {
    let world = World::new(3);
    let node = world.leader();
    world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 5_000}}]));
    world.pass_ms(500);
    let stopping = node.runtime.clone();
    world.cluster.sim.tasks(node.id).spawn("stop", async move { stopping.stop().await });
    world.pass_ms(500);
    let runtime = node.runtime.clone();
    let snapshot = world.block_on(async move { runtime.snapshot().await }).unwrap();
    assert!(!snapshot.readiness.ready);
    assert_eq!(snapshot.readiness.reasons, ["the server is stopping"]);
}

/// RT-012: a store that does not answer cannot be ready.
#[test]
fn no_snapshot_without_the_store() {
    use servo_sim::faults::{Fault, NthFails};
    let faults = std::sync::Arc::new(NthFails::new(Fault::Unavailable, u64::MAX, u64::MAX));
    let world = World::with(4, |cluster| cluster.faults = faults.clone());
    let node = world.leader();
    faults.begin();
    let runtime = node.runtime.clone();
    let error = world.block_on(async move { runtime.snapshot().await }).unwrap_err();
    assert_eq!(error.code().code, "STORE_UNAVAILABLE");
}
