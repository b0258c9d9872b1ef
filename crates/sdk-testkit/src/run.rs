//! One execution from its start to its end, over as many lives of the program as it takes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use servo_embedded::{Connect, Host};
use servo_model::execution::Ended;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, RunState, TenantId};
use servo_runtime::executions::{Begun, Executions, PageQuery, Refused, StartFunction};
use servo_runtime::{Ids, InProcessBus, Parts, Runtime, RuntimeConfig, Types};
use servo_sdk::Options;
use servo_store::mem::MemStore;
use servo_store::{RegistryStore as _, Scope};
use servo_wire::lambda::{ErrorName, HistoryEvent, Operation, Seconds};

use crate::client::FaultyClient;
use crate::clock::VirtualClock;
use crate::exec::Executor;
use crate::faults::Faults;
use crate::kit::Kit;
use crate::outcome::Outcome;

const DAY_MS: u64 = 86_400_000;
/// The execution under test. A program that was started again finds it by this name.
const NAME: &str = "under-test";
/// More than an execution may take.
const PATIENCE: Duration = Duration::from_millis(1_000 * DAY_MS);
const PAGE: usize = 1_000;

struct World<'a> {
    kit: &'a Kit,
    clock: VirtualClock,
    store: MemStore,
    faults: Arc<Faults>,
    function: &'a str,
    input: String,
}

/// What is read at the end.
struct Read {
    ended: Ended,
    operations: Vec<Operation<Seconds>>,
    history: Vec<HistoryEvent>,
}

#[track_caller]
pub(crate) fn run(kit: &Kit, function: &str, input: String) -> Outcome {
    assert!(
        kit.functions.names().any(|name| name == function),
        "no handler `{function}`; the kit has: {}",
        kit.functions.names().collect::<Vec<_>>().join(", ")
    );
    let clock = VirtualClock::new();
    let store = MemStore::new(clock.time_source(), config(kit).limits, [7; 32]);
    let faults = Faults::new(kit.plan.clone(), clock.clone());
    let world = World { kit, clock, store, faults, function, input };
    world.register();
    let mut life = 0;
    let read = loop {
        if let Some(read) = world.live(life) {
            break read;
        }
        world.faults.revive();
        life += 1;
    };
    let seen = world.faults.seen();
    Outcome {
        status: read.ended.status,
        result: read.ended.result,
        error: read.ended.error,
        operations: read.operations,
        history: read.history,
        invocations: seen.invocations,
        checkpoints: seen.checkpoints,
        crashes: seen.crashes,
        attempts: seen.attempts.clone(),
        reruns: seen.reruns.clone(),
        elapsed: world.clock.passed(),
    }
}

/// Nothing can happen behind the engine's back here, so its loops hardly look by themselves: a year passes in a few steps.
fn config(kit: &Kit) -> RuntimeConfig {
    let mut config = RuntimeConfig { poll_ms: 10 * DAY_MS, ..RuntimeConfig::default() };
    if kit.evicts {
        config.cache_bytes_max = 0;
    }
    config.authority.lease_ms = 300 * DAY_MS;
    config.dispatch.stall_after_ms = 300 * DAY_MS;
    config.retention.every_ms = 300 * DAY_MS;
    config.retention.finished_runs_days = None;
    config
}

impl World<'_> {
    fn register(&self) {
        let document = serde_json::to_string(&FunctionSpec::new(Reach::InProcess)).unwrap_or_default();
        let mut executor = Executor::new(self.clock.clone());
        for name in self.kit.functions.names() {
            let parsed = match FunctionName::parse(name) {
                Ok(parsed) => parsed,
                Err(invalid) => panic!("handler `{name}`: {invalid}"),
            };
            let tenant = TenantId::default_tenant();
            let put = executor.drive(self.store.put_function(&tenant, &parsed, &document), || false);
            if let Some(Err(error)) = put {
                panic!("handler `{name}` cannot be registered: {error}");
            }
        }
    }

    /// One life of the program. None when it died before the execution ended.
    fn live(&self, life: u64) -> Option<Read> {
        let mut executor = Executor::new(self.clock.clone());
        let faults = self.faults.clone();
        let connect: Connect = Arc::new(move |engine| {
            faults.seen().invocations += 1;
            Arc::new(FaultyClient { engine, faults: faults.clone() })
        });
        let options = Options {
            clock: Arc::new(self.clock.clone()),
            interceptor: Some(self.faults.clone()),
            checkpointing_mode: self.kit.mode,
            ..Options::default()
        };
        let host = Arc::new(Host::new(self.kit.functions.clone(), options).through(connect));
        let parts = Parts {
            store: Arc::new(self.store.clone()),
            clock: Arc::new(self.clock.clone()),
            ids: Arc::new(Ids::seeded(life)),
            tasks: executor.tasks(),
            bus: Arc::new(InProcessBus::default()),
            adapters: Vec::new(),
            handlers: host.clone(),
            spans: None,
            types: Types::published(),
            config: config(self.kit),
        };
        let main = async {
            let runtime = match Runtime::start(parts).await {
                Ok(runtime) => runtime,
                Err(error) => panic!("the engine does not start: {error}"),
            };
            host.connect(runtime.executions().clone());
            match Box::pin(self.follow(runtime.executions())).await {
                Ok(read) => read,
                Err(refused) => panic!("the engine refuses: {refused}"),
            }
        };
        executor.drive(main, || self.faults.is_crashed())
    }

    async fn follow(&self, executions: &Executions) -> Result<Read, Refused> {
        let tenant = TenantId::default_tenant();
        let function = executions.resolve(&tenant, self.function, None).await?;
        let call = StartFunction {
            tenant: tenant.clone(),
            subject: "test".to_owned(),
            function,
            name: Some(NAME.to_owned()),
            input: Some(self.input.clone()),
            tenant_id: None,
            client_context: None,
            trace: None,
            synchronous: true,
        };
        let begun = executions.start(call).await?;
        let end = std::pin::pin!(executions.wait(&tenant, &begun.run_id, PATIENCE));
        let answers = std::pin::pin!(self.answer_callbacks(executions, &tenant));
        let ended = match select(end, answers).await {
            Either::Left((ended, _)) => ended?,
            Either::Right((refused, _)) => return Err(refused),
        };
        let Some(ended) = ended else {
            panic!("the execution did not end within {} days of virtual time", PATIENCE.as_secs() / 86_400)
        };
        let operations = operations(executions, &tenant, &begun).await?;
        let history = history(executions, &tenant, &begun).await?;
        Ok(Read { ended, operations, history })
    }

    /// Ends only with what the engine did not expect.
    async fn answer_callbacks(&self, executions: &Executions, tenant: &TenantId) -> Refused {
        loop {
            let (at, id, answer) = self.faults.next_callback().await;
            match executions.callback(tenant, &id, answer).await {
                Ok(()) => {}
                // Too late: the callback or its execution has ended.
                Err(refused) if matches!(refused.name, ErrorName::CallbackTimeout | ErrorName::ResourceNotFound) => {}
                Err(refused) => return refused,
            }
            self.faults.answered(at, id);
        }
    }
}

async fn operations(
    executions: &Executions,
    tenant: &TenantId,
    begun: &Begun,
) -> Result<Vec<Operation<Seconds>>, Refused> {
    let read = |state: &RunState| {
        let execution = state.execution.as_deref();
        execution.map(|execution| execution.operations().iter().map(Into::into).collect())
    };
    let scope = Scope::Tenant(tenant.clone());
    let operations: Option<Vec<_>> = executions.engine().view(&scope, &begun.run_id, read).await?;
    Ok(operations.unwrap_or_default())
}

async fn history(executions: &Executions, tenant: &TenantId, begun: &Begun) -> Result<Vec<HistoryEvent>, Refused> {
    let mut events = Vec::new();
    let mut marker: Option<String> = None;
    loop {
        let query = PageQuery { marker: marker.as_deref(), max_items: Some(PAGE), reverse: false };
        let page = executions.history(tenant, &begun.arn, true, query).await?;
        events.extend(page.events);
        marker = page.next_marker.filter(|marker| !marker.is_empty());
        if marker.is_none() {
            return Ok(events);
        }
    }
}
