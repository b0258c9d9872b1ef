//! The handlers: programs that do something of everything, served over HTTP from this process. A server that dies does not end
//! them; they go on, and meet the next server with an old token.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use servo_sdk::{
    Backoff, CheckpointRequest, CheckpointResponse, DurableContext, DurableError, DurableExecutionInvocationInput,
    DurableServiceClient, GetStateResponse, Options, ServiceError, ServoClient, StepConfig, StepContext, WaitDecision,
    WaitForCallbackConfig, WaitForConditionConfig, async_trait, handle,
};
use tokio::sync::watch;

use super::api;
use super::ledger::Ledger;
use crate::support::dice::Dice;

/// One thing that a program does. Each has one number as its outcome.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Op {
    /// Fails that often before it succeeds.
    Step(u32),
    Wait,
    /// One step for each item.
    Map(u64),
    Callback,
    /// Another execution, of one step.
    Call,
    Poll,
    /// A step that the test lets end.
    Gate,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) ops: Vec<Op>,
}

impl Program {
    pub(super) fn random(name: String, dice: &mut Dice) -> Self {
        let count = 2 + dice.below(5);
        let op = |dice: &mut Dice| match dice.below(20) {
            0..=10 => Op::Step(0),
            11 => Op::Step(1),
            12..=13 => Op::Wait,
            14..=15 => Op::Map(1 + dice.below(3)),
            16..=17 => Op::Callback,
            18 => Op::Call,
            _ => Op::Poll,
        };
        Self { name, ops: (0..count).map(|_| op(dice)).collect() }
    }
}

/// How long a body takes. Longer than a commit, so that a kill often meets one.
const BODY: Duration = Duration::from_millis(4);

async fn pause(duration: Duration) {
    let _ = tokio::time::timeout(duration, std::future::pending::<()>()).await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "handlers outlive the call that began them; the test's own runtime ends them"
)]
fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::spawn(future)
}

fn config(name: &str) -> Option<StepConfig> {
    let retry = Backoff::fixed(3, Duration::from_secs(1));
    Some(StepConfig { name: Some(name.to_owned()), retry_strategy: Some(Box::new(retry)), ..StepConfig::default() })
}

#[derive(Clone)]
pub(super) struct Worker {
    pub(super) ledger: Arc<Ledger>,
    pub(super) server: watch::Receiver<String>,
    gate: watch::Receiver<bool>,
    clients: Arc<Mutex<Option<(String, ServoClient)>>>,
}

impl Worker {
    /// Serves handlers at an address of its own.
    pub(super) async fn start(
        ledger: Arc<Ledger>,
        server: watch::Receiver<String>,
        gate: watch::Receiver<bool>,
    ) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let worker = Self { ledger, server, gate, clients: Arc::default() };
        let handlers = Router::new().fallback(move |payload: String| worker.clone().invoked(payload));
        spawn(async move { axum::serve(listener, handlers).await });
        url
    }

    /// In a task of its own: the end of the connection is not the end of the handler.
    async fn invoked(self, payload: String) -> Result<Json<serde_json::Value>, (StatusCode, String)> {
        let input: DurableExecutionInvocationInput = serde_json::from_str(&payload).expect("an invocation");
        let number = self.ledger.begins(&input.durable_execution_arn);
        let client = Arc::new(Watched { worker: self.clone(), number });
        let handler = move |program: Program, ctx: DurableContext| {
            let worker = self.clone();
            async move { worker.run(program, &ctx).await }
        };
        let invocation = spawn(async move { handle(handler, input, client, Options::default()).await });
        let again = |error: String| (StatusCode::INTERNAL_SERVER_ERROR, error);
        let answer = invocation.await.map_err(|error| again(error.to_string()))?;
        answer.map(|output| Json(serde_json::json!(output))).map_err(|error| again(error.to_string()))
    }

    async fn run(self, program: Program, ctx: &DurableContext) -> Result<Vec<u64>, DurableError> {
        let mut outcomes = Vec::new();
        for (number, op) in program.ops.iter().enumerate() {
            let value = Box::pin(self.operation(&program.name, number, *op, ctx)).await?;
            self.ledger.told(&program.name, &number.to_string(), value);
            outcomes.push(value);
        }
        Ok(outcomes)
    }

    async fn operation(&self, name: &str, number: usize, op: Op, ctx: &DurableContext) -> Result<u64, DurableError> {
        let label = number.to_string();
        match op {
            Op::Step(failures) => self.step(ctx, &label, failures).await,
            Op::Gate => self.gate(ctx, &label).await,
            Op::Wait => {
                ctx.wait(servo_sdk::Duration::from_seconds(1), Some(&label)).await?;
                Ok(0)
            }
            Op::Map(items) => {
                let item = async |child: DurableContext, item: u64, _: usize| {
                    let value = self.step(&child, "item", 0).await?;
                    self.ledger.told(name, &format!("{number}.{item}"), value);
                    Ok(value)
                };
                let results = ctx.map((0..items).collect::<Vec<u64>>(), item, None).await?;
                Ok(results.get_results()?.into_iter().sum())
            }
            Op::Callback => {
                let submit = |_: StepContext, id: String| {
                    let (server, value) = (self.server.clone(), self.ledger.fresh());
                    spawn(api::answer_callback(server, id, value));
                    Ok(())
                };
                let config = WaitForCallbackConfig { name: Some(label), ..WaitForCallbackConfig::default() };
                ctx.wait_for_callback(submit, Some(config)).await
            }
            Op::Call => {
                let inner = Program { name: format!("{name}/{number}"), ops: vec![Op::Step(0)] };
                let outcomes: Vec<u64> = ctx.invoke("program", inner, None).await?;
                Ok(outcomes.into_iter().sum())
            }
            Op::Poll => {
                let twice = WaitForConditionConfig::new(0_u64, |state, _| match state {
                    2.. => WaitDecision::Done,
                    _ => WaitDecision::Continue(servo_sdk::Duration::from_seconds(1)),
                });
                ctx.wait_for_condition(|state, _| Ok(state + 1), twice.named(&label)).await
            }
        }
    }

    async fn gate(&self, ctx: &DurableContext, label: &str) -> Result<u64, DurableError> {
        let body = async |_: StepContext| {
            self.ledger.at_gate();
            self.gate.clone().wait_for(|open| *open).await?;
            Ok(self.ledger.fresh())
        };
        ctx.step(body, config(label)).await
    }

    async fn step(&self, ctx: &DurableContext, label: &str, failures: u32) -> Result<u64, DurableError> {
        let body = async |step: StepContext| {
            pause(BODY).await;
            if step.attempt() <= failures { Err("not yet".into()) } else { Ok(self.ledger.fresh()) }
        };
        ctx.step(body, config(label)).await
    }

    /// A client of the server that there is now.
    fn client(&self) -> Result<ServoClient, ServiceError> {
        let url = self.server.borrow().clone();
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        match &*clients {
            Some((at, client)) if *at == url => Ok(client.clone()),
            _ => {
                let client = ServoClient::new(&url, None)?;
                *clients = Some((url, client.clone()));
                Ok(client)
            }
        }
    }
}

/// One invocation's way to the server, which notes what it should not get away with.
struct Watched {
    worker: Worker,
    number: u32,
}

#[async_trait]
impl DurableServiceClient for Watched {
    async fn checkpoint(&self, arn: &str, request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
        let ledger = &self.worker.ledger;
        let replaced = ledger.is_replaced(arn, self.number);
        let answer = self.worker.client()?.checkpoint(arn, request).await;
        match &answer {
            Ok(_) if replaced => {
                ledger.find(format!("{arn}: invocation {} recorded after another had begun", self.number));
            }
            Err(ServiceError::Refused { status: 400, .. }) if replaced => ledger.refused(),
            _ => {}
        }
        answer
    }

    async fn get_state(&self, arn: &str, token: &str, marker: &str) -> Result<GetStateResponse, ServiceError> {
        self.worker.client()?.get_state(arn, token, marker).await
    }
}
