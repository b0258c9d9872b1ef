//! Runs handlers in this process, over the same client and wire protocol as a worker elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, Either, select};
use serde_json::Value;
use servo_adapter::{HandlerCall, HandlerFailure};
use servo_conformance::LogRecord;
use servo_sdk::{
    BoxError, DurableContext, DurableError, DurableExecutionInvocationInput, DurableServiceClient, LogContext,
    LogLevel, Logger, Options, handle,
};
use tokio::sync::{Notify, watch};

use crate::handlers::TARGETS;

/// A handler of a case.
pub(crate) type Body = fn(Value, DurableContext, Crash) -> BoxFuture<'static, Result<Value, DurableError>>;

/// Stands for the end of the process that an invocation runs in.
#[derive(Clone, Default)]
pub(crate) struct Crash(Arc<Notify>);

impl Crash {
    /// Never returns: the invocation is dropped at this await, with nothing told to the service.
    pub(crate) async fn exit<T>(&self) -> Result<T, BoxError> {
        self.0.notify_one();
        std::future::pending().await
    }
}

#[derive(Default)]
struct Records(Mutex<Vec<LogRecord>>);

impl Logger for Records {
    fn log(&self, level: LogLevel, message: &str, context: &LogContext<'_>) {
        let record = LogRecord {
            execution_arn: context.durable_execution_arn.to_owned(),
            level: format!("{level:?}").to_uppercase(),
            message: message.to_owned(),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }
}

pub(crate) struct Worker {
    client: Arc<dyn DurableServiceClient>,
    bodies: BTreeMap<String, Body>,
    records: Arc<Records>,
    /// Executions of targets that may go on.
    released: watch::Sender<BTreeSet<String>>,
}

impl Worker {
    pub(crate) fn new(client: Arc<dyn DurableServiceClient>, bodies: BTreeMap<String, Body>) -> Self {
        Self { client, bodies, records: Arc::default(), released: watch::Sender::default() }
    }

    pub(crate) fn records(&self, arn: &str) -> Vec<LogRecord> {
        let records = self.records.0.lock().unwrap_or_else(PoisonError::into_inner);
        records.iter().filter(|record| record.execution_arn == arn).cloned().collect()
    }

    /// Lets the target of a chained invoke run.
    pub(crate) fn release(&self, arn: &str) {
        self.released.send_if_modified(|released| released.insert(arn.to_owned()));
    }

    /// The cases know only targets that outlast the invocation which started them. Ours are fast enough to be done before.
    async fn hold(&self, arn: &str) {
        // The sender is ours, so the wait ends only with the release.
        let _ = self.released.subscribe().wait_for(|released| released.contains(arn)).await;
    }

    pub(crate) async fn call(&self, call: HandlerCall) -> Result<String, HandlerFailure> {
        let body = *self.bodies.get(&call.function).unwrap();
        let input: DurableExecutionInvocationInput = serde_json::from_str(&call.payload).unwrap();
        if TARGETS.iter().any(|(name, _)| *name == call.function) {
            self.hold(&input.durable_execution_arn).await;
        }
        let crash = Crash::default();
        let handler = |event: Value, ctx: DurableContext| body(event, ctx, crash.clone());
        // The cases that count records ask for those of a replay too.
        let options = Options { logger: self.records.clone(), replay_logging: true, ..Options::default() };
        let answer = Box::pin(handle(handler, input, self.client.clone(), options));
        let exit = std::pin::pin!(crash.0.notified());
        match select(answer, exit).await {
            Either::Left((Ok(output), _)) => Ok(serde_json::to_string(&output).unwrap()),
            Either::Left((Err(error), _)) => Err(HandlerFailure::crashed(error.0.error_type(), error.0.message())),
            Either::Right(_) => Err(HandlerFailure::crashed("Runtime.ExitError", "exit status 1")),
        }
    }
}
