//! Polling a condition, with state carried from check to check and no process between them.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_model::operation::{OperationAction, OperationStatus, OperationType};
use servo_replay::SubType;
use servo_wire::lambda::StepOptions;

use super::step::attempt_hook;
use crate::config::{WaitDecision, WaitForConditionConfig};
use crate::future::DurableFuture;
use crate::handler::Outcome;
use crate::logger::{Scope, ScopedLogger};
use crate::op::{Op, check_size, error_of};
use crate::state::Until;
use crate::{DurableContext, DurableError, panic};

/// What a check can know about itself.
#[derive(Clone)]
pub struct WaitForConditionContext {
    op: Op,
    attempt: u32,
}

impl fmt::Debug for WaitForConditionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForConditionContext").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

impl WaitForConditionContext {
    /// From 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    pub fn operation_id(&self) -> &str {
        &self.op.id
    }

    pub fn logger(&self) -> ScopedLogger {
        let (id, name) = (self.op.id.clone(), self.op.identity.name.clone());
        ScopedLogger { state: self.op.state.clone(), scope: Scope::Attempt { id, name, attempt: self.attempt } }
    }
}

impl DurableContext {
    /// Calls `check` until the strategy is content, with the state that the last check returned. The first check is made
    /// at once; between checks the execution is suspended. An error of `check` ends it.
    ///
    /// `check` gets the state and a [`WaitForConditionContext`], in this order, and returns the next state. The last one is the
    /// result.
    ///
    /// ```
    /// use servo_sdk::{DurableContext, DurableError, Duration, WaitDecision, WaitForConditionConfig, WaitForConditionContext};
    ///
    /// async fn export(table: String, ctx: DurableContext) -> Result<u32, DurableError> {
    ///     // Stands for a request that asks how far it is.
    ///     let check = async |percent: u32, check: WaitForConditionContext| {
    ///         check.logger().info(&format!("{table}: {percent} percent"));
    ///         Ok(percent + 50)
    ///     };
    ///     let rule = WaitForConditionConfig::new(0, |percent, _checks| match percent {
    ///         100.. => WaitDecision::Done,
    ///         _ => WaitDecision::Continue(Duration::from_seconds(30)),
    ///     });
    ///     ctx.wait_for_condition(check, rule.named("exported").max_checks(100)).await
    /// }
    /// ```
    pub fn wait_for_condition<'a, T, F, R, M>(
        &self,
        check: F,
        config: WaitForConditionConfig<T>,
    ) -> DurableFuture<'a, Result<T, DurableError>>
    where
        T: Serialize + DeserializeOwned + Clone + Send + Sync + 'a,
        F: Fn(T, WaitForConditionContext) -> R + Send + Sync + 'a,
        R: Outcome<M, T> + 'a,
        R::Future: Send + 'a,
        M: 'a,
    {
        let op = self.op((OperationType::Step, SubType::WaitForCondition), config.name.as_deref());
        DurableFuture::new(op, |op| async move { run(&op, check, config).await })
    }
}

async fn run<T, F, R, M>(op: &Op, check: F, config: WaitForConditionConfig<T>) -> Result<T, DurableError>
where
    T: Serialize + DeserializeOwned + Clone,
    F: Fn(T, WaitForConditionContext) -> R,
    R: Outcome<M, T>,
{
    let serdes = config.serdes.as_ref();
    let mut recorded = op.begin().await?;
    loop {
        if recorded.as_ref().is_some_and(|operation| operation.status == OperationStatus::Pending) {
            recorded = Some(op.until(Until::NotPending).await?);
        }
        let details = recorded.as_ref().and_then(|operation| operation.step_details.as_ref());
        let checks = details.map_or(0, |details| details.attempt);
        let kept = details.and_then(|details| details.result.as_deref());
        if let Some(operation) = &recorded {
            match operation.status {
                OperationStatus::Succeeded => return op.read(kept, serdes),
                OperationStatus::Failed
                | OperationStatus::Cancelled
                | OperationStatus::TimedOut
                | OperationStatus::Stopped => return Err(error_of(operation)),
                OperationStatus::Started => {}
                OperationStatus::Ready | OperationStatus::Pending => {
                    op.send(op.update(OperationAction::Start), false)?;
                }
            }
        } else {
            op.send(op.update(OperationAction::Start), false)?;
        }
        let state = match kept {
            Some(text) => op.read(Some(text), serdes)?,
            None => config.initial_state.clone(),
        };
        let attempt = checks + 1;
        let outcome = {
            attempt_hook(op, attempt, None, None);
            let _running = op.state.running();
            let context = WaitForConditionContext { op: op.clone(), attempt };
            panic::guard(async { check(state, context).into_future().await }).await
        };
        let judged = outcome.and_then(|state| judge(op, &state, &config, attempt));
        let (text, delay) = match judged {
            Ok(judged) => judged,
            Err(error) => return fail(op, &error, attempt).await,
        };
        attempt_hook(op, attempt, Some(None), delay);
        let Some(seconds) = delay else {
            let value = op.read(Some(&text), serdes)?;
            op.ended(OperationStatus::Succeeded, Some(&text), None);
            let mut update = op.update(OperationAction::Succeed);
            update.payload = Some(text);
            op.record_outcome(update).await?;
            return Ok(value);
        };
        let mut update = op.update(OperationAction::Retry);
        update.payload = Some(text);
        update.step_options = Some(StepOptions::after_seconds(seconds));
        op.record(update).await?;
        recorded = op.state.get(&op.id);
    }
}

/// The state as it is recorded, and the seconds to the next check if there is to be one.
fn judge<T: Serialize>(
    op: &Op,
    state: &T,
    config: &WaitForConditionConfig<T>,
    attempt: u32,
) -> Result<(String, Option<u64>), DurableError> {
    let text = op.write(state, config.serdes.as_ref())?;
    check_size("the condition's state", &text)?;
    match (config.wait_strategy)(state, attempt) {
        WaitDecision::Done => Ok((text, None)),
        WaitDecision::Continue(_) if attempt >= config.max_checks => Err(DurableError::user(
            "WaitForConditionError",
            format!("the condition was not met after {attempt} checks"),
        )),
        WaitDecision::Continue(delay) => Ok((text, Some(delay.to_seconds().max(1)))),
    }
}

async fn fail<T>(op: &Op, error: &DurableError, attempt: u32) -> Result<T, DurableError> {
    let object = error.to_error_object();
    attempt_hook(op, attempt, Some(Some(&object)), None);
    op.ended(OperationStatus::Failed, None, Some(&object));
    let error = DurableError::from_error_object(&object);
    let mut update = op.update(OperationAction::Fail);
    update.error = Some(object);
    op.record_outcome(update).await?;
    Err(error)
}
