//! Random appends and imports.

use servo_canon::Digest;
use servo_model::event::{FORMAT, idempotency_key};
use servo_model::{RunId, RunStatus, TenantId};

use super::super::op::Op;
use super::{OPERATOR, REQUESTS, RUNS, STEPS, TENANTS, VERSIONS, World};
use crate::dispatch::DispatchChange;
use crate::lease::AuthorityChange;
use crate::log::{
    Append, Expected, KeyMode, NewEvent, QueueChange, StoredEvent, StoredSnapshot, StreamAppend, TimerChange,
};
use crate::position::Position;
use crate::runs::{RunRow, Scope};
use crate::testkit::fixtures::{PLAN_VERSION, dispatch_step, new_event, run_id, run_row, tenant};
use servo_model::invocation::InvocationStatus;

/// Each run belongs to one tenant; two of them share the first.
pub(super) fn tenant_of(run: usize) -> TenantId {
    tenant(TENANTS[run % TENANTS.len()])
}

impl World<'_> {
    pub(super) async fn append(&mut self) -> Op {
        let fence = self.fence(10).await;
        let authority = if self.rng.one_in(6) { Some(self.authority().await) } else { None };
        let mut streams = Vec::new();
        let first = self.any_run().0;
        let count = match self.rng.below(12) {
            0 => 0,
            1..=8 => 1,
            _ => 2,
        };
        for index in (first..RUNS.len()).chain(0..first).take(count) {
            streams.push(self.stream(index).await);
        }
        if self.rng.one_in(5) {
            streams.push(self.system_stream().await);
        }
        // Rows of one moment have no order of their own, so only one of them is queued.
        for stream in streams.iter_mut().skip(1).filter(|stream| matches!(stream.queue, QueueChange::Put { .. })) {
            stream.queue = QueueChange::Keep;
        }
        let cursors = if self.rng.one_in(8) { vec![self.cursor(), self.cursor()] } else { Vec::new() };
        Op::Append { append: Append { fence, authority, streams, cursors: Vec::new() }, cursors }
    }

    async fn authority(&mut self) -> AuthorityChange {
        let owner = match self.model.authority().await.ok().flatten() {
            Some(row) if self.rng.one_in(2) => row.owner,
            _ => self.owner(),
        };
        let lease_id = format!("lease-{}", self.rng.below(100));
        let leased_until = self.now.plus(std::time::Duration::from_millis(30 + self.rng.below(900))).to_string();
        match self.rng.below(4) {
            0 | 1 => AuthorityChange::Acquire { owner, lease_id, leased_until },
            2 => {
                let epoch = if self.rng.one_in(2) { Some(self.epoch().await) } else { None };
                AuthorityChange::Renew { owner, epoch, lease_id, leased_until }
            }
            _ => AuthorityChange::Resign { owner, epoch: self.epoch().await },
        }
    }

    /// An append to a run: creating it if it is not there, mostly.
    async fn stream(&mut self, index: usize) -> StreamAppend {
        let run_id = run_id(RUNS[index]);
        let head = self.model.read_run(&Scope::System, &run_id, 0, 1).await.ok().map(|page| page.head_seq);
        let create = if self.rng.one_in(25) { head.is_some() } else { head.is_none() };
        let owner = if self.rng.one_in(15) && !create { self.any_tenant() } else { tenant_of(index) };
        let head = head.unwrap_or(0);
        let expected = match self.rng.below(10) {
            _ if create => Expected::New,
            0..=5 => Expected::Seq(head),
            6 => Expected::Seq(head + 1),
            7 => Expected::Seq(head.saturating_sub(1)),
            _ => Expected::Any,
        };
        let mut stream = StreamAppend::new(run_id.clone(), owner.clone(), expected);
        stream.events = self.events(&run_id);
        if self.rng.one_in(8) {
            stream.key_mode = KeyMode::Strict;
        }
        if create || self.rng.one_in(4) {
            let seq = head + stream.events.len() as u64;
            stream.row = Some(self.row(&run_id, &owner, seq));
        }
        stream.timer = match self.rng.below(6) {
            0 | 1 => TimerChange::Set(self.near()),
            2 => TimerChange::Clear,
            _ => TimerChange::Keep,
        };
        stream.queue = match self.rng.below(10) {
            0 | 1 => QueueChange::Put { not_before: self.near() },
            2..=5 if self.memory.claims.contains_key(&run_id) => {
                let leased_by = Some(self.claimer(&run_id));
                self.memory.claims.remove(&run_id);
                QueueChange::Remove { leased_by }
            }
            2 if self.rng.one_in(3) => QueueChange::Remove { leased_by: Some(self.owner()) },
            3 => QueueChange::Remove { leased_by: None },
            _ => QueueChange::Keep,
        };
        if self.rng.one_in(6) {
            let state = format!("{{\"number\":{}}}", self.rng.below(1_000));
            stream.snapshot = Some(StoredSnapshot { run_seq: head + 1, state });
        }
        for _ in 0..self.rng.below(3) {
            let step = self.rng.pick(&STEPS);
            let change = self.change(format!("{run_id}/{step}/1"), Some(step)).await;
            stream.dispatches.push(change);
        }
        stream
    }

    /// Facts of the system stream; its writers do not know its head. Operators move any dispatch.
    async fn system_stream(&mut self) -> StreamAppend {
        let mut stream = StreamAppend::new(RunId::system(), TenantId::system(), Expected::Any);
        stream.events = self.events(&RunId::system());
        for _ in 0..self.rng.below(3) {
            let own = self.rng.pick(&OPERATOR).to_owned();
            let change = self.change(own, None).await;
            stream.dispatches.push(change);
        }
        if self.rng.one_in(10) {
            stream
                .dispatches
                .push(DispatchChange::Fail { request_id: self.request_id(), reason: "operator".to_owned() });
        }
        stream
    }

    /// Up to three events with different keys of a small set, so that some are known.
    fn events(&mut self, run_id: &RunId) -> Vec<NewEvent> {
        let mut events: Vec<NewEvent> = Vec::new();
        for _ in 0..self.rng.below(4) {
            let (step, attempt) = (self.rng.pick(&STEPS), 1 + self.rng.below(8) as u32);
            let event_type = self.rng.pick(&["test.noted", "test.done"]);
            let key = idempotency_key(run_id, step, attempt, event_type, PLAN_VERSION);
            if events.iter().any(|event| event.idempotency_key == key) {
                continue;
            }
            // Spacing and the order of fields must survive.
            let payload = format!("{{\"z\": {}, \"a\":\"\u{fc}\"}}", self.rng.below(1_000_000));
            let occurred_at = if self.rng.one_in(3) { Some(self.near()) } else { None };
            let emitted_by = self.owner();
            let event_id = self.event_id();
            events.push(NewEvent {
                event_id,
                event_type: event_type.into(),
                idempotency_key: key,
                emitted_by: emitted_by.into(),
                occurred_at,
                payload,
            });
        }
        events
    }

    fn row(&mut self, run_id: &RunId, owner: &TenantId, changed_seq: u64) -> RunRow {
        let status = self.rng.pick(&RunStatus::ALL);
        let finished_at = if status.is_terminal() { Some(self.near()) } else { None };
        let request_key = if self.rng.one_in(2) { Some(Digest::of(self.rng.pick(&REQUESTS).as_bytes())) } else { None };
        RunRow {
            status,
            visible: self.rng.pick(&InvocationStatus::ALL),
            plan_id: format!("plan-{}", self.rng.below(2)).into(),
            plan_version: self.rng.pick(&VERSIONS).to_owned(),
            name: self.name(),
            outcome: self.outcome(),
            invocation: self.rng.one_in(2),
            mode: self.mode(),
            correlation_id: self.correlation_id(),
            root: if self.rng.one_in(2) { Some(self.any_run().1) } else { None },
            request_key,
            finished_at,
            changed_seq,
            ..run_row(run_id, owner, self.now)
        }
    }

    /// A move that fits the dispatch's state, mostly.
    async fn change(&mut self, request_id: String, step: Option<&str>) -> DispatchChange {
        use servo_model::contract::DispatchState as State;
        let standing = self.model.get_dispatch(&request_id).await.ok().flatten();
        let epoch = self.epoch().await;
        let kind = if self.rng.one_in(12) {
            self.rng.below(6)
        } else {
            match standing.map(|row| row.state) {
                None => 0,
                Some(State::Pending) => self.rng.pick(&[1, 1, 1, 5]),
                Some(State::Notified) => self.rng.pick(&[2, 3, 4]),
                Some(State::Delivered | State::Failed) => self.rng.pick(&[0, 5]),
            }
        };
        match kind {
            0 => {
                let target = format!("target-{}", self.rng.below(3));
                DispatchChange::Queue { request_id, target, step: step.map(|step| dispatch_step(step, 1)) }
            }
            1 => DispatchChange::Notify { request_id, channel: format!("channel-{}", self.rng.below(3)), epoch },
            2 => DispatchChange::Deliver { request_id },
            3 => DispatchChange::Fail { request_id, reason: format!("reason-{}", self.rng.below(3)) },
            4 => DispatchChange::Adopt { request_id, epoch: epoch + 1 },
            _ => DispatchChange::Withdraw { request_id },
        }
    }

    /// A run from elsewhere, with gaps in its sequences.
    pub(super) async fn import(&mut self) -> Op {
        // One that is not there, if there is one: the others are refused in one way only.
        let mut index = self.any_run().0;
        for (candidate, name) in RUNS.iter().enumerate() {
            let run_id = run_id(name);
            if matches!(self.model.get_run(&Scope::System, &run_id).await, Ok(None)) {
                index = candidate;
            }
        }
        let (run_id, owner) = (run_id(RUNS[index]), tenant_of(index));
        let (mut events, mut run_seq) = (Vec::new(), 0);
        let mut sources = self.events(&run_id);
        if sources.is_empty() {
            sources.push(new_event(&run_id, "first", 1, "test.noted"));
        }
        for event in sources {
            run_seq += 1 + self.rng.below(3);
            events.push(StoredEvent {
                position: Position::of_id(7),
                format: FORMAT,
                run_id: run_id.clone(),
                tenant: owner.clone(),
                run_seq,
                event_id: event.event_id,
                event_type: event.event_type,
                idempotency_key: event.idempotency_key,
                emitted_at: self.near(),
                emitted_by: event.emitted_by,
                occurred_at: event.occurred_at,
                payload: event.payload,
            });
        }
        Op::Import { row: self.row(&run_id, &owner, run_seq), events }
    }
}
