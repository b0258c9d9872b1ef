//! The conversation with the service: one call at a time, repeated while that can help, each with the token of the last.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use servo_canon::Digest;
use servo_replay::{Jitter, Journal, Operation, chance, exponential_delay, spread};
use servo_wire::lambda::{
    CheckpointRequest, DurableExecutionInvocationInput, OperationAction, OperationType, OperationUpdate,
};

use crate::options::Options;
use crate::service::{DurableServiceClient, ServiceError, Verdict};
use crate::state::{ExecutionState, Next, Stop};
use crate::{DurableError, TerminationReason};

const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How the service refuses to cancel a wait whose end has come in the meantime.
const LATE_CANCEL: &str = "Cannot cancel a WAIT";
/// Pages of one state. At a page of a hundred operations this is more than an execution may have.
const PAGES_MAX: usize = 10_000;

pub(crate) struct Caller {
    client: Arc<dyn DurableServiceClient>,
    arn: String,
    token: String,
    options: Options,
}

impl Caller {
    pub(crate) fn new(
        client: Arc<dyn DurableServiceClient>,
        input: &DurableExecutionInvocationInput,
        options: Options,
    ) -> Self {
        let (arn, token) = (input.durable_execution_arn.clone(), input.checkpoint_token.clone());
        Self { client, arn, token, options }
    }

    /// The whole recorded state, however many pages it has.
    pub(crate) async fn load(&self, input: DurableExecutionInvocationInput) -> Result<Journal, Stop> {
        let first = input.initial_execution_state;
        let mut operations: Vec<Operation> =
            first.operations.into_iter().map(|operation| operation.with_time()).collect();
        operations.extend(self.pages(first.next_marker).await?);
        Ok(Journal::load(operations))
    }

    async fn pages(&self, marker: Option<String>) -> Result<Vec<Operation>, Stop> {
        let mut operations = Vec::new();
        let mut marker = marker.filter(|marker| !marker.is_empty());
        for _ in 0..PAGES_MAX {
            let Some(at) = marker else { return Ok(operations) };
            let page = self.repeat(|| self.client.get_state(&self.arn, &self.token, &at)).await?;
            operations.extend(page.operations.into_iter().map(|operation| operation.with_time()));
            marker = page.next_marker.filter(|next| !next.is_empty() && *next != at);
        }
        Err(Stop::Fail(DurableError::SizeLimit {
            message: format!("the execution's state has over {PAGES_MAX} pages"),
        }))
    }

    /// Records updates, or asks for news when there are none.
    async fn checkpoint(&mut self, state: &ExecutionState, mut updates: Vec<OperationUpdate>) -> Result<(), Stop> {
        let count = updates.len();
        let ends = updates.last().is_some_and(|update| update.operation_type == OperationType::Execution);
        let response = loop {
            let client_token = Some(self.client_token(&updates));
            let request = CheckpointRequest {
                checkpoint_token: self.token.clone(),
                updates: (!updates.is_empty()).then_some(updates),
                client_token,
            };
            let answer = self.repeat(|| self.client.checkpoint(&self.arn, request.clone())).await;
            updates = request.updates.unwrap_or_default();
            match answer {
                Ok(response) => break response,
                Err(Stop::Fail(error)) if is_late_cancel(&error, &updates) => {
                    // The wait is over either way; the rest of the call must not fail for it.
                    updates.retain(|update| update.action != OperationAction::Cancel);
                }
                Err(stop) => return Err(stop),
            }
        };
        let state_part = response.new_execution_state;
        let mut operations: Vec<Operation> =
            state_part.operations.into_iter().map(|operation| operation.with_time()).collect();
        let Some(token) = response.checkpoint_token else {
            state.accept(count, operations);
            return if ends { Ok(()) } else { Err(Stop::Withdrawn) };
        };
        self.token = token;
        operations.extend(self.pages(state_part.next_marker).await?);
        state.accept(count, operations);
        Ok(())
    }

    /// The same for every repetition of a call and for no other call, so that the service can tell them apart.
    fn client_token(&self, updates: &[OperationUpdate]) -> String {
        Digest::of_parts(&[&self.token, &updates.len().to_string()], '\n').to_string()
    }

    async fn repeat<T, F: Future<Output = Result<T, ServiceError>>>(
        &self,
        mut call: impl FnMut() -> F,
    ) -> Result<T, Stop> {
        let mut attempt = 1;
        loop {
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match error.verdict() {
                Verdict::Fail => return Err(Stop::Fail(error.into_durable())),
                Verdict::Reinvoke => return Err(Stop::Reinvoke(error.into_durable())),
                Verdict::Retry if attempt >= self.options.call_attempts_max => {
                    let message = format!("{attempt} calls failed, the last one so: {error}");
                    let termination_reason = TerminationReason::CheckpointFailed;
                    return Err(Stop::Reinvoke(DurableError::Invocation { message, termination_reason }));
                }
                Verdict::Retry => {
                    tracing::debug!(attempt, %error, "a call to the service failed and is repeated");
                    let pause = exponential_delay(PAUSE, PAUSE_MAX, 2.0, attempt);
                    let pause = spread(pause, Jitter::Half, chance(&self.arn, &self.token, attempt));
                    self.options.clock.sleep(pause).await;
                    attempt += 1;
                }
            }
        }
    }
}

fn is_late_cancel(error: &DurableError, updates: &[OperationUpdate]) -> bool {
    let cancels = updates.iter().any(|update| update.action == OperationAction::Cancel);
    let said = match error {
        DurableError::Checkpoint { aws_error: Some(error), .. } => error.message.as_str(),
        _ => return false,
    };
    cancels && said.starts_with(LATE_CANCEL)
}

/// Carries updates out and answers in until the invocation is to end.
pub(crate) async fn pump(state: &ExecutionState, mut caller: Caller) -> Stop {
    loop {
        match state.next() {
            Next::Stop(stop) => return stop,
            Next::Send(updates) => {
                if let Err(stop) = caller.checkpoint(state, updates).await {
                    return stop;
                }
            }
            Next::Settle(version) => {
                // Wake-ups that the runtime holds back until a task yields are let through first.
                tokio::task::yield_now().await;
                if state.is_settled(version) {
                    return Stop::Suspend;
                }
            }
            Next::Wait { version, at } => {
                let changed = pin!(std::future::poll_fn(|cx| state.poll_changed(version, cx)));
                match at {
                    None => changed.await,
                    Some(at) => {
                        let clock = &caller.options.clock;
                        match select(changed, clock.sleep(at.since(clock.now()))).await {
                            Either::Left(_) | Either::Right(_) => {}
                        }
                    }
                }
            }
        }
    }
}
