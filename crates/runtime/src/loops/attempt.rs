//! One attempt from hand-over to report: record the start, run the adapter, record the end.
//!
//! Once its start may be in the log, the dispatch is this node's under this epoch and nobody else looks for it. So from
//! then on the attempt is not given up because the store does not answer: it goes on until it is reported or refused, the
//! authority has passed on, or the process ends; in the last two cases the next epoch finds the dispatch again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use servo_adapter::{AttemptContext, AttemptRequest};
use servo_machine::{Command, Refusal, StepResult};
use servo_model::alert::AlertCode;
use servo_model::artifact::{OutputStatus, StepOutput, check_artifacts};
use servo_model::contract::{DispatchState, RuntimeEvent};
use servo_model::{RunState, StepError, Timestamp, codes};
use servo_store::dispatch::DispatchStep;
use servo_store::error::Retry;
use servo_store::relay::NewAlert;
use servo_store::{DispatchRow, Fence, Scope};

use super::authority::Authority;
use super::dispatcher::Adapters;
use super::inflight::Registered;
use super::supervise;
use crate::engine::{Engine, Error, Order, Patience};
use crate::metrics::standing;

pub(crate) struct Attempt {
    pub engine: Engine,
    pub authority: Authority,
    pub adapters: Adapters,
    pub row: DispatchRow,
    pub fence: Fence,
    pub registered: Registered,
}

/// How the start was recorded.
enum Begun {
    Recorded,
    /// The store took longer than its budget; the fact is put before the report.
    Deferred {
        occurred_at: Timestamp,
    },
}

pub(crate) async fn run(attempt: Attempt) {
    let Some(step) = attempt.row.step.clone() else { return };
    let begun = match attempt.begin(&step).await {
        Ok(Some(begun)) => begun,
        Ok(None) => return,
        Err(error) => {
            // The dispatch stays open; whoever holds the authority finds it again.
            tracing::warn!(request_id = %attempt.row.request_id, %error, "attempt not started");
            return;
        }
    };
    let (request, timeout) = match attempt.request(&step).await {
        Ok(request) => request,
        Err(error) => {
            tracing::warn!(request_id = %attempt.row.request_id, %error, "attempt not run");
            return;
        }
    };
    let engine_attempt = request.engine_attempt;
    let Some(result) = attempt.execute(request, timeout).await else { return };
    attempt.report(&step, engine_attempt, begun, result).await;
}

impl Attempt {
    fn order(&self, commands: Vec<Command>, patience: Patience) -> Order {
        let command = Command::Tick;
        let mut order = Order::new(Scope::System, self.row.run_id.clone(), command, self.authority.owner().clone());
        order.commands = commands;
        order.patience = patience;
        order
    }

    /// Records the hand-over under this node's authority. `None` when the attempt is not wanted any more.
    async fn begin(&self, step: &DispatchStep) -> Result<Option<Begun>, Error> {
        let (step_id, attempt) = (step.step_id.clone(), step.logical_attempt);
        let taken_over = self.row.state == DispatchState::Notified;
        let command = if taken_over {
            Command::TakeOver { step_id, attempt }
        } else {
            Command::StartStep { step_id, attempt, occurred_at: None }
        };
        let mut order = self.order(vec![command.clone()], Patience::Background);
        order.fence = Some(self.fence);
        let occurred_at = self.engine.now();
        let budget = Duration::from_millis(self.engine.config().state_store.write_latency_budget_ms);
        let fail_open = !taken_over && self.fails_open("StepStarted");
        let recorded = tokio::select! {
            biased;
            recorded = self.engine.execute(order) => recorded,
            () = self.engine.clock().sleep(budget), if fail_open => {
                self.over_budget("StepStarted").await;
                return Ok(Some(Begun::Deferred { occurred_at }));
            }
        };
        match recorded {
            // Recorded, but not as a start: the run reached its limit and ended instead.
            Ok(outcome) if outcome.refusal.is_some() => Ok(None),
            Ok(_) => {
                if taken_over {
                    supervise::recovered(&self.engine, self.authority.owner(), "relaunch").await;
                }
                Ok(Some(Begun::Recorded))
            }
            Err(Error::Refused(_)) => {
                if self.is_ours().await? {
                    return Ok(Some(Begun::Recorded));
                }
                if let Err(error) = self.engine.withdraw(&self.row, &command, self.fence).await {
                    tracing::debug!(request_id = %self.row.request_id, %error, "dispatch not withdrawn");
                }
                Ok(None)
            }
            Err(Error::Store(servo_store::Error::Fenced { epoch })) => {
                self.authority.lost(epoch);
                Ok(None)
            }
            // Somebody else moved the dispatch, or the run is gone: not ours any more.
            Err(Error::Store(
                servo_store::Error::DispatchMove { .. } | servo_store::Error::DispatchNotFound { .. },
            )) => Ok(self.is_ours().await?.then_some(Begun::Recorded)),
            Err(Error::Store(servo_store::Error::NotFound) | Error::Quarantined(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn fails_open(&self, event_type: &str) -> bool {
        let config = &self.engine.config().state_store;
        config.fail_open_for_event_class.iter().any(|class| class == event_type)
            && !config.never_fail_open.iter().any(|class| class == event_type)
    }

    async fn over_budget(&self, event_type: &str) {
        tracing::warn!(request_id = %self.row.request_id, event_type, "write latency budget exceeded");
        crate::metrics::over_budget(event_type);
        let alert = NewAlert {
            code: AlertCode::WriteBudgetExceeded,
            subject: self.authority.owner().to_string(),
            run_id: None,
            tenant: servo_model::TenantId::system(),
            message: format!("a {event_type} took longer than the write latency budget"),
        };
        let raise = self.engine.store().raise_alert(alert);
        // The store is slow right now: the alert must not make the step wait as well.
        tokio::select! {
            biased;
            _ = raise => {}
            () = self.engine.clock().sleep(Duration::from_millis(100)) => {}
        }
    }

    /// Whether the hand-over is in the log after all: recorded by a try of this attempt whose answer was lost. Nobody else
    /// writes under this epoch, and this node executes an attempt once at a time.
    async fn is_ours(&self) -> Result<bool, Error> {
        let found = self.persist(|| self.engine.store().get_dispatch(&self.row.request_id)).await?;
        Ok(found.is_some_and(|row| row.state == DispatchState::Notified && row.epoch == self.fence.epoch))
    }

    /// Asks again while the store does not answer.
    async fn persist<T, F, E>(&self, mut ask: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, E>>,
        Error: From<E>,
    {
        let mut failures = 0;
        loop {
            match ask().await.map_err(Error::from) {
                Err(Error::Store(error)) if error.retry() == Retry::Later => {
                    failures += 1;
                    self.engine.back_off(failures).await?;
                }
                answer => return answer,
            }
        }
    }

    /// What the adapter gets, from the state that recorded the start.
    async fn request(&self, step: &DispatchStep) -> Result<(AttemptRequest, Option<Duration>), Error> {
        let request = |state: &RunState| -> Result<(AttemptRequest, Option<Duration>), Error> {
            let number = state.step_number(&step.step_id).ok_or_else(|| Refusal::NoStep(step.step_id.clone()))?;
            let plan = state.plan.as_ref().ok_or(Refusal::NoRun)?;
            let planned = plan.step(number);
            let environment = state.context.as_ref().map(|context| context.environment_id.to_string());
            let request = AttemptRequest {
                tenant: self.row.tenant.clone(),
                environment: environment.unwrap_or_default(),
                run_id: self.row.run_id.clone(),
                step_id: step.step_id.clone(),
                logical_attempt: step.logical_attempt,
                engine_attempt: state.step(number).attempt.engine_attempt_id.unwrap_or(1),
                with: planned.with.clone(),
                secrets: planned.secrets.clone(),
            };
            Ok((request, planned.timeout_ms.map(Duration::from_millis)))
        };
        self.persist(|| self.engine.view(&Scope::System, &self.row.run_id, request)).await?
    }

    /// Runs the adapter. `None` when the run was cancelled under it, or is another node's.
    async fn execute(&self, request: AttemptRequest, timeout: Option<Duration>) -> Option<StepResult> {
        let Some(adapter) = self.adapters.get(&self.row.target).cloned() else {
            let message = format!("no adapter for engine type `{}` on this node", self.row.target);
            return Some(StepResult::Failure { error: StepError::new("ADAPTER_NOT_FOUND", &message, false) });
        };
        let context = self.context();
        let right = self.authority.right(&self.engine, self.fence);
        let work = async { if right.holds().await { Some(adapter.run(request, &context).await) } else { None } };
        let work = AssertUnwindSafe(work).catch_unwind();
        let deadline = async {
            match timeout {
                Some(timeout) => self.engine.clock().sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.registered.cancel.notified() => None,
            output = work => Some(match output {
                // Another node has the attempt by now, and executes it again.
                Ok(None) => return None,
                Ok(Some(output)) => result_of(output),
                Err(_) => StepResult::Failure { error: StepError::new("ADAPTER_PANICKED", "the adapter panicked", true) },
            }),
            () = deadline => Some(StepResult::Failure {
                error: StepError::new("STEP_TIMEOUT", "the step took longer than its timeout", true),
            }),
        }
    }

    fn context(&self) -> AttemptContext {
        let clock = self.engine.clock().clone();
        let engine = self.engine.clone();
        let request_id = self.row.request_id.clone();
        AttemptContext::new(
            Arc::new(move |duration| clock.sleep(duration)),
            Arc::new(move || supervise::heard(&engine, &request_id)),
        )
    }

    /// Records the end. A report that is refused belongs to an attempt that was superseded or to a run that has ended.
    async fn report(&self, step: &DispatchStep, engine_attempt: u32, begun: Begun, result: StepResult) {
        let (step_id, attempt) = (step.step_id.clone(), step.logical_attempt);
        let start = match begun {
            Begun::Recorded => None,
            Begun::Deferred { occurred_at } => {
                Some(Command::StartStep { step_id: step_id.clone(), attempt, occurred_at: Some(occurred_at) })
            }
        };
        let order = |result: &StepResult| {
            let result = result.clone();
            let finish = Command::FinishStep { step_id: step_id.clone(), attempt, engine_attempt, result };
            self.order(start.clone().into_iter().chain([finish]).collect(), Patience::Background)
        };
        let budget = Duration::from_millis(self.engine.config().state_store.write_latency_budget_ms);
        let mut result = result;
        let mut recorded = tokio::select! {
            biased;
            recorded = self.engine.execute_with(order(&result), standing) => recorded,
            () = self.engine.clock().sleep(budget) => {
                // The result was not confirmed in time, so the step fails. If the slow write did land, the failure is
                // refused: an attempt ends once.
                self.over_budget("StepCompleted").await;
                let code = codes::WRITE_BUDGET_EXCEEDED;
                result = StepResult::Failure { error: StepError::new(code.code, code.title, true) };
                self.engine.execute_with(order(&result), standing).await
            }
        };
        if let Err(Error::Store(error @ servo_store::Error::Limit { .. })) = &recorded {
            // The result is too large to be recorded. Executing the step again would not make it smaller.
            let error = StepError::new(codes::LIMIT_EXCEEDED.code, &error.to_string(), false);
            result = StepResult::Failure { error };
            recorded = self.engine.execute_with(order(&result), standing).await;
        }
        match recorded {
            Ok(outcome) => crate::metrics::attempt_ended(outcome.view, &result),
            Err(Error::Refused(refusal)) => {
                tracing::info!(request_id = %self.row.request_id, %refusal, "report refused");
            }
            Err(error) => {
                tracing::warn!(request_id = %self.row.request_id, %error, "report not recorded; the attempt will be handed out again");
            }
        }
    }
}

fn result_of(output: StepOutput) -> StepResult {
    if let Err(invalid) = check_artifacts(&output.artifact_refs) {
        let message = format!("artifactRefs/{invalid}");
        return StepResult::Failure { error: StepError::new(codes::SCHEMA_VALIDATION_FAILED.code, &message, false) };
    }
    match (output.status, output.error) {
        (OutputStatus::Success | OutputStatus::Skipped, _) => StepResult::Success { artifacts: output.artifact_refs },
        (OutputStatus::Failed, Some(error)) => StepResult::Failure { error: error.into() },
        (OutputStatus::Failed, None) => {
            StepResult::Failure { error: StepError::new("UNSPECIFIED", "the adapter gave no reason", false) }
        }
    }
}

/// The contract's view of an attempt: what the backlog calls it.
pub(crate) fn assigned(worker: &str, request_id: &str) -> RuntimeEvent {
    RuntimeEvent::WorkerAssigned { worker: worker.to_owned(), task_id: request_id.to_owned() }
}
