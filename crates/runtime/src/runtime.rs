//! The runtime: built from its parts, started, and stopped in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use servo_adapter::{Adapter, Handlers};
use servo_entrypoint::Types;
use servo_model::contract::{RuntimeEvent, RuntimeSnapshot};
use servo_store::{Fence, Store};
use tokio::sync::watch;

use crate::bus::Bus;
use crate::clock::Clock;
use crate::config::RuntimeConfig;
use crate::contract::Contract;
use crate::engine::{Engine, Error};
use crate::executions::Executions;
use crate::ids::Ids;
use crate::loops::authority::Authority;
use crate::loops::concurrency::Concurrency;
use crate::loops::{
    authority, clock, dispatcher, projector, queue, readers, relay, replay, retention, supervise, timers,
};
use crate::shutdown::Shutdown;
use crate::spans::SpanSink;
use crate::tasks::Tasks;

/// What closing the store has in any case, also where the grace period is short: it takes some syncs.
const CLOSE_MIN: Duration = Duration::from_secs(1);

/// Everything the runtime is given.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<Ids>,
    pub tasks: Tasks,
    pub bus: Arc<dyn Bus>,
    pub adapters: Vec<Arc<dyn Adapter>>,
    /// Reaches the handlers of functions.
    pub handlers: Arc<dyn Handlers>,
    /// Where the runtime's own spans go, if they are wanted.
    pub spans: Option<Arc<dyn SpanSink>>,
    /// The published types, and those that the operator's own limiters and adapters have.
    pub types: Types,
    pub config: RuntimeConfig,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A running engine. Clones are handles to the same one.
#[derive(Debug, Clone)]
pub struct Runtime {
    engine: Engine,
    executions: Executions,
    contract: Contract,
    authority: Authority,
    /// Ends the authority's loop, after everything that needs it.
    resign: Shutdown,
    loops: Tasks,
    attempts: Tasks,
}

impl Runtime {
    /// Builds the runtime and starts its loops. Nothing is folded or replayed here: what is open lies in rows that the
    /// loops find, so a start takes the same time with ten open runs and with a million.
    pub async fn start(parts: Parts) -> Result<Self, servo_store::Error> {
        let Parts { store, clock, ids, tasks, bus, adapters, handlers, spans, types, mut config } = parts;
        // A run must end before the store takes no more of its events.
        config.policy.events_per_run_max = config.policy.events_per_run_max.min(config.limits.events_per_run_max);
        let single = store.info().await?.single_process;
        if single {
            // The process that held these is gone, or it would hold the store.
            store.break_leases().await?;
            resign_previous(store.as_ref()).await?;
        }
        let shutdown = Shutdown::default();
        let owner = ids.node_name();
        let authority = Authority::new(&owner).trusting(config.is_sabotaged("no-fence"));
        let adapters: BTreeMap<String, Arc<dyn Adapter>> =
            adapters.into_iter().map(|adapter| (adapter.engine_type().to_owned(), adapter)).collect();
        let engine = Engine::new(store.clone(), clock, ids.clone(), Arc::new(config), shutdown, single)
            .with_spans(spans)
            .with_engines(adapters.keys().cloned().collect());
        let contract = Contract::new(store, ids).with_wake(engine.wake_handle());
        engine.store_now().await?;
        let executions = Executions::new(engine.clone(), engine.config().place.clone(), types).await?;
        let resign = Shutdown::default();
        let runtime =
            Self { engine, executions, contract, authority, resign, loops: tasks.group(), attempts: tasks.group() };
        runtime.spawn_loops(&owner, Arc::new(adapters), handlers, bus);
        Ok(runtime)
    }

    fn spawn_loops(&self, owner: &str, adapters: dispatcher::Adapters, handlers: Arc<dyn Handlers>, bus: Arc<dyn Bus>) {
        let (engine, authority, loops) = (&self.engine, &self.authority, &self.loops);
        loops.spawn("authority", authority::run(engine.clone(), authority.clone(), self.resign.clone()));
        let (executions, authority_too) = (self.executions.clone(), authority.clone());
        let workshop = dispatcher::Workshop {
            executions,
            authority: authority_too,
            adapters,
            handlers,
            concurrency: Concurrency::default(),
        };
        loops.spawn("dispatcher", dispatcher::run(workshop, self.attempts.clone()));
        loops.spawn("queue", queue::run(engine.clone(), owner.to_owned()));
        loops.spawn("timers", timers::run(engine.clone()));
        loops.spawn("projector", projector::run(engine.clone(), authority.clone()));
        loops.spawn("relay", relay::run(engine.clone(), authority.clone(), bus));
        loops.spawn("replay", replay::run(engine.clone(), authority.clone()));
        loops.spawn("retention", retention::run(engine.clone(), authority.clone()));
        loops.spawn("readers", readers::run(engine.clone(), authority.clone()));
        loops.spawn("clock", clock::run(engine.clone()));
        loops.spawn("supervisor", supervise::run(engine.clone(), authority.clone()));
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn executions(&self) -> &Executions {
        &self.executions
    }

    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// The fence of this node's authority, while it has one.
    pub fn fence(&self) -> Option<Fence> {
        self.authority.fence(self.engine.clock().elapsed())
    }

    pub fn owner(&self) -> &str {
        self.authority.owner()
    }

    /// Records a fact that belongs to no run, such as that a worker is silent. Losing one to a store that is down is no harm.
    pub async fn note(&self, event: RuntimeEvent) {
        supervise::note(&self.engine, event).await;
    }

    /// Another process appended something: look now instead of at the next poll.
    pub async fn follow_hints(self, hints: watch::Receiver<u64>) {
        let wake = self.engine.wake();
        self.follow(hints, || {
            wake.log_grew();
            wake.dispatch.notify_one();
            wake.queue.notify_one();
            wake.timers.notify_one();
        })
        .await;
    }

    /// Another process gave the authority up: ask for it now instead of at the next look.
    pub async fn follow_freed(self, freed: watch::Receiver<u64>) {
        self.follow(freed, || self.engine.wake().authority.notify_one()).await;
    }

    async fn follow(&self, mut hints: watch::Receiver<u64>, told: impl Fn()) {
        loop {
            tokio::select! {
                biased;
                () = self.engine.shutdown().triggered() => return,
                changed = hints.changed() => if changed.is_err() { return },
            }
            told();
        }
    }

    /// The contract's snapshot, with what blocks this node.
    pub async fn snapshot(&self) -> Result<RuntimeSnapshot, Error> {
        let stopping = self.engine.shutdown().is_triggered();
        let stopping = stopping.then_some("the server is stopping");
        let blockers: Vec<_> = self.engine.store_blocks().into_iter().chain(stopping).map(str::to_owned).collect();
        self.contract.snapshot(&blockers).await
    }

    /// Stops: no new work, steps in flight get most of the grace period, loops end, the authority is given up, the store closes.
    /// What was still running is handed out again after the next start.
    pub async fn stop(&self) {
        let engine = &self.engine;
        engine.begin_stop();
        let clock = engine.clock().clone();
        tokio::select! {
            biased;
            () = self.attempts.idle() => {}
            () = clock.sleep(engine.work_left()) => {
                tracing::warn!(attempts = engine.in_flight().len(), "steps are still in flight; they will be handed out again");
            }
        }
        self.resign.trigger();
        tokio::select! {
            biased;
            () = self.loops.idle() => {}
            () = clock.sleep(engine.stop_left() / 2) => tracing::warn!("loops did not end in time"),
        }
        let close = async {
            authority::resign(engine, &self.authority, None).await;
            if let Err(error) = engine.store().close().await {
                tracing::warn!(%error, "the store was not closed cleanly");
            }
        };
        tokio::select! {
            biased;
            () = close => {}
            // Nothing is lost by this: the next start reads what a crash would have left.
            () = clock.sleep(engine.stop_left().max(CLOSE_MIN)) => tracing::warn!("the store was not closed in time"),
        }
    }
}

/// The lease of a process that is known to be gone ends now.
async fn resign_previous(store: &dyn Store) -> Result<(), servo_store::Error> {
    let Some(row) = store.authority().await? else { return Ok(()) };
    if row.resigned {
        return Ok(());
    }
    let change = servo_store::AuthorityChange::Resign { owner: row.owner, epoch: row.epoch };
    let append = servo_store::Append { authority: Some(change), ..servo_store::Append::default() };
    store.append(append).await.map(|_| ())
}
