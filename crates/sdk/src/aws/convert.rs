//! Between this SDK's types, which are the wire's, and those of AWS's client.

use aws_sdk_lambda::error::BuildError;
use aws_sdk_lambda::operation::checkpoint_durable_execution::CheckpointDurableExecutionOutput;
use aws_sdk_lambda::operation::get_durable_execution_state::GetDurableExecutionStateOutput;
use aws_sdk_lambda::primitives::DateTime;
use aws_sdk_lambda::types as aws;
use serde::de::DeserializeOwned;
use serde_json::Value;
use servo_model::Timestamp;
use servo_model::operation::{
    CallbackOptions, ChainedInvokeOptions, ContextOptions, ErrorObject, OperationUpdate, StepOptions, WaitOptions,
};
use servo_wire::lambda::{
    CallbackDetails, ChainedInvokeDetails, CheckpointResponse, ContextDetails, ExecutionDetails, GetStateResponse,
    NewExecutionState, Operation, Seconds, StepDetails, WaitDetails,
};

use crate::service::ServiceError;

/// What AWS's client does not take was never sent, and never will be.
fn unfit(error: &BuildError) -> ServiceError {
    ServiceError::Unreadable(format!("the update cannot be sent: {error}"))
}

pub(super) fn update(update: OperationUpdate) -> Result<aws::OperationUpdate, ServiceError> {
    let chained = update.chained_invoke_options.map(chained).transpose()?;
    let wait =
        |options: WaitOptions| aws::WaitOptions::builder().set_wait_seconds(options.wait_seconds.map(seconds)).build();
    let step = |options: StepOptions| {
        let delay = options.next_attempt_delay_seconds.map(seconds);
        aws::StepOptions::builder().set_next_attempt_delay_seconds(delay).build()
    };
    let context =
        |options: ContextOptions| aws::ContextOptions::builder().set_replay_children(options.replay_children).build();
    let callback = |options: CallbackOptions| {
        aws::CallbackOptions::builder()
            .set_timeout_seconds(options.timeout_seconds.map(seconds))
            .set_heartbeat_timeout_seconds(options.heartbeat_timeout_seconds.map(seconds))
            .build()
    };
    aws::OperationUpdate::builder()
        .id(update.id)
        .set_parent_id(update.parent_id)
        .set_name(update.name)
        .r#type(update.operation_type.as_str().into())
        .set_sub_type(update.sub_type)
        .action(update.action.as_str().into())
        .set_payload(update.payload)
        .set_error(update.error.map(error_object))
        .set_context_options(update.context_options.map(context))
        .set_step_options(update.step_options.map(step))
        .set_wait_options(update.wait_options.map(wait))
        .set_callback_options(update.callback_options.map(callback))
        .set_chained_invoke_options(chained)
        .build()
        .map_err(|error| unfit(&error))
}

fn chained(options: ChainedInvokeOptions) -> Result<aws::ChainedInvokeOptions, ServiceError> {
    aws::ChainedInvokeOptions::builder()
        .function_name(options.function_name)
        .set_tenant_id(options.tenant_id)
        .set_x_amzn_trace_id(options.trace_id)
        .build()
        .map_err(|error| unfit(&error))
}

fn error_object(error: ErrorObject) -> aws::ErrorObject {
    aws::ErrorObject::builder()
        .set_error_message(error.error_message)
        .set_error_type(error.error_type)
        .set_error_data(error.error_data)
        .set_stack_trace(error.stack_trace)
        .build()
}

/// A number that does not fit is far above the service's limits, and is refused by it as it would have been.
fn seconds(seconds: u64) -> i32 {
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

pub(super) fn checkpointed(output: CheckpointDurableExecutionOutput) -> Result<CheckpointResponse, ServiceError> {
    let Some(state) = output.new_execution_state else {
        return Err(ServiceError::Unreadable("NewExecutionState is missing".to_owned()));
    };
    let operations = state.operations.unwrap_or_default().into_iter().map(operation).collect::<Result<_, _>>()?;
    Ok(CheckpointResponse {
        checkpoint_token: output.checkpoint_token,
        new_execution_state: NewExecutionState { operations, next_marker: state.next_marker },
    })
}

pub(super) fn state(output: GetDurableExecutionStateOutput) -> Result<GetStateResponse, ServiceError> {
    let operations = output.operations.into_iter().map(operation).collect::<Result<_, _>>()?;
    Ok(GetStateResponse { operations, next_marker: output.next_marker })
}

fn operation(known: aws::Operation) -> Result<Operation<Seconds>, ServiceError> {
    Ok(Operation {
        id: known.id,
        parent_id: known.parent_id,
        name: known.name,
        operation_type: word(known.r#type.as_str())?,
        sub_type: known.sub_type,
        start_timestamp: time(known.start_timestamp),
        end_timestamp: known.end_timestamp.map(time),
        status: word(known.status.as_str())?,
        execution_details: known
            .execution_details
            .map(|details| ExecutionDetails { input_payload: details.input_payload }),
        context_details: known.context_details.map(|details| ContextDetails {
            replay_children: details.replay_children,
            result: details.result,
            error: details.error.map(known_error),
        }),
        step_details: known.step_details.map(step_details),
        wait_details: known
            .wait_details
            .map(|details| WaitDetails { scheduled_end_timestamp: details.scheduled_end_timestamp.map(time) }),
        callback_details: known.callback_details.map(|details| CallbackDetails {
            callback_id: details.callback_id,
            result: details.result,
            error: details.error.map(known_error),
        }),
        chained_invoke_details: known
            .chained_invoke_details
            .map(|details| ChainedInvokeDetails { result: details.result, error: details.error.map(known_error) }),
    })
}

fn step_details(details: aws::StepDetails) -> StepDetails<Seconds> {
    StepDetails {
        attempt: u32::try_from(details.attempt).unwrap_or(0),
        next_attempt_timestamp: details.next_attempt_timestamp.map(time),
        result: details.result,
        error: details.error.map(known_error),
    }
}

fn known_error(error: aws::ErrorObject) -> ErrorObject {
    ErrorObject {
        error_message: error.error_message,
        error_type: error.error_type,
        error_data: error.error_data,
        stack_trace: error.stack_trace,
    }
}

/// To the nearest millisecond, which is what was sent: on its way through a fraction it may have become a little less.
fn time(at: DateTime) -> Seconds {
    let millis = i64::from((at.subsec_nanos() + 500_000) / 1_000_000);
    Seconds(Timestamp::from_millis(at.secs().saturating_mul(1_000).saturating_add(millis)))
}

/// A word of the API that this version knows.
fn word<T: DeserializeOwned>(text: &str) -> Result<T, ServiceError> {
    serde_json::from_value(Value::String(text.to_owned()))
        .map_err(|_| ServiceError::Unreadable(format!("`{text}` is not known here")))
}
