//! Callbacks: an outside party brings the result.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::{OperationAction, OperationStatus, OperationType};
use servo_replay::{Operation, SubType};
use servo_wire::lambda::CallbackOptions;

use super::child::{Shape, run_context};
use crate::config::{CallbackConfig, Nesting, StepConfig, WaitForCallbackConfig};
use crate::future::DurableFuture;
use crate::handler::Outcome;
use crate::op::Op;
use crate::serdes::ValueSerDes;
use crate::state::{Until, Want};
use crate::{DurableContext, DurableError, StepContext};

/// What the service takes.
const TIMEOUT_SECONDS_MAX: u64 = 99_999_999;

/// A promise that somebody outside keeps, or breaks.
#[derive(Clone)]
pub struct Callback<T> {
    op: Op,
    callback_id: String,
    serdes: Option<ValueSerDes>,
    result: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Callback<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callback").field("callback_id", &self.callback_id).finish_non_exhaustive()
    }
}

impl<T> Callback<T> {
    /// What the outside party answers to.
    pub fn callback_id(&self) -> &str {
        &self.callback_id
    }
}

impl<T: DeserializeOwned> Callback<T> {
    /// Suspends until the answer is there. A failure or a timeout is an error.
    pub async fn result(&self) -> Result<T, DurableError> {
        let known = self.op.state.get(&self.op.id).filter(|operation| operation.status.is_terminal());
        let operation = match known {
            Some(operation) => operation,
            None => {
                let operation = self.op.until(Until::Finished).await?;
                let (result, error) = operation.outcome();
                self.op.ended(operation.status, result, error);
                operation
            }
        };
        if operation.status != OperationStatus::Succeeded {
            return Err(self.error(&operation));
        }
        self.op.read(operation.outcome().0, self.serdes.as_ref())
    }

    fn error(&self, operation: &Operation) -> DurableError {
        let said = operation.outcome().1.and_then(|error| error.error_message.clone());
        let message = said.unwrap_or_else(|| format!("the callback ended as {}", operation.status.as_str()));
        DurableError::Callback { message, callback_id: Some(self.callback_id.clone()), status: Some(operation.status) }
    }
}

impl DurableContext {
    /// Makes a callback id that an outside party can answer to. Returns at once, also when the answer is there already.
    ///
    /// ```
    /// use servo_sdk::{Callback, CallbackConfig, DurableContext, DurableError, Duration, StepConfig};
    ///
    /// async fn deliver(parcel: u64, ctx: DurableContext) -> Result<String, DurableError> {
    ///     let signed = CallbackConfig::named("signed").timeout(Duration::from_days(2));
    ///     let signed: Callback<String> = ctx.create_callback(signed).await?;
    ///     let id = signed.callback_id();
    ///     // Whoever has the id answers with a JSON text, over the API, the console or the command line.
    ///     let send = |_| { println!("courier: bring {parcel}, answer to {id}"); Ok(()) };
    ///     let () = ctx.step(send, StepConfig::named("send")).await?;
    ///     signed.result().await
    /// }
    /// ```
    pub fn create_callback<'a, T>(
        &self,
        config: impl Into<Option<CallbackConfig>>,
    ) -> DurableFuture<'a, Result<Callback<T>, DurableError>>
    where
        T: DeserializeOwned + 'a,
    {
        let config = config.into().unwrap_or_default();
        let op = self.op((OperationType::Callback, SubType::Callback), config.name.as_deref());
        DurableFuture::new(op, |op| create(op, config))
    }

    /// Makes a callback, runs `submitter` with its id as a step, and waits for the answer.
    ///
    /// `submitter` gets a [`StepContext`] and the id. A refusal and a timeout are a [`DurableError::Callback`].
    ///
    /// ```
    /// use servo_sdk::{DurableContext, DurableError, Duration, StepContext, WaitForCallbackConfig};
    ///
    /// async fn approve(cents: u64, ctx: DurableContext) -> Result<String, DurableError> {
    ///     let ask = |_: StepContext, id: String| { println!("{cents} cents? answer to {id}"); Ok(()) };
    ///     let patient = WaitForCallbackConfig::named("approval").timeout(Duration::from_days(2));
    ///     match ctx.wait_for_callback(ask, patient).await {
    ///         Err(DurableError::Callback { message, .. }) => Ok(format!("not approved: {message}")),
    ///         outcome => outcome,
    ///     }
    /// }
    /// ```
    pub fn wait_for_callback<'a, T, F, R, M>(
        &self,
        submitter: F,
        config: impl Into<Option<WaitForCallbackConfig>>,
    ) -> DurableFuture<'a, Result<T, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        F: FnOnce(StepContext, String) -> R + Send + 'a,
        R: Outcome<M, ()> + 'a,
        R::Future: Send + 'a,
        M: 'a,
    {
        let config = config.into().unwrap_or_default();
        let op = self.op((OperationType::Context, SubType::WaitForCallback), config.name.as_deref());
        DurableFuture::new(op, |op| async move {
            let shape = Shape::new(config.serdes.as_ref(), Nesting::Nested);
            run_context(&op, shape, |ctx, _| submit_and_wait(ctx, submitter, &config)).await
        })
    }
}

async fn submit_and_wait<T, F, R, M>(
    ctx: DurableContext,
    submitter: F,
    config: &WaitForCallbackConfig,
) -> Result<T, crate::BoxError>
where
    T: DeserializeOwned,
    F: FnOnce(StepContext, String) -> R + Send,
    R: Outcome<M, ()>,
    R::Future: Send,
{
    let child_name = |part: &str| config.name.as_ref().map(|name| format!("{name} {part}"));
    let callback = CallbackConfig {
        name: child_name("create callback id"),
        timeout_seconds: config.timeout_seconds,
        heartbeat_timeout_seconds: config.heartbeat_timeout_seconds,
        serdes: config.serdes.clone(),
    };
    let callback = ctx.create_callback::<T>(Some(callback)).await?;
    let step = StepConfig {
        name: child_name("submitter"),
        retry_strategy: config.retry_strategy.clone(),
        ..StepConfig::default()
    };
    let id = callback.callback_id().to_owned();
    ctx.step(|step| submitter(step, id).into_future(), Some(step)).await?;
    Ok(callback.result().await?)
}

async fn create<T>(op: Op, config: CallbackConfig) -> Result<Callback<T>, DurableError> {
    let timeouts = [config.timeout_seconds, config.heartbeat_timeout_seconds];
    if let Some(seconds) = timeouts.into_iter().flatten().find(|seconds| *seconds > TIMEOUT_SECONDS_MAX) {
        return Err(DurableError::validation(format!(
            "a callback timeout of {seconds} seconds is over {TIMEOUT_SECONDS_MAX}; leave it out for none"
        )));
    }
    let recorded = op.begin().await?;
    let recorded = match recorded {
        Some(recorded) => Some(recorded),
        None => {
            let mut update = op.update(OperationAction::Start);
            update.callback_options = Some(CallbackOptions {
                timeout_seconds: config.timeout_seconds,
                heartbeat_timeout_seconds: config.heartbeat_timeout_seconds,
            });
            let ticket = op.send(update, true)?;
            op.state.wait(Want::Recorded(ticket)).await?;
            op.state.get(&op.id)
        }
    };
    let details = recorded.as_ref().and_then(|operation| operation.callback_details.as_ref());
    let Some(callback_id) = details.and_then(|details| details.callback_id.clone()) else {
        return Err(DurableError::Checkpoint {
            message: "the service recorded the callback without giving it an id".to_owned(),
            is_retriable: false,
            aws_error: None,
        });
    };
    Ok(Callback { op, callback_id, serdes: config.serdes, result: PhantomData })
}
