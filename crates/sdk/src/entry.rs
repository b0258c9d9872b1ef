//! One invocation from its input to its answer.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_wire::lambda::{
    ANSWER_BYTES_MAX, DurableExecutionInvocationInput, DurableExecutionInvocationOutput, ErrorObject, OperationAction,
    OperationType, OperationUpdate,
};
use tracing::Instrument as _;

use crate::handler::Handler;
use crate::options::Options;
use crate::plugin::{InvocationEnd, InvocationInfo};
use crate::pump::{Caller, pump};
use crate::service::DurableServiceClient;
use crate::state::{ExecutionState, Stop};
use crate::{DurableContext, DurableError, InvocationError, TerminationReason, panic};

/// Runs a handler on what is recorded about its execution, until it returns or has to wait.
///
/// The answer belongs to the service. An error means that the service is to invoke the handler again.
pub async fn handle<E, R, H>(
    handler: H,
    input: DurableExecutionInvocationInput,
    client: Arc<dyn DurableServiceClient>,
    options: Options,
) -> Result<DurableExecutionInvocationOutput, InvocationError>
where
    E: DeserializeOwned + Send,
    R: Serialize + Send,
    H: Handler<E, R>,
{
    let arn = input.durable_execution_arn.clone();
    let span = tracing::info_span!("durable.invocation", executionArn = %arn);
    let plugins = options.plugins.clone();
    let answer = invoke(handler, input, client, options).instrument(span).await;
    let (status, error) = match &answer {
        Ok(output) => (Some(output.status), output.error.clone()),
        Err(error) => (None, Some(error.0.to_error_object())),
    };
    let end = InvocationEnd { durable_execution_arn: arn, status, error };
    crate::plugin::call(&plugins, "on_invocation_end", |plugin| plugin.on_invocation_end(&end));
    answer
}

async fn invoke<E, R, H>(
    handler: H,
    input: DurableExecutionInvocationInput,
    client: Arc<dyn DurableServiceClient>,
    options: Options,
) -> Result<DurableExecutionInvocationOutput, InvocationError>
where
    E: DeserializeOwned + Send,
    R: Serialize + Send,
    H: Handler<E, R>,
{
    let caller = Caller::new(client, &input, options.clone());
    let arn = input.durable_execution_arn.clone();
    let updated_operation_ids = input.updated_operation_ids.clone();
    let journal = match caller.load(input).await {
        Ok(journal) => journal,
        Err(stop) => return answer_to(stop),
    };
    let Some(execution) = journal.execution().cloned() else {
        return Err(invocation_error(
            "the service sent no EXECUTION operation; it is to send the state from its beginning",
        ));
    };
    let is_first = journal.operations().all(|operation| operation.operation_type == OperationType::Execution);
    let state = Arc::new(ExecutionState::new(arn.clone(), &execution, journal, options));
    let info = InvocationInfo { durable_execution_arn: arn, is_first, updated_operation_ids };
    state.hook("on_invocation_start", |plugin| plugin.on_invocation_start(&info));

    let ctx = DurableContext::root(state.clone());
    let event = match ctx.get_original_input::<E>() {
        Ok(event) => event,
        Err(error) => return Ok(failed(&error)),
    };
    let answer = drive(handler, event, ctx, &state, caller).await;
    // The handler's future is gone by now, so nobody who could still record something is woken.
    state.close();
    answer
}

fn invocation_error(message: &str) -> InvocationError {
    let termination_reason = TerminationReason::InvocationError;
    InvocationError(DurableError::Invocation { message: message.to_owned(), termination_reason })
}

async fn drive<E, R, H>(
    handler: H,
    event: E,
    ctx: DurableContext,
    state: &ExecutionState,
    caller: Caller,
) -> Result<DurableExecutionInvocationOutput, InvocationError>
where
    R: Serialize,
    H: Handler<E, R>,
{
    let mut pump = pin!(pump(state, caller));
    let returned = {
        let body = async { handler.call(event, ctx).await.map_err(Into::into) };
        let mut body = pin!(panic::guard(body));
        let waker = Waker::from(state.handler_wake.clone());
        std::future::poll_fn(|cx| {
            if state.handler_wake.take(cx.waker())
                && let Poll::Ready(result) = body.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return Poll::Ready(Ok(result));
            }
            pump.as_mut().poll(cx).map(Err)
        })
        .await
    };
    let result = match returned {
        Ok(result) => result,
        Err(stop) => return answer_to(stop),
    };
    let answer = match result.and_then(|value| serialize(&value)) {
        Ok(text) => {
            if text.len() > ANSWER_BYTES_MAX {
                state.finish(Some(last_update(state, OperationAction::Succeed, Some(text), None)));
                DurableExecutionInvocationOutput::succeeded(Some(String::new()))
            } else {
                state.finish(None);
                DurableExecutionInvocationOutput::succeeded(Some(text))
            }
        }
        Err(error) => {
            let object = match verdict(error) {
                Ok(object) => object,
                Err(stop) => return answer_to(stop),
            };
            if object.len() > ANSWER_BYTES_MAX {
                state.finish(Some(last_update(state, OperationAction::Fail, None, Some(object))));
                DurableExecutionInvocationOutput::failed(None)
            } else {
                state.finish(None);
                DurableExecutionInvocationOutput::failed(Some(object))
            }
        }
    };
    // What is still in line goes out first, and a call that is under way is not torn.
    match pump.await {
        Stop::Drained => Ok(answer),
        stop => answer_to(stop),
    }
}

fn serialize<R: Serialize>(value: &R) -> Result<String, DurableError> {
    serde_json::to_string(value).map_err(|error| DurableError::SerDes {
        message: format!("the handler's result could not be written: {error}"),
    })
}

fn last_update(
    state: &ExecutionState,
    action: OperationAction,
    payload: Option<String>,
    error: Option<ErrorObject>,
) -> OperationUpdate {
    // No operation has this id; the other SDKs call it so too.
    let id = format!("execution-result-{}", state.now().as_millis());
    OperationUpdate { payload, error, ..OperationUpdate::new(id, OperationType::Execution, action) }
}

/// What a handler's error means: a failed execution, or an end of this invocation only.
fn verdict(error: DurableError) -> Result<ErrorObject, Stop> {
    match error {
        DurableError::Suspend { .. } => Err(Stop::Suspend),
        DurableError::Invocation { .. }
        | DurableError::Throttling { .. }
        | DurableError::Checkpoint { is_retriable: true, .. } => Err(Stop::Reinvoke(error)),
        error => Ok(error.to_error_object()),
    }
}

fn failed(error: &DurableError) -> DurableExecutionInvocationOutput {
    DurableExecutionInvocationOutput::failed(Some(error.to_error_object()))
}

fn answer_to(stop: Stop) -> Result<DurableExecutionInvocationOutput, InvocationError> {
    match stop {
        Stop::Suspend | Stop::Withdrawn | Stop::Drained => Ok(DurableExecutionInvocationOutput::pending()),
        Stop::Fail(error) => Ok(failed(&error)),
        Stop::Reinvoke(error) => Err(InvocationError(error)),
    }
}
