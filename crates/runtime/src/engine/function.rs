//! Starting the run of a function, once per name.

use std::time::Duration;

use servo_canon::Digest;
use servo_machine::{Admission, Command, Decision, StartExecution, admit, decide};
use servo_model::{RunId, RunState, TenantId, Timestamp};
use servo_store::Scope;
use servo_store::error::Retry;

use tokio::sync::oneshot;

use super::admission::UnderWay;
use super::prepare::Recorded;
use super::{Engine, Error, Hot, Order};
use crate::loops::direct::{Begun, First};
use crate::spans::OpenSpan;

/// Who records a start that takes its turn.
const BY: &str = "engine";

/// A start that is admitted.
struct Starting {
    tenant: TenantId,
    digest: Option<Digest>,
    now: Timestamp,
    order: Order,
    /// The invocation that is recorded with it.
    first: Option<First>,
    _under_way: UnderWay,
}

impl Engine {
    /// The run, and whether this call has made it.
    pub(crate) async fn start_execution(
        &self,
        mut start: StartExecution,
        request_key: Option<Digest>,
    ) -> Result<(RunId, bool), Error> {
        if self.inner.shutdown.is_triggered() {
            return Err(Error::ShuttingDown);
        }
        let tenant = start.context.tenant_id.clone();
        if let Some(key) = request_key
            && let Some(earlier) = self.inner.store.find_request(&tenant, key).await?
        {
            return Box::pin(self.started_earlier(&tenant, earlier, start.request_digest)).await;
        }
        let under_way = self.inner.admissions.enter(&tenant);
        let rule = self.inner.config.overload_of(tenant.as_str(), &start.start);
        let active = self.count_active(&tenant, rule.active_runs_max).await?;
        let (active, delay) = (active.saturating_add(under_way.before), Duration::from_millis(rule.delay_ms));
        let now = self.now();
        start.admission = admit(rule.policy, active, rule.active_runs_max, delay, now)
            .map_err(|overload| Error::Overloaded { retry_after: overload.retry_after })?;
        let run_id = self.inner.ids.run_id(now);
        if start.start.name.is_empty() {
            start.start.name = run_id.to_string();
        }
        let span = self.run_span(&run_id, &tenant, &start.start);
        let started = self.begin_execution((run_id, now), tenant, start, request_key, under_way).await;
        if let Some(span) = span {
            note_start(span, &started);
        }
        started
    }

    /// Records an admitted start, and calls the handler where nothing waits.
    async fn begin_execution(
        &self,
        (run_id, now): (RunId, Timestamp),
        tenant: TenantId,
        start: StartExecution,
        request_key: Option<Digest>,
        under_way: UnderWay,
    ) -> Result<(RunId, bool), Error> {
        let digest = start.request_digest;
        let reserved = if start.admission == Admission::Now { self.inner.direct.reserve(&start) } else { None };
        let function = start.start.function.clone();
        let command = Command::StartExecution(Box::new(start));
        let mut order = Order::new(Scope::Tenant(tenant.clone()), run_id.clone(), command, BY);
        order.request_key = request_key;
        let mut starting = Starting { tenant, digest, now, order, first: None, _under_way: under_way };
        let Some(reserved) = reserved else { return Box::pin(self.record_turn(starting)).await };
        let (fence, owner, tasks) = (reserved.fence(), reserved.owner(), reserved.tasks());
        let Some((first, invoke)) = reserved.first(&run_id, &starting.tenant, &function) else {
            return Box::pin(self.record_turn(starting)).await;
        };
        (starting.order.fence, starting.order.emitted_by) = (Some(fence), owner);
        starting.order.commands.push(invoke);
        starting.first = Some(first);
        // Apart from the caller: if it goes away, what is recorded is still begun.
        let (answer, answered) = oneshot::channel();
        let engine = self.clone();
        tasks.spawn("start", async move {
            let begun = match engine.record_start(starting).await {
                Ok((started, begun)) => {
                    let _ = answer.send(Ok(started));
                    begun
                }
                Err(error) => {
                    let _ = answer.send(Err(error));
                    None
                }
            };
            if let Some(begun) = begun {
                begun.run().await;
            }
        });
        answered.await.unwrap_or(Err(Error::ShuttingDown))
    }

    /// Records a start that takes its turn.
    async fn record_turn(&self, starting: Starting) -> Result<(RunId, bool), Error> {
        let (started, _) = self.record_start(starting).await?;
        Ok(started)
    }

    /// The run, whether this has made it, and its first invocation if that is recorded with it.
    async fn record_start(&self, starting: Starting) -> Result<((RunId, bool), Option<Begun>), Error> {
        let Starting { tenant, digest, now, mut order, mut first, _under_way } = starting;
        let run_id = order.run_id.clone();
        let slot = self.inner.cache.slot(&run_id);
        let mut hot = slot.lock().await;
        let (mut failures, mut in_doubt) = (0, false);
        loop {
            let decision = self.decide_start(&order, now)?;
            let empty = Hot::new(RunState::new(run_id.clone()), tenant.clone());
            let error = match self.commit_with(&order, &mut hot, empty, decision, now).await {
                Ok(_) => {
                    let begun = first.zip(hot.as_ref()).map(|(first, known)| first.begin(&known.state));
                    return Ok(((run_id, true), begun));
                }
                // Not ours to begin any more: it takes its turn.
                Err(Error::Store(servo_store::Error::Fenced { .. })) if first.is_some() => {
                    first.take().into_iter().for_each(First::lose);
                    (order.fence, order.emitted_by) = (None, BY.to_owned());
                    order.commands.truncate(1);
                    continue;
                }
                Err(Error::Store(servo_store::Error::RequestExists { run_id: earlier })) if earlier != run_id => {
                    drop(hot);
                    return Ok((Box::pin(self.started_earlier(&tenant, earlier, digest)).await?, None));
                }
                // From a try whose outcome was unknown: the id is random, so nobody else can have made it.
                Err(Error::Store(
                    servo_store::Error::RunExists { .. }
                    | servo_store::Error::RequestExists { .. }
                    | servo_store::Error::Conflict { .. },
                )) => {
                    first.into_iter().for_each(First::doubt);
                    return Ok(((run_id, true), None));
                }
                Err(error) => error,
            };
            let is_passing = matches!(&error, Error::Store(error) if error.retry() == Retry::Later);
            in_doubt |= matches!(&error, Error::Store(error) if error.may_have_happened());
            failures += 1;
            if !is_passing || failures > 2 || self.back_off(failures).await.is_err() {
                first.into_iter().filter(|_| in_doubt).for_each(First::doubt);
                return Err(error);
            }
        }
    }

    /// The run's start and, where it is begun at once, its first invocation.
    fn decide_start(&self, order: &Order, now: Timestamp) -> Result<(Option<Recorded>, Decision), Error> {
        let policy = &self.inner.config.policy;
        let started = decide(None, &order.commands[0], policy, now)?;
        let Some(invoke) = order.commands.get(1) else { return Ok((None, started)) };
        let new = Recorded { state: RunState::new(order.run_id.clone()), events: Vec::new() };
        let recorded = self.record(order, new, started.facts, now)?;
        let mut begun = decide(Some(&recorded.state), invoke, policy, now)?;
        begun.actions.splice(..0, started.actions);
        begun.refusal = started.refusal;
        Ok((Some(recorded), begun))
    }

    /// The same call again gets the same run; another payload under the same name is a mistake.
    async fn started_earlier(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        digest: Option<Digest>,
    ) -> Result<(RunId, bool), Error> {
        let scope = Scope::Tenant(tenant.clone());
        let earlier = self.view(&scope, &run_id, |state| state.request_digest).await?;
        if earlier.is_some() && earlier != digest {
            return Err(Error::RequestMismatch);
        }
        Ok((run_id, false))
    }
}

/// A start that found its run there has begun nothing.
fn note_start(mut span: OpenSpan, started: &Result<(RunId, bool), Error>) {
    match started {
        Ok((_, true)) => {}
        Ok((_, false)) => span.discard(),
        Err(_) => span.fail("not_started"),
    }
}
