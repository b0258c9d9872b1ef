//! Handlers written as scripts: what one invocation does, step by step, over the same calls that an SDK makes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use servo_adapter::{HandlerCall, HandlerFailure, Handlers, Reply};
use servo_model::execution::Ended;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, RunId, TenantId};
use servo_runtime::executions::{Begun, Executions, PageQuery, Refused, StartFunction};
use servo_sim::Node;
use servo_wire::lambda::{
    CheckpointRequest, CheckpointResponse, DurableExecutionInvocationInput, HistoryEvent, OperationAction,
    OperationType, OperationUpdate,
};

use crate::world::World;

/// One invocation as its script sees it.
pub(crate) struct Invocation {
    pub input: DurableExecutionInvocationInput,
    pub call: Box<HandlerCall>,
    pub executions: Executions,
    token: Mutex<Option<String>>,
}

impl Invocation {
    pub(crate) async fn checkpoint(&self, updates: Vec<OperationUpdate>) -> Result<CheckpointResponse, Refused> {
        let checkpoint_token = self.token.lock().unwrap().clone().expect("the right to checkpoint was withdrawn");
        let request = CheckpointRequest { checkpoint_token, updates: Some(updates), client_token: None };
        let arn = &self.input.durable_execution_arn;
        let answer = self.executions.checkpoint(&self.call.tenant, arn, request).await?;
        self.token.lock().unwrap().clone_from(&answer.checkpoint_token);
        Ok(answer)
    }

    /// The state of an operation when the invocation began.
    pub(crate) fn known(&self, id: &str) -> Option<servo_model::operation::OperationStatus> {
        let operations = &self.input.initial_execution_state.operations;
        operations.iter().find(|operation| operation.id == id).map(|operation| operation.status)
    }
}

pub(crate) type Answer = Result<String, HandlerFailure>;
pub(crate) type Script = Arc<dyn Fn(Arc<Invocation>) -> BoxFuture<'static, Answer> + Send + Sync>;

/// All scripts by function name, and every invocation that was made.
#[derive(Clone, Default)]
pub(crate) struct Scripted {
    scripts: Arc<Mutex<BTreeMap<String, Script>>>,
    /// Set once a node runs: its scripts call it.
    executions: Arc<OnceLock<Mutex<Executions>>>,
    pub calls: Arc<Mutex<Vec<HandlerCall>>>,
}

#[async_trait]
impl Handlers for Scripted {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        self.calls.lock().unwrap().push(HandlerCall::clone(&call));
        let script = self.scripts.lock().unwrap().get(&call.function).cloned();
        let script = script.ok_or_else(|| HandlerFailure::unreachable("ResourceNotFoundException", "no script"))?;
        let executions = self.executions.get().unwrap().lock().unwrap().clone();
        let input: DurableExecutionInvocationInput = if call.spec.durable {
            serde_json::from_str(&call.payload).unwrap()
        } else {
            serde_json::from_value(serde_json::json!({"DurableExecutionArn": "", "CheckpointToken": "",
                "InitialExecutionState": {"Operations": []}}))
            .unwrap()
        };
        let token = Mutex::new(Some(input.checkpoint_token.clone()));
        script(Arc::new(Invocation { input, call, executions, token })).await.map(Reply::from)
    }

    fn keeps_time(&self, reach: &Reach) -> bool {
        matches!(reach, Reach::Pull)
    }
}

/// Functions in a world.
impl Scripted {
    pub(crate) fn world(seed: u64) -> (World, Self) {
        let scripted = Self::default();
        let world = World::with(seed, |cluster| cluster.handlers = Arc::new(scripted.clone()));
        (world, scripted)
    }

    /// The node whose API the scripts call from now on.
    pub(crate) fn serve(&self, node: &Node) {
        let executions = node.runtime.executions().clone();
        let place = self.executions.get_or_init(|| Mutex::new(executions.clone()));
        *place.lock().unwrap() = executions;
    }

    pub(crate) fn define<F>(
        &self,
        world: &World,
        name: &str,
        script: impl Fn(Arc<Invocation>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.define_as(world, name, &FunctionSpec::new(Reach::InProcess), script);
    }

    pub(crate) fn define_as<F>(
        &self,
        world: &World,
        name: &str,
        spec: &FunctionSpec,
        script: impl Fn(Arc<Invocation>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.answer(name, script);
        let document = serde_json::to_string(spec).unwrap();
        let (store, name) = (world.store(), FunctionName::parse(name).unwrap());
        world.block_on(async move { store.put_function(&tenant(), &name, &document).await }).unwrap();
    }

    /// A script for what is not in the registry of functions.
    pub(crate) fn answer<F>(&self, name: &str, script: impl Fn(Arc<Invocation>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let script: Script = Arc::new(move |invocation| Box::pin(script(invocation)));
        self.scripts.lock().unwrap().insert(name.to_owned(), script);
    }

    pub(crate) fn invocations(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

pub(crate) fn tenant() -> TenantId {
    TenantId::default_tenant()
}

pub(crate) fn start(
    world: &World,
    node: &Node,
    function: &str,
    name: Option<&str>,
    input: &str,
) -> Result<Begun, Refused> {
    begin(world, node, (function, name, input), None)
}

/// The same by a caller who says where in a trace it is.
pub(crate) fn start_traced(world: &World, node: &Node, function: &str, trace: Option<&str>) -> Begun {
    begin(world, node, (function, None, "{}"), trace).unwrap()
}

fn begin(
    world: &World,
    node: &Node,
    (function, name, input): (&str, Option<&str>, &str),
    trace: Option<&str>,
) -> Result<Begun, Refused> {
    let trace = trace.map(str::to_owned);
    let executions = node.runtime.executions().clone();
    let (function, name, input) = (function.to_owned(), name.map(str::to_owned), input.to_owned());
    world.block_on(async move {
        let function = executions.resolve(&tenant(), &function, None).await?;
        executions
            .start(StartFunction {
                tenant: tenant(),
                subject: "test".to_owned(),
                function,
                name,
                input: Some(input),
                tenant_id: None,
                client_context: None,
                trace,
                synchronous: false,
            })
            .await
    })
}

/// How the execution ended, within an hour of virtual time.
pub(crate) fn wait(world: &World, node: &Node, run: &RunId) -> Ended {
    let (executions, run) = (node.runtime.executions().clone(), run.clone());
    let ended = world.block_on(async move { executions.wait(&tenant(), &run, Duration::from_secs(3_600)).await });
    ended.unwrap().expect("the execution did not end")
}

pub(crate) fn history(world: &World, node: &Node, arn: &str) -> Vec<HistoryEvent> {
    let (executions, arn) = (node.runtime.executions().clone(), arn.to_owned());
    let page = PageQuery { max_items: Some(1_000), ..PageQuery::default() };
    world.block_on(async move { executions.history(&tenant(), &arn, true, page).await }).unwrap().events
}

/// The event types of a history, by their numbers.
pub(crate) fn kinds(history: &[HistoryEvent]) -> Vec<String> {
    for (number, event) in (1..).zip(history) {
        assert_eq!(event.event_id, number);
    }
    let kind = |event: &HistoryEvent| serde_json::to_value(event).unwrap()["EventType"].as_str().unwrap().to_owned();
    history.iter().map(kind).collect()
}

/// An update of a step; its end has a result.
pub(crate) fn step(id: &str, action: OperationAction) -> OperationUpdate {
    let mut update = OperationUpdate::new(id, OperationType::Step, action);
    update.payload = (action == OperationAction::Succeed).then(|| "1".to_owned());
    update
}

pub(crate) fn succeeded(result: &str) -> Answer {
    Ok(serde_json::json!({"Status": "SUCCEEDED", "Result": result}).to_string())
}

pub(crate) fn pending() -> Answer {
    Ok(r#"{"Status":"PENDING"}"#.to_owned())
}
