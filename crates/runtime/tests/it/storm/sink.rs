//! What runs call: down until it is opened. Keeps who has called it and when.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use servo_adapter::{FailureKind, HandlerCall, HandlerFailure, Handlers, Reply};
use servo_entrypoint::{RuntimeErrorCategory, errors};
use servo_model::invocation::Failure as Failed;
use servo_model::operation::{OperationAction as A, StepOptions};
use servo_model::{RunId, Timestamp};
use servo_replay::{Backoff, Failure, RetryContext, RetryStrategy as _, chance};
use servo_runtime::executions::Executions;
use servo_wire::lambda::{CheckpointRequest, DurableExecutionInvocationInput};

use crate::executions::handler::{Answer, pending, step, succeeded};

/// How long a call of it takes, up or down.
pub(super) const TAKES: Duration = Duration::from_millis(250);

/// The function that is itself down, with whatever it would call.
pub(super) const AWAY: &str = "away";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    /// In milliseconds.
    pub at: i64,
    pub function: String,
    pub run_id: RunId,
}

#[derive(Clone)]
pub(super) struct Sink(Arc<Inner>);

struct Inner {
    up_at: AtomicI64,
    attempts: Mutex<Vec<Attempt>>,
    executions: OnceLock<Executions>,
    /// Of the steps, by function.
    rules: BTreeMap<&'static str, Backoff>,
}

impl Sink {
    pub(super) fn new(rules: impl IntoIterator<Item = (&'static str, Backoff)>) -> Self {
        Self(Arc::new(Inner {
            up_at: AtomicI64::new(i64::MAX),
            attempts: Mutex::default(),
            executions: OnceLock::new(),
            rules: rules.into_iter().collect(),
        }))
    }

    /// The node whose API handlers call.
    pub(super) fn serve(&self, executions: &Executions) {
        assert!(self.0.executions.set(executions.clone()).is_ok());
    }

    pub(super) fn open(&self, at: Timestamp) {
        self.0.up_at.store(at.as_millis(), Ordering::SeqCst);
    }

    pub(super) fn up_at(&self) -> i64 {
        self.0.up_at.load(Ordering::SeqCst)
    }

    pub(super) fn attempts(&self) -> Vec<Attempt> {
        self.0.attempts.lock().unwrap().clone()
    }

    /// Whether the call has found it up.
    async fn ask(&self, call: &HandlerCall) -> bool {
        let engine = self.0.executions.get().unwrap().engine().clone();
        let at = engine.now().as_millis();
        let attempt = Attempt { at, function: call.function.clone(), run_id: call.run_id.clone() };
        self.0.attempts.lock().unwrap().push(attempt);
        engine.clock().sleep(TAKES).await;
        at >= self.up_at()
    }

    /// One attempt of the only step, as the SDK makes it.
    async fn durable(&self, call: &HandlerCall) -> Answer {
        let input: DurableExecutionInvocationInput = serde_json::from_str(&call.payload).unwrap();
        let known = input.initial_execution_state.operations.iter().find(|operation| operation.id == "s");
        let attempt = known.and_then(|operation| Some(operation.step_details.as_ref()?.attempt)).unwrap_or(0) + 1;
        let arn = &input.durable_execution_arn;
        let (ended, answer) = if self.ask(call).await {
            (step("s", A::Succeed), succeeded("1"))
        } else {
            let failure = Failure { error_type: "Timeout", message: "down", interrupted: false };
            let context = RetryContext { failure, attempt, jitter: chance(arn, "s", attempt) };
            match self.0.rules[call.function.as_str()].decide(&context).delay_seconds() {
                Some(seconds) => {
                    let mut again = step("s", A::Retry);
                    again.step_options = Some(StepOptions::after_seconds(seconds));
                    (again, pending())
                }
                None => (step("s", A::Fail), Ok(r#"{"Status":"FAILED"}"#.to_owned())),
            }
        };
        let updates = Some(vec![step("s", A::Start), ended]);
        let request = CheckpointRequest { checkpoint_token: input.checkpoint_token, updates, client_token: None };
        let executions = self.0.executions.get().unwrap().clone();
        executions.checkpoint(&call.tenant, arn, request).await.unwrap();
        answer
    }
}

#[async_trait]
impl Handlers for Sink {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        if call.spec.durable {
            return self.durable(&call).await.map(Reply::from);
        }
        if self.ask(&call).await {
            return Ok("{}".to_owned().into());
        }
        if call.function == AWAY {
            return Err(HandlerFailure::unreached("Runtime.ConnectionError", "connection refused"));
        }
        let failed = Failed::new(errors::EXECUTION, RuntimeErrorCategory::Retryable, "the sink is down");
        Err(HandlerFailure::new(FailureKind::Failed, failed.to_error()))
    }
}
