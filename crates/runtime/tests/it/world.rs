//! One or more nodes over one store, for tests. Time is virtual: waiting costs nothing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use servo_canon::fingerprint;
use servo_machine::{Command, Signal, SignalKind};
use servo_model::alert::{Alert, AlertCode};
use servo_model::contract::{RuntimeCommand, RuntimeEvent, RuntimeSnapshot};
use servo_model::plan::RunContext;
use servo_model::{Event, PlanId, PlanRef, RunId, RunSnapshot, RunStatus, SignalId, TenantId, Timestamp, ids::Name};
use servo_runtime::contract::{Executed, view};
use servo_runtime::engine::{Order, Outcome, StartRequest, Started};
use servo_runtime::{Contract, Error, Ids};
use servo_sim::{Cluster, Node};
use servo_store::runs::RunQuery;
use servo_store::{Fence, LogStore, Position, RelayStore, RunRow, RunStore, Scope, Store, StoredEvent};

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    /// Of commands that come from outside.
    ids: Arc<Ids>,
}

/// Longest virtual time that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(600);

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(seed, |_| {})
    }

    /// A world with settings of its own.
    pub(crate) fn with(seed: u64, set: impl FnOnce(&mut Cluster)) -> Self {
        let mut cluster = Cluster::new(seed);
        set(&mut cluster);
        Self::of(cluster)
    }

    pub(crate) fn of(cluster: Cluster) -> Self {
        let ids = Arc::new(Ids::seeded(cluster.seed() ^ 0xc0ffee));
        Self { cluster, ids }
    }

    pub(crate) fn node(&self) -> Node {
        self.cluster.node()
    }

    /// A node that holds the authority.
    pub(crate) fn leader(&self) -> Node {
        let node = self.node();
        self.wait_until("the node leads", || self.leads(&node));
        node
    }

    pub(crate) fn leads(&self, node: &Node) -> bool {
        node.runtime.fence().is_some()
    }

    pub(crate) fn block_on<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        self.cluster.sim.block_on(future)
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.cluster.store()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.cluster.now()
    }

    pub(crate) fn pass(&self, duration: Duration) {
        self.cluster.sim.run_for(duration);
    }

    pub(crate) fn pass_ms(&self, millis: u64) {
        self.pass(Duration::from_millis(millis));
    }

    /// Lets time pass in small steps until something is so.
    pub(crate) fn wait_until(&self, what: &str, done: impl Fn() -> bool) {
        let deadline = self.now().plus(PATIENCE);
        while !done() {
            assert!(self.now() < deadline, "not reached: {what}");
            self.pass_ms(10);
        }
    }

    pub(crate) fn start(&self, node: &Node, request: StartRequest) -> Result<Started, Error> {
        let engine = node.runtime.engine().clone();
        self.block_on(async move { engine.start(request).await })
    }

    /// Starts a run of these steps.
    pub(crate) fn run(&self, node: &Node, steps: Value) -> RunId {
        self.start(node, plan(steps)).unwrap().run_id
    }

    pub(crate) fn execute(&self, node: &Node, order: Order) -> Result<Outcome<RunSnapshot>, Error> {
        let engine = node.runtime.engine().clone();
        self.block_on(async move { engine.execute_with(order, |state| RunSnapshot::from(state)).await })
    }

    pub(crate) fn signal(
        &self,
        node: &Node,
        run_id: &RunId,
        id: &str,
        kind: SignalKind,
    ) -> Result<Outcome<RunSnapshot>, Error> {
        self.execute(node, signal(Scope::System, run_id, id, kind))
    }

    pub(crate) fn snapshot(&self, node: &Node, run_id: &RunId) -> RunSnapshot {
        self.try_snapshot(node, run_id).unwrap()
    }

    pub(crate) fn try_snapshot(&self, node: &Node, run_id: &RunId) -> Result<RunSnapshot, Error> {
        let (engine, run_id) = (node.runtime.engine().clone(), run_id.clone());
        self.block_on(async move { engine.snapshot(&Scope::System, &run_id).await })
    }

    pub(crate) fn wait(&self, node: &Node, run_id: &RunId, wanted: impl Fn(&RunSnapshot) -> bool) -> RunSnapshot {
        let deadline = self.now().plus(PATIENCE);
        loop {
            let snapshot = self.snapshot(node, run_id);
            if wanted(&snapshot) {
                return snapshot;
            }
            assert!(self.now() < deadline, "not reached: {snapshot:#?}");
            self.pass_ms(10);
        }
    }

    pub(crate) fn wait_status(&self, node: &Node, run_id: &RunId, status: RunStatus) -> RunSnapshot {
        self.wait(node, run_id, |snapshot| snapshot.status == status)
    }

    /// Waits until the run's first step is in flight.
    pub(crate) fn wait_in_flight(&self, node: &Node, run_id: &RunId) {
        self.wait(node, run_id, |snapshot| snapshot.steps[0].started_at.is_some());
    }

    /// The run's events as the store has them.
    pub(crate) fn stored(&self, run_id: &RunId) -> Vec<StoredEvent> {
        let (memory, run_id) = (self.cluster.memory.clone(), run_id.clone());
        self.block_on(async move { memory.read_run(&Scope::System, &run_id, 0, 100_000).await }).unwrap().events
    }

    pub(crate) fn events(&self, run_id: &RunId) -> Vec<Event> {
        self.stored(run_id).iter().map(|event| event.decode().unwrap()).collect()
    }

    /// The types of a run's events, in order.
    pub(crate) fn types(&self, run_id: &RunId) -> Vec<String> {
        self.stored(run_id).into_iter().map(|event| event.event_type.into_owned()).collect()
    }

    pub(crate) fn count(&self, run_id: &RunId, event_type: &str) -> usize {
        self.types(run_id).iter().filter(|name| *name == event_type).count()
    }

    /// The whole log.
    pub(crate) fn log(&self) -> Vec<StoredEvent> {
        let memory = self.cluster.memory.clone();
        let page = self.block_on(async move { memory.read_log(Position::START, 1_000_000).await }).unwrap();
        page.events.into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// The log in the words of the runtime contract.
    pub(crate) fn contract_events(&self) -> Vec<RuntimeEvent> {
        self.log().iter().flat_map(view).collect()
    }

    pub(crate) fn alerts(&self) -> Vec<Alert> {
        let memory = self.cluster.memory.clone();
        self.block_on(async move { memory.alerts(&Scope::System, 1_000).await }).unwrap()
    }

    pub(crate) fn alert(&self, code: AlertCode) -> Option<Alert> {
        self.alerts().into_iter().find(|alert| alert.code == code)
    }

    /// The contract without a server, as the command line uses it.
    pub(crate) fn contract(&self) -> Contract {
        Contract::new(self.store(), self.ids.clone())
    }

    pub(crate) fn command(&self, json: &str, fence: Option<Fence>) -> Result<Executed, Error> {
        let (contract, command) = (self.contract(), RuntimeCommand::parse(json).unwrap());
        self.block_on(async move { contract.execute(command, fence).await })
    }

    pub(crate) fn runtime_snapshot(&self) -> RuntimeSnapshot {
        let contract = self.contract();
        self.block_on(async move { contract.snapshot(&[]).await }).unwrap()
    }

    pub(crate) fn rows(&self) -> Vec<RunRow> {
        let memory = self.cluster.memory.clone();
        let query = RunQuery { limit: 100_000, ..RunQuery::default() };
        self.block_on(async move { memory.list_runs(&Scope::System, &query).await }).unwrap()
    }

    pub(crate) fn cursor(&self, name: &'static str) -> Position {
        let memory = self.cluster.memory.clone();
        let row = self.block_on(async move { memory.cursor(name).await }).unwrap();
        row.map_or(Position::START, |row| row.position)
    }

    /// Whether a reader of the log has seen every event of every run.
    pub(crate) fn has_followed(&self, name: &'static str) -> bool {
        let place = self.cursor(name);
        self.log().iter().filter(|event| !event.run_id.is_system()).all(|event| event.position <= place)
    }

    /// Folds every run and compares it with its rows.
    pub(crate) fn verify(&self) {
        let store = self.store();
        let report = self.block_on(async move { servo_runtime::verify::verify(store.as_ref(), |_| {}).await }).unwrap();
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
    }
}

pub(crate) fn signal(scope: Scope, run_id: &RunId, id: &str, kind: SignalKind) -> Order {
    let signal_id = SignalId::parse(id).unwrap();
    let signal = Signal { signal_id, kind, by: "tester".to_owned(), reason: None, denied: None };
    Order::new(scope, run_id.clone(), Command::Signal(signal), "api")
}

pub(crate) fn plan(steps: Value) -> StartRequest {
    plan_named("plan", "default", steps)
}

pub(crate) fn plan_named(plan_id: &str, tenant: &str, steps: Value) -> StartRequest {
    let mut document = json!({"planId": plan_id, "planVersion": "1", "schemaVersion": "v1"});
    document["steps"] = steps;
    let plan_ref = PlanRef {
        uri: "inline:plan".to_owned(),
        sha256: fingerprint(&document).unwrap(),
        schema_version: "v1".to_owned(),
        plan_id: PlanId::parse(plan_id).unwrap(),
        plan_version: "1".to_owned(),
    };
    StartRequest {
        plan_ref,
        plan: RawValue::from_string(document.to_string()).unwrap(),
        context: RunContext {
            tenant_id: TenantId::parse(tenant).unwrap(),
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
