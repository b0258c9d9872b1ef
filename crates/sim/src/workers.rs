//! Workers outside the nodes: handlers that checkpoint at whichever node answers, live on when the node that called them dies,
//! and sometimes die themselves. What they were told is kept here, and rules that hold at any moment are checked here.

mod program;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use servo_adapter::{HandlerCall, HandlerFailure, Handlers, Reply};
use servo_model::{RunId, TenantId, Timestamp};
use servo_runtime::executions::{Executions, Refused};
use servo_runtime::{Clock as _, Tasks};
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, DurableExecutionInvocationInput};
use tokio::sync::oneshot;

use crate::clock::SimClock;
use crate::cluster::{Cluster, Node};
use crate::dice::Dice;
use crate::exec::NodeId;

pub(crate) use program::{FUNCTION, Program};

/// Whose tasks the workers' are. No node has this number.
const WORKERS: NodeId = NodeId(u32::MAX - 2);
/// After this long without an answer a worker asks another node.
const PATIENCE: Duration = Duration::from_secs(3);
/// Calls of one checkpoint before the worker gives its invocation up.
const CALLS_MAX: u32 = 6;
/// One in so many operations kills its worker.
const DEADLY: u64 = 40;

#[derive(Clone)]
pub(crate) struct Workers {
    tasks: Tasks,
    clock: SimClock,
    state: Arc<Mutex<State>>,
}

struct State {
    dice: Dice,
    /// Who can be asked.
    nodes: Vec<(Tasks, Executions)>,
    values: u64,
    told: BTreeMap<(String, usize), u64>,
    /// When the start of a wait was sent, by the true clock.
    waits: BTreeMap<(String, usize), Timestamp>,
    invocations: BTreeMap<RunId, u32>,
    counts: Handled,
    findings: Vec<String>,
}

/// How much happened.
#[derive(Debug, Default, Clone, Copy)]
pub struct Handled {
    pub invocations: u64,
    pub deaths: u64,
    /// Calls of invocations that another one had replaced, refused as they must be.
    pub refused: u64,
    /// Calls that were made again because no answer came.
    pub repeated: u64,
    pub waits: u64,
}

/// A call that brought no answer.
enum Failed {
    /// Nobody knows whether it happened.
    Unknown,
    Refused(Refused),
}

impl Workers {
    pub(crate) fn new(cluster: &Cluster, seed: u64) -> Self {
        let state = State {
            dice: Dice::new(seed ^ 0x3077),
            nodes: Vec::new(),
            values: 0,
            told: BTreeMap::new(),
            waits: BTreeMap::new(),
            invocations: BTreeMap::new(),
            counts: Handled::default(),
            findings: Vec::new(),
        };
        let (tasks, clock) = (cluster.sim.tasks(WORKERS), cluster.sim.clock().clone());
        Self { tasks, clock, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes that there are now.
    pub(crate) fn reach<'a>(&self, cluster: &Cluster, nodes: impl Iterator<Item = &'a Node>) {
        let nodes = nodes.map(|node| (cluster.sim.tasks(node.id), node.runtime.executions().clone()));
        self.state().nodes = nodes.collect();
    }

    pub(crate) fn counts(&self) -> Handled {
        self.state().counts
    }

    pub(crate) fn findings(&self) -> Vec<String> {
        self.state().findings.clone()
    }

    /// What an execution's handler was told of its operations.
    pub(crate) fn told(&self, name: &str, count: usize) -> Vec<Option<u64>> {
        let state = self.state();
        (0..count).map(|number| state.told.get(&(name.to_owned(), number)).copied()).collect()
    }

    fn tell(&self, name: &str, number: usize, value: u64) {
        let mut state = self.state();
        let first = *state.told.entry((name.to_owned(), number)).or_insert(value);
        if first != value {
            state.findings.push(format!("{name}: operation {number} was {first} and became {value}"));
        }
    }

    /// Checkpoints until an answer comes, at any node, always as the same call.
    async fn checkpoint(
        &self,
        invocation: &Invocation,
        request: CheckpointRequest,
    ) -> Result<CheckpointResponse, HandlerFailure> {
        for call in 0..CALLS_MAX {
            let replaced = self.state().invocations.get(&invocation.run).is_some_and(|now| *now > invocation.number);
            let answer = self.ask(invocation, request.clone()).await;
            if let Some(outcome) = self.judge(invocation, replaced, answer) {
                return outcome;
            }
            self.state().counts.repeated += u64::from(call + 1 < CALLS_MAX);
            self.clock.sleep(Duration::from_millis(200)).await;
        }
        Err(HandlerFailure::crashed("Checkpoint", "no node answered"))
    }

    /// What an answer means; nothing when the call is to be made again.
    fn judge(
        &self,
        invocation: &Invocation,
        replaced: bool,
        answer: Result<CheckpointResponse, Failed>,
    ) -> Option<Result<CheckpointResponse, HandlerFailure>> {
        let mut state = self.state();
        match answer {
            Ok(answer) => {
                if replaced {
                    let Invocation { run, number, .. } = invocation;
                    state.findings.push(format!("{run}: invocation {number} recorded after another had begun"));
                }
                Some(Ok(answer))
            }
            Err(Failed::Refused(refused)) if refused.name.status() < 500 => {
                state.counts.refused += u64::from(replaced);
                Some(Err(HandlerFailure::crashed("Checkpoint", refused.message)))
            }
            Err(Failed::Refused(_) | Failed::Unknown) => None,
        }
    }

    /// One call: a task of the node, which dies with it.
    async fn ask(&self, invocation: &Invocation, request: CheckpointRequest) -> Result<CheckpointResponse, Failed> {
        let node = {
            let mut state = self.state();
            let State { dice, nodes, .. } = &mut *state;
            if nodes.is_empty() { None } else { Some(dice.pick(nodes).clone()) }
        };
        let Some((tasks, executions)) = node else { return Err(Failed::Unknown) };
        let (send, receive) = oneshot::channel();
        let (tenant, arn) = (invocation.tenant.clone(), invocation.input.durable_execution_arn.clone());
        tasks.spawn("checkpoint", async move {
            let _ = send.send(executions.checkpoint(&tenant, &arn, request).await);
        });
        match select(receive, std::pin::pin!(self.clock.sleep(PATIENCE))).await {
            Either::Left((Ok(Ok(answer)), _)) => Ok(answer),
            Either::Left((Ok(Err(refused)), _)) => Err(Failed::Refused(refused)),
            Either::Left((Err(_), _)) | Either::Right(_) => Err(Failed::Unknown),
        }
    }
}

/// One invocation, as its worker has it.
struct Invocation {
    run: RunId,
    tenant: TenantId,
    number: u32,
    request_id: String,
    input: DurableExecutionInvocationInput,
}

#[async_trait]
impl Handlers for Workers {
    /// Who called may go; the worker does not notice.
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        let input: DurableExecutionInvocationInput = serde_json::from_str(&call.payload)
            .map_err(|error| HandlerFailure::crashed("Runtime.UnmarshalError", error.to_string()))?;
        let number = {
            let mut state = self.state();
            state.counts.invocations += 1;
            let count = state.invocations.entry(call.run_id.clone()).or_default();
            *count += 1;
            *count
        };
        let invocation =
            Invocation { run: call.run_id, tenant: call.tenant, number, request_id: call.request_id, input };
        let (send, receive) = oneshot::channel();
        let worker = self.clone();
        self.tasks.spawn("handler", async move {
            let _ = send.send(program::run(&worker, &invocation).await);
        });
        let gone = |_| HandlerFailure::crashed("Runtime.ExitError", "the worker is gone");
        receive.await.map_err(gone)?.map(Reply::from)
    }
}
