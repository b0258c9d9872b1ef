//! The projector: snapshots of long runs, lag, gaps, inversions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use servo_canon::Digest;
use servo_model::alert::{AlertCode, Severity};
use servo_model::event::{EventBody, StepStarted, idempotency_key};
use servo_model::operation::OperationAction;
use servo_model::{EventId, RunId, RunSnapshot, RunState, RunStatus, StepId, StepStatus, TenantId};
use servo_runtime::loops::projector::Projector;
use servo_runtime::transfer::{Import, ImportedId, RunFile};
use servo_sim::Node;
use servo_sim::faults::{RandomFaults, Scripted};
use servo_store::log::StoredSnapshot;
use servo_store::{Append, Expected, LogStore, NewEvent, Scope, StreamAppend};

use crate::executions::handler;
use crate::world::World;

fn projected(world: &World) {
    world.wait_until("the projector has seen everything", || world.has_followed("projector"));
}

/// Puts an event into a run's log past the engine, as a writer with a bug would.
pub(crate) fn smuggle(world: &World, run_id: &RunId, event_type: &str, payload: String) {
    let (memory, run_id) = (world.cluster.memory.clone(), run_id.clone());
    let number = u128::from(world.cluster.sim.draw(u64::MAX));
    let event_id = EventId::from_u128(number);
    let event = NewEvent {
        event_id,
        event_type: event_type.to_owned().into(),
        idempotency_key: idempotency_key(&run_id, &event_id.to_string(), 1, event_type, "smuggled"),
        emitted_by: "somebody".into(),
        occurred_at: None,
        payload,
    };
    let tenant = world.rows().into_iter().find(|row| row.run_id == run_id).unwrap().tenant;
    let mut stream = StreamAppend::new(run_id, tenant, Expected::Any);
    stream.events.push(event);
    world.block_on(async move { memory.append(Append::one(stream)).await }).unwrap();
}

/// ES-009
#[test]
fn an_inversion_is_reported_and_the_projection_goes_on() {
    let world = World::new(1);
    let node = world.leader();
    let run_id =
        world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 5_000}}, {"stepId": "b", "dependsOn": ["a"]}]));
    world.wait_in_flight(&node, &run_id);
    let body = EventBody::StepStarted(StepStarted {
        step_id: StepId::parse("b").unwrap(),
        status: StepStatus::Running,
        logical_attempt_id: 1,
        engine_attempt_id: Some(1),
    });
    smuggle(&world, &run_id, "StepStarted", body.encode());
    world.wait_until("the alert is raised", || world.alert(AlertCode::ProjectorCausalViolation).is_some());
    let alert = world.alert(AlertCode::ProjectorCausalViolation).unwrap();
    assert_eq!((alert.severity, alert.run_id.as_ref()), (Severity::P3, Some(&run_id)));
    assert_eq!(alert.message, "step `b` moved before `a`, which it depends on");
    // It is what the log says, in its order; and the log goes on.
    let snapshot = world.snapshot(&node, &run_id);
    assert_eq!(snapshot.steps.iter().filter(|step| step.status == StepStatus::Running).count(), 2);
    let other = world.run(&node, json!([{"stepId": "a"}]));
    world.wait_status(&node, &other, RunStatus::Completed);
    projected(&world);
}

/// A finished run as a file, with every sequence after the third moved up by ten.
fn with_a_gap(world: &World, node: &Node, run_id: &RunId, name: &str) -> RunFile {
    let (engine, id) = (node.runtime.engine().clone(), run_id.clone());
    let mut file = world.block_on(async move { engine.export(&Scope::System, &id).await }).unwrap();
    let new_id = RunId::parse(name).unwrap();
    let documents: Vec<String> = file
        .events
        .iter()
        .map(|document| {
            let mut event: Value = serde_json::from_str(document.get()).unwrap();
            let seq = event["runSeq"].as_u64().unwrap();
            event["runSeq"] = json!(if seq > 3 { seq + 10 } else { seq });
            event["runId"] = json!(name);
            event.to_string()
        })
        .collect();
    let lines: Vec<&str> = documents.iter().map(String::as_str).collect();
    file.sha256 = Digest::of_parts(&lines, '\n');
    file.events = documents.into_iter().map(|text| RawValue::from_string(text).unwrap()).collect();
    file.run_id = new_id;
    file.request_key = None;
    file
}

fn import(world: &World, node: &Node, file: RunFile) -> RunId {
    let engine = node.runtime.engine().clone();
    let tenant = TenantId::default_tenant();
    let import = async move { engine.import(Import { tenant: &tenant, by: "me", id: ImportedId::Kept }, file).await };
    world.block_on(import).unwrap()
}

/// ES-046, ES-049
#[test]
fn a_gap_is_reported_read_again_and_no_corruption() {
    let world = World::new(2);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a"}, {"stepId": "b", "dependsOn": ["a"]}]));
    world.wait_status(&node, &run_id, RunStatus::Completed);
    projected(&world);
    assert!(world.alert(AlertCode::ProjectorNonContiguous).is_none());
    let gapped = import(&world, &node, with_a_gap(&world, &node, &run_id, "gapped"));
    projected(&world);
    world.wait_until("the alert is raised", || world.alert(AlertCode::ProjectorNonContiguous).is_some());
    let alert = world.alert(AlertCode::ProjectorNonContiguous).unwrap();
    assert_eq!((alert.severity, alert.run_id.as_ref()), (Severity::P2, Some(&gapped)));
    assert_eq!(alert.message, "runSeq 14 follows 3; the run was read again");
    let (original, copy) = (world.snapshot(&node, &run_id), world.snapshot(&node, &gapped));
    // Ten that are missing, and the one that says that it was imported.
    assert_eq!(copy.last_event_seq, original.last_event_seq + 11);
    let (imported_by, imported_at) = (copy.imported_by.clone(), copy.imported_at);
    let same =
        RunSnapshot { run_id: gapped, last_event_seq: copy.last_event_seq, imported_by, imported_at, ..original };
    assert_eq!(copy, same);
    world.verify();
}

/// ES-046: a projector that begins in the middle of a run reads it again, and calls that no gap.
#[test]
fn coming_back_to_a_run_is_no_gap() {
    let world = World::new(3);
    let node = world.leader();
    let run_id =
        world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 20_000}}, {"stepId": "b", "dependsOn": ["a"]}]));
    world.wait_in_flight(&node, &run_id);
    projected(&world);
    world.cluster.kill(&node);
    let next = world.leader();
    world.wait_status(&next, &run_id, RunStatus::Completed);
    projected(&world);
    assert!(world.alert(AlertCode::ProjectorNonContiguous).is_none());
}

/// A run of more than five hundred events, and one open step.
fn long_run(world: &World, node: &Node) -> RunId {
    let mut steps: Vec<Value> = (0..260).map(|n| json!({"stepId": format!("s{n}")})).collect();
    steps.push(json!({"stepId": "open", "with": {"sleepMs": 900_000}}));
    let run_id = world.run(node, json!(steps));
    world.wait(node, &run_id, |snapshot| {
        snapshot.steps.iter().filter(|step| step.status == StepStatus::Success).count() == 260
    });
    projected(world);
    run_id
}

fn stored_snapshot(world: &World, run_id: &RunId) -> Option<StoredSnapshot> {
    let (memory, run_id) = (world.cluster.memory.clone(), run_id.clone());
    world.block_on(async move { memory.snapshot_at(&Scope::System, &run_id, u64::MAX).await }).unwrap()
}

/// ES-047: a long run has a stored snapshot, and loading it begins there.
#[test]
fn a_long_run_is_loaded_from_its_snapshot() {
    let world = World::new(4);
    let node = world.leader();
    let run_id = long_run(&world, &node);
    let stored = stored_snapshot(&world, &run_id).unwrap();
    assert_eq!(stored.run_seq, 500);
    // It is the fold of the first five hundred events.
    let events = world.events(&run_id);
    let folded = RunState::new(run_id.clone()).fold(&events[..500]);
    assert_eq!(serde_json::from_str::<RunState>(&stored.state).unwrap(), folded);
    // A mark in the stored state shows that a node which knows nothing begins with it.
    let mut marked = folded;
    marked.reason = Some("from the snapshot".to_owned());
    let snapshot = StoredSnapshot { run_seq: 500, state: serde_json::to_string(&marked).unwrap() };
    let (memory, id) = (world.cluster.memory.clone(), run_id.clone());
    world.block_on(async move { memory.put_snapshot(&id, &TenantId::default_tenant(), snapshot).await }).unwrap();
    let other = world.node();
    assert_eq!(world.snapshot(&other, &run_id).message.as_deref(), Some("from the snapshot"));
    // One that cannot be read is only a lost short cut.
    let snapshot = StoredSnapshot { run_seq: 500, state: "{}".to_owned() };
    let (memory, id) = (world.cluster.memory.clone(), run_id.clone());
    world.block_on(async move { memory.put_snapshot(&id, &TenantId::default_tenant(), snapshot).await }).unwrap();
    let third = world.node();
    assert_eq!(world.snapshot(&third, &run_id), world.snapshot(&node, &run_id));
}

/// ES-047: the snapshots of a run whose state grows with every event are together not much larger than its log.
#[test]
fn snapshots_grow_as_the_log_does() {
    let (world, functions) = handler::Scripted::world(11);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "grows", |invocation| async move {
        for batch in 0..30 {
            let steps = (0..100).flat_map(|number| {
                let id = format!("s{batch}-{number}");
                let mut end = handler::step(&id, OperationAction::Succeed);
                end.payload = Some(json!("x".repeat(1_000)).to_string());
                [handler::step(&id, OperationAction::Start), end]
            });
            invocation.checkpoint(steps.collect()).await.unwrap();
        }
        handler::succeeded("{}")
    });
    let run_id = handler::start(&world, &node, "grows", None, "{}").unwrap().run_id;
    handler::wait(&world, &node, &run_id);
    projected(&world);
    let (memory, id) = (world.cluster.memory.clone(), run_id.clone());
    let (stored, bytes) = world.block_on(async move {
        let (mut stored, mut bytes, mut seq_max) = (Vec::new(), 0, u64::MAX);
        while let Some(snapshot) = memory.snapshot_at(&Scope::System, &id, seq_max).await.unwrap() {
            seq_max = snapshot.run_seq - 1;
            stored.push(snapshot.run_seq);
            bytes += snapshot.state.len();
        }
        (stored, bytes)
    });
    assert_eq!(stored.last(), Some(&500), "{stored:?}");
    assert!(stored.len() > 1, "{stored:?}");
    let log: usize = world.events(&run_id).iter().map(|event| event.body.encode().len()).sum();
    assert!(bytes < log * 3 / 2, "{bytes} bytes of snapshots at {stored:?}, {log} of log");
}

/// ES-048: killed anywhere, it reaches the same place, the same snapshots and the same findings.
#[test]
fn a_projector_killed_anywhere_reaches_the_same() {
    let finish = |kills: u64| {
        // Slow only while the projector works, so that a kill can fall between any two of its calls.
        let faults = Arc::new(Scripted::default());
        let world = World::with(5, |cluster| cluster.faults = faults.clone());
        let node = world.leader();
        let run_id = long_run(&world, &node);
        let small = world.run(&node, json!([{"stepId": "a"}]));
        world.wait_status(&node, &small, RunStatus::Completed);
        let gapped = import(&world, &node, with_a_gap(&world, &node, &small, "gapped"));
        world.cluster.kill(&node);
        // From the beginning, by hand: the loop's projector is gone.
        let (memory, engine) = (world.cluster.memory.clone(), node.runtime.engine().clone());
        world.block_on(async move {
            use servo_store::RelayStore;
            let row = memory.cursor("projector").await.unwrap().unwrap();
            let start = servo_store::relay::CursorRow::at("projector", servo_store::Position::START);
            memory.move_cursor(Some(row.position), start, None).await.unwrap();
        });
        for call in ["read_log", "read_run", "snapshot_at", "put_snapshot", "move_cursor", "raise_alert"] {
            faults.slow(call, 3);
        }
        for kill in 0..kills {
            let (engine, id) = (engine.clone(), servo_sim::NodeId(100));
            world.cluster.sim.tasks(id).spawn("projector", async move {
                let _ = Projector::new(engine).catch_up(None).await;
            });
            world.pass_ms(kill * 7 % 97);
            world.cluster.sim.kill(id);
        }
        world.block_on(async move { Projector::new(engine).catch_up(None).await }).unwrap();
        let mut alerts: Vec<_> = world.alerts().into_iter().map(|alert| (alert.code, alert.run_id)).collect();
        alerts.sort();
        assert!(alerts.contains(&(AlertCode::ProjectorNonContiguous, Some(gapped))));
        (stored_snapshot(&world, &run_id), world.cursor("projector"), alerts)
    };
    let undisturbed = finish(0);
    assert_eq!(undisturbed.0.as_ref().unwrap().run_seq, 500);
    assert_eq!(finish(60), undisturbed);
}

/// ES-049
#[test]
fn lag_is_reported_and_withdrawn() {
    let slow = Arc::new(Scripted::default());
    let world = World::with(6, |cluster| cluster.faults = slow.clone());
    let node = world.leader();
    slow.slow("read_log", 8_000);
    for _ in 0..5 {
        world.run(&node, json!([{"stepId": "a"}]));
        world.pass_ms(500);
    }
    world.wait_until("the alert is raised", || world.alert(AlertCode::ProjectorLagHigh).is_some());
    let alert = world.alert(AlertCode::ProjectorLagHigh).unwrap();
    assert_eq!((alert.severity, alert.subject.as_str()), (Severity::P2, "projector"));
    assert!(alert.message.starts_with("the projection is "), "{}", alert.message);
    slow.heal();
    world.wait_until("the alert is withdrawn", || world.alert(AlertCode::ProjectorLagHigh).is_none());
}

/// ES-049: also if the process that raised it is gone.
#[test]
fn an_old_lag_alert_is_withdrawn() {
    let slow = Arc::new(Scripted::default());
    let world = World::with(7, |cluster| cluster.faults = slow.clone());
    let node = world.leader();
    slow.slow("read_log", 8_000);
    world.wait_until("the alert is raised", || world.alert(AlertCode::ProjectorLagHigh).is_some());
    world.cluster.kill(&node);
    slow.heal();
    let _next = world.leader();
    world.wait_until("the alert is withdrawn", || world.alert(AlertCode::ProjectorLagHigh).is_none());
}

/// ES-049: a projection that keeps up raises nothing, whatever the node's own clock says.
#[test]
fn a_wrong_clock_is_no_lag() {
    let faults = Arc::new(RandomFaults::new(8, 5, 0));
    let world = World::with(8, |cluster| cluster.faults = faults.clone());
    let node = world.cluster.node_with(3_600_000);
    let run_id = world.run(&node, json!([{"stepId": "a"}]));
    world.wait_status(&node, &run_id, RunStatus::Completed);
    world.pass(Duration::from_secs(20));
    node.clock.set_skew(7_200_000);
    world.pass(Duration::from_secs(20));
    assert!(world.alert(AlertCode::ProjectorLagHigh).is_none());
}
