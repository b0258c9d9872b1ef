//! The one path by which a command becomes events.

use std::time::Duration;

use servo_machine::{Action, Command, Decision, Refusal, decide};
use servo_model::event::{EventBody, idempotency_key};
use servo_model::state::Applied;
use servo_model::{Event, RunId, RunState, RunStatus, StepStatus, Timestamp};
use servo_store::error::Retry;
use servo_store::log::{EventOutcome, TimerChange};
use servo_store::resync::load_state;
use servo_store::{Append, Appended, Expected, NewEvent, RunRow, Scope, StreamAppend};

use super::actions::leave_out;
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
                    self.back_off(failures).await?;
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
        let store = self.inner.store.as_ref();
        let row = store.get_run(scope, run_id).await?.ok_or(servo_store::Error::NotFound)?;
        if let Some(reason) = row.quarantined {
            return Err(Error::Quarantined(reason));
        }
        match load_state(store, scope, run_id).await {
            Ok(state) => {
                self.inner.cache.weigh(run_id, state.weight_bytes());
                *hot = Some(Hot::new(state, row.tenant));
                Ok(true)
            }
            Err(servo_store::Error::Corrupt { detail }) => {
                self.quarantine(run_id, &row.tenant, &detail).await;
                Err(Error::Quarantined(detail))
            }
            Err(error) => Err(error.into()),
        }
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
                let state = self.catch_up(&order.scope, &tenant, state).await?;
                *hot = Some(Hot { absent, ..Hot::new(state, tenant) });
            }
        }
        let mut decided = decide_all(self, order, hot.as_ref().map(|known| &known.state), now);
        if decided.is_err() && !fresh {
            // Another node may have moved the run: a refusal counts only on the newest state.
            if let Some(Hot { state, tenant, absent, .. }) = hot.take() {
                let state = self.catch_up(&order.scope, &tenant, state).await?;
                *hot = Some(Hot { absent, ..Hot::new(state, tenant) });
            }
            decided = decide_all(self, order, hot.as_ref().map(|known| &known.state), now);
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
    pub(super) async fn commit(
        &self,
        order: &Order,
        hot: &mut Option<Hot>,
        known: Hot,
        decision: Decision,
        now: Timestamp,
    ) -> Result<Outcome, Error> {
        // Nothing that does not match its published schema is ever appended, whoever made it.
        for fact in &decision.facts {
            fact.body.check()?;
        }
        let Hot { state, tenant, timer: timer_row, absent } = known;
        let expected = if state.last_event_seq == 0 { Expected::New } else { Expected::Seq(state.last_event_seq) };
        let visible = (state.status, state.visible());
        let (state, events) = self.record(order, state, &decision, now);
        let mut stream = StreamAppend::new(order.run_id.clone(), tenant.clone(), expected);
        if expected == Expected::New || visible != (state.status, state.visible()) {
            let row = RunRow::of(&state, order.request_key, now);
            stream.row = Some(RunRow { tenant: tenant.clone(), ..row });
        }
        // What was refused hands nothing out, also not what is due: its timer must stay until something does.
        let keeps_timer = decision.refusal.is_some() && !state.status.is_terminal();
        let due = if keeps_timer { None } else { state.next_due(now) };
        let timer = if keeps_timer { timer_row } else { Some(due) };
        if timer_row != timer && !(expected == Expected::New && due.is_none()) {
            stream.timer = due.map_or(TimerChange::Clear, TimerChange::Set);
            self.inner.broken.timer_set(order);
        }
        self.apply_actions(order, &state, &decision.actions, &mut stream);
        leave_out(&absent, &mut stream);
        let outcome =
            Outcome { run_id: order.run_id.clone(), recorded: events.len(), refusal: decision.refusal, view: () };
        let (counted, now_is) = (tenant.clone(), state.status);
        let ends = !visible.0.is_terminal() && state.status.is_terminal();
        let first = events.first().map(|event| event.event_id);
        stream.events = events;
        let mut set = set_timer(&stream);
        let idle = first.is_none() && decision.actions.is_empty() && stream.timer == TimerChange::Keep;
        if !idle {
            let mut streams = vec![stream];
            for action in &decision.actions {
                if let Action::Spawn(spawn) = action {
                    let spawned = self.spawned(spawn, now)?;
                    set = set.into_iter().chain(set_timer(&spawned)).min();
                    streams.push(spawned);
                }
            }
            let append = Append { fence: order.fence, streams, ..Append::default() };
            let sent = self.inner.clock.elapsed();
            match self.append(order, append).await {
                Ok(appended) => {
                    self.learn_time(sent, &appended);
                    if let Some(earlier) = adopted(&appended) {
                        let decided_on = state.last_event_seq - outcome.recorded as u64;
                        return self.recorded_before(order, decided_on, earlier, outcome);
                    }
                }
                Err(error) if error.may_have_happened() => {
                    let after = state.last_event_seq - outcome.recorded as u64;
                    // If nobody can look, the question stays as open as the append left it.
                    if !matches!(self.confirm(order, after, first).await, Ok(true)) {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.inner.cache.weigh(&order.run_id, state.weight_bytes());
        *hot = Some(Hot { timer, ..Hot::new(state, tenant) });
        self.wake_for(&order.run_id, &decision.actions, outcome.recorded > 0, set);
        let before = (expected != Expected::New).then_some(visible.0);
        self.inner.admissions.moved(&counted, before, now_is);
        for action in &decision.actions {
            if let Action::Spawn(spawn) = action {
                let tenant = &spawn.start.context.tenant_id;
                self.inner.admissions.moved(tenant, None, RunStatus::Running);
                drop(self.run_span(&spawn.run_id, tenant, &spawn.start.start));
            }
        }
        if ends {
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

    /// Turns facts into events and folds them. `occurredAt` is the time of the decision, so the fold here and a fold of
    /// what the store wrote agree to the millisecond.
    pub(super) fn record(
        &self,
        order: &Order,
        mut state: RunState,
        decision: &Decision,
        now: Timestamp,
    ) -> (RunState, Vec<NewEvent>) {
        let mut events = Vec::with_capacity(decision.facts.len());
        for fact in &decision.facts {
            let (step, number) = fact.body.key_parts();
            let plan_version = plan_version(&state, &fact.body);
            let key = idempotency_key(&order.run_id, step, number, fact.body.event_type(), plan_version);
            let event = Event {
                event_id: self.inner.ids.event_id(now),
                run_id: order.run_id.clone(),
                run_seq: state.last_event_seq + 1,
                idempotency_key: key,
                emitted_at: now,
                emitted_by: order.emitted_by.clone(),
                occurred_at: Some(fact.occurred_at.unwrap_or(now)),
                body: fact.body.clone(),
            };
            events.push(NewEvent {
                event_id: event.event_id,
                event_type: event.body.event_type().to_owned(),
                idempotency_key: key,
                emitted_by: event.emitted_by.clone(),
                occurred_at: event.occurred_at,
                payload: event.body.encode(),
            });
            let (next, applied) = state.apply(&event);
            if applied == Applied::Changed {
                self.inner.folded.note(event.event_id);
            }
            state = next;
        }
        (state, events)
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

/// When an append sets a timer, its time.
fn set_timer(stream: &StreamAppend) -> Option<Timestamp> {
    match stream.timer {
        TimerChange::Set(at) => Some(at),
        TimerChange::Keep | TimerChange::Clear => None,
    }
}

/// The first event that was in the log already.
fn adopted(appended: &Appended) -> Option<&EventOutcome> {
    appended.streams.iter().flat_map(|stream| &stream.events).find(|event| !event.inserted)
}

/// The plan version that enters the keys: of the first event's own plan when the run is new.
fn plan_version<'a>(state: &'a RunState, body: &'a EventBody) -> &'a str {
    match body {
        EventBody::RunQueued(queued) => &queued.plan_ref.plan_version,
        _ => state.plan_version(),
    }
}

/// Decides an order's commands, each on the state that the one before it leads to.
fn decide_all(engine: &Engine, order: &Order, state: Option<&RunState>, now: Timestamp) -> Result<Decision, Refusal> {
    let policy = &engine.inner.config.policy;
    let [first, rest @ ..] = order.commands.as_slice() else { return Ok(Decision::default()) };
    if rest.is_empty() {
        return decide(state, first, policy, now);
    }
    let mut working = state.cloned().ok_or(Refusal::NoRun)?;
    let mut merged = Decision::default();
    for command in &order.commands {
        if recorded_already(&working, command) {
            continue;
        }
        let mut decision = decide(Some(&working), command, policy, now)?;
        working = engine.record(order, working, &decision, now).0;
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
