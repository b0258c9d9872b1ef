//! What a decision becomes before it is appended: events, the state that they lead to, and every row that changes with them.

use servo_canon::Digest;
use servo_machine::{Action, Decision, Fact};
use servo_model::event::{EventBody, idempotency_key};
use servo_model::invocation::InvocationStatus;
use servo_model::state::Applied;
use servo_model::{Event, EventId, RunId, RunState, RunStatus, TenantId, Timestamp};
use servo_store::log::TimerChange;
use servo_store::{Append, Expected, NewEvent, RunRow, StreamAppend};

use super::actions::leave_out;
use super::{Engine, Error, Hot, Order, Outcome};

pub(super) struct Prepared {
    /// `None` where nothing is to be written.
    pub append: Option<Append>,
    pub state: Box<RunState>,
    pub tenant: TenantId,
    /// As [`Hot::timer`].
    pub timer: Option<Option<Timestamp>>,
    pub actions: Vec<Action>,
    pub outcome: Outcome,
    /// The run's status until now, if it is not new.
    pub before: Option<RunStatus>,
    /// The earliest timer that the append sets.
    pub set: Option<Timestamp>,
    /// The first event, by which the append is known.
    pub first: Option<EventId>,
    /// Whether it is an invocation that was queued or running, and whether it is. A new one was counted when it was let in.
    pub busy: (bool, bool),
}

impl Prepared {
    /// The sequence that was decided on.
    pub(super) fn decided_on(&self) -> u64 {
        self.state.last_event_seq - self.outcome.recorded as u64
    }
}

/// What a decision has become that another one was decided on, and that is appended with it.
#[derive(Debug)]
pub(super) struct Recorded {
    pub state: Box<RunState>,
    pub events: Vec<NewEvent>,
}

impl Engine {
    /// `known` is what the store has; the decision may have been made on what is recorded since.
    pub(super) fn prepare(
        &self,
        order: &Order,
        known: Hot,
        recorded: Option<Recorded>,
        decision: Decision,
        now: Timestamp,
    ) -> Result<Box<Prepared>, Error> {
        let Decision { facts, actions, refusal } = decision;
        let Hot { state, tenant, timer: timer_row, absent } = known;
        let expected = if state.last_event_seq == 0 { Expected::New } else { Expected::Seq(state.last_event_seq) };
        let visible = (state.status, state.visible());
        let was_busy = expected == Expected::New || is_busy(&state);
        let recorded = recorded.unwrap_or(Recorded { state, events: Vec::new() });
        let Recorded { state, events } = self.record(order, recorded, facts, now)?;
        let mut stream = StreamAppend::new(order.run_id.clone(), tenant.clone(), expected);
        if expected == Expected::New || visible != (state.status, state.visible()) {
            let row = RunRow::of(&state, order.request_key, now);
            stream.row = Some(RunRow { tenant: tenant.clone(), ..row });
        }
        // What was refused hands nothing out, also not what is due: its timer must stay until something does.
        let keeps_timer = refusal.is_some() && !state.status.is_terminal();
        let due = if keeps_timer { None } else { state.next_due(now) };
        let timer = if keeps_timer { timer_row } else { Some(due) };
        if timer_row != timer && !(expected == Expected::New && due.is_none()) {
            stream.timer = due.map_or(TimerChange::Clear, TimerChange::Set);
            self.inner.broken.timer_set(order);
        }
        self.apply_actions(order, &state, &actions, &mut stream);
        leave_out(&absent, &mut stream);
        let outcome = Outcome { run_id: order.run_id.clone(), recorded: events.len(), refusal, view: () };
        let first = events.first().map(|event| event.event_id);
        stream.events = events;
        let mut set = set_timer(&stream);
        let idle = first.is_none() && actions.is_empty() && stream.timer == TimerChange::Keep;
        let mut streams = vec![stream];
        for action in &actions {
            if let Action::Spawn(spawn) = action {
                let spawned = self.spawned(spawn, now)?;
                set = set.into_iter().chain(set_timer(&spawned)).min();
                streams.push(spawned);
            }
        }
        let append = (!idle).then(|| Append { fence: order.fence, streams, ..Append::default() });
        let before = (expected != Expected::New).then_some(visible.0);
        let busy = (was_busy, is_busy(&state));
        Ok(Box::new(Prepared { append, state, tenant, timer, actions, outcome, before, set, first, busy }))
    }

    /// Turns facts into events and folds them. `occurredAt` is the time of the decision, so the fold here and a fold of
    /// what the store wrote agree to the millisecond.
    pub(super) fn record(
        &self,
        order: &Order,
        recorded: Recorded,
        facts: Vec<Fact>,
        now: Timestamp,
    ) -> Result<Recorded, Error> {
        let Recorded { mut state, mut events } = recorded;
        events.reserve(facts.len());
        for fact in facts {
            // Nothing that does not match its published schema is ever appended, whoever made it.
            fact.body.check()?;
            let (step, number) = fact.body.key_parts();
            let plan_version = plan_version(&state, &fact.body);
            let key = idempotency_key(&order.run_id, step, number, fact.body.event_type(), plan_version);
            let event_id = self.inner.ids.event_id(now);
            let occurred_at = Some(fact.occurred_at.unwrap_or(now));
            events.push(NewEvent {
                event_id,
                event_type: fact.body.stored_type(),
                idempotency_key: key,
                emitted_by: order.emitted_by.clone(),
                occurred_at,
                payload: fact.body.encode(),
            });
            let event = Event {
                event_id,
                run_id: order.run_id.clone(),
                run_seq: state.last_event_seq + 1,
                idempotency_key: key,
                emitted_at: now,
                emitted_by: String::new(),
                occurred_at,
                body: fact.body,
            };
            if state.advance(&event) == Applied::Changed {
                self.inner.folded.note(event_id);
            }
        }
        Ok(Recorded { state, events })
    }
}

/// Has a state follow facts, before anything is made of them that could be written. Gives the facts back.
pub(super) fn fold(run_id: &RunId, state: &mut RunState, facts: Vec<Fact>, now: Timestamp) -> Vec<Fact> {
    let mut folded = Vec::with_capacity(facts.len());
    for Fact { body, occurred_at } in facts {
        let event = Event {
            event_id: EventId::from_bytes([0; 16]),
            run_id: run_id.clone(),
            run_seq: state.last_event_seq + 1,
            idempotency_key: Digest::from_bytes([0; 32]),
            emitted_at: now,
            emitted_by: String::new(),
            occurred_at: Some(occurred_at.unwrap_or(now)),
            body,
        };
        state.advance(&event);
        folded.push(Fact { body: event.body, occurred_at });
    }
    folded
}

/// Whether a run is an invocation that is queued or running.
fn is_busy(state: &RunState) -> bool {
    state.entrypoint().is_some() && matches!(state.visible(), InvocationStatus::Queued | InvocationStatus::Running)
}

/// When an append sets a timer, its time.
fn set_timer(stream: &StreamAppend) -> Option<Timestamp> {
    match stream.timer {
        TimerChange::Set(at) => Some(at),
        TimerChange::Keep | TimerChange::Clear => None,
    }
}

/// The plan version that enters the keys: of the first event's own plan when the run is new.
fn plan_version<'a>(state: &'a RunState, body: &'a EventBody) -> &'a str {
    match body {
        EventBody::RunQueued(queued) => &queued.plan_ref.plan_version,
        _ => state.plan_version(),
    }
}
