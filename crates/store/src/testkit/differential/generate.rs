//! The next random operation over a small universe: three tenants, four runs, three owners, few keys, so that
//! operations meet. The model is asked where things stand, because blind guesses are nearly always refused.

mod entrypoints;
mod filters;
mod functions;
mod identity;
mod streams;

use std::collections::BTreeMap;

use servo_canon::Digest;
use servo_model::alert::AlertCode;
use servo_model::{EventId, RunId, TenantId, Timestamp};

use super::Follower;
use super::apply::Answer;
use super::op::{Cursor, Note, Op, Place};
use crate::Store;
use crate::dispatch::{DispatchHeads, QueueClaim};
use crate::lease::Fence;
use crate::log::StoredSnapshot;
use crate::relay::NewAlert;
use crate::runs::{RunQuery, Scope};
use crate::testkit::clock::ManualClock;
use crate::testkit::fixtures::{run_id, tenant};
use crate::testkit::rng::Rng;
use servo_model::invocation::InvocationStatus;

pub(super) const TENANTS: [&str; 3] = ["acme", "globex", "initech"];
/// Spellings that sort one way by byte and another way by language.
pub(super) const RUNS: [&str; 4] = ["inv_1", "inv_a2", "INV-b3", "inv_Z4"];
pub(super) const OWNERS: [&str; 3] = ["node-1", "node-2", "node-3"];
pub(super) const CURSORS: [&str; 2] = ["relay", "replay"];
pub(super) const REQUESTS: [&str; 2] = ["request-1", "request-2"];
pub(super) const VERSIONS: [&str; 2] = ["1", "2"];
pub(super) const STEPS: [&str; 3] = ["a", "b", "c"];
const OPERATOR: [&str; 3] = ["op-1", "op-2", "op-3"];

/// Every dispatch that can ever exist.
pub(super) fn request_ids() -> Vec<String> {
    let of_runs = RUNS.iter().flat_map(|run| STEPS.iter().map(move |step| format!("{run}/{step}/1")));
    of_runs.chain(OPERATOR.map(str::to_owned)).collect()
}

/// What earlier operations were, so that later ones can follow them up.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Queued runs and who claimed them.
    claims: BTreeMap<RunId, String>,
    /// Appends to be sent again, as after an unknown outcome.
    append: Option<Op>,
}

impl Memory {
    pub(super) fn note(&mut self, op: &Op, answer: &Answer) {
        let Op::ClaimQueue { claim } = op else { return };
        for run in RUNS.iter().filter(|run| answer.text.contains(&format!("run_id: {run:?}"))) {
            self.claims.insert(run_id(run), claim.owner.clone());
        }
    }
}

/// Where a new operation comes from.
struct World<'a> {
    rng: &'a mut Rng,
    memory: &'a mut Memory,
    model: &'a dyn Store,
    now: Timestamp,
    follower: &'a Follower,
}

impl World<'_> {
    /// A run and its number.
    fn any_run(&mut self) -> (usize, RunId) {
        let index = self.rng.below(RUNS.len() as u64) as usize;
        (index, run_id(RUNS[index]))
    }

    fn run_or_system(&mut self) -> RunId {
        if self.rng.one_in(6) { RunId::system() } else { self.any_run().1 }
    }

    fn any_tenant(&mut self) -> TenantId {
        tenant(self.rng.pick(&TENANTS))
    }

    fn scope(&mut self) -> Scope {
        if self.rng.one_in(2) { Scope::System } else { Scope::Tenant(self.any_tenant()) }
    }

    fn owner(&mut self) -> String {
        self.rng.pick(&OWNERS).to_owned()
    }

    /// Who may hold the run's lease now.
    fn claimer(&mut self, run_id: &RunId) -> String {
        match self.memory.claims.get(run_id) {
            Some(owner) if !self.rng.one_in(5) => owner.clone(),
            _ => self.owner(),
        }
    }

    /// A time around now.
    fn near(&mut self) -> Timestamp {
        Timestamp::from_millis(self.now.as_millis() - 60 + self.rng.below(120) as i64)
    }

    /// The start as often as all other places, because most lists are read from there.
    fn place(&mut self) -> Place {
        if self.rng.one_in(2) {
            return 0;
        }
        self.rng.below(self.follower.places.len() as u64) as usize
    }

    fn event_id(&mut self) -> EventId {
        EventId::from_u128(u128::from(self.rng.number()) << 64 | u128::from(self.rng.number()))
    }

    fn request_id(&mut self) -> String {
        let mut all = request_ids();
        all.swap_remove(self.rng.below(all.len() as u64) as usize)
    }

    async fn epoch(&mut self) -> u64 {
        let current = self.model.authority().await.ok().flatten().map_or(0, |row| row.epoch);
        if self.rng.one_in(5) { current.saturating_sub(1) } else { current }
    }

    async fn fence(&mut self, times: u64) -> Option<Fence> {
        if self.rng.one_in(times) { Some(Fence { epoch: self.epoch().await }) } else { None }
    }

    fn cursor(&mut self) -> Cursor {
        Cursor {
            name: self.rng.pick(&CURSORS).to_owned(),
            place: self.place(),
            last_event_id: if self.rng.one_in(2) { Some(self.event_id()) } else { None },
            target: if self.rng.one_in(3) { Some(self.place()) } else { None },
            deferred: self.rng.one_in(4),
        }
    }

    /// A note about an event that is still in the log; `None` while there is none.
    async fn note(&mut self) -> Option<Note> {
        if self.follower.events.is_empty() {
            return None;
        }
        let index = self.rng.below(self.follower.events.len() as u64) as usize;
        let event = &self.follower.events[index];
        let page = self.model.read_run(&Scope::System, &event.run_id, event.run_seq - 1, 1).await.ok()?;
        if page.events.first()?.event_id != event.event_id {
            return None;
        }
        let attempts = 1 + self.rng.below(5) as u32;
        Some(Note {
            place: index + 1,
            run_id: event.run_id.clone(),
            run_seq: event.run_seq,
            tenant: event.tenant.clone(),
            attempts,
            next_at: self.near(),
            last_error: format!("attempt {attempts}"),
        })
    }

    fn alert(&mut self) -> NewAlert {
        let run_id = if self.rng.one_in(2) { Some(self.any_run().1) } else { None };
        NewAlert {
            code: self.rng.pick(&AlertCode::ALL[..3]),
            subject: self.rng.pick(&["projector", "bus"]).to_owned(),
            run_id,
            tenant: self.any_tenant(),
            message: format!("message {}", self.rng.below(100)),
        }
    }

    fn name(&mut self) -> Option<String> {
        self.rng.pick(&[None, Some("order"), Some("Order")]).map(str::to_owned)
    }

    fn outcome(&mut self) -> Option<String> {
        self.rng.pick(&[None, Some("TIMED_OUT"), Some("STOPPED")]).map(str::to_owned)
    }

    fn query(&mut self) -> RunQuery {
        RunQuery {
            visible: (0..self.rng.below(4).saturating_sub(1)).map(|_| self.rng.pick(&InvocationStatus::ALL)).collect(),
            outcome: if self.rng.one_in(5) { Some(vec![self.outcome(), self.outcome()]) } else { None },
            plan_id: if self.rng.one_in(3) { Some(format!("plan-{}", self.rng.below(2))) } else { None },
            plan_version: if self.rng.one_in(8) { Some(self.rng.pick(&VERSIONS).to_owned()) } else { None },
            created_from: if self.rng.one_in(8) { Some(self.near()) } else { None },
            created_until: if self.rng.one_in(8) { Some(self.near()) } else { None },
            name: if self.rng.one_in(6) { self.name() } else { None },
            invocations: self.rng.pick(&[None, None, Some(true), Some(false)]),
            mode: if self.rng.one_in(8) { self.mode() } else { None },
            correlation_id: if self.rng.one_in(8) { self.correlation_id() } else { None },
            plan_ids: (0..self.rng.below(8).saturating_sub(5)).map(|_| format!("plan-{}", self.rng.below(3))).collect(),
            filter: if self.rng.one_in(4) { Some(self.filter(3)) } else { None },
            order: self.order(),
            oldest_first: self.rng.one_in(3),
            after: if self.rng.one_in(3) { Some(self.any_run().1) } else { None },
            limit: 1 + self.rng.below(5) as u32,
        }
    }

    fn limit(&mut self) -> u32 {
        1 + self.rng.below(6) as u32
    }
}

/// Appends are half of all; of the rest, each kind comes about equally often.
pub(super) async fn next(
    rng: &mut Rng,
    memory: &mut Memory,
    model: &dyn Store,
    clock: &ManualClock,
    follower: &Follower,
) -> Op {
    let mut world = World { rng, memory, model, now: clock.now(), follower };
    if world.rng.one_in(2) {
        return other(&mut world).await;
    }
    if world.rng.one_in(8) {
        return Op::Entrypoint(entrypoints::next(&mut world).await);
    }
    if world.rng.one_in(5) {
        return Op::Function(functions::next(&mut world));
    }
    if world.rng.one_in(7) {
        return Op::Identity(identity::next(&mut world, clock));
    }
    if let Some(repeated) = world.memory.append.clone()
        && world.rng.one_in(12)
    {
        return repeated;
    }
    let op = world.append().await;
    world.memory.append = Some(op.clone());
    op
}

async fn other(world: &mut World<'_>) -> Op {
    match world.rng.below(46) {
        0 => {
            let after = world.rng.below(6);
            Op::ReadRun { scope: world.scope(), run_id: world.run_or_system(), after, limit: world.limit() }
        }
        1 => Op::SnapshotAt { scope: world.scope(), run_id: world.any_run().1, seq_max: world.rng.below(8) },
        2 => {
            let (index, run_id) = world.any_run();
            let tenant = if world.rng.one_in(5) { world.any_tenant() } else { streams::tenant_of(index) };
            let run_seq = 1 + world.rng.below(6);
            let state = format!("{{\"number\":{}}}", world.rng.below(1_000));
            Op::PutSnapshot { run_id, tenant, snapshot: StoredSnapshot { run_seq, state } }
        }
        3 | 4 => Op::Follow { page: world.limit() },
        5 => {
            let (after, until) = (world.place(), world.place());
            Op::CountLog { after, until, most: 1 + world.rng.below(20) }
        }
        6 => Op::GetRun { scope: world.scope(), run_id: world.run_or_system() },
        7 => Op::ListRuns { scope: world.scope(), query: world.query() },
        8 => {
            let key = Digest::of(world.rng.pick(&REQUESTS).as_bytes());
            Op::FindRequest { tenant: world.any_tenant(), key }
        }
        21 | 22 => {
            let plan = format!("plan-{}", world.rng.below(2));
            let plan_id = if world.rng.one_in(2) { Some(plan) } else { None };
            Op::CountByVisible { tenant: world.any_tenant(), plan_id }
        }
        23 => {
            let key = Digest::of(world.rng.pick(&REQUESTS).as_bytes());
            let (index, run_id) = world.any_run();
            let tenant = if world.rng.one_in(5) { world.any_tenant() } else { streams::tenant_of(index) };
            Op::ReleaseRequest { tenant, key, run_id }
        }
        9 => Op::CountActive { tenant: world.any_tenant(), most: world.limit() },
        10 | 11 => {
            let after = if world.rng.one_in(3) { Some(world.any_tenant()) } else { None };
            let (owner, lease_ms) = (world.owner(), 5 + world.rng.below(200));
            Op::ClaimQueue { claim: QueueClaim { owner, lease_ms, after, limit: world.limit() } }
        }
        12 => {
            let claimed = world.memory.claims.keys().next().cloned();
            let run_id = claimed.unwrap_or_else(|| world.any_run().1);
            Op::ReleaseQueue { owner: world.claimer(&run_id), run_id, not_before: world.near() }
        }
        13 => {
            let after = if world.rng.one_in(3) { Some((world.near(), world.request_id())) } else { None };
            let (epoch, tenant) = (world.rng.below(6), world.any_tenant());
            Op::OpenDispatches { epoch, tenant, after, limit: world.limit() }
        }
        24 => {
            let after = if world.rng.one_in(3) { Some(world.any_tenant()) } else { None };
            let (tenants, each) = (world.limit(), world.limit());
            Op::DispatchHeads { heads: DispatchHeads { epoch: world.rng.below(6), after, tenants, each } }
        }
        14 => Op::GetDispatch { request_id: world.request_id() },
        15 => Op::Backlog,
        16 => Op::DueTimers { limit: world.limit() },
        17 => Op::GetTimer { run_id: world.any_run().1 },
        18 => Op::Authority,
        19 => Op::BreakLeases,
        20 => {
            let plan_id = format!("plan-{}", world.rng.below(2));
            Op::CountOpen { tenant: world.any_tenant(), plan_id }
        }
        25 => Op::LoadRun { scope: world.scope(), run_id: world.run_or_system(), limit: world.limit() },
        26 | 27 => {
            let (index, root) = world.any_run();
            let tenant = if world.rng.one_in(5) { world.any_tenant() } else { streams::tenant_of(index) };
            if world.rng.one_in(2) {
                return Op::CountDescendants { tenant, root, most: world.limit() };
            }
            let after = if world.rng.one_in(3) { Some(world.any_run().1) } else { None };
            Op::OpenDescendants { tenant, root, after, limit: world.limit() }
        }
        _ => maintenance(world).await,
    }
}

async fn maintenance(world: &mut World<'_>) -> Op {
    match world.rng.below(21) {
        0 => Op::GetCursor { name: world.rng.pick(&CURSORS).to_owned() },
        1 | 2 => {
            let to = world.cursor();
            let standing = world.model.cursor(&to.name).await.ok().flatten().map(|row| row.position);
            let places = &world.follower.places;
            let mut from = standing.and_then(|position| places.iter().position(|place| *place == position));
            if world.rng.one_in(5) {
                from = Some(world.place());
            }
            Op::MoveCursor { from, to, fence: world.fence(6).await }
        }
        3 | 4 => match world.note().await {
            Some(note) => Op::OutboxPut { note },
            None => Op::OutboxLen,
        },
        5 => Op::OutboxDue { limit: world.limit() },
        6 => Op::OutboxLen,
        7 => Op::OutboxDone { place: world.place() },
        8 => Op::Redrive { place: None },
        9 => Op::DeadLetters { after: world.place(), limit: world.limit() },
        10 => {
            let place = if world.rng.one_in(2) { None } else { Some(world.place()) };
            Op::Redrive { place }
        }
        11 | 12 => Op::RaiseAlert { alert: world.alert() },
        13 => Op::Alerts { scope: world.scope(), limit: world.limit() },
        14 => {
            let NewAlert { code, tenant, subject, .. } = world.alert();
            Op::ClearAlert { code, tenant, subject }
        }
        15 => removal(world),
        16 => Op::TrimSystem { before: world.near(), limit: world.limit() },
        17 => world.import().await,
        18 => Op::LogHead,
        _ => match world.note().await {
            Some(note) => Op::OutboxBury { note },
            None => Op::LogHead,
        },
    }
}

fn removal(world: &mut World<'_>) -> Op {
    match world.rng.below(4) {
        0 => Op::Quarantine { run_id: world.any_run().1, reason: format!("reason {}", world.rng.below(9)) },
        // No rule says which of several finished runs go first, so all that are due go.
        1 => Op::Retire { finished_before: world.near(), limit: 100 },
        _ => Op::DeleteRun { scope: world.scope(), run_id: world.run_or_system() },
    }
}
