//! Steps: code with an outcome that is recorded, tried again by rule.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::{ErrorObject, OperationAction, OperationStatus, OperationType};
use servo_replay::{Backoff, Failure, RetryContext, RetryStrategy as _, SubType, chance};
use servo_wire::lambda::StepOptions;

use crate::config::{StepConfig, StepSemantics};
use crate::future::DurableFuture;
use crate::handler::Outcome;
use crate::logger::{Scope, ScopedLogger};
use crate::op::{Op, check_size, error_of};
use crate::plugin::AttemptInfo;
use crate::state::{Until, Want};
use crate::{DurableContext, DurableError, TerminationReason, panic};

/// What the body of a step can know about itself.
#[derive(Clone)]
pub struct StepContext {
    op: Op,
    attempt: u32,
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext").field("id", &self.op.id).field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

impl StepContext {
    pub(crate) fn new(op: Op, attempt: u32) -> Self {
        Self { op, attempt }
    }

    /// From 1. Also the number to build idempotency keys from.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    pub fn operation_id(&self) -> &str {
        &self.op.id
    }

    pub fn durable_execution_arn(&self) -> &str {
        self.op.state.arn()
    }

    pub fn logger(&self) -> ScopedLogger {
        let (id, name) = (self.op.id.clone(), self.op.identity.name.clone());
        ScopedLogger { state: self.op.state.clone(), scope: Scope::Attempt { id, name, attempt: self.attempt } }
    }
}

impl DurableContext {
    /// Runs `func` and records its result. On replay the recorded result comes back and `func` does not run.
    ///
    /// `func` gets a [`StepContext`] and returns a result or a future of one. It may borrow from the handler. Without a
    /// configuration the step has no name and six attempts.
    ///
    /// ```
    /// use servo_sdk::{Backoff, DurableContext, DurableError, Duration, RetryContext, RetryDecision, StepConfig, StepContext};
    ///
    /// async fn pay(cents: u64, ctx: DurableContext) -> Result<String, DurableError> {
    ///     let key: String = ctx.step(|_| Ok(format!("key-{cents}")), None).await?;
    ///     // Three attempts, ten seconds apart. The closure may be async.
    ///     let charge = StepConfig::named("charge").retry_every(3, Duration::from_seconds(10));
    ///     let body = async |step: StepContext| Ok(format!("{key}, attempt {}", step.attempt()));
    ///     let receipt: String = ctx.step(body, charge).await?;
    ///     // A rule of one's own, or of the error's type.
    ///     let rule = |failed: &RetryContext<'_>| match failed.attempt {
    ///         ..5 => RetryDecision::Retry(std::time::Duration::from_secs(1)),
    ///         _ => RetryDecision::GiveUp,
    ///     };
    ///     let () = ctx.step(|_| Ok(()), StepConfig::named("book").retry(rule)).await?;
    ///     let patient = Backoff { max_attempts: 20, non_retryable: vec!["Declined".to_owned()], ..Backoff::default() };
    ///     ctx.step(|_| Ok(receipt), StepConfig::named("mail").retry(patient)).await
    /// }
    /// ```
    pub fn step<'a, T, F, R, M>(
        &self,
        func: F,
        config: impl Into<Option<StepConfig>>,
    ) -> DurableFuture<'a, Result<T, DurableError>>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
        F: FnOnce(StepContext) -> R + Send + 'a,
        R: Outcome<M, T> + 'a,
        R::Future: Send + 'a,
        M: 'a,
    {
        let config = config.into().unwrap_or_default();
        let op = self.op((OperationType::Step, SubType::Step), config.name.as_deref());
        DurableFuture::new(op, |op| async move { run(&op, func, &config).await })
    }
}

async fn run<T, F, R, M>(op: &Op, func: F, config: &StepConfig) -> Result<T, DurableError>
where
    T: Serialize + DeserializeOwned,
    F: FnOnce(StepContext) -> R,
    R: Outcome<M, T>,
{
    let at_most_once = config.step_semantics == StepSemantics::AtMostOncePerRetry;
    let mut recorded = op.begin().await?;
    if recorded.as_ref().is_some_and(|operation| operation.status == OperationStatus::Pending) {
        recorded = Some(op.until(Until::NotPending).await?);
    }
    let status = recorded.as_ref().map(|operation| operation.status);
    let details = recorded.as_ref().and_then(|operation| operation.step_details.as_ref());
    let attempt = details.map_or(0, |details| details.attempt) + 1;
    let interrupted = match (&recorded, status) {
        (_, None | Some(OperationStatus::Ready | OperationStatus::Pending)) => {
            let ticket = op.send(op.update(OperationAction::Start), at_most_once)?;
            if at_most_once {
                op.state.wait(Want::Recorded(ticket)).await?;
            }
            false
        }
        (_, Some(OperationStatus::Started)) => at_most_once,
        (_, Some(OperationStatus::Succeeded)) => {
            return op.read(details.and_then(|details| details.result.as_deref()), config.serdes.as_ref());
        }
        (Some(operation), Some(_)) => return Err(error_of(operation)),
        (None, Some(_)) => false,
    };
    let outcome = if interrupted {
        Err(DurableError::Execution {
            message: format!("attempt {attempt} was interrupted, and a step that runs at most once is not run again"),
            termination_reason: TerminationReason::StepInterrupted,
        })
    } else {
        attempt_body(op, func, attempt).await
    };
    conclude(op, outcome, config, attempt).await
}

async fn attempt_body<T, F, R, M>(op: &Op, func: F, attempt: u32) -> Result<T, DurableError>
where
    F: FnOnce(StepContext) -> R,
    R: Outcome<M, T>,
{
    let context = StepContext::new(op.clone(), attempt);
    attempt_hook(op, attempt, None, None);
    if let Some(interceptor) = &op.state.options().interceptor {
        interceptor.before_attempt(&attempt_info(op, attempt)).map_err(DurableError::from_user)?;
    }
    let _running = op.state.running();
    panic::guard(async move { func(context).into_future().await }).await
}

fn attempt_info(op: &Op, attempt: u32) -> AttemptInfo {
    AttemptInfo {
        durable_execution_arn: op.state.arn().to_owned(),
        operation_id: op.id.clone(),
        name: op.identity.name.clone(),
        attempt,
        error: None,
        retry_after_seconds: None,
    }
}

/// `outcome` is none at the beginning of an attempt.
pub(super) fn attempt_hook(op: &Op, attempt: u32, outcome: Option<Option<&ErrorObject>>, retry: Option<u64>) {
    if op.state.options().plugins.is_empty() {
        return;
    }
    let info =
        AttemptInfo { error: outcome.flatten().cloned(), retry_after_seconds: retry, ..attempt_info(op, attempt) };
    match outcome {
        None => op.state.hook("on_attempt_start", |plugin| plugin.on_attempt_start(&info)),
        Some(_) => op.state.hook("on_attempt_end", |plugin| plugin.on_attempt_end(&info)),
    }
}

async fn conclude<T>(
    op: &Op,
    outcome: Result<T, DurableError>,
    config: &StepConfig,
    attempt: u32,
) -> Result<T, DurableError>
where
    T: Serialize + DeserializeOwned,
{
    let error = match outcome {
        Ok(value) => {
            let written = op.write(&value, config.serdes.as_ref());
            match written.and_then(|text| check_size("the step's result", &text).map(|()| text)) {
                Ok(text) => {
                    attempt_hook(op, attempt, Some(None), None);
                    return succeed(op, text, config).await;
                }
                // The body would only produce the same again.
                Err(error) => return fail(op, error, attempt).await,
            }
        }
        Err(error) => error,
    };
    let failure = Failure {
        error_type: error.error_type(),
        message: error.message(),
        interrupted: matches!(
            error,
            DurableError::Execution { termination_reason: TerminationReason::StepInterrupted, .. }
        ),
    };
    let jitter = chance(op.state.arn(), &op.id, attempt);
    let context = RetryContext { failure, attempt, jitter };
    let decision = match &config.retry_strategy {
        Some(strategy) => strategy.decide(&context),
        None => Backoff::default().decide(&context),
    };
    let Some(seconds) = decision.delay_seconds() else {
        return fail(op, error, attempt).await;
    };
    let object = error.to_error_object();
    attempt_hook(op, attempt, Some(Some(&object)), Some(seconds));
    let mut update = op.update(OperationAction::Retry);
    update.error = Some(object);
    update.step_options = Some(StepOptions::after_seconds(seconds));
    op.send(update, true)?;
    // The closure is used up; the next invocation brings a new one.
    match op.until(Until::NextInvocation).await {
        Ok(_) => Err(DurableError::Suspend { scheduled_timestamp: None }),
        Err(error) => Err(error),
    }
}

async fn succeed<T: DeserializeOwned>(op: &Op, text: String, config: &StepConfig) -> Result<T, DurableError> {
    // Read back what is recorded, so that the first run sees what every replay will see.
    let value = match op.read(Some(&text), config.serdes.as_ref()) {
        Ok(value) => value,
        Err(error) => return fail(op, error, 0).await,
    };
    op.ended(OperationStatus::Succeeded, Some(&text), None);
    let mut update = op.update(OperationAction::Succeed);
    update.payload = Some(text);
    op.record_outcome(update).await?;
    Ok(value)
}

async fn fail<T>(op: &Op, error: DurableError, attempt: u32) -> Result<T, DurableError> {
    let object = error.to_error_object();
    if attempt > 0 {
        attempt_hook(op, attempt, Some(Some(&object)), None);
    }
    op.ended(OperationStatus::Failed, None, Some(&object));
    let error = DurableError::from_error_object(&object);
    let mut update = op.update(OperationAction::Fail);
    update.error = Some(object);
    op.record_outcome(update).await?;
    Err(error)
}
