//! The execution that another one starts: a second stream in the append of the first, so that neither is without the other.

use servo_machine::{Command, Decision, Run, Spawn, decide};
use servo_model::{RunState, Timestamp};
use servo_store::log::TimerChange;
use servo_store::{Expected, RunRow, Scope, StreamAppend};

use super::prepare::Recorded;
use super::{Engine, Error, Order};

impl Engine {
    pub(super) fn spawned(&self, spawn: &Spawn, now: Timestamp) -> Result<StreamAppend, Error> {
        let tenant = spawn.start.context.tenant_id.clone();
        let command = Command::StartExecution(spawn.start.clone());
        let decision = decide(Run::New(&spawn.run_id), &command, &self.inner.config.policy, now)?;
        let order = Order::new(Scope::Tenant(tenant.clone()), spawn.run_id.clone(), command, "engine");
        let Decision { facts, actions, .. } = decision;
        let new = Recorded { state: Box::new(RunState::new(spawn.run_id.clone())), events: Vec::new() };
        let Recorded { state, events } = self.record(&order, new, facts, now)?;
        let mut stream = StreamAppend::new(spawn.run_id.clone(), tenant.clone(), Expected::New);
        stream.row = Some(RunRow { tenant, ..RunRow::of(&state, None, now) });
        stream.timer = state.next_due(now).map_or(TimerChange::Keep, TimerChange::Set);
        self.apply_actions(&order, &state, &actions, &mut stream);
        stream.events = events;
        Ok(stream)
    }
}
