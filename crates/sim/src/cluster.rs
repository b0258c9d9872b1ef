//! Nodes over one shared store: started, killed, paused, with clocks that are off.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use servo_adapter::mock::Mock;
use servo_adapter::{Adapter, Handlers};
use servo_model::Timestamp;
use servo_runtime::{Bus, Clock, Ids, InProcessBus, Parts, Runtime, RuntimeConfig, Types};
use servo_store::Store;
use servo_store::mem::MemStore;

use crate::clock::SimClock;
use crate::exec::{NodeId, Sim};
use crate::faults::{FaultPlan, NoFaults};
use crate::journal::Journal;
use crate::store::{Sabotage, Server, SimStore};

/// The store's own tasks. No node has this number.
const SERVER: NodeId = NodeId(u32::MAX - 1);

/// Everything that nodes share. The fields are set before the first node is started.
pub struct Cluster {
    pub sim: Sim,
    /// The store without delays and faults, for whoever looks from outside.
    pub memory: MemStore,
    pub config: RuntimeConfig,
    pub bus: Arc<dyn Bus>,
    pub adapters: Vec<Arc<dyn Adapter>>,
    pub handlers: Arc<dyn Handlers>,
    /// What definitions may refer to.
    pub types: Types,
    pub faults: Arc<dyn FaultPlan>,
    pub journal: Journal,
    pub sabotage: Sabotage,
    seed: u64,
    started: Cell<u32>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// One process.
#[derive(Debug, Clone)]
pub struct Node {
    pub id: NodeId,
    pub runtime: Runtime,
    pub store: Arc<SimStore>,
    pub clock: SimClock,
}

impl Cluster {
    pub fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let config = RuntimeConfig::default();
        let memory = MemStore::new(sim.clock().time_source(), config.limits.clone(), [7; 32]).shared();
        Self {
            sim,
            memory,
            config,
            bus: Arc::new(InProcessBus::default()),
            adapters: vec![Arc::new(Mock)],
            handlers: Arc::new(servo_adapter::handler::NoHandlers),
            types: Types::published(),
            faults: Arc::new(NoFaults),
            journal: Journal::default(),
            sabotage: Sabotage::None,
            seed,
            started: Cell::new(0),
        }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The store as it is, for looking.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.memory.clone())
    }

    pub fn now(&self) -> Timestamp {
        self.sim.clock().now()
    }

    /// A connection of its own, for something that is no runtime.
    pub fn connect(&self, node: NodeId) -> SimStore {
        let server = Server {
            inner: self.memory.clone(),
            clock: self.sim.clock().clone(),
            tasks: self.sim.tasks(SERVER),
            plan: self.faults.clone(),
            journal: self.journal.clone(),
            sabotage: self.sabotage,
        };
        SimStore::connect(&server, node)
    }

    /// Starts a node.
    pub fn node(&self) -> Node {
        self.node_with(0)
    }

    /// Starts a node whose clock is off. A start that the store does not answer is tried again, as a supervisor would.
    pub fn node_with(&self, skew_ms: i64) -> Node {
        let number = self.started.get();
        self.started.set(number + 1);
        let id = NodeId(number);
        let clock = self.sim.clock().skewed(skew_ms);
        loop {
            let store = Arc::new(self.connect(id));
            let parts = Parts {
                store: store.clone(),
                clock: Arc::new(clock.clone()),
                ids: Arc::new(Ids::seeded(self.seed.wrapping_mul(1_000).wrapping_add(u64::from(number)))),
                tasks: self.sim.tasks(id),
                bus: self.bus.clone(),
                adapters: self.adapters.clone(),
                handlers: self.handlers.clone(),
                spans: None,
                types: self.types.clone(),
                config: self.config.clone(),
            };
            match self.sim.block_on(Runtime::start(parts)) {
                Ok(runtime) => return Node { id, runtime, store, clock },
                Err(_) => self.sim.run_for(Duration::from_millis(100)),
            }
        }
    }

    /// The node is gone, as by kill -9. What it had asked of the store is still done.
    pub fn kill(&self, node: &Node) {
        self.sim.kill(node.id);
    }
}
