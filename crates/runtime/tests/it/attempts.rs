//! Attempts that are superseded, cancelled or spoiled: a step is executed at least once, and its result recorded once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use servo_adapter::{Adapter, AttemptContext, AttemptRequest};
use servo_machine::{Command, Refusal, SignalKind, StepResult};
use servo_model::artifact::{OutputStatus, StepOutput};
use servo_model::{ArtifactRef, RunId, RunStatus, StepId, StepStatus};
use servo_runtime::Error;
use servo_runtime::engine::Order;
use servo_sim::Node;
use servo_store::Scope;
use servo_store::runs::RunQuery;

use crate::world::{World, plan};

/// A report that comes from somewhere, for a hand-over that may be long gone.
fn report(world: &World, node: &Node, run_id: &RunId, attempt: u32, engine_attempt: u32) -> Result<(), Error> {
    let step_id = StepId::parse("a").unwrap();
    let result = StepResult::Success { artifacts: Vec::new() };
    let finish = Command::FinishStep { step_id, attempt, engine_attempt, result };
    world.execute(node, Order::new(Scope::System, run_id.clone(), finish, "a-zombie")).map(|_| ())
}

/// R15
#[test]
fn a_late_report_of_a_lost_hand_over_is_refused() {
    let world = World::new(1);
    let first = world.leader();
    let run_id = world.run(&first, json!([{"stepId": "a", "with": {"sleepMs": 20_000}}]));
    world.wait_in_flight(&first, &run_id);
    world.cluster.kill(&first);
    let second = world.leader();
    world.wait(&second, &run_id, |snapshot| snapshot.steps[0].engine_attempt_id == Some(2));
    // From the node that lost it, from the one that has it; too early, too late, or another attempt's.
    for node in [&first, &second] {
        for (attempt, engine_attempt) in [(1, 1), (1, 3), (1, 0), (2, 1), (0, 1)] {
            let error = report(&world, node, &run_id, attempt, engine_attempt).unwrap_err();
            assert!(matches!(error, Error::Refused(Refusal::Superseded { .. })), "{attempt}/{engine_attempt}: {error}");
        }
    }
    world.wait_status(&second, &run_id, RunStatus::Completed);
    for (attempt, engine_attempt) in [(1, 1), (1, 2)] {
        let error = report(&world, &first, &run_id, attempt, engine_attempt).unwrap_err();
        assert!(matches!(error, Error::Refused(Refusal::Closed(_))), "{error}");
    }
    assert_eq!(world.count(&run_id, "StepCompleted"), 1);
}

/// R15
#[test]
fn a_report_after_the_cancel_is_refused() {
    let world = World::new(2);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 20_000}}]));
    world.wait_in_flight(&node, &run_id);
    world.signal(&node, &run_id, "c", SignalKind::Cancel).unwrap();
    let error = report(&world, &node, &run_id, 1, 1).unwrap_err();
    assert_eq!(error.code().code, "RUN_CLOSED");
    assert_eq!(world.types(&run_id).last().unwrap(), "RunCancelled");
}

/// An adapter that never ends by itself, and counts how often it was dropped.
#[derive(Default, Clone)]
struct Endless {
    running: Arc<AtomicUsize>,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Adapter for Endless {
    fn engine_type(&self) -> &str {
        "mock"
    }

    async fn run(&self, _request: AttemptRequest, context: &AttemptContext) -> StepOutput {
        self.running.fetch_add(1, Ordering::Relaxed);
        let _running = Running(self.running.clone());
        loop {
            context.sleep(Duration::from_secs(1)).await;
            context.heartbeat();
        }
    }
}

/// ES-104: a cancel reaches running code, also when another node took it.
#[test]
fn a_cancel_stops_code_that_runs_on_another_node() {
    let adapter = Endless::default();
    let world = World::with(3, |cluster| cluster.adapters = vec![Arc::new(adapter.clone())]);
    let leader = world.leader();
    let follower = world.node();
    let run_id = world.run(&follower, json!([{"stepId": "a"}]));
    world.wait_in_flight(&leader, &run_id);
    assert_eq!(adapter.running.load(Ordering::Relaxed), 1);
    world.signal(&follower, &run_id, "c", SignalKind::Cancel).unwrap();
    world.pass(Duration::from_secs(3));
    assert_eq!(adapter.running.load(Ordering::Relaxed), 0);
}

/// An adapter with a result that does not fit into an event.
struct Boastful;

#[async_trait]
impl Adapter for Boastful {
    fn engine_type(&self) -> &str {
        "mock"
    }

    async fn run(&self, _request: AttemptRequest, _context: &AttemptContext) -> StepOutput {
        let artifact = ArtifactRef {
            uri: format!("s3://bucket/{}", "x".repeat(1_500)),
            kind: "table".to_owned(),
            sha256: None,
            size_bytes: None,
            expires_at: None,
        };
        StepOutput { status: OutputStatus::Success, artifact_refs: vec![artifact; 900], error: None }
    }
}

/// A result that is too large to be recorded fails its step, and does not leave it in flight for ever.
#[test]
fn a_result_over_the_limit_fails_the_step() {
    let mut cluster = servo_sim::Cluster::new(4);
    cluster.config.limits.payload_bytes_max = 100_000;
    let limits = cluster.config.limits.clone();
    cluster.memory = servo_store::mem::MemStore::new(cluster.sim.clock().time_source(), limits, [7; 32]).shared();
    cluster.adapters = vec![Arc::new(Boastful)];
    let world = World::of(cluster);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "retry": {"maxAttempts": 5}}]));
    let snapshot = world.wait_status(&node, &run_id, RunStatus::Failed);
    assert_eq!((snapshot.steps.len(), snapshot.steps[0].status), (1, StepStatus::Failed));
    assert_eq!(snapshot.root_cause.unwrap().code, "LIMIT_EXCEEDED");
}

/// An adapter that panics.
struct Panicky;

#[async_trait]
impl Adapter for Panicky {
    fn engine_type(&self) -> &str {
        "mock"
    }

    async fn run(&self, _request: AttemptRequest, _context: &AttemptContext) -> StepOutput {
        panic!("on purpose");
    }
}

#[test]
fn a_panic_of_an_adapter_fails_its_step_and_nothing_else() {
    let world = World::with(5, |cluster| cluster.adapters = vec![Arc::new(Panicky)]);
    let node = world.leader();
    let run_id = world.run(&node, json!([{"stepId": "a", "retry": {"maxAttempts": 2}}]));
    let snapshot = world.wait_status(&node, &run_id, RunStatus::Failed);
    assert_eq!((snapshot.steps.len(), snapshot.root_cause.unwrap().code.as_str()), (2, "ADAPTER_PANICKED"));
    assert!(world.leads(&node));
}

#[test]
fn a_plan_whose_engine_no_node_has_is_refused_and_nothing_is_recorded() {
    let world = World::with(6, |cluster| cluster.adapters.clear());
    let node = world.leader();
    let refused = world.start(&node, plan(json!([{"stepId": "a"}]))).unwrap_err();
    assert!(matches!(&refused, Error::EngineUnknown { engine, installed } if engine == "mock" && installed.is_empty()));
    assert_eq!(refused.code().code, "ENGINE_UNKNOWN");
    let store = world.store();
    let runs = world.block_on(async move { store.list_runs(&Scope::System, &RunQuery::default()).await });
    assert!(runs.unwrap().is_empty());
}

#[test]
fn a_step_whose_engine_went_away_fails_with_its_name() {
    let mut world = World::new(6);
    let first = world.leader();
    let run_id = world.run(&first, json!([{"stepId": "a", "with": {"sleepMs": 20_000}, "retry": {"maxAttempts": 3}}]));
    world.wait_in_flight(&first, &run_id);
    world.cluster.kill(&first);
    world.cluster.adapters.clear();
    let second = world.leader();
    let snapshot = world.wait_status(&second, &run_id, RunStatus::Failed);
    let cause = snapshot.root_cause.unwrap();
    assert_eq!((cause.code.as_str(), snapshot.steps.len()), ("ADAPTER_NOT_FOUND", 1));
    assert!(cause.message.contains("`mock`"), "{}", cause.message);
}

#[test]
fn a_step_over_its_time_fails_and_is_tried_again() {
    let world = World::new(7);
    let node = world.leader();
    let step = json!({"stepId": "a", "with": {"sleepMs": 60_000}, "timeoutMs": 2_000, "retry": {"maxAttempts": 2}});
    let run_id = world.run(&node, json!([step]));
    let snapshot = world.wait_status(&node, &run_id, RunStatus::Failed);
    assert_eq!((snapshot.steps.len(), snapshot.root_cause.unwrap().code.as_str()), (2, "STEP_TIMEOUT"));
    let took = Duration::from_millis(snapshot.total_duration_ms.unwrap());
    assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(5), "{took:?}");
}
