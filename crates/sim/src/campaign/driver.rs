//! Drives a cluster: load, signals, kills, pauses, clock steps; then the way back to calm.

use std::sync::Arc;
use std::time::Duration;

use servo_machine::{Command, SignalKind};
use servo_model::RunStatus;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, TenantId};
use servo_runtime::engine::Order;
use servo_store::runs::RunQuery;
use servo_store::{LogStore, RegistryStore, RelayStore, RunRow, RunStore, Scope, WorkStore};

use super::{Counts, Ledger, Told, program};
use crate::check::Evidence;
use crate::cluster::{Cluster, Node};
use crate::dice::Dice;
use crate::journal::Write;
use crate::workers::{FUNCTION, Program, Workers};

const NODES: usize = 3;
/// Virtual time after the heal in which everything must end. Steps sleep for seconds at most.
const REST: Duration = Duration::from_secs(900);
/// Rounds of waiting between two signals to runs that wait for one.
const NUDGE_EVERY: u64 = 8;

pub(super) struct Driver<'a> {
    cluster: &'a Cluster,
    dice: Dice,
    nodes: Vec<Option<Node>>,
    /// Nodes that stand still, with the number of actions until they go on.
    paused: Vec<(usize, u64)>,
    ledger: Ledger,
    signals: u64,
    counts: Counts,
    durable: Option<Durable>,
}

/// Executions have dice of their own, so that plans alone play the stories that they always did.
struct Durable {
    workers: Workers,
    dice: Dice,
    programs: u64,
}

impl<'a> Driver<'a> {
    pub(super) fn new(cluster: &'a Cluster, mut dice: Dice, workers: Option<Workers>) -> Self {
        let nodes = (0..NODES).map(|_| Some(cluster.node_with(skew(&mut dice)))).collect();
        let (ledger, paused, counts) = (Arc::default(), Vec::new(), Counts::default());
        let durable = workers.map(|workers| {
            register(cluster);
            Durable { workers, dice: Dice::new(cluster.seed() ^ 0xd0_7a61), programs: 0 }
        });
        let driver = Self { cluster, dice, nodes, paused, ledger, signals: 0, counts, durable };
        driver.tell_workers();
        driver
    }

    /// Which nodes there are.
    fn tell_workers(&self) {
        if let Some(durable) = &self.durable {
            durable.workers.reach(self.cluster, self.nodes.iter().flatten());
        }
    }

    fn start_execution(&mut self) {
        let alive = self.alive();
        let Some(durable) = self.durable.as_mut().filter(|_| !alive.is_empty()) else { return };
        if !durable.dice.percent(40) {
            return;
        }
        durable.programs += 1;
        let program = Program::random(durable.programs, &mut durable.dice);
        let Some(node) = self.nodes[*durable.dice.pick(&alive)].clone() else { return };
        let (ledger, executions) = (self.ledger.clone(), node.runtime.executions().clone());
        self.cluster.sim.tasks(node.id).spawn("client", async move {
            let told = match program::start(&executions, &program).await {
                Ok(run_id) => Told::Started { run_id, request_id: None },
                Err(_) => Told::Failed,
            };
            note(&ledger, told);
        });
    }

    pub(super) fn play(&mut self, actions: u64) {
        for _ in 0..actions {
            let pause = if self.dice.percent(10) { self.dice.below(4_000) } else { self.dice.below(300) };
            self.cluster.sim.run_for(Duration::from_millis(pause));
            self.wake_paused(false);
            self.start_execution();
            match self.dice.below(100) {
                0..40 => self.start(),
                40..70 => self.signal(),
                70..78 => self.kill(),
                78..86 => self.revive(),
                86..96 => self.pause(),
                _ => self.step_clock(),
            }
        }
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|n| self.nodes[*n].is_some()).collect()
    }

    fn start(&mut self) {
        let alive = self.alive();
        if alive.is_empty() {
            return;
        }
        let request = program::request(&mut self.dice, self.cluster.now());
        let node = *self.dice.pick(&alive);
        let Some(node) = self.nodes[node].clone() else { return };
        let ledger = self.ledger.clone();
        // A task of the node: killing the node takes it along, and its client never hears.
        self.cluster.sim.tasks(node.id).spawn("client", async move {
            let request_id = request.run_request_id.clone();
            let told = match node.runtime.engine().start(request).await {
                Ok(started) => Told::Started { run_id: started.run_id, request_id },
                Err(_) => Told::Failed,
            };
            note(&ledger, told);
        });
    }

    fn signal(&mut self) {
        let (alive, runs) = (self.alive(), self.runs());
        if alive.is_empty() || runs.is_empty() {
            return;
        }
        // Mostly one that still does something.
        let open: Vec<RunRow> = runs.iter().filter(|row| !row.status.is_terminal()).cloned().collect();
        let from = if open.is_empty() || self.dice.percent(20) { &runs } else { &open };
        let row = self.dice.pick(from);
        let (run_id, of_handler) = (row.run_id.clone(), *row.plan_id == *FUNCTION);
        // Sometimes an id again: a client that repeats itself, perhaps at another node.
        if !self.dice.percent(15) {
            self.signals += 1;
        }
        let order = program::signal(&mut self.dice, &run_id, self.signals);
        // An execution has no steps of a plan, and what has failed of it is not tried again as a whole.
        let fits = |command: &Command| {
            let Command::Signal(signal) = command else { return false };
            matches!(signal.kind, SignalKind::Pause | SignalKind::Resume | SignalKind::Cancel)
        };
        if of_handler && !order.commands.iter().all(fits) {
            return;
        }
        let node = *self.dice.pick(&alive);
        if let Some(node) = self.nodes[node].clone() {
            self.send(&node, order);
        }
    }

    fn send(&self, node: &Node, order: Order) {
        let (ledger, engine) = (self.ledger.clone(), node.runtime.engine().clone());
        let run_id = order.run_id.clone();
        let signal_id = match order.commands.first() {
            Some(Command::Signal(signal)) => signal.signal_id.to_string(),
            _ => String::new(),
        };
        self.cluster.sim.tasks(node.id).spawn("client", async move {
            let told = match engine.execute(order).await {
                Ok(_) => Told::Signalled { run_id, signal_id },
                Err(_) => Told::Failed,
            };
            note(&ledger, told);
        });
    }

    fn kill(&mut self) {
        let alive = self.alive();
        if alive.is_empty() {
            return;
        }
        let number = *self.dice.pick(&alive);
        if let Some(node) = self.nodes[number].take() {
            self.paused.retain(|(paused, _)| *paused != number);
            self.cluster.sim.resume(node.id);
            self.cluster.kill(&node);
            self.counts.kills += 1;
            self.tell_workers();
        }
    }

    fn revive(&mut self) {
        let dead: Vec<usize> = (0..self.nodes.len()).filter(|n| self.nodes[*n].is_none()).collect();
        if let Some(number) = dead.first() {
            self.nodes[*number] = Some(self.cluster.node_with(skew(&mut self.dice)));
            self.tell_workers();
        }
    }

    /// A node stands still, often for longer than its lease.
    fn pause(&mut self) {
        let alive = self.alive();
        if alive.is_empty() {
            return;
        }
        let number = *self.dice.pick(&alive);
        if let Some(node) = &self.nodes[number]
            && self.paused.iter().all(|(paused, _)| *paused != number)
        {
            self.cluster.sim.pause(node.id);
            self.counts.pauses += 1;
            self.paused.push((number, self.dice.between(1, 12)));
        }
    }

    fn wake_paused(&mut self, all: bool) {
        let mut still = Vec::new();
        for (number, left) in std::mem::take(&mut self.paused) {
            match &self.nodes[number] {
                Some(node) if all || left <= 1 => self.cluster.sim.resume(node.id),
                Some(_) => still.push((number, left - 1)),
                None => {}
            }
        }
        self.paused = still;
    }

    fn step_clock(&mut self) {
        let alive = self.alive();
        if alive.is_empty() {
            return;
        }
        let number = *self.dice.pick(&alive);
        if let Some(node) = &self.nodes[number] {
            node.clock.set_skew(skew(&mut self.dice));
            self.counts.clock_steps += 1;
        }
    }

    fn runs(&self) -> Vec<RunRow> {
        let memory = self.cluster.memory.clone();
        let query = RunQuery { limit: 10_000, ..RunQuery::default() };
        let rows = self.cluster.sim.block_on(async move { memory.list_runs(&Scope::System, &query).await });
        rows.unwrap_or_default()
    }

    /// Brings every node back and every waiting run on, and lets time pass. Says what did not come to its end.
    pub(super) fn come_to_rest(&mut self) -> Vec<String> {
        self.wake_paused(true);
        for number in 0..self.nodes.len() {
            if self.nodes[number].is_none() {
                self.nodes[number] = Some(self.cluster.node_with(0));
            }
        }
        self.tell_workers();
        let deadline = self.cluster.now().plus(REST);
        let mut nudges = 0;
        for round in 0.. {
            let waiting = self.unfinished();
            if waiting.is_empty() || self.cluster.now() > deadline {
                return waiting;
            }
            let nudge = round % NUDGE_EVERY == 0;
            for row in self.runs().into_iter().filter(|row| nudge && !row.status.is_terminal()) {
                let kind = match row.status {
                    RunStatus::Paused => SignalKind::Resume,
                    RunStatus::Pending => SignalKind::Approve,
                    _ => continue,
                };
                nudges += 1;
                let order = program::order(&row.run_id, &format!("nudge-{nudges}"), kind);
                if let Some(node) = self.nodes[0].clone() {
                    self.send(&node, order);
                }
            }
            self.cluster.sim.run_for(Duration::from_secs(2));
        }
        Vec::new()
    }

    /// Everything that is still to be done, in words.
    fn unfinished(&self) -> Vec<String> {
        let mut waiting: Vec<String> = Vec::new();
        for row in self.runs().iter().filter(|row| !row.status.is_terminal()) {
            let aside = row.quarantined.as_ref().map(|reason| format!(" (set aside: {reason})")).unwrap_or_default();
            waiting.push(format!("run {} is {} and does not end{aside}", row.run_id, row.status.as_str()));
        }
        let memory = self.cluster.memory.clone();
        let rest = self.cluster.sim.block_on(async move {
            let backlog = memory.backlog().await?;
            let behind = memory.cursor("relay").await?.map(|row| row.position) < Some(memory.log_head().await?);
            Ok::<_, servo_store::Error>((backlog, behind, memory.outbox_len().await?))
        });
        let Ok((backlog, behind, refused)) = rest else { return vec!["the store does not answer".to_owned()] };
        if backlog.pending + backlog.notified > 0 {
            waiting.push(format!("dispatches are left: {backlog:?}"));
        }
        // The system stream grows all the time, so the relay is never quite done; what counts are the runs' events,
        // which the check of deliveries looks at. Here it must only be seen to move.
        if refused > 0 || (behind && waiting.is_empty() && self.undelivered()) {
            waiting.push("the bus has not got everything".to_owned());
        }
        waiting
    }

    /// Whether an event of a run lies after the relay's place.
    fn undelivered(&self) -> bool {
        let memory = self.cluster.memory.clone();
        let found = self.cluster.sim.block_on(async move {
            let mut at = memory.cursor("relay").await?.map(|row| row.position).unwrap_or_default();
            loop {
                let page = memory.read_log(at, 100_000).await?;
                let found = page.events.iter().any(|event| !event.run_id.is_system());
                if found || page.events.is_empty() {
                    return Ok::<_, servo_store::Error>(found);
                }
                at = page.next;
            }
        });
        found.unwrap_or(false)
    }

    pub(super) fn told(&self) -> Vec<Told> {
        self.ledger.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub(super) fn counts(&self, evidence: &Evidence) -> Counts {
        let of_type = |name: &str| evidence.log.iter().filter(|event| event.event_type == name).count() as u64;
        let epochs = evidence.journal.iter().filter_map(|entry| match entry.what {
            Write::Authority { epoch, .. } => Some(epoch),
            Write::Fenced { .. } => None,
        });
        Counts {
            runs: evidence.rows.len() as u64,
            completed: evidence.rows.iter().filter(|row| row.status == RunStatus::Completed).count() as u64,
            results: of_type("StepCompleted") + of_type("StepFailed"),
            executions: evidence.executions.len() as u64,
            take_overs: of_type("StepTakenOver"),
            epochs: epochs.max().unwrap_or(0),
            starts_ok: evidence.told.iter().filter(|told| matches!(told, Told::Started { .. })).count() as u64,
            signals_ok: evidence.told.iter().filter(|told| matches!(told, Told::Signalled { .. })).count() as u64,
            ..self.counts.clone()
        }
    }
}

/// The one function that all executions are of.
fn register(cluster: &Cluster) {
    let (memory, name) = (cluster.memory.clone(), FunctionName::parse(FUNCTION).expect("a plain word is a name"));
    let document = serde_json::to_string(&FunctionSpec::new(Reach::InProcess)).expect("a plain document");
    let put = async move { memory.put_function(&TenantId::default_tenant(), &name, &document).await.is_ok() };
    assert!(cluster.sim.block_on(put), "the store takes a function");
}

/// Clocks that are right, a little off, or wrong.
fn skew(dice: &mut Dice) -> i64 {
    const HOUR: i64 = 3_600_000;
    *dice.pick(&[0, 0, 150, -150, HOUR, -HOUR, 24 * HOUR, -24 * HOUR])
}

fn note(ledger: &Ledger, told: Told) {
    ledger.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(told);
}
