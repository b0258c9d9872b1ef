//! One or more nodes over one store, for tests.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use serde_json::value::RawValue;
use servo_adapter::mock::Mock;
use servo_canon::fingerprint;
use servo_machine::{Command, Signal, SignalKind};
use servo_model::plan::RunContext;
use servo_model::{PlanId, PlanRef, RunId, RunSnapshot, RunStatus, SignalId, TenantId, ids::Name};
use servo_runtime::engine::{Order, Outcome, StartRequest, Started};
use servo_runtime::{Bus, Clock, Error, Ids, InProcessBus, Parts, Runtime, RuntimeConfig};
use servo_sim::{NodeId, Sim};
use servo_store::mem::MemStore;
use servo_store::{Scope, Store};

pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: RuntimeConfig,
    pub(crate) bus: Arc<dyn Bus>,
    seed: u64,
    nodes: std::cell::Cell<u32>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let time = sim.clock().time_source();
        let config = RuntimeConfig::default();
        let store: Arc<dyn Store> = Arc::new(MemStore::new(time, config.limits.clone(), [7; 32]));
        let bus = Arc::new(InProcessBus::default());
        Self { sim, store, config, bus, seed, nodes: std::cell::Cell::new(0) }
    }

    /// Starts another node.
    pub(crate) fn node(&self) -> (NodeId, Runtime) {
        let number = self.nodes.get();
        self.nodes.set(number + 1);
        let id = NodeId(number);
        let parts = Parts {
            store: self.store.clone(),
            clock: Arc::new(self.sim.clock().clone()),
            ids: Arc::new(Ids::seeded(self.seed * 1_000 + u64::from(number))),
            tasks: self.sim.tasks(id),
            bus: self.bus.clone(),
            adapters: vec![Arc::new(Mock)],
            config: self.config.clone(),
        };
        let runtime = self.sim.block_on(Runtime::start(parts)).unwrap();
        (id, runtime)
    }

    pub(crate) fn start(&self, runtime: &Runtime, request: StartRequest) -> Result<Started, Error> {
        let engine = runtime.engine().clone();
        self.sim.block_on(async move { engine.start(request).await })
    }

    pub(crate) fn signal(&self, runtime: &Runtime, run_id: &RunId, id: &str, kind: SignalKind) -> Result<Outcome, Error> {
        let signal_id = SignalId::parse(id).unwrap();
        let signal = Signal { signal_id, kind, by: "tester".to_owned(), reason: None, denied: None };
        let order = Order::new(Scope::System, run_id.clone(), Command::Signal(signal), "api");
        let engine = runtime.engine().clone();
        self.sim.block_on(async move { engine.execute(order).await })
    }

    pub(crate) fn snapshot(&self, runtime: &Runtime, run_id: &RunId) -> RunSnapshot {
        let (engine, run_id) = (runtime.engine().clone(), run_id.clone());
        self.sim.block_on(async move { engine.snapshot(&Scope::System, &run_id).await }).unwrap()
    }

    /// Lets time pass until the run is in a state, or fails after ten virtual minutes.
    pub(crate) fn wait(&self, runtime: &Runtime, run_id: &RunId, wanted: impl Fn(&RunSnapshot) -> bool) -> RunSnapshot {
        let deadline = self.sim.clock().now().plus(Duration::from_secs(600));
        loop {
            let snapshot = self.snapshot(runtime, run_id);
            if wanted(&snapshot) {
                return snapshot;
            }
            assert!(self.sim.clock().now() < deadline, "not reached: {snapshot:#?}");
            self.sim.run_for(Duration::from_millis(10));
        }
    }

    pub(crate) fn wait_status(&self, runtime: &Runtime, run_id: &RunId, status: RunStatus) -> RunSnapshot {
        self.wait(runtime, run_id, |snapshot| snapshot.status == status)
    }

    /// The types of a run's events, in order.
    pub(crate) fn types(&self, run_id: &RunId) -> Vec<String> {
        let (store, run_id) = (self.store.clone(), run_id.clone());
        let page = self.sim.block_on(async move { store.read_run(&Scope::System, &run_id, 0, 10_000).await }).unwrap();
        page.events.into_iter().map(|event| event.event_type).collect()
    }
}

pub(crate) fn plan(steps: Value) -> StartRequest {
    let document = json!({"planId": "plan", "planVersion": "1", "schemaVersion": "v1", "steps": steps});
    let plan_ref = PlanRef {
        uri: "inline:plan".to_owned(),
        sha256: fingerprint(&document).unwrap(),
        schema_version: "v1".to_owned(),
        plan_id: PlanId::parse("plan").unwrap(),
        plan_version: "1".to_owned(),
    };
    StartRequest {
        plan_ref,
        plan: RawValue::from_string(document.to_string()).unwrap(),
        context: RunContext {
            tenant_id: TenantId::default_tenant(),
            project_id: Name::parse("default").unwrap(),
            environment_id: Name::parse("default").unwrap(),
            triggered_by: Some("tester".to_owned()),
            trigger_source: None,
        },
        run_request_id: None,
        approval_required: false,
        not_before: None,
        subject: "tester".to_owned(),
    }
}
