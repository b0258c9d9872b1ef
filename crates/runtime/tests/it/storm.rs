//! R21: what runs call is down for ten minutes, and thousands of them try again and again. They try as often as their policy
//! says, they do not try all at once, and when it is up again they do not overrun it.
//!
//! A call takes a while, up or down, and holds a place of the node or of its entrypoint for that long. So what begins within
//! any second is at most `places × (⌊1 s / while⌋ + 1)`: this is the bucket. It is a bound for every retry, whatever it waits for.
//! Below it the random part of a delay spreads the retries of steps, so that their rate is `runs / (mean delay + while)`.
//!
//! `SERVO_TEST_STORM_RUNS=10000` is the size of the goal; without it there are fewer.

#![expect(clippy::print_stdout, reason = "the seed and the figures of a run, shown when it fails or is asked to")]

mod sink;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, RunId, RunStatus};
use servo_replay::{Backoff, Jitter};
use servo_runtime::executions::StartFunction;

use self::sink::{AWAY, Attempt, Sink, TAKES};
use crate::executions::handler::tenant;
use crate::serverless::support::{Bed, FUNCTION, definition, me, request};
use crate::world::World;

const GOAL: u32 = 10_000;
const FEW: u32 = 300;
const DOWN: Duration = Duration::from_secs(600);
/// The part of it in which the rate is steady: all delays have grown to the longest.
const STEADY: Duration = Duration::from_secs(300);
/// The same where they grow as long as it takes: the rate falls, and it is what it was at last that counts.
const AT_LAST: Duration = Duration::from_secs(60);
/// One run in so many gives up early.
const HASTY: u32 = 10;

#[expect(clippy::disallowed_methods, reason = "a long campaign is asked for by the environment")]
fn runs() -> u32 {
    std::env::var("SERVO_TEST_STORM_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(FEW)
}

/// All attempts of the runs of one function.
struct Storm {
    name: &'static str,
    attempts: Vec<Attempt>,
    /// When it was up again.
    up_at: i64,
    places: u32,
    /// Attempts of one run.
    attempts_max: u32,
    /// The part before it was up again whose rate counts.
    steady: Duration,
}

impl Storm {
    fn of(name: &'static str, sink: &Sink, (places, attempts_max): (u32, u32)) -> Self {
        let attempts: Vec<Attempt> = sink.attempts().into_iter().filter(|attempt| attempt.function == name).collect();
        assert!(attempts.windows(2).all(|pair| pair[0].at <= pair[1].at), "in order of time");
        Self { name, attempts, up_at: sink.up_at(), places, attempts_max, steady: STEADY }
    }

    fn times(&self, from: i64, to: i64) -> Vec<i64> {
        self.attempts.iter().map(|attempt| attempt.at).filter(|at| (from..to).contains(at)).collect()
    }

    /// The most that begin within any second, wherever it begins.
    fn peak(&self, from: i64, to: i64) -> usize {
        let times = self.times(from, to);
        let within = |(first, at): (usize, &i64)| times.partition_point(|other| *other < at + 1_000) - first;
        times.iter().enumerate().map(within).max().unwrap_or(0)
    }

    fn steady_from(&self) -> i64 {
        self.up_at - i64::try_from(self.steady.as_millis()).unwrap()
    }

    /// Attempts a second before it is up again.
    fn steady(&self) -> f64 {
        self.times(self.steady_from(), self.up_at).len() as f64 / self.steady.as_secs_f64()
    }

    fn peak_down(&self) -> usize {
        self.peak(i64::MIN, self.up_at)
    }

    fn peak_at_recovery(&self) -> usize {
        self.peak(self.up_at, i64::MAX)
    }

    /// What the places let through in a second.
    fn bucket(&self) -> usize {
        (self.places * u32::try_from(1_000 / TAKES.as_millis() + 1).unwrap()) as usize
    }

    fn attempts_by_run(&self) -> BTreeMap<&RunId, u32> {
        let mut by_run = BTreeMap::new();
        for attempt in &self.attempts {
            *by_run.entry(&attempt.run_id).or_default() += 1;
        }
        by_run
    }

    /// What R21 does not allow.
    fn complaints(&self) -> Vec<&'static str> {
        let (steady, recovery) = (self.steady(), self.peak_at_recovery());
        let most = self.attempts_by_run().into_values().max().unwrap_or(0);
        println!(
            "{}: {} attempts of {} runs, at most {most} of one; within a second at most {} while down and {recovery} then, of {} \
             by the places; {steady:.1} a second before",
            self.name,
            self.attempts.len(),
            self.attempts_by_run().len(),
            self.peak_down(),
            self.bucket(),
        );
        // Of few runs chance alone brings more at times: four standard deviations, and none at the size of the goal.
        let by_chance = if self.attempts_by_run().len() < GOAL as usize / 4 { 4.0 * steady.sqrt() } else { 0.0 };
        let told = [
            (most > self.attempts_max, "more attempts than the policy says"),
            (self.peak_down().max(recovery) > self.bucket(), "more within a second than the places let through"),
            (recovery as f64 > 2.0 * steady + by_chance, "a peak at recovery"),
        ];
        told.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what).collect()
    }
}

/// As the SDK does it by default, but for as long as it takes.
fn patient(jitter: Jitter) -> Backoff {
    Backoff { max_attempts: 100, jitter, ..Backoff::default() }
}

/// Durable functions with one step each. `places` are the node's.
fn steps(seed: u64, runs: u32, places: u32, jitter: Jitter) -> (World, Sink) {
    let hasty = Backoff { jitter, ..Backoff::default() };
    let sink = Sink::new([("patient", patient(jitter)), ("hasty", hasty)]);
    let named = |number| if number % HASTY == 0 { "hasty" } else { "patient" };
    let world = executions(seed, (runs, places), &sink, &FunctionSpec::new(Reach::InProcess), named);
    (world, sink)
}

/// Executions of functions, all started at once. `places` are the node's.
fn executions(
    seed: u64,
    (runs, places): (u32, u32),
    sink: &Sink,
    spec: &FunctionSpec,
    named: impl Fn(u32) -> &'static str + Send + 'static,
) -> World {
    println!("seed {seed}, {runs} runs");
    let world = World::with(seed, |cluster| {
        cluster.handlers = Arc::new(sink.clone());
        cluster.config.dispatch.in_flight_max = places as usize;
    });
    let node = world.leader();
    let executions = node.runtime.executions().clone();
    sink.serve(&executions);
    let (store, spec) = (world.store(), serde_json::to_string(spec).unwrap());
    let begun = world.now();
    world.block_on(async move {
        for name in ["patient", "hasty", AWAY] {
            store.put_function(&tenant(), &FunctionName::parse(name).unwrap(), &spec).await.unwrap();
        }
        for number in 0..runs {
            let function = executions.resolve(&tenant(), named(number), None).await.unwrap();
            let start = StartFunction {
                tenant: tenant(),
                subject: "test".to_owned(),
                function,
                name: None,
                input: Some("{}".to_owned()),
                tenant_id: None,
                client_context: None,
                trace: None,
                synchronous: false,
            };
            executions.start(start).await.unwrap();
        }
    });
    outlast(&world, sink, begun);
    world
}

/// Until it is up again, and until nothing is left to do.
fn outlast(world: &World, sink: &Sink, begun: servo_model::Timestamp) {
    let up_at = begun.plus(DOWN);
    world.pass(up_at.since(world.now()));
    sink.open(up_at);
    let mut seen = 0;
    while sink.attempts().len() > seen {
        seen = sink.attempts().len();
        // Longer than the longest delay.
        world.pass(Duration::from_secs(90));
    }
}

fn statuses(world: &World) -> BTreeMap<&'static str, u32> {
    let mut counts = BTreeMap::new();
    for row in world.rows() {
        *counts.entry(row.status.as_str()).or_default() += 1;
    }
    counts
}

/// R21: steps are tried again after a delay with full jitter.
#[test]
fn steps_that_wait_for_a_sink_do_not_storm_it() {
    let runs = runs();
    let places = (runs / 40).max(1);
    let (world, sink) = steps(210, runs, places, Jitter::Full);
    let patient_runs = runs - runs.div_ceil(HASTY);
    let storm = Storm::of("patient", &sink, (places, patient(Jitter::Full).max_attempts));
    assert_eq!(storm.complaints(), [""; 0]);
    // The longest delay times a number between 0 and 1, in whole seconds from one on.
    let seconds = Backoff::default().max.as_secs_f64();
    let computed = f64::from(patient_runs) / ((seconds + 1.0) / 2.0 + TAKES.as_secs_f64());
    assert!((storm.steady() / computed - 1.0).abs() < 0.1, "{} a second, and not {computed}", storm.steady());
    // Five standard deviations of what comes at that rate and independently.
    let (peak, most) = (storm.peak(storm.steady_from(), storm.up_at), computed + 5.0 * computed.sqrt());
    assert!(peak as f64 <= most, "{peak} within a second, and not {most}");

    let attempts_max = Backoff::default().max_attempts;
    let hasty = Storm::of("hasty", &sink, (places, attempts_max));
    assert!(
        hasty.attempts_by_run().into_values().all(|attempts| attempts == attempts_max),
        "each of them, and no more"
    );
    assert!(hasty.attempts.last().unwrap().at < storm.up_at);
    assert_eq!(storm.attempts_by_run().len(), patient_runs as usize);
    let ended = [(RunStatus::Completed, patient_runs), (RunStatus::Failed, runs - patient_runs)];
    assert_eq!(statuses(&world), ended.map(|(status, count)| (status.as_str(), count)).into());
}

/// The control of the test above: without jitter they come together, and come together again when it is up.
#[test]
fn steps_without_jitter_storm_the_sink() {
    let (runs, places) = (200, 5);
    let (_, sink) = steps(211, runs, places, Jitter::None);
    let storm = Storm::of("patient", &sink, (places, patient(Jitter::None).max_attempts));
    assert_eq!(storm.complaints(), ["a peak at recovery"]);
}

/// The control of the bucket: a node with more places than are counted on.
#[test]
fn more_places_than_counted_on_are_noticed() {
    let (runs, places) = (200, 5);
    let (_, sink) = steps(212, runs, 1_000, Jitter::None);
    let storm = Storm::of("patient", &sink, (places, patient(Jitter::None).max_attempts));
    assert_eq!(storm.complaints(), ["more within a second than the places let through", "a peak at recovery"]);
    let (places, attempts_max) = (1_000, 5);
    let strict = Storm::of("patient", &sink, (places, attempts_max));
    assert_eq!(strict.complaints(), ["more attempts than the policy says", "a peak at recovery"]);
}

const ATTEMPTS_MAX: u32 = 20;

/// Functions, tried again as a whole by the policies of their entrypoints, with so many places each.
fn functions(seed: u64, runs: u32, places: u32) -> (Bed, Sink) {
    println!("seed {seed}, {runs} runs");
    let sink = Sink::new([]);
    let handlers = sink.clone();
    let bed = Bed::of_platform(
        seed,
        |cluster| cluster.handlers = Arc::new(handlers),
        |platform| platform.policy.quotas.max_concurrent_executions = u64::from(runs),
    );
    sink.serve(bed.node().runtime.executions());
    let addresses = [("patient", ATTEMPTS_MAX), ("hasty", 3)].map(|(name, attempts)| {
        let spec = FunctionSpec { durable: false, ..FunctionSpec::new(Reach::InProcess) };
        bed.functions.define_as(&bed.world, name, &spec, |_| std::future::pending());
        let mut document = definition(FUNCTION, name);
        document["traits"]["limits"]["max_concurrent"] = places.into();
        document["traits"]["retry"] =
            json!({"max_attempts": attempts, "initial_delay_ms": 5_000, "max_delay_ms": 60_000, "backoff_multiplier": 2.0});
        let address = bed.register(&document).unwrap().entrypoint_id;
        bed.act(&address, servo_entrypoint::EntrypointStatusAction::Activate).unwrap();
        address
    });
    let begun = bed.world.now();
    let [patient, hasty] = addresses;
    bed.run(|serverless| async move {
        use servo_entrypoint::ServerlessRuntime as _;
        for number in 0..runs {
            let address = if number % HASTY == 0 { &hasty } else { &patient };
            serverless.start_invocation(&me(), request(address, json!({}))).await.unwrap();
        }
    });
    outlast(&bed.world, &sink, begun);
    (bed, sink)
}

/// R21: the delays of an entrypoint's policy are what it says, to the millisecond (SR-047), so it is its places that hold its
/// retries back: fewer get through than are due, as before so when it is up again.
#[test]
fn functions_that_wait_for_a_sink_do_not_storm_it() {
    let runs = runs();
    let places = (runs / 500).max(1);
    let (bed, sink) = functions(213, runs, places);
    let storm = Storm::of("patient", &sink, (places, ATTEMPTS_MAX));
    assert_eq!(storm.complaints(), [""; 0]);
    let hasty = Storm::of("hasty", &sink, (places, 3));
    let three = hasty.attempts_by_run().into_values().all(|attempts| attempts == 3);
    assert!(three, "each of them, and no more");
    assert!(hasty.peak(i64::MIN, i64::MAX) <= hasty.bucket());
    let hasty_runs = runs.div_ceil(HASTY);
    let ended = [(RunStatus::Completed, runs - hasty_runs), (RunStatus::Failed, hasty_runs)];
    assert_eq!(statuses(&bed.world), ended.map(|(status, count)| (status.as_str(), count)).into());
}

/// The control of the test above: with places for all there is nothing that holds them back.
#[test]
fn functions_with_places_for_all_storm_the_sink() {
    let (_, sink) = functions(214, 200, 200);
    let storm = Storm::of("patient", &sink, (200, ATTEMPTS_MAX));
    assert_eq!(storm.complaints(), ["a peak at recovery"]);
}

/// R21: the same of a function that is itself out of reach. Its runs wait as long as they have to, for pauses that differ.
#[test]
fn runs_of_a_function_that_is_away_do_not_storm_it() {
    // They are called more than twice as often.
    let runs = runs() / 2;
    let places = (runs / 10).max(1);
    let sink = Sink::new([]);
    let plain = FunctionSpec { durable: false, ..FunctionSpec::new(Reach::InProcess) };
    let world = executions(215, (runs, places), &sink, &plain, |_| AWAY);
    // One a second until pauses of half of a tenth of the time are longer than that, and then those.
    let attempts_max = 20.0 + (DOWN.as_secs_f64() / 20.0).ln() / 1.05_f64.ln();
    let storm = Storm { steady: AT_LAST, ..Storm::of(AWAY, &sink, (places, attempts_max as u32)) };
    assert_eq!(storm.complaints(), [""; 0]);
    assert_eq!(statuses(&world), [(RunStatus::Completed.as_str(), runs)].into());
}
