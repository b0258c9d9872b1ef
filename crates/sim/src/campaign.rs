//! One seed: a cluster under random load and random faults, healed, brought to rest, and judged.

mod driver;
mod program;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use servo_machine::LateResults;
use servo_runtime::RuntimeConfig;

use crate::check::{self, Evidence};
use crate::cluster::Cluster;
use crate::dice::Dice;
use crate::faults::{Fault, RandomFaults};
use crate::recorder::{RecordingAdapter, RecordingBus};
use crate::store::Sabotage;
use crate::workers::{Handled, Workers};

use driver::Driver;

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub seed: u64,
    pub sabotage: Sabotage,
    /// Lets randomness in that no seed has.
    pub leak: bool,
    /// How many things the driver does before it heals.
    pub actions: u64,
    /// Executions of handlers beside the plans.
    pub handlers: bool,
}

impl Options {
    pub fn of(seed: u64) -> Self {
        Self { seed, sabotage: Sabotage::None, leak: false, actions: 80, handlers: false }
    }

    pub fn with_handlers(seed: u64) -> Self {
        Self { handlers: true, ..Self::of(seed) }
    }
}

/// What a seed came to.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    /// A digest of every step that the world took.
    pub trace: u64,
    pub violations: Vec<String>,
    /// The events of the runs that violations name, for whoever looks into it.
    pub history: Vec<String>,
    pub counts: Counts,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, violations, history, counts, .. } = self;
        writeln!(f, "seed {seed}: {} violations", violations.len())?;
        for line in violations.iter().chain(history) {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "{counts:?}")?;
        write!(f, "repeat: SERVO_SIM_FIRST={seed} SERVO_SIM_SEEDS=1 cargo nextest run -p servo-sim lane")
    }
}

/// How much happened: a story in which nothing went wrong proves nothing.
#[derive(Debug, Default, Clone)]
pub struct Counts {
    pub runs: u64,
    pub completed: u64,
    pub results: u64,
    pub executions: u64,
    pub take_overs: u64,
    pub epochs: u64,
    pub kills: u64,
    pub pauses: u64,
    pub clock_steps: u64,
    pub starts_ok: u64,
    pub signals_ok: u64,
    pub refusals_by_bus: u64,
    pub outages_of_bus: u64,
    /// Executions of handlers that succeeded.
    pub succeeded: u64,
    pub handled: Handled,
    pub faults: BTreeMap<Fault, u64>,
}

/// An operation of a client, and what it was told.
#[derive(Debug, Clone)]
pub enum Told {
    Started {
        run_id: servo_model::RunId,
        request_id: Option<String>,
    },
    /// Recorded, as accepted or as rejected.
    Signalled {
        run_id: servo_model::RunId,
        signal_id: String,
    },
    /// An error; what it means is the client's problem.
    Failed,
}

/// What clients were told. Operations of killed nodes are not in it: their clients know nothing.
pub type Ledger = Arc<Mutex<Vec<Told>>>;

/// Settings that make trouble likely: short leases, small batches, no cache.
fn config(dice: &mut Dice) -> RuntimeConfig {
    let mut config = RuntimeConfig::default();
    config.authority.lease_ms = *dice.pick(&[1_500, 3_000, 6_000]);
    config.cache_bytes_max = *dice.pick(&[0, 4_000, 64 * 1024 * 1024]);
    config.poll_ms = *dice.pick(&[200, 1_000]);
    config.dispatch.in_flight_max = *dice.pick(&[1, 3, 256]);
    config.dispatch.stall_after_ms = 4_000;
    config.dispatch.queue_lease_ms = *dice.pick(&[500, 5_000]);
    config.outbox.batch = *dice.pick(&[1, 7, 256]);
    config.outbox.attempts_max = 1_000;
    config.outbox.backoff_max_ms = 2_000;
    config.overload.default.active_runs_max = *dice.pick(&[1, 3, 10_000]);
    config.policy.drain_timeout_ms = *dice.pick(&[500, 5_000]);
    config.policy.late_results = *dice.pick(&[LateResults::Accept, LateResults::Reject]);
    config
}

/// Plays one seed.
pub fn simulate(options: Options) -> Report {
    let mut dice = Dice::new(options.seed).leaking(options.leak);
    let mut cluster = Cluster::new(options.seed);
    let faults = Arc::new(RandomFaults::new(options.seed, dice.between(0, 40), dice.between(20, 200)));
    let bus = Arc::new(RecordingBus::new(options.seed, dice.below(400), dice.between(2, 60)));
    let adapter = RecordingAdapter::default();
    cluster.config = config(&mut dice);
    cluster.faults = faults.clone();
    cluster.bus = bus.clone();
    cluster.adapters = vec![Arc::new(adapter.clone())];
    cluster.sabotage = options.sabotage;
    let workers = Workers::new(&cluster, options.seed);
    cluster.handlers = Arc::new(workers.clone());

    let mut driver = Driver::new(&cluster, dice, options.handlers.then(|| workers.clone()));
    driver.play(options.actions);
    faults.heal();
    bus.heal();
    let stuck = driver.come_to_rest();

    let evidence = Evidence::collect(&cluster, &adapter, &bus, driver.told());
    let mut violations = check::everything(&evidence);
    violations.extend(stuck);
    violations.extend(workers.findings());
    let succeeded = check::handlers::check(&evidence, &workers, &mut violations);
    let history = history(&evidence, &violations);
    let (refusals_by_bus, outages_of_bus) = bus.faults();
    let handled = workers.counts();
    let counts = Counts {
        faults: faults.fired(),
        refusals_by_bus,
        outages_of_bus,
        succeeded,
        handled,
        ..driver.counts(&evidence)
    };
    Report { seed: options.seed, trace: cluster.sim.trace(), violations, history, counts }
}

/// What happened to the runs that are named, a line for each event.
fn history(evidence: &Evidence, violations: &[String]) -> Vec<String> {
    let named = |run: &str| violations.iter().any(|violation| violation.contains(run));
    let events = evidence.log.iter().filter(|event| named(event.run_id.as_str()));
    events
        .map(|event| {
            let (at, by, kind) = (event.emitted_at, &event.emitted_by, &event.event_type);
            let payload: String = event.payload.chars().take(400).collect();
            format!("{} {:>4} {at} {by} {kind} {payload}", event.run_id, event.run_seq)
        })
        .collect()
}
