//! Workflows on the real engine, over the store in memory: what children record passes the engine's own rules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use servo_adapter::{DurableService, HandlerCall, HandlerFailure, Handlers, Reply};
use servo_machine::CallbackAnswer;
use servo_model::execution::Ended;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::limits::Limits;
use servo_model::operation::{ErrorObject, ExecutionStatus, OperationType};
use servo_model::{FunctionName, TenantId};
use servo_runtime::executions::{Executions, Refused, StartFunction};
use servo_runtime::{Clock as _, Ids, InProcessBus, Parts, Runtime, RuntimeConfig, SystemClock, Tasks, Types};
use servo_store::RegistryStore as _;
use servo_store::mem::MemStore;
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, GetStateResponse};

use crate::support::{World, code};

/// Functions of the registry with the sources that entrypoints would bring.
struct Sources {
    world: World,
    sources: BTreeMap<String, String>,
}

#[async_trait]
impl Handlers for Sources {
    async fn call(&self, mut call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        call.spec.reach = Reach::Code(code(&self.sources[&call.function]));
        self.world.starlark.call(call).await
    }
}

/// The engine as children's service. Callbacks are remembered by name, as the way of signals would.
struct Service {
    executions: Executions,
    callbacks: Arc<Mutex<BTreeMap<String, String>>>,
}

fn refused(refused: Refused) -> ErrorObject {
    ErrorObject::new(refused.name.as_str(), refused.message)
}

#[async_trait]
impl DurableService for Service {
    async fn checkpoint(
        &self,
        tenant: &TenantId,
        arn: &str,
        request: CheckpointRequest,
    ) -> Result<CheckpointResponse, ErrorObject> {
        let answer = self.executions.checkpoint(tenant, arn, request).await.map_err(refused)?;
        for operation in &answer.new_execution_state.operations {
            let id = operation.callback_details.as_ref().and_then(|details| details.callback_id.clone());
            if operation.operation_type == OperationType::Callback
                && let (Some(name), Some(id)) = (operation.name.clone(), id)
            {
                self.callbacks.lock().unwrap().insert(name, id);
            }
        }
        Ok(answer)
    }

    async fn state(
        &self,
        tenant: &TenantId,
        arn: &str,
        token: &str,
        marker: &str,
    ) -> Result<GetStateResponse, ErrorObject> {
        self.executions.state(tenant, arn, token, Some(marker), None).await.map_err(refused)
    }
}

struct Engine {
    runtime: Runtime,
    tenant: TenantId,
    callbacks: Arc<Mutex<BTreeMap<String, String>>>,
    handlers: Arc<Sources>,
    bus: Arc<InProcessBus>,
}

impl Engine {
    async fn start(sources: &[(&str, &str)]) -> Self {
        let tenant = TenantId::default_tenant();
        let store = Arc::new(MemStore::new(Arc::new(|| SystemClock.now()), Limits::default(), [7; 32]));
        for (name, _) in sources {
            let spec = serde_json::to_string(&FunctionSpec::new(Reach::InProcess)).unwrap();
            store.put_function(&tenant, &FunctionName::parse(name).unwrap(), &spec).await.unwrap();
        }
        let sources = sources.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned())).collect();
        let handlers = Arc::new(Sources { world: World::new(), sources });
        let bus = Arc::new(InProcessBus::default());
        let parts = Parts {
            store,
            clock: Arc::new(SystemClock),
            ids: Arc::new(Ids::from_os()),
            tasks: Tasks::on_tokio(),
            bus: bus.clone(),
            adapters: Vec::new(),
            handlers: handlers.clone(),
            spans: None,
            types: Types::published(),
            config: RuntimeConfig::default(),
        };
        let runtime = Runtime::start(parts).await.unwrap();
        let callbacks = Arc::default();
        let service = Service { executions: runtime.executions().clone(), callbacks: Arc::clone(&callbacks) };
        handlers.world.starlark.bind(Arc::new(service));
        Self { runtime, tenant, callbacks, handlers, bus }
    }

    /// Runs a function to its end. Signals are answered as they are waited for.
    async fn run(&self, function: &str, input: &str, signals: &[(&str, &str)]) -> Ended {
        let executions = self.runtime.executions();
        let call = StartFunction {
            tenant: self.tenant.clone(),
            subject: "test".to_owned(),
            function: executions.resolve(&self.tenant, function, None).await.unwrap(),
            name: None,
            input: Some(input.to_owned()),
            tenant_id: None,
            client_context: None,
            trace: None,
            synchronous: true,
        };
        let begun = executions.start(call).await.unwrap();
        let answering = async {
            for (name, payload) in signals {
                let id = loop {
                    if let Some(id) = self.callbacks.lock().unwrap().get(*name) {
                        break id.clone();
                    }
                    tokio::task::yield_now().await;
                };
                let answer = CallbackAnswer::Succeed(Some((*payload).to_owned()));
                executions.callback(&self.tenant, &id, answer).await.unwrap();
            }
        };
        let waiting = async {
            loop {
                let ended = executions.wait(&self.tenant, &begun.run_id, Duration::from_secs(60)).await.unwrap();
                if let Some(ended) = ended {
                    return ended;
                }
            }
        };
        tokio::join!(waiting, answering).0
    }
}

fn result(ended: &Ended) -> serde_json::Value {
    assert_eq!(ended.status, ExecutionStatus::Succeeded, "{ended:?}");
    serde_json::from_str(ended.result.as_deref().unwrap()).unwrap()
}

/// SR-235: calls, parallel branches, decisions, pauses, events and checkpoints, in one workflow on the real engine.
#[tokio::test]
async fn every_operation_passes_the_engines_rules() {
    let source = r#"
def main(ctx, input):
    began = ctx.now()
    ctx.emit("order.begun", {"at": began})
    charged = ctx.step("charge", lambda n: {"n": n}, args = [input.n])
    once = ctx.step("once", lambda: ctx.uuid(), at_most_once = True)
    failed = ctx.step("fail", lambda: ctx.fail("no"), catch = True)
    ctx.log("waits")
    def branch(n):
        ctx.sleep(1)
        return ctx.step("double", lambda: n * 2)
    doubled = ctx.map([1, 2, 3], branch, max_concurrency = 2)
    both = ctx.parallel([lambda: ctx.wait_signal("left"), lambda: ctx.wait_event("right", timeout = "1h")])
    child = ctx.invoke("child", {"n": charged.n})
    bad = ctx.invoke("broken", catch = True)
    late = ctx.wait_signal("never", timeout = 1)
    path = ctx.step("ship", lambda: "shipped") if late else ctx.step("undo", lambda: "undone")
    return [charged.n, len(once), failed.error.message, doubled, both, child, bad.ok, bad.error.message, late, path]
"#;
    let child = "def main(ctx, input):\n    ctx.sleep(1)\n    return input.n + 1\n";
    let broken = "def main(ctx, input):\n    return input.n\n";
    let engine = Engine::start(&[("main", source), ("child", child), ("broken", broken)]).await;
    let ended = engine.run("main", r#"{"n": 41}"#, &[("left", "{\"a\":1}"), ("right", "[2]")]).await;
    let result = result(&ended);
    assert_eq!(
        result,
        json!([41, 36, "no", [2, 4, 6], [{"a": 1}, [2]], 42, false, "Object of type `NoneType` has no attribute `n`", null, "undone"])
    );
    assert_eq!(engine.handlers.world.lines.texts(), ["waits"]);
}

/// A program that invokes itself is refused where its family ends, and can catch that as any other failure of an invoke.
#[tokio::test]
async fn a_program_that_invokes_itself_catches_the_end_of_it() {
    let source = r#"
def main(ctx, input):
    called = ctx.invoke("main", {"n": input.n + 1}, catch = True)
    return called.value if called.ok else {"n": input.n, "why": called.error.message}
"#;
    let engine = Engine::start(&[("main", source)]).await;
    let ended = engine.run("main", r#"{"n": 1}"#, &[]).await;
    let ended = result(&ended);
    assert_eq!(ended["n"], 16);
    assert!(ended["why"].as_str().unwrap().contains("at most 16 levels deep"), "{ended}");
}

/// A step that fails is tried again by the engine's timers, on a record that is never lost.
#[tokio::test]
async fn retries_and_failures_go_through_the_engine() {
    let source = r#"
def main(ctx, input):
    return ctx.step("flaky", lambda: ctx.fail("again", retryable = True), retry = {"max_attempts": 2, "initial_delay_ms": 10})
"#;
    let engine = Engine::start(&[("main", source)]).await;
    let ended = engine.run("main", "null", &[]).await;
    assert_eq!(ended.status, ExecutionStatus::Failed);
    assert_eq!(ended.error.unwrap().error_message.as_deref(), Some("again"));
}

/// What a workflow emits reaches whoever listens, once for each emit, however often the workflow was replayed.
#[tokio::test]
async fn what_is_emitted_is_published() {
    let source = r#"
def main(ctx, input):
    ctx.emit("order.begun", {"n": input.n})
    ctx.sleep(1)
    ctx.emit("order.done")
    ctx.step("last", lambda: 1)
    return None
"#;
    let engine = Engine::start(&[("main", source)]).await;
    let mut heard = engine.bus.subscribe();
    engine.run("main", r#"{"n": 41}"#, &[]).await;
    let mut emitted = Vec::new();
    loop {
        let message = tokio::time::timeout(Duration::from_secs(60), heard.recv()).await.unwrap().unwrap();
        if message.event_type == servo_runtime::loops::relay::EMITTED {
            let document: serde_json::Value = serde_json::from_str(&message.document).unwrap();
            assert_eq!(
                (document["eventType"].as_str(), message.tenant),
                (Some("OperationUpdated"), engine.tenant.clone())
            );
            emitted.push((document["name"].clone(), document["payload"].clone()));
        }
        if message.event_type == "RunCompleted" {
            break;
        }
    }
    assert_eq!(emitted, [(json!("order.begun"), json!("{\"n\":41}")), (json!("order.done"), json!("null"))]);
}
