//! Retention: what has finished leaves by age, and nothing before it was published.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_model::audit::first_id_at;
use servo_model::{AuditEntry, AuditOutcome, KeyId, Role, RunId, RunStatus, TenantId, Timestamp};
use servo_runtime::loops::retention::sweep;
use servo_sim::Node;
use servo_sim::recorder::RecordingBus;
use servo_store::audit::AuditQuery;
use servo_store::identity::KeyRow;
use servo_store::{RelayStore, Scope};

use crate::world::World;

const DAY: Duration = Duration::from_secs(24 * 3_600);

fn removed(world: &World, node: &Node) -> u64 {
    let engine = node.runtime.engine().clone();
    world.block_on(async move { sweep(&engine).await }).unwrap()
}

/// The world's loops stop and time goes by: days of polling would teach nothing.
fn days_later(world: &World, node: &Node, days: u32) {
    world.cluster.kill(node);
    world.cluster.sim.clock().jump_to(world.now().plus(DAY * days));
}

fn finished(world: &World, node: &Node) -> RunId {
    let run_id = world.run(node, json!([{"stepId": "a"}]));
    world.wait_status(node, &run_id, RunStatus::Completed);
    run_id
}

fn published(world: &World) {
    world.wait_until("everything is published", || world.has_followed("relay"));
}

#[test]
fn finished_runs_leave_by_age_and_unfinished_ones_stay() {
    let world = World::new(1);
    let node = world.leader();
    let old: Vec<_> = (0..45).map(|_| finished(&world, &node)).collect();
    let open = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 1_000_000_000}}]));
    world.wait_in_flight(&node, &open);
    published(&world);
    days_later(&world, &node, 20);
    let node = world.leader();
    let young = finished(&world, &node);
    published(&world);
    days_later(&world, &node, 9);
    assert_eq!(removed(&world, &node), 0, "nothing is thirty days old");
    world.cluster.sim.clock().jump_to(world.now().plus(DAY * 2));
    // Twenty at a time, and all of them.
    assert_eq!(removed(&world, &node), 45);
    let left: Vec<_> = world.rows().into_iter().map(|row| row.run_id).collect();
    assert_eq!(left, [young, open]);
    assert!(old.iter().all(|run_id| !left.contains(run_id)));
    world.verify();
}

/// Entries of the audit log and keys that have ended leave by their own age; what is of use stays.
#[test]
fn the_audit_log_and_ended_keys_leave_by_age() {
    let world = World::with(4, |cluster| cluster.config.retention.audit_log_days = 10);
    let node = world.leader();
    let store = world.store();
    let begun = world.now();
    let entry = |at: Timestamp| AuditEntry {
        id: first_id_at(at),
        at,
        tenant_id: TenantId::system(),
        actor: "key_1".to_owned(),
        roles: Vec::new(),
        action: "key.create".to_owned(),
        object_kind: "key".to_owned(),
        object_id: "key_2".to_owned(),
        outcome: AuditOutcome::Allowed,
        correlation_id: "c".to_owned(),
        reason: None,
        source: None,
        count: 1,
    };
    let key = |id: &str, revoked_at: Option<Timestamp>| KeyRow {
        id: KeyId::parse(id).unwrap(),
        tenant: TenantId::default_tenant(),
        name: id.to_owned(),
        roles: vec![Role::Viewer],
        prefix: "svo_".to_owned(),
        digest: servo_canon::Digest::of(id.as_bytes()),
        sealed: None,
        created_at: begun,
        created_by: "test".to_owned(),
        expires_at: None,
        revoked_at,
        last_used_at: None,
    };
    let keys = [key("key_ended", Some(begun)), key("key_live", None)];
    let young = entry(begun.plus(DAY * 5));
    let entries = vec![entry(begun), young.clone()];
    let writing = store.clone();
    world.block_on(async move {
        writing.put_audit(entries.into_iter().map(Arc::new).collect()).await.unwrap();
        for key in keys {
            writing.put_key(key).await.unwrap();
        }
    });
    published(&world);
    days_later(&world, &node, 11);
    removed(&world, &node);
    let (entries, keys) = world.block_on(async move {
        let query = AuditQuery { limit: 10, ..AuditQuery::default() };
        let entries = store.read_audit(&Scope::System, &query).await.unwrap();
        (entries, store.list_keys(&Scope::System, None, 10).await.unwrap())
    });
    assert_eq!(entries, [young]);
    assert_eq!(keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>(), ["key_live"]);
}

#[test]
fn without_an_age_everything_stays() {
    let world = World::with(2, |cluster| cluster.config.retention.finished_runs_days = None);
    let node = world.leader();
    finished(&world, &node);
    published(&world);
    days_later(&world, &node, 1_000);
    assert_eq!(removed(&world, &node), 0);
    assert_eq!(world.rows().len(), 1);
}

/// The log is the outbox: what the bus has not got stays, however old. (ES-081)
#[test]
fn what_was_not_published_stays() {
    let bus = Arc::new(RecordingBus::new(3, 1_000, 0));
    let world = World::with(3, |cluster| cluster.bus = bus.clone());
    let node = world.leader();
    finished(&world, &node);
    days_later(&world, &node, 40);
    let events = world.log().len();
    assert_eq!(removed(&world, &node), 0);
    assert_eq!(world.log().len(), events, "facts of the system stream were trimmed unpublished");
    bus.heal();
    let node = world.leader();
    published(&world);
    world.cluster.kill(&node);
    assert_eq!(removed(&world, &node), 1);
    assert!(world.log().len() < events);
}

/// An event that the bus refused and that is still tried keeps its run.
#[test]
fn what_is_still_tried_stays() {
    let bus = Arc::new(RecordingBus::new(4, 0, 1_000));
    let world = World::with(4, |cluster| {
        cluster.bus = bus.clone();
        cluster.config.outbox.attempts_max = 1_000_000;
    });
    let node = world.leader();
    finished(&world, &node);
    published(&world);
    days_later(&world, &node, 40);
    assert_eq!(removed(&world, &node), 0);
    bus.heal();
    let node = world.leader();
    let memory = world.cluster.memory.clone();
    world.wait_until("the bus has taken everything", || {
        let memory = memory.clone();
        world.block_on(async move { memory.outbox_len().await }).unwrap() == 0
    });
    published(&world);
    world.cluster.kill(&node);
    assert_eq!(removed(&world, &node), 1);
}

#[test]
fn the_system_stream_is_trimmed() {
    let world = World::new(5);
    let node = world.leader();
    world.pass(Duration::from_secs(60));
    world.wait_until("the facts are published", || {
        world.log().last().is_none_or(|event| world.cursor("relay") >= event.position)
    });
    let facts = world.stored(&RunId::system()).len();
    assert!(facts > 10);
    days_later(&world, &node, 2);
    removed(&world, &node);
    assert_eq!(world.stored(&RunId::system()).len(), 0);
    // The stream goes on behind its old end.
    let _next = world.leader();
    assert!(world.stored(&RunId::system())[0].run_seq > facts as u64);
}

/// The loop does it by itself, under the authority.
#[test]
fn the_loop_sweeps() {
    let world = World::with(6, |cluster| {
        cluster.config.retention.finished_runs_days = Some(0);
        cluster.config.retention.every_ms = 5_000;
    });
    let node = world.leader();
    finished(&world, &node);
    world.wait_until("the run is gone", || world.rows().is_empty());
}
