//! A platform with entrypoints whose handlers are scripts of the test.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use servo_entrypoint::{
    Cause, Entrypoint, EntrypointStatusAction, InvocationControlAction, InvocationMode, InvocationRecord,
    InvocationRequest, InvocationResult, InvocationSignal, InvocationStatus, RestRuntime as _, RuntimeErrorPayload,
    ServerlessRuntime as _, TimelineEventType,
};
use servo_model::execution::SIGNAL;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::{OperationAction, OperationType, OperationUpdate};
use servo_model::{FunctionName, Role, SecurityContext, TenantId};
use servo_runtime::serverless::{LAMBDA, Platform, Serverless};
use servo_sim::cluster::Node;

use crate::executions::handler::{Answer, Invocation, Scripted, pending, succeeded};
use crate::world::World;

pub(crate) const FUNCTION: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~";
pub(crate) const WORKFLOW: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~";

pub(crate) struct Bed {
    pub(crate) world: World,
    pub(crate) functions: Scripted,
    /// Kept running.
    node: Node,
    pub(crate) serverless: Serverless,
}

pub(crate) fn caller(subject: &str, tenant: &str) -> SecurityContext {
    SecurityContext {
        subject: subject.to_owned(),
        tenant: TenantId::parse(tenant).unwrap(),
        roles: vec![Role::Admin],
        correlation_id: format!("c-{subject}"),
        trace: None,
        trace_state: None,
    }
}

pub(crate) fn me() -> SecurityContext {
    caller("ada", "default")
}

impl Bed {
    /// A workflow that ends well once it is told to go.
    pub(crate) fn waits_for_go(&self, name: &str) -> String {
        let waits = |invocation: Arc<Invocation>| async move {
            if invocation.known("s").is_none() {
                invocation.checkpoint(vec![awaits("go")]).await.unwrap();
                return pending();
            }
            succeeded("{}")
        };
        self.workflow(name, waits)
    }

    pub(crate) fn signal(
        &self,
        id: &str,
        signal_id: &str,
        name: &str,
        payload: Value,
    ) -> Result<InvocationRecord, RuntimeErrorPayload> {
        let (id, signal_id, name) = (id.to_owned(), signal_id.to_owned(), name.to_owned());
        let signal = InvocationSignal { signal_id, name, payload };
        let taken = self.run(|serverless| async move { serverless.signal_invocation(&me(), &id, signal).await });
        taken.map(|taken| taken.record)
    }

    pub(crate) fn new(seed: u64) -> Self {
        Self::with(seed, |_| {})
    }

    pub(crate) fn with(seed: u64, change: impl FnOnce(&mut Platform)) -> Self {
        Self::of_platform(seed, |_| {}, change)
    }

    /// With a cluster of its own settings.
    pub(crate) fn of(seed: u64, set: impl FnOnce(&mut servo_sim::Cluster)) -> Self {
        Self::of_platform(seed, set, |_| {})
    }

    /// With both.
    pub(crate) fn of_platform(
        seed: u64,
        set: impl FnOnce(&mut servo_sim::Cluster),
        change: impl FnOnce(&mut Platform),
    ) -> Self {
        let functions = Scripted::default();
        let world = World::with(seed, |cluster| {
            cluster.handlers = Arc::new(functions.clone());
            set(cluster);
        });
        let node = world.leader();
        functions.serve(&node);
        let mut platform = Platform::new(node.runtime.engine());
        change(&mut platform);
        let serverless = Serverless::new(node.runtime.executions().clone(), platform);
        Self { world, functions, node, serverless }
    }

    /// The node is gone, as by kill -9, and another goes on.
    pub(crate) fn crash(&mut self) {
        self.world.cluster.kill(&self.node);
        let node = self.world.leader();
        self.functions.serve(&node);
        self.serverless = Serverless::new(node.runtime.executions().clone(), Platform::new(node.runtime.engine()));
        self.node = node;
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn engine(&self) -> servo_runtime::Engine {
        self.node.runtime.engine().clone()
    }

    pub(crate) fn run<T: Send + 'static, F>(&self, work: impl FnOnce(Serverless) -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.world.block_on(work(self.serverless.clone()))
    }

    /// A function of the registry with an entrypoint over it, active.
    pub(crate) fn entrypoint<F>(
        &self,
        kind: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
        script: impl Fn(Arc<Invocation>) -> F + Send + Sync + 'static,
    ) -> String
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let mut spec = FunctionSpec::new(Reach::InProcess);
        spec.durable = kind == WORKFLOW;
        self.functions.define_as(&self.world, name, &spec, script);
        let mut document = definition(kind, name);
        change(&mut document);
        let registered = self.register(&document).unwrap();
        self.act(&registered.entrypoint_id, EntrypointStatusAction::Activate).unwrap();
        registered.entrypoint_id
    }

    /// A function as it comes.
    pub(crate) fn function<F>(
        &self,
        name: &str,
        script: impl Fn(Arc<Invocation>) -> F + Send + Sync + 'static,
    ) -> String
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.entrypoint(FUNCTION, name, |_| {}, script)
    }

    /// A workflow as it comes.
    pub(crate) fn workflow<F>(
        &self,
        name: &str,
        script: impl Fn(Arc<Invocation>) -> F + Send + Sync + 'static,
    ) -> String
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.entrypoint(WORKFLOW, name, |_| {}, script)
    }

    /// A function that doubles its `n`.
    pub(crate) fn doubles(&self) -> String {
        self.function("double", |call| async move {
            let params: Value = serde_json::from_str(&call.call.payload).unwrap();
            Ok(json!({"doubled": params["n"].as_i64().unwrap() * 2}).to_string())
        })
    }

    pub(crate) fn register(&self, document: &Value) -> Result<Entrypoint, RuntimeErrorPayload> {
        self.register_as(&me(), document)
    }

    pub(crate) fn register_as(
        &self,
        ctx: &SecurityContext,
        document: &Value,
    ) -> Result<Entrypoint, RuntimeErrorPayload> {
        let (ctx, document) = (ctx.clone(), document.clone());
        self.run(|serverless| async move { serverless.register_document(&ctx, document).await })
    }

    pub(crate) fn remove_function(&self, name: &str) {
        let (store, name) = (self.world.store(), FunctionName::parse(name).unwrap());
        let removed = async move { store.remove_function(&TenantId::default_tenant(), &name).await };
        self.world.block_on(removed).unwrap();
    }

    pub(crate) fn act(&self, address: &str, action: EntrypointStatusAction) -> Result<Entrypoint, RuntimeErrorPayload> {
        let address = address.to_owned();
        self.run(|serverless| async move { serverless.update_entrypoint_status(&me(), &address, action).await })
    }

    pub(crate) fn start(&self, address: &str, params: Value) -> Result<InvocationResult, RuntimeErrorPayload> {
        self.start_as(&me(), request(address, params))
    }

    pub(crate) fn start_as(
        &self,
        ctx: &SecurityContext,
        request: InvocationRequest,
    ) -> Result<InvocationResult, RuntimeErrorPayload> {
        let ctx = ctx.clone();
        self.run(|serverless| async move { serverless.start_invocation(&ctx, request).await })
    }

    pub(crate) fn get(&self, id: &str) -> InvocationRecord {
        let id = id.to_owned();
        self.run(|serverless| async move { serverless.get_invocation(&me(), &id).await }).unwrap()
    }

    pub(crate) fn control(
        &self,
        id: &str,
        action: InvocationControlAction,
    ) -> Result<InvocationRecord, RuntimeErrorPayload> {
        let id = id.to_owned();
        self.run(|serverless| async move { serverless.control_invocation(&me(), &id, action).await })
    }

    pub(crate) fn until(&self, id: &str, status: InvocationStatus) -> InvocationRecord {
        for _ in 0..200 {
            let record = self.get(id);
            if record.status == status {
                return record;
            }
            self.world.pass(Duration::from_millis(500));
        }
        panic!("{id} is {:?} and never {status:?}", self.get(id).status);
    }

    /// Looks often: what is waited for may be over soon.
    pub(crate) fn until_blocked(&self, id: &str, cause: Cause) -> InvocationRecord {
        for _ in 0..1_000 {
            let record = self.get(id);
            if record.blocked_by.iter().any(|blocked| blocked.cause == cause) {
                return record;
            }
            self.world.pass(Duration::from_millis(5));
        }
        panic!("{id} was never blocked by {cause:?}");
    }

    /// What happened, each with the status after it.
    pub(crate) fn told(&self, id: &str) -> Vec<(TimelineEventType, InvocationStatus)> {
        let id = id.to_owned();
        let told = self.run(|serverless| async move { serverless.get_invocation_timeline(&me(), &id).await }).unwrap();
        assert!(told.windows(2).all(|pair| pair[0].at <= pair[1].at), "in order of time");
        told.into_iter().map(|event| (event.event_type, event.status)).collect()
    }

    pub(crate) fn timeline(&self, id: &str) -> Vec<TimelineEventType> {
        self.told(id).into_iter().map(|(event_type, _)| event_type).collect()
    }
}

pub(crate) fn request(address: &str, params: Value) -> InvocationRequest {
    InvocationRequest {
        entrypoint_id: address.to_owned(),
        mode: Some(InvocationMode::Async),
        params,
        dry_run: false,
        idempotency_key: None,
    }
}

pub(crate) fn definition(kind: &str, name: &str) -> Value {
    let mut document = json!({
        "entrypoint_id": format!("{kind}vendor.app.{name}.v1~"),
        "version": "1.0.0",
        "owner": {"owner_type": "tenant", "id": "default", "tenant_id": "default"},
        "title": name,
        "schema": {"params": {"type": "object"}, "returns": {"type": "object"}},
        "traits": {
            "invocation": {"supported": ["sync", "async"], "default": "async"},
            "limits": {"timeout_seconds": 30},
            "retry": {"max_attempts": 3},
        },
        "implementation": {"adapter": LAMBDA, "kind": "adapter_ref", "adapter_ref": {"definition_id": name}},
    });
    if kind == WORKFLOW {
        document["traits"]["workflow"] = json!({
            "compensation": {}, "checkpointing": {"strategy": "automatic"}, "max_suspension_days": 1
        });
    }
    document
}

/// A workflow that waits for a message of this name.
pub(crate) fn awaits(name: &str) -> OperationUpdate {
    let mut update = OperationUpdate::new("s", OperationType::Callback, OperationAction::Start);
    update.name = Some(name.to_owned());
    update.sub_type = Some(SIGNAL.to_owned());
    update
}
