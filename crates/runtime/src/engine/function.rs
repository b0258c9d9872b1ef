//! Starting the run of a function, once per name.

use std::sync::Arc;
use std::time::Duration;

use servo_canon::Digest;
use servo_entrypoint::Created;
use servo_machine::{Admission, Command, Decision, Run, StartExecution, admit, decide};
use servo_model::{RunId, RunState, TenantId, Timestamp};
use servo_store::Scope;
use servo_store::error::Retry;

use tokio::sync::oneshot;

use super::admission::UnderWay;
use super::prepare::Recorded;
use super::quotas::Entered;
use super::{Engine, Error, Hot, Order};
use crate::clock::Deadline;
use crate::loops::direct::{Begun, First, Reserved};
use crate::spans::OpenSpan;
use crate::tasks::Tasks;

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
    /// Its place in the tenant's quota.
    entered: Option<Entered>,
    /// Who hears that it is recorded.
    heard: Option<Arc<dyn Created>>,
    span: Option<OpenSpan>,
    _under_way: UnderWay,
}

impl Engine {
    /// The run, and whether this call has made it. A caller with a deadline waits for the run: if that is begun at once, it is
    /// answered when its first invocation is over, or the deadline, and not woken for the record.
    pub(crate) async fn start_execution(
        &self,
        mut start: Box<StartExecution>,
        request_key: Option<Digest>,
        (entered, heard): (Option<Entered>, Option<Arc<dyn Created>>),
        deadline: Option<&mut Deadline>,
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
        let (mut starting, at_once) = self.starting(start, now, request_key, entered, under_way);
        starting.heard = heard;
        let Some(tasks) = at_once else { return Box::pin(self.record_turn(starting)).await };
        let ring = deadline.is_some().then(|| Ring { engine: self.clone(), run_id: starting.order.run_id.clone() });
        let bell = ring.as_ref().map(|ring| self.listen_for_end(&ring.run_id));
        // Apart from the caller: if it goes away, what is recorded is still begun.
        let (answer, answered) = oneshot::channel();
        tasks.spawn("start", start_and_run(self.clone(), starting, answer, ring));
        if let (Some(bell), Some(deadline)) = (bell, deadline) {
            tokio::select! {
                biased;
                () = bell.rung() => {}
                () = deadline.over() => {}
            }
        }
        answered.await.unwrap_or(Err(Error::ShuttingDown))
    }

    /// An admitted start, and where it is begun at once if nothing waits. No part of the future, which would be larger by all of it.
    fn starting(
        &self,
        mut start: Box<StartExecution>,
        now: Timestamp,
        request_key: Option<Digest>,
        entered: Option<Entered>,
        under_way: UnderWay,
    ) -> (Box<Starting>, Option<Tasks>) {
        let run_id = self.inner.ids.run_id(now);
        if start.start.name.is_empty() {
            start.call_it(run_id.as_str());
        }
        let tenant = start.context.tenant_id.clone();
        let span = self.run_span(&run_id, &tenant, &start.start);
        let reserved = if start.admission == Admission::Now { self.inner.direct.reserve(&start) } else { None };
        let digest = start.request_digest;
        let mut order = Order::new(Scope::Tenant(tenant.clone()), run_id, Command::StartExecution(start), BY);
        order.request_key = request_key;
        let first = None;
        let mut starting =
            Box::new(Starting { tenant, digest, now, order, first, entered, heard: None, span, _under_way: under_way });
        let tasks = reserved.and_then(|reserved| {
            let tasks = reserved.tasks();
            starting.begin_at_once(reserved).then_some(tasks)
        });
        (starting, tasks)
    }

    /// Records a start that takes its turn.
    async fn record_turn(&self, starting: Box<Starting>) -> Result<(RunId, bool), Error> {
        let (started, _) = self.record_admitted(starting).await;
        started
    }

    /// Records an admitted start: the run, whether this has made it, and its first invocation if that is recorded with it.
    async fn record_admitted(&self, mut starting: Box<Starting>) -> (Result<(RunId, bool), Error>, Option<Begun>) {
        let (entered, heard, span) = (starting.entered.take(), starting.heard.take(), starting.span.take());
        let (started, begun) = match self.record_start(starting).await {
            Ok((started, begun)) => (Ok(started), begun),
            Err(error) => (Err(error), None),
        };
        if let Ok((run_id, true)) = &started {
            entered.into_iter().for_each(Entered::recorded);
            heard.into_iter().for_each(|heard| heard.created(run_id.as_str()));
        }
        if let Some(span) = span {
            note_start(span, &started);
        }
        (started, begun)
    }

    async fn record_start(&self, starting: Box<Starting>) -> Result<((RunId, bool), Option<Begun>), Error> {
        let Starting { tenant, digest, now, mut order, mut first, _under_way, .. } = *starting;
        let run_id = order.run_id.clone();
        let slot = self.inner.cache.slot(&run_id);
        let mut hot = slot.lock().await;
        let (mut failures, mut in_doubt) = (0, false);
        loop {
            let decision = self.decide_start(&order, now)?;
            let empty = Hot::new(Box::new(RunState::new(run_id.clone())), tenant.clone());
            let error = match self.commit_with(&order, &mut hot, empty, decision, now).await {
                Ok(_) => {
                    let begun = first.zip(hot.as_ref()).map(|(first, known)| first.begin(&known.state));
                    return Ok(((run_id, true), begun));
                }
                // Not ours to begin any more: it takes its turn.
                Err(Error::Store(servo_store::Error::Fenced { .. })) if first.is_some() => {
                    first.take().into_iter().for_each(First::lose);
                    (order.fence, order.emitted_by) = (None, BY.into());
                    order.commands.truncate(1);
                    continue;
                }
                Err(Error::Store(servo_store::Error::RequestExists { .. }))
                    if self.inner.config.is_sabotaged("check-then-insert") =>
                {
                    order.request_key = None;
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
        let started = decide(Run::New(&order.run_id), &order.commands[0], policy, now)?;
        let Some(invoke) = order.commands.get(1) else { return Ok((None, started)) };
        let new = Recorded { state: Box::new(RunState::new(order.run_id.clone())), events: Vec::new() };
        let recorded = self.record(order, new, started.facts, now)?;
        let mut begun = decide(Run::Known(&recorded.state), invoke, policy, now)?;
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

impl Starting {
    /// Has its first invocation recorded with it. False if it cannot be, which is never so for a new run.
    fn begin_at_once(&mut self, reserved: Reserved) -> bool {
        let (fence, owner) = (reserved.fence(), reserved.owner());
        let Some((first, invoke)) = reserved.first(&self.order.run_id, &self.tenant) else { return false };
        (self.order.fence, self.order.emitted_by) = (Some(fence), owner);
        self.order.commands.push(invoke);
        self.first = Some(first);
        true
    }
}

/// Rings for a run when the first invocation is over, however: the run may go on elsewhere, or not have been recorded at all.
struct Ring {
    engine: Engine,
    run_id: RunId,
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.engine.inner.endings.tell(&self.run_id);
    }
}

/// Records a start and calls its handler.
async fn start_and_run(
    engine: Engine,
    starting: Box<Starting>,
    answer: oneshot::Sender<Result<(RunId, bool), Error>>,
    _ring: Option<Ring>,
) {
    let (started, begun) = engine.record_admitted(starting).await;
    let _ = answer.send(started);
    if let Some(begun) = begun {
        begun.run().await;
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
