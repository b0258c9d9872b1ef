//! The one path by which a command becomes events.

use std::time::Duration;

use servo_machine::{Action, Command, Decision, Refusal, Run, decide};
use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, RunState, RunStatus, StepStatus, Timestamp};
use servo_store::error::Retry;
use servo_store::log::EventOutcome;
use servo_store::{Appended, Scope};

use super::prepare::{Prepared, Recorded, fold};
use super::{Engine, Error, Hot, Order, Outcome, Patience};

/// Decisions on a moving run before the caller is told to try later. Slots keep one node from competing with itself, so
/// this counts other nodes.
const CONFLICTS_MAX: u32 = 32;
/// Tries for a caller who waits.
const REQUEST_TRIES: u32 = 3;
const BACKOFF_MIN: Duration = Duration::from_millis(20);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

impl Engine {
    /// Executes commands on an existing run.
    pub async fn execute(&self, order: Order) -> Result<Outcome, Error> {
        self.execute_with(order, |_| ()).await
    }

    /// Executes commands and looks at the state that they led to.
    pub async fn execute_with<T>(
        &self,
        order: Order,
        view: impl FnOnce(&RunState) -> T + Send,
    ) -> Result<Outcome<T>, Error> {
        let slot = self.inner.cache.slot(&order.run_id);
        let mut hot = slot.lock().await;
        let mut conflicts = 0;
        let mut failures = 0;
        let mut absent: Vec<String> = Vec::new();
        loop {
            let loaded = self.ensure_loaded(&order.scope, &order.run_id, &mut hot).await;
            if let Some(known) = hot.as_mut() {
                known.absent.clone_from(&absent);
            }
            let error = match loaded {
                Ok(fresh) => match self.attempt(&order, &mut hot, fresh).await {
                    Ok(outcome) => {
                        self.ensure_loaded(&order.scope, &order.run_id, &mut hot).await?;
                        let known = hot.as_ref().ok_or(servo_store::Error::NotFound)?;
                        return Ok(outcome.seen_as(view(&known.state)));
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            // A refusal leaves the state as it was; anything else leaves it in doubt.
            let Error::Store(store_error) = &error else { return Err(error) };
            *hot = None;
            if let servo_store::Error::DispatchNotFound { request_id } = store_error
                && !absent.contains(request_id)
            {
                absent.push(request_id.clone());
                continue;
            }
            match store_error.retry() {
                Retry::No => return Err(error),
                Retry::Reload => {
                    conflicts += 1;
                    if conflicts > CONFLICTS_MAX && order.patience == Patience::Request {
                        return Err(Error::Contention(conflicts));
                    }
                }
                Retry::Later => {
                    failures += 1;
                    if order.patience == Patience::Request && failures >= REQUEST_TRIES {
                        return Err(error);
                    }
                    // Not with the run's place in hand: whoever reads the run, or gives it a command, must not wait for a store
                    // that takes no writes.
                    drop(hot);
                    self.back_off(failures).await?;
                    hot = slot.lock().await;
                }
            }
        }
    }

    /// Waits before another try; gives up when the runtime stops.
    pub(crate) async fn back_off(&self, failures: u32) -> Result<(), Error> {
        if self.inner.shutdown.is_triggered() && failures > REQUEST_TRIES {
            return Err(Error::ShuttingDown);
        }
        let limit = BACKOFF_MIN.saturating_mul(1 << failures.min(8)).min(BACKOFF_MAX);
        self.inner.clock.sleep(self.inner.ids.jitter(limit)).await;
        Ok(())
    }

    /// Makes sure that the slot holds a state. True if it was loaded just now.
    pub(super) async fn ensure_loaded(
        &self,
        scope: &Scope,
        run_id: &RunId,
        hot: &mut Option<Hot>,
    ) -> Result<bool, Error> {
        if let Some(known) = hot {
            return if scope.covers(&known.tenant) {
                Ok(false)
            } else {
                Err(Error::Store(servo_store::Error::NotFound))
            };
        }
        // In a box, like everything that is rare on the way of every command: futures have inside what they may wait for.
        let loaded = Box::pin(self.load(scope, run_id)).await?;
        self.inner.cache.weigh(run_id, &loaded.state);
        *hot = Some(loaded);
        Ok(true)
    }

    /// One decision and one append.
    async fn attempt(&self, order: &Order, hot: &mut Option<Hot>, fresh: bool) -> Result<Outcome, Error> {
        let now = self.now_for(order);
        if self.inner.broken.forgets(order) {
            return Ok(Outcome { run_id: order.run_id.clone(), recorded: 0, refusal: None, view: () });
        }
        if order.fresh && !fresh && !self.inner.single_process {
            // What is answered from memory alone must not be older than what another node has recorded.
            if let Some(Hot { state, tenant, absent, .. }) = hot.take() {
                let state = Box::pin(self.catch_up(&order.scope, &tenant, state)).await?;
                *hot = Some(Hot { absent, ..Hot::new(state, tenant) });
            }
        }
        let mut decided = decide_all(self, order, hot.as_ref().map(|known| known.state.as_ref()), now);
        if decided.is_err() && !fresh {
            // Another node may have moved the run: a refusal counts only on the newest state.
            if let Some(Hot { state, tenant, absent, .. }) = hot.take() {
                let state = Box::pin(self.catch_up(&order.scope, &tenant, state)).await?;
                *hot = Some(Hot { absent, ..Hot::new(state, tenant) });
            }
            decided = decide_all(self, order, hot.as_ref().map(|known| known.state.as_ref()), now);
        }
        let decision = decided?;
        match hot.take() {
            Some(known) => self.commit(order, hot, known, decision, now).await,
            None => Err(Error::Store(servo_store::Error::NotFound)),
        }
    }

    /// The time of a decision; for a timer that the store has called due, at least its due time.
    fn now_for(&self, order: &Order) -> Timestamp {
        let now = self.now();
        order.due_at.map_or(now, |due| due.max(now))
    }

    /// Appends a decision with every row that must change with it, and keeps the state it leads to.
    pub(super) fn commit<'a>(
        &'a self,
        order: &'a Order,
        hot: &'a mut Option<Hot>,
        known: Hot,
        decision: Decision,
        now: Timestamp,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send + 'a {
        self.commit_with(order, hot, known, (None, decision), now)
    }

    /// The same with what the decision was made on, where the store does not have that yet.
    pub(super) fn commit_with<'a>(
        &'a self,
        order: &'a Order,
        hot: &'a mut Option<Hot>,
        known: Hot,
        (recorded, decision): (Option<Recorded>, Decision),
        now: Timestamp,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send + 'a {
        // Outside the future, which every caller's future has inside: what is prepared would make all of them large.
        let prepared = self.prepare(order, known, recorded, decision, now);
        async move { self.append_prepared(order, hot, prepared?).await }
    }

    async fn append_prepared(
        &self,
        order: &Order,
        hot: &mut Option<Hot>,
        mut prepared: Box<Prepared>,
    ) -> Result<Outcome, Error> {
        if let Some(append) = prepared.append.take() {
            let sent = self.inner.clock.elapsed();
            match self.append(order, append).await {
                Ok(appended) => {
                    self.learn_time(sent, &appended);
                    if let Some(earlier) = adopted(&appended) {
                        return self.recorded_before(order, prepared.decided_on(), earlier, prepared.outcome);
                    }
                }
                Err(error) if error.may_have_happened() => {
                    let confirmed = Box::pin(self.confirm(order, prepared.decided_on(), prepared.first));
                    // If nobody can look, the question stays as open as the append left it.
                    if !matches!(confirmed.await, Ok(true)) {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        let Prepared { state, tenant, timer, actions, outcome, before, set, busy, .. } = *prepared;
        let now_is = state.status;
        let is_invocation = state.entrypoint().is_some();
        let root = state.root().cloned();
        // Whoever waits for the run has waited long enough.
        let rests = now_is.is_terminal() || state.visible() == InvocationStatus::Suspended;
        self.inner.cache.weigh(&order.run_id, &state);
        *hot = Some(Hot { timer, ..Hot::new(state, tenant.clone()) });
        self.wake_for(&order.run_id, &actions, outcome.recorded > 0, set);
        self.follow_end(&order.run_id, &tenant, &actions);
        if let Some(root) = &root {
            let was_open = before.is_some_and(|status| !status.is_terminal());
            self.inner.families.moved(root, was_open, !now_is.is_terminal());
        }
        self.inner.admissions.moved(&tenant, before, now_is);
        if is_invocation {
            self.inner.quotas.moved(&tenant, busy.0, busy.1);
        }
        for action in &actions {
            if let Action::Spawn(spawn) = action {
                let tenant = &spawn.start.context.tenant_id;
                self.inner.admissions.moved(tenant, None, RunStatus::Running);
                self.inner.quotas.moved(tenant, spawn.start.start.entrypoint.is_none(), true);
                drop(self.run_span(&spawn.run_id, tenant, &spawn.start.start));
            }
        }
        if rests && !before.is_some_and(RunStatus::is_terminal) {
            self.inner.endings.tell(&order.run_id);
        }
        Ok(outcome)
    }

    /// The facts were in the log already, and nothing was written. Behind the state that was decided on, they come from a
    /// try of ours whose answer was lost, or from somebody else under the same keys: which of the two, and what it means
    /// for this command, the newest state says. Otherwise the fact is simply known, and saying it again changes nothing.
    fn recorded_before(
        &self,
        order: &Order,
        decided_on: u64,
        earlier: &EventOutcome,
        outcome: Outcome,
    ) -> Result<Outcome, Error> {
        let run_id = order.run_id.clone();
        if earlier.run_seq > decided_on {
            let (expected, actual) = (decided_on, earlier.run_seq);
            return Err(servo_store::Error::Conflict { run_id, expected, actual }.into());
        }
        Ok(Outcome { recorded: 0, ..outcome })
    }

    /// The commit was under way when the connection broke: is our first event there?
    async fn confirm(&self, order: &Order, after: u64, first: Option<servo_model::EventId>) -> Result<bool, Error> {
        let Some(first) = first else { return Ok(false) };
        let mut failures = 0;
        loop {
            match self.inner.store.read_run(&Scope::System, &order.run_id, after, 1).await {
                Ok(page) => return Ok(page.events.first().is_some_and(|event| event.event_id == first)),
                Err(servo_store::Error::NotFound) => return Ok(false),
                Err(error) if error.retry() == Retry::Later => {
                    failures += 1;
                    if order.patience == Patience::Request && failures >= REQUEST_TRIES {
                        return Err(error.into());
                    }
                    self.back_off(failures).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The first event that was in the log already.
fn adopted(appended: &Appended) -> Option<&EventOutcome> {
    appended.streams.iter().flat_map(|stream| &stream.events).find(|event| !event.inserted)
}

/// Decides an order's commands, each on the state that the one before it leads to.
fn decide_all(engine: &Engine, order: &Order, state: Option<&RunState>, now: Timestamp) -> Result<Decision, Refusal> {
    let policy = &engine.inner.config.policy;
    let [first, rest @ ..] = order.commands.as_slice() else { return Ok(Decision::default()) };
    if rest.is_empty() {
        return decide(state.map_or(Run::New(&order.run_id), Run::Known), first, policy, now);
    }
    let mut working = state.cloned().ok_or(Refusal::NoRun)?;
    let mut merged = Decision::default();
    for command in &order.commands {
        if recorded_already(&working, command) {
            continue;
        }
        let mut decision = decide(Run::Known(&working), command, policy, now)?;
        decision.facts = fold(&order.run_id, &mut working, decision.facts, now);
        merged.facts.append(&mut decision.facts);
        merged.actions.append(&mut decision.actions);
        if decision.refusal.is_some() {
            // What was recorded is a refusal: the commands behind it have nothing to stand on.
            merged.refusal = decision.refusal;
            break;
        }
    }
    Ok(merged)
}

/// A start that was to be recorded late, but made it into the log after all.
fn recorded_already(state: &RunState, command: &Command) -> bool {
    let Command::StartStep { step_id, attempt, occurred_at: Some(_) } = command else { return false };
    state.step_number(step_id).is_some_and(|number| {
        let current = &state.step(number).attempt;
        current.logical_attempt_id == *attempt && current.status != StepStatus::Pending
    })
}
